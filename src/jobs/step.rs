//! One step of one Job, as a machine: it is asked for its next requests, given their answers, and so on until it is done.
//!
//! Invariants
//! - The machine does nothing but decide: no I/O, no clock; `now` is one instant for the whole step.
//! - The requests of one batch don't depend on each other: they may be sent in any order or at once, and each answer is noted in the
//!   memory as it comes. A step may be dropped anywhere, also within a batch; the next one finds its way.
//! - All that a step decides, it decides on one copy of the Job and one view of its Pods. Expectations are looked at before the Pods.
//! - A finalizer goes only after the write that recorded its Pod succeeded.

mod claiming;
mod counting;
mod managing;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use chrono::{SubsecRound, TimeDelta};

use super::accounting::Recorded;
use super::call::{Action, Answer, Call, Next, Outcome, PodList, PodPatch, StepError};
use super::census::Census;
use super::classify::count;
use super::delay::BackOff;
use super::manage::{MAX_PODS_PER_STEP, Plan, plan};
use super::mandate::Mandate;
use super::memory::{Memory, PodCache};
use super::new_pod::PodAdditions;
use super::verdict::{Verdict, deadline, verdict};
use crate::model::{ApiFailure, BatchJob, CompletionMode, EventType, Happening, Pod, Uid, WallTime};

/// The shortest wait for the end of a back-off; changes of one Job within it are looked at together.
pub const BATCH_PERIOD: Duration = Duration::from_secs(1);

/// A step under way. Made by [`begin`](Self::begin), driven by [`advance`](Self::advance) and [`answer`](Self::answer).
pub struct Step<'a> {
    mandate: &'a Mandate,
    now: WallTime,
    cache: &'a dyn PodCache,
    memory: &'a mut Memory,
    /// The copy that the next write is based on.
    base: Arc<BatchJob>,
    /// The same with its status as edited so far.
    job: BatchJob,
    /// Whether all own creations and deletions were visible when the step began.
    satisfied: bool,
    /// The Pods that the server listed, where the cache is not taken on trust.
    listed: Option<Vec<Arc<Pod>>>,
    /// The Job's Pods.
    pods: Vec<Arc<Pod>>,
    /// Pods to adopt once the live Job is known.
    adoptable: Vec<Arc<Pod>>,
    /// Why nothing may be adopted.
    hindrance: Option<String>,
    census: Census,
    /// The verdict of this step; `None` again if it must not take effect yet.
    verdict: Option<Verdict>,
    /// The record after this step's ends, stored once they are.
    back_off: BackOff,
    /// Whether the number of Pods was looked at.
    managed: bool,
    active: i32,
    ready: i32,
    terminating: i32,
    /// Pods still to be created, and how many the next batch holds.
    to_create: VecDeque<PodAdditions>,
    batch: usize,
    /// Uids of Pods that have the finalizer.
    tracked: BTreeSet<Uid>,
    recorded: Recorded,
    /// The first failure in creating or deleting; the status is written all the same.
    managing_error: Option<StepError>,
    /// The first finalizer that could not be removed.
    counting_error: Option<StepError>,
    todo: VecDeque<Stage>,
    in_flight: Vec<Option<Task>>,
    outcome: Outcome,
}

/// A part of a step, with at most one batch of requests.
enum Stage {
    /// Find the Job's Pods; release and adopt.
    Claim,
    Adopt,
    /// Count, judge, plan.
    Decide,
    /// Delete active Pods, for there is a verdict.
    DeleteActive(Vec<Arc<Pod>>),
    /// See whether the verdict stands.
    Verdict,
    /// Take the finalizer off surplus Pods, which are then not counted.
    UntrackSurplus(Vec<Arc<Pod>>),
    /// Delete those.
    DeleteSurplus(Vec<Arc<Pod>>),
    /// Create the next batch.
    Create,
    /// Complete? Suspended? Resumed?
    Judge,
    /// First write.
    Record,
    /// Take the finalizers off.
    Untrack,
    /// Second write.
    Settle,
}

