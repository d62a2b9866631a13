//! When which Job takes its next step. Pure: events and time go in, writes come out.
//!
//! Invariants
//! - A Job has at most one timer; its record goes when it has ended (with a time to live: when that is over) or is deleted.
//! - Timers count on the monotonic clock: a Job runs for a length of time, whoever steps the wall clock.
//! - Timers with the same instant fire in the order in which they were set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::time::Instant;

use super::fate::{Fate, Said, hash_of};
use super::pods::{self, LogText};
use super::status::{self, Failure, Phase};
use super::timers::Timers;
use super::view::{Flavor, JobView};
use super::{Outcome, RunnerOptions};
use crate::model::WallTime;
use crate::sandbox::store::Object;

const SUFFIX: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// One request for the API server.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    /// Merge patch of a Job's `/status`.
    Status { flavor: Flavor, namespace: String, name: String, body: Value },
    /// Creation of a Pod, with what its containers print.
    CreatePod { namespace: String, body: Value, log: Vec<LogText> },
    /// Merge patch of a Pod's `/status`.
    PodStatus { namespace: String, name: String, body: Value },
    /// Deletion of a Job whose time to live is over.
    Delete { flavor: Flavor, namespace: String, name: String },
}

/// What a Job does when its timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Volcano: becomes Pending.
    Queue,
    Start,
    /// batch/v1: `suspend` was set.
    Suspend,
    End(Option<Failure>),
    /// Its time to live is over.
    Remove,
}

#[derive(Debug)]
struct Tracked {
    /// The newest version seen.
    object: Arc<Object>,
    fate: Fate,
    pod_suffix: [u8; 5],
    suspended: bool,
    started: Option<WallTime>,
}

type Key = (Flavor, Arc<str>);

/// All Jobs that have not ended.
#[derive(Debug)]
pub(super) struct Timeline {
    options: RunnerOptions,
    seed: u64,
    jobs: BTreeMap<Key, Tracked>,
    timers: Timers<Key, Step>,
}

impl Timeline {
    pub(super) fn new(options: RunnerOptions, seed: u64, speed: u32) -> Self {
        Self { options, seed, jobs: BTreeMap::new(), timers: Timers::new(speed) }
    }

