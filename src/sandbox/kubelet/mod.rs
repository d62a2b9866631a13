//! The stand-in for nodes: it puts Pods on one, lets them run and end, and lets them go. Nothing runs.
//!
//! How long and how they end, the options of [`super::runner`] say, and the annotations of a Pod, or of its Job where the Pod has
//! none. It plays the scheduler, the kubelets of all nodes, and the collector of Pods that never came to one.
//!
//! Invariants
//! - One task and one map of timers, whatever the number of Pods; a Pod that has ended costs nothing here.
//! - Faults do not touch it and its writes are not counted: it stands for other programs on other connections.
//! - It acts on nothing while there is news that it has not read.

mod node;
mod status;
mod view;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::call::{Call, Verb};
use super::feed::{Feed, News};
use super::resources::{self, Resource};
use super::runner::fate::Said;
use super::runner::timers::sleep_until;
use super::runner::{RunnerOptions, call, pod_status_call, pods};
use super::shared::Shared;
use super::store::{Moment, Object, Store};
use node::{Nodes, Write};

/// Most timers handled before everybody else gets a turn.
const BATCH: usize = 256;

/// The one node.
const NODE: &str = "sandbox";

/// Runs Pods until `cancel`.
pub(super) async fn run(shared: Arc<Shared>, options: RunnerOptions, seed: u64, cancel: CancellationToken) {
    let Some(pods) = resources::find("", "v1", "pods") else { return };
    let mut nodes = Nodes::new(options, seed, shared.clock.speed());
    let mut feed = Feed::new(&shared, pods);
    while !cancel.is_cancelled() {
        if read_changes(&shared, &mut feed, &mut nodes) {
            tokio::task::yield_now().await;
            continue;
        }
        let writes = nodes.take_due(shared.clock.mono(), shared.clock.wall(), BATCH);
        if !writes.is_empty() {
            apply_writes(&shared, pods, writes);
            tokio::task::yield_now().await;
            continue;
        }
        let due = nodes.next_due();
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            () = feed.changed() => {}
            () = sleep_until(due) => {}
        }
    }
}

/// Tells the nodes what has happened since the last call. Answers whether anything had.
fn read_changes(shared: &Shared, feed: &mut Feed, nodes: &mut Nodes) -> bool {
    let (mono, wall) = (shared.clock.mono(), shared.clock.wall());
    shared.read(|store| {
        let Some(news) = feed.take(store) else { return false };
        match news {
            News::Changes(changes) => {
                for (alive, object) in changes {
                    if alive {
                        nodes.on_pod(&object, || said(store, &object), mono, wall);
                    } else {
                        nodes.on_gone(&object);
                    }
                }
            }
            News::Everything(objects) => {
                nodes.keep_only(|key| objects.binary_search_by(|object| (*object.key).cmp(key)).is_ok());
                objects.iter().for_each(|object| nodes.on_pod(object, || said(store, object), mono, wall));
            }
        }
        true
    })
}

/// What the annotations of a Pod say, and where they say nothing those of its Job.
fn said(store: &Store, pod: &Object) -> Said {
    let value = pod.value();
    let owners = value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true && owner["kind"] == "Job");
    let job = controller.and_then(|owner| {
        let jobs = resources::find("batch", "v1", "jobs")?;
        let job = store.get(jobs, pod.namespace(), owner["name"].as_str()?)?;
        (job["metadata"]["uid"] == owner["uid"]).then_some(job)
    });
    let annotation = |of: &'_ Value, name: &str| of["metadata"]["annotations"][name].as_str().map(str::to_owned);
    let found = |name: &str| annotation(&value, name).or_else(|| annotation(job.as_ref()?, name));
    Said::read(&pod.key, found)
}

fn apply_writes(shared: &Shared, pods: &'static Resource, writes: Vec<(Arc<Object>, Write)>) {
    for (pod, write) in writes {
        shared.write(|store, moment| {
            // Another one may have its name by now.
            let current = store.collection(pods).and_then(|pods| pods.get(&pod.key));
            if current.is_some_and(|current| current.uid == pod.uid) {
                apply(store, moment, pods, &pod, write);
            }
        });
    }
}

fn apply(store: &mut Store, moment: &mut Moment<'_>, resource: &'static Resource, pod: &Object, write: Write) {
    let (namespace, name) = (pod.namespace().to_owned(), pod.name().to_owned());
    let request: Option<Call> = match write {
        Write::Bind => {
            store.bind(&pod.key, &pod.uid, NODE, moment.now);
            None
        }
        Write::Log => {
            for line in pods::logs(&namespace, &name, &pod.value(), moment.now) {
                store.set_log(&line.namespace, &line.pod, &line.container, &line.text);
            }
            None
        }
        Write::Status(body) => pod_status_call(namespace, name, &body),
        Write::Delete => Some(call(Verb::Delete, resource, namespace, name, &json!({ "gracePeriodSeconds": 0 }))),
    };
    if let Some(request) = request
        && let Err(refusal) = store.apply(&request, moment)
    {
        tracing::warn!(pod = &*pod.key, %refusal, "the stand-in could not write");
    }
}