/// A request under way.
enum Task {
    Release(Arc<Pod>),
    LiveJob,
    Adopt(Arc<Pod>),
    ListPods,
    ReadJob,
    DeleteActive(Arc<Pod>),
    UntrackSurplus(Arc<Pod>),
    DeleteSurplus(Arc<Pod>),
    Create(PodAdditions),
    Record,
    Untrack(Arc<Pod>),
    Settle { finished: bool },
}

impl<'a> Step<'a> {
    /// Begins a step on `job` as the watch shows it. `memory` is that Job's own, and must be kept for its next step.
    pub fn begin(
        mandate: &'a Mandate,
        job: Arc<BatchJob>,
        cache: &'a dyn PodCache,
        memory: &'a mut Memory,
        now: WallTime,
    ) -> Self {
        let base = memory.newest(job);
        let mut step = Self {
            mandate,
            now: now.trunc_subsecs(0),
            cache,
            memory,
            job: (*base).clone(),
            base,
            satisfied: true,
            listed: None,
            pods: Vec::new(),
            adoptable: Vec::new(),
            hindrance: None,
            census: Census::default(),
            verdict: None,
            back_off: BackOff::default(),
            managed: false,
            active: 0,
            ready: 0,
            terminating: 0,
            to_create: VecDeque::new(),
            batch: 1,
            tracked: BTreeSet::new(),
            recorded: Recorded::default(),
            managing_error: None,
            counting_error: None,
            todo: VecDeque::new(),
            in_flight: Vec::new(),
            outcome: Outcome::default(),
        };
        step.open();
        step
    }

    /// The next requests, or the outcome. Requests of the last batch that were not answered count as lost.
    pub fn advance(&mut self) -> Next {
        for place in 0..self.in_flight.len() {
            self.answer(place, Answer::Deleted(Err(no_answer())));
        }
        while let Some(stage) = self.todo.pop_front() {
            let tasks = self.enter(stage);
            if !tasks.is_empty() {
                let calls = tasks.iter().map(|task| self.call(task)).collect();
                self.in_flight = tasks.into_iter().map(Some).collect();
                return Next::Calls(calls);
            }
        }
        Next::Done(Box::new(self.finish()))
    }

    /// The answer to the request at `place` of the last batch, in any order. An answer that does not fit the request counts as a
    /// failed one; a second one to the same request is none.
    pub fn answer(&mut self, place: usize, answer: Answer) {
        if let Some(task) = self.in_flight.get_mut(place).and_then(Option::take) {
            self.on_answer(task, answer);
        }
    }

    /// The copy of the Job that is decided on.
    pub fn base(&self) -> &BatchJob {
        &self.base
    }

