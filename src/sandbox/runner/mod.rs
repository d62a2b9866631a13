//! The stand-in for what runs Jobs: it starts every Job and lets it complete, fail or hang, without running anything.
//!
//! Annotations of a Job decide, options where there are none (a CronJob sets them in `spec.jobTemplate.metadata.annotations`):
//! - `sandbox.cronjob-controller.dev/duration`: how long it runs, e.g. `90s`, `1h30m`;
//! - `sandbox.cronjob-controller.dev/outcome`: `complete`, `fail` or `hang`.
//!
//! Invariants
//! - One task and one map of timers, whatever the number of Jobs; a Job that has ended costs nothing here.
//! - Faults do not touch it and its writes are not counted: it stands for other programs on other connections.
//! - Everything drawn at random follows from the seed and the Job's key, so it does not depend on the order of events.

mod duration;
pub(super) mod fate;
pub(super) mod pods;
pub(super) mod status;
mod timeline;
pub(super) mod timers;
mod view;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::call::{Call, Form, Subresource, Verb};
use super::feed::{Feed, News};
use super::options::Options;
use super::resources::{self, Resource};
use super::shared::Shared;
use timeline::{Timeline, Write};
use timers::sleep_until;
use view::Flavor;

pub use duration::parse_duration;

/// Most changes or timers handled before everybody else gets a turn.
const BATCH: usize = 256;

/// How a Job ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Successfully.
    #[default]
    Complete,
    /// With an error.
    Fail,
    /// Not at all.
    Hang,
}

impl Outcome {
    /// Reads the annotation's or the flag's value.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "complete" => Some(Self::Complete),
            "fail" => Some(Self::Fail),
            "hang" => Some(Self::Hang),
            _ => None,
        }
    }
}

/// What Jobs do that do not say it themselves. All times are wall time: a clock that runs faster shortens them.
#[derive(Clone, Copy, Debug)]
pub struct RunnerOptions {
    /// From a Job's creation until it runs.
    pub start_after: Duration,
    /// How long it runs.
    pub duration: Duration,
    /// A random addition to `duration`, from zero up to this.
    pub spread: Duration,
    /// How it ends.
    pub outcome: Outcome,
    /// How many in a hundred of those that should complete fail instead.
    pub failure_percent: u8,
    /// Whether a batch/v1 Job also gets a Pod, with a text for `kubectl logs`.
    pub pods: bool,
    /// Whether a Job controller looks after batch/v1 Jobs. They are left to it then, and what is said here of Jobs counts for
    /// their Pods, which run on nodes that are played ([`super::kubelet`]).
    pub job_controller: bool,
}

impl Default for RunnerOptions {
    fn default() -> Self {
        Self {
            start_after: Duration::from_secs(1),
            duration: Duration::from_secs(30),
            spread: Duration::ZERO,
            outcome: Outcome::Complete,
            failure_percent: 0,
            pods: false,
            job_controller: false,
        }
    }
}

/// Runs Jobs until `cancel`.
pub(super) async fn run(shared: Arc<Shared>, options: RunnerOptions, seed: u64, cancel: CancellationToken) {
    let mut timeline = Timeline::new(options, seed, shared.clock.speed());
    let feed = |flavor: Flavor| {
        let resource = resources::find(flavor.group(), flavor.version(), "jobs");
        resource.map(|resource| Feed::new(&shared, resource))
    };
    let kubernetes = if options.job_controller { None } else { feed(Flavor::Kubernetes) };
    let (mut kubernetes, mut volcano) = (kubernetes, feed(Flavor::Volcano));
    while !cancel.is_cancelled() {
        let mut seen = read_changes(&shared, Flavor::Kubernetes, kubernetes.as_mut(), &mut timeline);
        seen |= read_changes(&shared, Flavor::Volcano, volcano.as_mut(), &mut timeline);
        let writes = timeline.take_due(shared.clock.mono(), shared.clock.wall(), BATCH);
        if seen || !writes.is_empty() {
            apply_writes(&shared, writes);
            tokio::task::yield_now().await;
            continue;
        }
        let due = timeline.next_due();
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            () = changed(kubernetes.as_mut()) => {}
            () = changed(volcano.as_mut()) => {}
            () = sleep_until(due) => {}
        }
    }
}