    /// The next instant at which [`take_due`](Self::take_due) has something.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timers.next_due()
    }

    /// A Job is new or has changed.
    pub(super) fn on_job(&mut self, flavor: Flavor, object: &Arc<Object>, now: Instant) {
        let key = (flavor, object.key.clone());
        let view = match serde_json::from_slice::<JobView>(&object.bytes) {
            Ok(view) => view,
            Err(error) => {
                tracing::warn!(job = &*object.key, %error, "the stand-in cannot read this Job");
                return;
            }
        };
        if object.deleting || view.managed_elsewhere() {
            return self.forget(&key);
        }
        if self.jobs.get(&key).is_some_and(|tracked| tracked.object.uid != object.uid) {
            self.forget(&key);
        }
        if view.finished(flavor) {
            return self.on_finished(key, object, &view, now);
        }
        let Some(tracked) = self.jobs.get_mut(&key) else {
            return self.on_new(key, object, &view, now);
        };
        tracked.object = object.clone();
        if flavor == Flavor::Kubernetes && tracked.suspended != view.spec.suspend {
            tracked.suspended = view.spec.suspend;
            let (step, after) = if view.spec.suspend {
                (Step::Suspend, Duration::ZERO)
            } else {
                (Step::Start, self.options.start_after)
            };
            self.timers.arm(key, step, now, after);
        }
    }

    /// A Job is gone.
    pub(super) fn on_gone(&mut self, flavor: Flavor, key: &Arc<str>, uid: &str) {
        let key = (flavor, key.clone());
        if self.jobs.get(&key).is_some_and(|tracked| &*tracked.object.uid == uid) {
            self.forget(&key);
        }
    }

    /// Forgets Jobs of a flavor that are no longer there.
    pub(super) fn keep_only(&mut self, flavor: Flavor, there: impl Fn(&str) -> bool) {
        let gone: Vec<Key> = self.jobs.keys().filter(|key| key.0 == flavor && !there(&key.1)).cloned().collect();
        gone.iter().for_each(|key| self.forget(key));
    }

    /// The writes of the timers that have come, at most those of `limit` timers.
    pub(super) fn take_due(&mut self, now: Instant, wall: WallTime, limit: usize) -> Vec<Write> {
        let mut writes = Vec::new();
        for _ in 0..limit {
            let Some((key, step)) = self.timers.take(now) else { break };
            self.fire(&key, step, now, wall, &mut writes);
        }
        writes
    }

    fn on_new(&mut self, key: Key, object: &Arc<Object>, view: &JobView, now: Instant) {
        let (fate, pod_suffix) = self.draw(&key, view);
        let suspended = key.0 == Flavor::Kubernetes && view.spec.suspend;
        let running = view.status.start_time.is_some();
        let tracked = Tracked { object: object.clone(), fate, pod_suffix, suspended, started: None };
        self.jobs.insert(key.clone(), tracked);
        match key.0 {
            _ if suspended => self.timers.arm(key, Step::Suspend, now, Duration::ZERO),
            // It was running before anybody here looked.
            Flavor::Kubernetes if running => self.arm_end(key, view, now),
            Flavor::Kubernetes => self.timers.arm(key, Step::Start, now, self.options.start_after),
            Flavor::Volcano => self.timers.arm(key, Step::Queue, now, Duration::ZERO),
        }
    }

    fn on_finished(&mut self, key: Key, object: &Arc<Object>, view: &JobView, now: Instant) {
        match view.spec.ttl_seconds_after_finished {
            None => self.forget(&key),
            Some(ttl_s) => {
                let (fate, pod_suffix) = self.draw(&key, view);
                let fresh = Tracked { object: object.clone(), fate, pod_suffix, suspended: false, started: None };
                self.jobs.entry(key.clone()).or_insert(fresh).object = object.clone();
                if !matches!(self.timers.armed(&key, now), Some((Step::Remove, _))) {
                    self.timers.arm(key, Step::Remove, now, Duration::from_secs(ttl_s));
                }
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        self.jobs.remove(key);
        self.timers.disarm(key);
    }

    /// Sets the timer of a running Job's end, if it has one.
    fn arm_end(&mut self, key: Key, view: &JobView, now: Instant) {
        let Some(fate) = self.jobs.get(&key).map(|tracked| tracked.fate) else { return };
        let deadline = view.spec.active_deadline_seconds.map(Duration::from_secs);
        let failure = (fate.outcome == Outcome::Fail).then_some(Failure::Backoff);
        match (fate.outcome, deadline) {
            (Outcome::Hang, None) => {}
            (Outcome::Hang, Some(deadline)) => self.timers.arm(key, Step::End(Some(Failure::Deadline)), now, deadline),
            (_, Some(deadline)) if deadline <= fate.duration => {
                self.timers.arm(key, Step::End(Some(Failure::Deadline)), now, deadline);
            }
            (..) => self.timers.arm(key, Step::End(failure), now, fate.duration),
        }
    }

    fn fire(&mut self, key: &Key, step: Step, now: Instant, wall: WallTime, writes: &mut Vec<Write>) {
        let Some(tracked) = self.jobs.get_mut(key) else { return };
        let Ok(view) = serde_json::from_slice::<JobView>(&tracked.object.bytes) else { return };
        let flavor = key.0;
        let (namespace, name) = (tracked.object.namespace().to_owned(), tracked.object.name().to_owned());
        let active = view.active(flavor);
        let pod = Pod { job: &name, uid: &tracked.object.uid, namespace: &namespace, suffix: tracked.pod_suffix };
        let pods = self.options.pods && flavor == Flavor::Kubernetes;
        let mut bodies = Vec::new();
        match step {
            Step::Queue => bodies.push(status::phase(&view, Phase::Pending, active, wall)),
            Step::Suspend => bodies.push(status::suspended(&view, wall)),
            Step::Start => {
                bodies.push(match flavor {
                    Flavor::Kubernetes => status::started(&view, active, wall),
                    Flavor::Volcano => status::phase(&view, Phase::Running, active, wall),
                });
                if pods && active > 0 {
                    tracked.started = Some(wall);
                    writes.extend(pod.start(&view.spec.template, wall));
                }
            }
            Step::End(failure) => {
                if let Some(started) = tracked.started {
                    writes.push(pod.end(&view.spec.template, started, failure.is_none(), wall));
                }
                match flavor {
                    Flavor::Kubernetes => bodies.extend(status::ended(&view, active, failure, wall)),
                    Flavor::Volcano => {
                        let phase = if failure.is_none() { Phase::Completed } else { Phase::Failed };
                        bodies.push(status::phase(&view, phase, active, wall));
                    }
                }
            }
            Step::Remove => {
                writes.push(Write::Delete { flavor, namespace: namespace.clone(), name: name.clone() });
            }
        }
        let status = |body| Write::Status { flavor, namespace: namespace.clone(), name: name.clone(), body };
        writes.extend(bodies.into_iter().map(status));
        match step {
            Step::Queue => self.timers.arm(key.clone(), Step::Start, now, self.options.start_after),
            Step::Start => self.arm_end(key.clone(), &view, now),
            Step::Suspend | Step::End(_) | Step::Remove => {}
        }
    }

    /// Decides how long a Job runs and how it ends, and how its Pod is called.
    fn draw(&self, key: &Key, view: &JobView) -> (Fate, [u8; 5]) {
        let flavor = u8::from(key.0 == Flavor::Volcano);
        let mut rng = StdRng::seed_from_u64(self.seed ^ hash_of(key.1.bytes().chain([flavor])));
        let said = Said::read(&key.1, |annotation| view.metadata.annotations.get(annotation).cloned());
        let fate = Fate::draw(&mut rng, &self.options, &said);
        (fate, std::array::from_fn(|_| SUFFIX[rng.random_range(0..SUFFIX.len())]))
    }
}

/// The one Pod of a batch/v1 Job.
struct Pod<'a> {
    job: &'a str,
    uid: &'a str,
    namespace: &'a str,
    suffix: [u8; 5],
}

impl Pod<'_> {
    fn name(&self) -> String {
        format!("{}-{}", self.job, String::from_utf8_lossy(&self.suffix))
    }

    fn start(&self, template: &Value, wall: WallTime) -> [Write; 2] {
        let (name, namespace) = (self.name(), self.namespace.to_owned());
        let body = pods::pod(self.job, self.uid, &name, template);
        let log = pods::logs(&namespace, &name, template, wall);
        let status = pods::status(template, wall, None);
        [
            Write::CreatePod { namespace: namespace.clone(), body, log },
            Write::PodStatus { namespace, name, body: status },
        ]
    }

    fn end(&self, template: &Value, started: WallTime, success: bool, wall: WallTime) -> Write {
        let body = pods::status(template, started, Some((success, wall)));
        Write::PodStatus { namespace: self.namespace.to_owned(), name: self.name(), body }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