    /// What is to be told so far; whoever takes it early can tell it before the step ends.
    pub fn take_happenings(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.outcome.happenings)
    }

    /// Puts the first stages in place for the Job, if there is anything to do for it.
    fn open(&mut self) {
        self.todo.clear();
        self.job = (*self.base).clone();
        if !self.mandate.covers(&self.job) {
            return;
        }
        if self.job.finished() {
            self.memory.on_finished();
            return;
        }
        if matches!(self.job.spec.completion_mode, CompletionMode::Unknown(_)) {
            let message = "Skipped Job sync because completion mode is unknown";
            self.say(EventType::Warning, "UnknownCompletionMode", message.to_owned());
            return;
        }
        self.outcome.tally.action = Some(Action::Reconciling);
        self.job.status.uncounted.get_or_insert_default();
        self.todo.extend([Stage::Claim, Stage::Decide]);
    }

    fn enter(&mut self, stage: Stage) -> Vec<Task> {
        match stage {
            Stage::Claim => self.claim_pods(),
            Stage::Adopt => self.adopt_pods(),
            Stage::Decide => self.decide(),
            Stage::DeleteActive(pods) => pods.into_iter().map(Task::DeleteActive).collect(),
            Stage::Verdict => self.uphold_verdict(),
            Stage::UntrackSurplus(pods) => self.untrack_surplus(pods),
            Stage::DeleteSurplus(pods) => pods.into_iter().map(Task::DeleteSurplus).collect(),
            Stage::Create => self.create_batch(),
            Stage::Judge => self.judge(),
            Stage::Record => self.record(),
            Stage::Untrack => self.recorded.untrack.iter().cloned().map(Task::Untrack).collect(),
            Stage::Settle => self.settle(),
        }
    }

    fn call(&self, task: &Task) -> Call {
        let patch = |pod: &Arc<Pod>, patch| Call::PatchPod { key: pod.key.clone(), patch };
        match task {
            Task::Release(pod) => patch(pod, PodPatch::Release { job: self.base.uid.clone(), uid: pod.uid.clone() }),
            Task::Adopt(pod) => patch(pod, PodPatch::Adopt { job: self.base.clone(), uid: pod.uid.clone() }),
            Task::UntrackSurplus(pod) | Task::Untrack(pod) => patch(pod, PodPatch::Untrack),
            Task::LiveJob | Task::ReadJob => Call::GetJob { key: self.base.key.clone() },
            Task::ListPods => {
                Call::ListPods { namespace: self.base.key.namespace.clone(), selector: self.base.spec.selector.clone() }
            }
            Task::DeleteActive(pod) | Task::DeleteSurplus(pod) => Call::DeletePod { key: pod.key.clone() },
            Task::Create(additions) => Call::CreatePod { job: self.base.clone(), additions: additions.clone() },
            Task::Record | Task::Settle { .. } => {
                Call::PatchStatus { base: self.base.clone(), status: Box::new(self.job.status.clone()) }
            }
        }
    }

    fn on_answer(&mut self, task: Task, answer: Answer) {
        match task {
            Task::Release(pod) => self.on_released(&pod, answer),
            Task::LiveJob => self.on_live_job(answer),
            Task::Adopt(pod) => self.on_adopted(&pod, answer),
            Task::ListPods => self.on_listed(answer),
            Task::ReadJob => self.on_read(answer),
            Task::DeleteActive(pod) => self.on_active_deleted(&pod, answer),
            Task::UntrackSurplus(pod) => self.on_surplus_untracked(&pod, answer),
            Task::DeleteSurplus(pod) => self.on_surplus_deleted(&pod, answer),
            Task::Create(_) => self.on_created(answer),
            Task::Record => self.on_recorded(answer),
            Task::Untrack(pod) => self.on_untracked(&pod, answer),
            Task::Settle { finished } => self.on_settled(finished, answer),
        }
    }

    /// Counts and judges the Pods, and plans what follows.
    fn decide(&mut self) -> Vec<Task> {
        if self.job.status.start_time.is_none() && !self.job.spec.suspend {
            self.job.status.start_time = Some(self.now);
        }
        self.census = Census::take(&self.job, &self.pods);
        self.verdict = verdict(&self.job, &self.pods, &self.census, self.now);
        self.back_off = self.memory.back_off.after(&self.census.new_succeeded, &self.census.new_failed);
        let managed = self.verdict.is_none() && self.satisfied && !self.job.deleting();
        let plan = managed.then(|| plan(&self.job, &self.census, self.back_off, self.now));
        if self.listed.is_none() && self.leans_on_cache(plan.as_ref()) {
            self.todo.clear();
            return vec![Task::ListPods, Task::ReadJob];
        }
        self.managed = managed;
        self.active = count(self.census.active.len());
        self.ready = self.census.ready;
        self.terminating = count(self.census.terminating.len());
        self.tracked = self.pods.iter().filter(|pod| pod.tracked).map(|pod| pod.uid.clone()).collect();
        if let Some(at) = deadline(&self.job).filter(|at| *at > self.now) {
            self.wake_in(at.signed_duration_since(self.now));
        }
        if self.verdict.is_some() {
            let portions = self.census.active.chunks(MAX_PODS_PER_STEP).map(<[_]>::to_vec);
            self.todo.extend(portions.map(Stage::DeleteActive));
            self.todo.push_back(Stage::Verdict);
        } else {
            let stages = plan.map(|plan| self.carry_out(plan)).unwrap_or_default();
            self.todo.extend(stages);
            self.todo.push_back(Stage::Judge);
        }
        self.todo.extend([Stage::Record, Stage::Untrack, Stage::Settle]);
        Vec::new()
    }

    /// Whether a stale cache would make this step count or create wrongly (rule `fresh-process-asks`).
    fn leans_on_cache(&mut self, plan: Option<&Plan>) -> bool {
        let open = self.base.status.uncounted.as_ref().is_some_and(|lists| !lists.is_empty());
        let counts = open || !self.census.new_succeeded.is_empty() || !self.census.new_failed.is_empty();
        let creates = matches!(plan, Some(Plan::Create { .. }));
        (counts || creates || self.verdict.is_some())
            && self.memory.is_fresh(&self.base, self.cache.version().as_deref())
    }

    fn finish(&mut self) -> Outcome {
        let mut outcome = std::mem::take(&mut self.outcome);
        let later = self.counting_error.take().or(self.managing_error.take());
        outcome.error = outcome.error.or(later);
        outcome
    }

    /// Ends the step with an error.
    fn fail(&mut self, what: &str, failure: &ApiFailure) {
        self.outcome.error.get_or_insert_with(|| StepError::of(what, failure));
        self.todo.clear();
    }

    /// Looks again after this long at the latest.
    fn wake_in(&mut self, wait: TimeDelta) {
        let wait = wait.to_std().unwrap_or_default();
        self.outcome.requeue = Some(self.outcome.requeue.map_or(wait, |earlier| earlier.min(wait)));
    }

    fn say(&mut self, event_type: EventType, reason: &'static str, message: String) {
        self.outcome.happenings.push(Happening { event_type, reason, message, due_minutes: None });
    }
}

