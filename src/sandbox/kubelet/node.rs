//! Which Pod takes which step when. Pure: Pods and time go in, writes come out.
//!
//! Invariants
//! - What a Pod does next follows from its newest version, so a reader that was left behind goes on from there.
//! - A Pod has at most one timer. Timers count on the monotonic clock, deadlines and grace from the times in the Pod.
//! - What is drawn at random follows from the seed, the Pod's key and the number of the attempt.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use tokio::time::Instant;

use super::status::{self, Containers, Exit};
use super::view::PodView;
use crate::model::WallTime;
use crate::sandbox::runner::fate::{Fate, Said, hash_of};
use crate::sandbox::runner::timers::Timers;
use crate::sandbox::runner::{Outcome, RunnerOptions};
use crate::sandbox::store::Object;

/// How long containers take to end when they are told to; one that hangs takes all the grace there is.
const STOP_AFTER: Duration = Duration::from_secs(1);
/// When the collector of Pods looks at one that is to go and never came to a node.
const COLLECT_AFTER: Duration = Duration::from_secs(20);
/// The first wait before a restart, from the second restart on; each further one is twice as long.
const FIRST_BACK_OFF_S: u64 = 10;
const LONGEST_BACK_OFF_S: u64 = 300;

const SIGTERM: i32 = 143;
const SIGKILL: i32 = 137;
const DEADLINE: (&str, &str) = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    /// The Pod gets its node.
    Bind,
    /// Merge patch of its `/status`.
    Status(Value),
    /// Its containers print their first line.
    Log,
    /// It goes, without grace.
    Delete,
}

/// What a Pod does when its timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Bind,
    /// The node takes it.
    Admit,
    /// Its containers run, for the first time or anew.
    Start,
    /// They end by themselves.
    Exit,
    /// The Pod has been active for too long.
    Expire,
    /// They end because the Pod is to go.
    Stop,
    /// Nothing of it is left on the node.
    Confirm,
    /// It is to go and never came to a node.
    Collect,
}

#[derive(Debug)]
struct Tracked {
    /// The newest version seen.
    object: Arc<Object>,
    said: Said,
}

/// All nodes, and every Pod that has not ended.
#[derive(Debug)]
pub(super) struct Nodes {
    options: RunnerOptions,
    seed: u64,
    pods: BTreeMap<Arc<str>, Tracked>,
    timers: Timers<Arc<str>, Step>,
}

impl Nodes {
    pub(super) fn new(options: RunnerOptions, seed: u64, speed: u32) -> Self {
        Self { options, seed, pods: BTreeMap::new(), timers: Timers::new(speed) }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timers.next_due()
    }

    /// A Pod is new or has changed. `said` is asked once for each Pod.
    pub(super) fn on_pod(&mut self, object: &Arc<Object>, said: impl FnOnce() -> Said, mono: Instant, wall: WallTime) {
        let Some(pod) = view(object) else { return };
        let key = &object.key;
        if self.pods.get(key).is_some_and(|tracked| tracked.object.uid != object.uid) {
            self.forget(key);
        }
        if pod.finished() && !object.deleting {
            return self.forget(key);
        }
        match self.pods.get_mut(key) {
            Some(tracked) => tracked.object = object.clone(),
            None => drop(self.pods.insert(key.clone(), Tracked { object: object.clone(), said: said() })),
        }
        let Some((step, after)) = self.next_step(key, &pod, wall) else { return self.timers.disarm(key) };
        // A change that has nothing to do with the step does not put it off.
        let sooner = |(armed, left): (Step, Duration)| armed == step && left <= after;
        if !self.timers.armed(key, mono).is_some_and(sooner) {
            self.timers.arm(key.clone(), step, mono, after);
        }
    }

    /// A Pod is gone.
    pub(super) fn on_gone(&mut self, object: &Object) {
        if self.pods.get(&object.key).is_some_and(|tracked| tracked.object.uid == object.uid) {
            self.forget(&object.key);
        }
    }

    /// Forgets Pods that are no longer there.
    pub(super) fn keep_only(&mut self, there: impl Fn(&str) -> bool) {
        let gone: Vec<Arc<str>> = self.pods.keys().filter(|key| !there(key)).cloned().collect();
        gone.iter().for_each(|key| self.forget(key));
    }

    /// The writes of the timers that have come, each with its Pod, at most those of `limit` timers.
    pub(super) fn take_due(&mut self, mono: Instant, wall: WallTime, limit: usize) -> Vec<(Arc<Object>, Write)> {
        let mut writes = Vec::new();
        for _ in 0..limit {
            let Some((key, step)) = self.timers.take(mono) else { break };
            let Some(tracked) = self.pods.get(&key) else { continue };
            let Some(pod) = view(&tracked.object) else { continue };
            let object = &tracked.object;
            writes.extend(self.writes(tracked, &pod, step, wall).into_iter().map(|write| (object.clone(), write)));
        }
        writes
    }

    fn forget(&mut self, key: &Arc<str>) {
        self.pods.remove(key);
        self.timers.disarm(key);
    }