async fn changed(feed: Option<&mut Feed>) {
    match feed {
        Some(feed) => feed.changed().await,
        None => std::future::pending().await,
    }
}

/// Tells the timeline what has happened since the last call. Answers whether anything had.
fn read_changes(shared: &Shared, flavor: Flavor, feed: Option<&mut Feed>, timeline: &mut Timeline) -> bool {
    let Some(news) = feed.and_then(|feed| shared.read(|store| feed.take(store))) else { return false };
    let mono = shared.clock.mono();
    match news {
        News::Changes(changes) => {
            for (alive, object) in changes {
                if alive {
                    timeline.on_job(flavor, &object, mono);
                } else {
                    timeline.on_gone(flavor, &object.key, &object.uid);
                }
            }
        }
        News::Everything(objects) => {
            timeline.keep_only(flavor, |key| objects.binary_search_by(|object| (*object.key).cmp(key)).is_ok());
            objects.iter().for_each(|object| timeline.on_job(flavor, object, mono));
        }
    }
    true
}

fn apply_writes(shared: &Shared, writes: Vec<Write>) {
    for write in writes {
        let (call, log) = match write {
            Write::Status { flavor, namespace, name, body } => (status_call(flavor, namespace, name, &body), None),
            Write::PodStatus { namespace, name, body } => (pod_status_call(namespace, name, &body), None),
            Write::Delete { flavor, namespace, name } => (delete_call(flavor, namespace, name), None),
            Write::CreatePod { namespace, body, log } => (create_pod_call(namespace, &body), Some(log)),
        };
        let Some(call) = call else { continue };
        shared.write(|store, moment| {
            // A Job that went away meanwhile is no news; anything else is a mistake of this room.
            if let Err(refusal) = store.apply(&call, moment)
                && refusal.code != 404
            {
                tracing::warn!(namespace = call.namespace, name = call.name, %refusal, "the stand-in could not write");
            }
            for line in log.into_iter().flatten() {
                store.set_log(&line.namespace, &line.pod, &line.container, &line.text);
            }
        });
    }
}

fn status_call(flavor: Flavor, namespace: String, name: String, body: &Value) -> Option<Call> {
    let resource = resources::find(flavor.group(), flavor.version(), "jobs")?;
    Some(Call { subresource: Subresource::Status, ..call(Verb::Patch, resource, namespace, name, body) })
}

/// A merge patch of a Pod's status.
pub(super) fn pod_status_call(namespace: String, name: String, body: &Value) -> Option<Call> {
    let resource = resources::find("", "v1", "pods")?;
    Some(Call { subresource: Subresource::Status, ..call(Verb::Patch, resource, namespace, name, body) })
}

fn create_pod_call(namespace: String, body: &Value) -> Option<Call> {
    let resource = resources::find("", "v1", "pods")?;
    Some(call(Verb::Create, resource, namespace, String::new(), body))
}

fn delete_call(flavor: Flavor, namespace: String, name: String) -> Option<Call> {
    let resource = resources::find(flavor.group(), flavor.version(), "jobs")?;
    let options = Options { propagation_policy: "Background".to_owned(), ..Options::default() };
    Some(Call { options, body: Bytes::new(), ..call(Verb::Delete, resource, namespace, name, &Value::Null) })
}

/// A request of a stand-in; a patch is a merge patch.
pub(super) fn call(verb: Verb, resource: &'static Resource, namespace: String, name: String, body: &Value) -> Call {
    let content_type = if verb == Verb::Patch { "application/merge-patch+json" } else { "application/json" };
    Call {
        verb,
        resource,
        namespace,
        name,
        subresource: Subresource::Main,
        options: Options::default(),
        form: Form::Object,
        content_type: content_type.to_owned(),
        body: body.to_string().into(),
    }
}