fn no_answer() -> ApiFailure {
    ApiFailure { message: "no answer to this request".into(), ..ApiFailure::default() }
}

/// The failure in an answer of any sort; one that does not fit its request is one, too.
fn failure_of(answer: Answer) -> ApiFailure {
    match answer {
        Answer::Job(Err(failure))
        | Answer::Pod(Err(failure))
        | Answer::Pods(Err(failure))
        | Answer::Deleted(Err(failure)) => failure,
        _ => no_answer(),
    }
}

fn job_of(answer: Answer) -> Result<Arc<BatchJob>, ApiFailure> {
    match answer {
        Answer::Job(Ok(job)) => Ok(job),
        other => Err(failure_of(other)),
    }
}

fn pod_of(answer: Answer) -> Result<Arc<Pod>, ApiFailure> {
    match answer {
        Answer::Pod(Ok(pod)) => Ok(pod),
        other => Err(failure_of(other)),
    }
}

/// `None`: it does not exist any more, which is as good.
fn patched_of(answer: Answer) -> Result<Option<Arc<Pod>>, ApiFailure> {
    match pod_of(answer) {
        Ok(pod) => Ok(Some(pod)),
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn list_of(answer: Answer) -> Result<PodList, ApiFailure> {
    match answer {
        Answer::Pods(Ok(list)) => Ok(list),
        other => Err(failure_of(other)),
    }
}

/// Whether it was there to be deleted.
fn deleted_of(answer: Answer) -> Result<bool, ApiFailure> {
    match answer {
        Answer::Deleted(Ok(())) => Ok(true),
        other => {
            let failure = failure_of(other);
            if failure.is_not_found() { Ok(false) } else { Err(failure) }
        }
    }
}
