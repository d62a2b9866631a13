//! The actor of one Job: its memory between steps, and the loop that drives a step.

use std::sync::Arc;

use chrono::TimeDelta;
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::calls::Calls;
use super::voice::Voice;
use crate::clock::Clock;
use crate::cluster::Store;
use crate::controllers::requests::back_off;
use crate::engine::{Kind, Next, Retry, StepContext, Wake, stable_hash};
use crate::jobs::{self, Call, Mandate, Memory, Outcome, PodCache, Step, deadline};
use crate::model::{BatchJob, ObjectKey, Pod, Uid, WallTime};

impl PodCache for Store<Pod> {
    fn owned(&self, job: &Uid) -> Vec<Arc<Pod>> {
        self.children(job)
    }

    fn unowned(&self, namespace: &str) -> Vec<Arc<Pod>> {
        Self::unowned(self, namespace)
    }

    fn version(&self) -> Option<Box<str>> {
        Self::version(self)
    }
}

/// All Jobs that are ours, as the engine sees them.
pub(super) struct BatchJobs {
    pub(super) mandate: Mandate,
    pub(super) jobs: Store<BatchJob>,
    pub(super) pods: Store<Pod>,
    pub(super) calls: Calls,
    pub(super) voice: Voice,
    pub(super) clock: Clock,
}

impl BatchJobs {
    /// Drives one step of `job` to its end, saying what there is to say as it comes.
    async fn drive(&self, job: &Arc<BatchJob>, memory: &mut Memory, now: WallTime) -> Outcome {
        let mut step = Step::begin(&self.mandate, job.clone(), &self.pods, memory, now);
        loop {
            match step.advance() {
                jobs::Next::Calls(calls) => {
                    self.voice.say_all(job, step.take_happenings());
                    self.perform_all(&job.key, &calls, &mut step).await;
                }
                jobs::Next::Done(mut outcome) => {
                    self.voice.say_all(job, std::mem::take(&mut outcome.happenings));
                    return *outcome;
                }
            }
        }
    }

    /// Sends all calls of a batch at once. The step learns of each answer as it comes, so that one cut off here knows what was done.
    async fn perform_all(&self, key: &ObjectKey, calls: &[Call], step: &mut Step<'_>) {
        let sent = |(place, call)| async move { (place, self.calls.perform(&key.namespace, call).await) };
        let mut answers: FuturesUnordered<_> = calls.iter().enumerate().map(sent).collect();
        while let Some((place, answer)) = answers.next().await {
            step.answer(place, answer);
        }
    }
}

impl Kind for BatchJobs {
    type Key = ObjectKey;
    /// When a step is wanted.
    type Message = Wake;
    type Mailbox = ();
    type Mail = ();
    type State = Memory;

    fn tenant(key: &ObjectKey) -> u64 {
        stable_hash(&*key.namespace)
    }

    /// Delays are wall time: where a clock runs faster, they are over sooner.
    fn fold(&self, _key: &ObjectKey, _mailbox: &mut (), wake: Wake, now: WallTime) -> Wake {
        let Wake::After(delay) = wake else { return wake };
        let at = TimeDelta::from_std(delay).ok().and_then(|delay| now.checked_add_signed(delay));
        Wake::After(at.map_or(delay, |at| self.clock.until(at)))
    }

    fn collect(&self, _key: &ObjectKey, _mailbox: &()) {}

    fn due(&self, key: &ObjectKey, _mail: &(), _now: WallTime) -> Option<WallTime> {
        self.jobs.get(key).filter(|job| !job.finished()).and_then(|job| deadline(&job))
    }

    fn open(&self, _key: &ObjectKey) -> Memory {
        Memory::default()
    }

    async fn step(&self, key: &ObjectKey, memory: &mut Memory, _mail: (), context: &StepContext) -> Next {
        let Some(job) = self.jobs.get(key) else { return Next::gone() };
        let begun = self.clock.mono();
        let outcome = self.drive(&job, memory, context.now).await;
        self.voice.report(&job, &outcome, self.clock.mono().saturating_duration_since(begun));
        next_of(&outcome, context.now)
    }
}

/// What the engine is told: when to look again though nothing is heard, and how to go on after an error.
fn next_of(outcome: &Outcome, now: WallTime) -> Next {
    let later = outcome.requeue.and_then(|wait| TimeDelta::from_std(wait).ok());
    let due = later.and_then(|wait| now.checked_add_signed(wait));
    match &outcome.error {
        None => Next::done(due),
        Some(error) if error.conflict => Next::failed(Retry::Conflict, due),
        Some(error) => Next::failed(back_off(error.retry_after), due),
    }
}