    fn next_step(&self, key: &Arc<str>, pod: &PodView, wall: WallTime) -> Option<(Step, Duration)> {
        let tracked = self.pods.get(key)?;
        let at_once = |step| Some((step, Duration::ZERO));
        if tracked.object.deleting {
            let placed = !pod.spec.node_name.is_empty();
            return match (pod.finished(), placed) {
                // Finalizers may hold what the server knows to be due.
                (true, _) if pod.metadata.deletion_grace_period_seconds == 0 => None,
                (true, _) => at_once(Step::Confirm),
                (false, false) => Some((Step::Collect, COLLECT_AFTER)),
                (false, true) => Some((Step::Stop, self.time_to_stop(tracked, pod, wall))),
            };
        }
        if pod.spec.node_name.is_empty() {
            return if pod.spec.scheduling_gates.is_empty() { at_once(Step::Bind) } else { None };
        }
        let Some(started) = pod.status.start_time else { return at_once(Step::Admit) };
        let fate = self.fate(tracked, pod.restarts());
        let next = if pod.running() {
            (fate.outcome != Outcome::Hang).then_some((Step::Exit, fate.duration))
        } else if pod.status.phase == "Pending" {
            Some((Step::Start, self.options.start_after))
        } else {
            Some((Step::Start, Duration::from_secs(back_off_s(pod.restarts() + 1))))
        };
        let left = pod
            .spec
            .active_deadline_seconds
            .map(|seconds| Duration::from_secs(seconds).saturating_sub((wall - started).to_std().unwrap_or_default()));
        match (next, left) {
            (Some((_, after)), Some(left)) if left <= after => Some((Step::Expire, left)),
            (None, Some(left)) => Some((Step::Expire, left)),
            (next, _) => next,
        }
    }

    fn time_to_stop(&self, tracked: &Tracked, pod: &PodView, wall: WallTime) -> Duration {
        let left = pod.metadata.deletion_timestamp.map(|due| (due - wall).to_std().unwrap_or_default());
        let left = left.unwrap_or_default();
        match self.fate(tracked, pod.restarts()).outcome {
            _ if !pod.running() => Duration::ZERO,
            Outcome::Hang => left,
            Outcome::Complete | Outcome::Fail => STOP_AFTER.min(left),
        }
    }

    fn writes(&self, tracked: &Tracked, pod: &PodView, step: Step, wall: WallTime) -> Vec<Write> {
        let restarts = pod.restarts();
        let fate = self.fate(tracked, restarts);
        let started = pod.running_since().unwrap_or(wall);
        let exit = |code| Exit { code, started, ended: wall };
        let stopped = |why| {
            let code = if fate.outcome == Outcome::Hang { SIGKILL } else { SIGTERM };
            let containers = if pod.running() {
                Containers::Ended { exit: exit(code), restarts }
            } else {
                Containers::Idle { restarts }
            };
            Write::Status(status::status(pod, "Failed", containers, why, wall))
        };
        match step {
            Step::Bind => vec![Write::Bind],
            Step::Admit => vec![Write::Status(status::status(pod, "Pending", Containers::Creating, None, wall))],
            Step::Start => {
                let first = pod.status.phase == "Pending";
                let restarts = if first { 0 } else { restarts + 1 };
                let running = Containers::Running { since: wall, restarts, crash: None };
                let status = Write::Status(status::status(pod, "Running", running, None, wall));
                if first { vec![status, Write::Log] } else { vec![status] }
            }
            Step::Exit => {
                let code = if fate.outcome == Outcome::Complete { 0 } else { tracked.said.exit_code.unwrap_or(1) };
                vec![Write::Status(after_exit(pod, exit(code), wall))]
            }
            Step::Expire => vec![stopped(Some(DEADLINE))],
            // What is left is confirmed once the server has this.
            Step::Stop => vec![stopped(None)],
            Step::Confirm => vec![Write::Delete],
            Step::Collect => vec![Write::Status(status::unplaced())],
        }
    }

    fn fate(&self, tracked: &Tracked, attempt: u32) -> Fate {
        let bytes = tracked.object.key.bytes().chain(attempt.to_le_bytes());
        Fate::draw(&mut StdRng::seed_from_u64(self.seed ^ hash_of(bytes)), &self.options, &tracked.said)
    }
}

/// The status once the containers have ended by themselves: for good, or until they run again.
fn after_exit(pod: &PodView, exit: Exit, wall: WallTime) -> Value {
    let restarts = pod.restarts();
    let again = match pod.spec.restart_policy.as_str() {
        "Never" => false,
        "OnFailure" => exit.code != 0,
        _ => true,
    };
    let ended = Containers::Ended { exit, restarts };
    match (again, back_off_s(restarts + 1)) {
        (false, _) => {
            let phase = if exit.code == 0 { "Succeeded" } else { "Failed" };
            status::status(pod, phase, ended, None, wall)
        }
        (true, 0) => {
            let running = Containers::Running { since: wall, restarts: restarts + 1, crash: Some(exit) };
            status::status(pod, "Running", running, None, wall)
        }
        (true, wait_s) => status::status(pod, "Running", Containers::Crashed { exit, restarts, wait_s }, None, wall),
    }
}

/// The wait before a restart, by its number from one.
fn back_off_s(restart: u32) -> u64 {
    match restart {
        0 | 1 => 0,
        more => FIRST_BACK_OFF_S.saturating_mul(1 << (more - 2).min(10)).min(LONGEST_BACK_OFF_S),
    }
}

fn view(object: &Object) -> Option<PodView> {
    serde_json::from_slice(&object.bytes)
        .map_err(|error| tracing::warn!(pod = &*object.key, %error, "the stand-in cannot read this Pod"))
        .ok()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
