//! One step of one CronJob, as a machine: it is asked for its next request, given the answer, and so on until it is done.
//!
//! Invariants
//! - The machine does nothing but decide: no I/O, no clock; `now` is one instant for the whole step.
//! - What is still to do is `todo`; what an answer is awaited for is `awaiting`. Between two calls nothing else is in flight, so
//!   every gap is a state that a test can cut at.
//! - One copy of the CronJob (`base`) is decided on and written, with `status` as it is edited (rule `consistent-live-copy`).
//! - Calls are bounded by three per child and active entry, and a handful more.

mod active;
mod create;
mod gates;
mod upkeep;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use self::active::ActiveList;
use super::call::{Answer, Call, Next, Outcome, RunResult, StepError};
use super::due::{Timetable, WAKE_DELAY, zone_of};
use super::memory::{JobCache, Memory};
use super::profile::{Profile, Stage, profile};
use crate::model::{
    ApiFailure, CronJob, CronJobStatus, EventType, Flavor, Happening, Job, ObjectReference, Uid, WallTime, unix_minutes,
};
use crate::schedule::{MissedCount, ParseError, Zone};

/// What is the same for every step of one controller.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Which API.
    pub flavor: Flavor,
    /// The zone of schedules and CronJobs that name none, and of the name `Local`.
    pub local_zone: Zone,
}

/// A step under way. Made by [`begin`](Self::begin), driven by [`advance`](Self::advance).
pub struct Step<'a> {
    profile: &'static Profile,
    local: Zone,
    now: WallTime,
    memory: &'a mut Memory,
    cache: &'a dyn JobCache,
    /// The copy decided on.
    base: Arc<CronJob>,
    /// Its status as edited so far, but for `active`, which is the next field.
    status: CronJobStatus,
    /// `status.active` as edited so far.
    active: ActiveList,
    /// Whether `status` is to be written; also set by edits that change nothing, as in the peers.
    changed: bool,
    /// Uids taken out of `active` in this step; they stay out when a live copy is adopted.
    dropped: BTreeSet<Uid>,
    children: Vec<Arc<Job>>,
    /// How many instants are pending, the one to start included.
    pending: MissedCount,
    todo: VecDeque<Task>,
    awaiting: Option<Task>,
    /// Whether the peers would arm a timer for the next due instant.
    requeue: bool,
    outcome: Outcome,
}

/// Something still to do. Tasks that make a call come back, with its answer, in [`Step::on_answer`].
enum Task {
    Stage(Stage),
    /// Delete a finished child beyond its limit.
    DeleteOld(Arc<Job>),
    /// Look at one child.
    Child {
        job: Arc<Job>,
        finished: bool,
        unknown: bool,
    },
    /// Check an entry of `active` that is no child.
    Reference(ObjectReference),
    /// Ask for the Job whose creation was not answered.
    Unanswered(WallTime),
    /// Decide whether a run starts.
    Gates,
    /// Fetch an active Job that the due run replaces.
    Replace(ObjectReference),
    /// Delete it.
    DeleteReplaced(Arc<Job>),
    /// Start the run of this instant.
    Create(WallTime),
    /// Fetch the Job that has its name already.
    GetExisting(WallTime),
    /// Delete the Job that came back without our owner reference.
    Disown(Arc<Job>),
    /// Write the status, if it is to be written.
    Write,
}

impl<'a> Step<'a> {
    /// Begins a step on `cronjob` as the watch shows it. `memory` is that CronJob's own, and must be kept for its next step.
    pub fn begin(
        settings: Settings,
        cronjob: Arc<CronJob>,
        cache: &'a dyn JobCache,
        memory: &'a mut Memory,
        now: WallTime,
    ) -> Self {
        let profile = profile(settings.flavor);
        let base = memory.newest(cronjob);
        let idle = base.deleting && !profile.upkeep_while_deleting || memory.is_gone(&base, now);
        let mut status = CronJobStatus { active: Vec::new(), ..base.status };
        // A run that was started is recorded, however often its record could not be written.
        let forgotten = !idle && status.last_schedule_time < memory.started();
        status.last_schedule_time = if forgotten { memory.started() } else { status.last_schedule_time };
        let children = if idle { Vec::new() } else { memory.children(cache, now) };
        let mut todo = VecDeque::new();
        if !idle {
            todo.extend(profile.stages.iter().copied().map(Task::Stage));
            todo.extend(memory.unanswered().map(Task::Unanswered));
            todo.extend([Task::Gates, Task::Write]);
        }
        let mut step = Self {
            profile,
            local: settings.local_zone,
            now,
            cache,
            active: ActiveList::default(),
            status,
            changed: forgotten,
            dropped: BTreeSet::new(),
            children: children.into_iter().filter(|job| is_child(job, &base, profile)).collect(),
            pending: MissedCount::Exactly(0),
            todo,
            awaiting: None,
            requeue: false,
            outcome: Outcome::default(),
            base,
            memory,
        };
        if !idle {
            step.list_active();
        }
        step
    }

    /// The next request, or the outcome. `answer` is the one to the request returned last; `None` only the first time. An answer
    /// that does not fit the request counts as a failed call.
    pub fn advance(&mut self, answer: Option<Answer>) -> Next {
        if let Some(task) = self.awaiting.take() {
            self.on_answer(task, answer.unwrap_or_else(|| Answer::Deleted(Err(no_answer()))));
        }
        while let Some(task) = self.todo.pop_front() {
            if let Some(call) = self.start(&task) {
                self.awaiting = Some(task);
                return Next::Call(call);
            }
        }
        Next::Done(Box::new(self.finish()))
    }

    /// The copy of the CronJob that is decided on.
    pub fn base(&self) -> &CronJob {
        &self.base
    }

    /// What is to be told so far; whoever takes it early can tell it before the step ends.
    pub fn take_happenings(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.outcome.happenings)
    }

    /// The due instant for which this step may still create a Job: requests up to there travel with the urgency of that
    /// creation. `None` once there is nothing to create.
    pub fn pending_run(&self) -> Option<WallTime> {
        let tasks = self.todo.iter().chain(&self.awaiting);
        for task in tasks {
            match task {
                Task::Create(at) => return Some(*at),
                Task::Gates if !self.base.deleting && !self.base.spec.suspend => {
                    return self.timetable().ok()?.due().ok()?.newest;
                }
                _ => {}
            }
        }
        None
    }

    /// Does a task up to its call, or wholly if it makes none.
    fn start(&mut self, task: &Task) -> Option<Call> {
        match task {
            Task::Stage(stage) => self.start_stage(*stage),
            Task::Child { job, finished, unknown } => return self.look_at_child(job, *finished, *unknown),
            Task::Reference(reference) => return self.check_reference(reference),
            Task::Gates => self.pass_gates(),
            Task::DeleteOld(job) | Task::DeleteReplaced(job) | Task::Disown(job) => {
                return Some(Call::DeleteJob { key: job.key.clone(), uid: job.uid.clone() });
            }
            Task::Replace(reference) => return Some(Call::GetJob { key: self.key_of(reference) }),
            Task::Create(at) => return self.create(*at),
            Task::Unanswered(at) | Task::GetExisting(at) => return Some(Call::GetJob { key: self.job_key(*at) }),
            Task::Write => return self.write(),
        }
        None
    }

    fn on_answer(&mut self, task: Task, answer: Answer) {
        match task {
            Task::DeleteOld(job) => self.on_old_deleted(&job, answer),
            Task::Child { job, .. } => self.on_live_cronjob(&job, answer),
            Task::Reference(reference) => self.on_referenced_job(&reference, answer),
            Task::Replace(reference) => self.on_replaced_job(&reference, answer),
            Task::DeleteReplaced(job) => self.on_replaced_deleted(&job, answer),
            Task::Create(at) => self.on_created(at, answer),
            Task::Unanswered(at) => self.on_unanswered(at, answer),
            Task::GetExisting(at) => self.on_existing(at, answer),
            Task::Disown(_) => self.on_disowned(),
            Task::Write => self.on_written(answer),
            Task::Stage(_) | Task::Gates => {}
        }
    }

    fn write(&self) -> Option<Call> {
        let status = || CronJobStatus { active: self.active.to_vec(), ..self.status };
        self.changed.then(|| Call::PatchStatus { base: self.base.clone(), status: status() })
    }

    fn on_written(&mut self, answer: Answer) {
        match cronjob_of(answer) {
            Ok(cronjob) => self.memory.on_written(&self.base, cronjob),
            Err(failure) => {
                if failure.is_not_found() {
                    self.memory.on_gone(&self.base, self.now);
                }
                self.requeue = false;
                self.outcome.error = Some(StepError::of(&failure));
            }
        }
    }

    fn finish(&mut self) -> Outcome {
        let mut outcome = std::mem::take(&mut self.outcome);
        outcome.next_due = self.next_due();
        if self.requeue && outcome.error.is_none() {
            let wake = outcome.next_due.and_then(|due| due.checked_add_signed(WAKE_DELAY));
            outcome.requeue = wake.map(|wake| wake.signed_duration_since(self.now).to_std().unwrap_or_default());
        }
        outcome
    }

    fn next_due(&self) -> Option<WallTime> {
        if self.base.deleting || zone_of(&self.base.spec, self.local).is_err() {
            return None;
        }
        self.timetable().ok()?.next_due()
    }

    fn timetable(&self) -> Result<Timetable, ParseError> {
        Timetable::new(&self.base, self.status.last_schedule_time, self.local, self.memory.floor(self.now), self.now)
    }

    /// Ends the step with an error; what the status gained so far is still written (rule `status-always-written`).
    fn fail(&mut self, error: StepError) {
        self.outcome.error = Some(error);
        self.stop();
    }

    /// Ends the step but for the status.
    fn stop(&mut self) {
        self.todo.clear();
        self.todo.push_back(Task::Write);
    }

    /// Ends the step as one that waits for the next due instant.
    fn wait(&mut self) {
        self.requeue = true;
        self.stop();
    }

    fn say(&mut self, event_type: EventType, reason: &'static str, message: String) {
        self.outcome.happenings.push(Happening { event_type, reason, message, due_minutes: None });
    }

    fn say_of_run(&mut self, event_type: EventType, reason: &'static str, message: String, at: WallTime) {
        let due_minutes = Some(unix_minutes(at));
        self.outcome.happenings.push(Happening { event_type, reason, message, due_minutes });
    }

    fn note(&mut self, result: RunResult) {
        self.outcome.results.push(result);
    }

    fn is_active(&self, uid: &Uid) -> bool {
        self.active.holds(uid)
    }

    /// Takes a uid out of `active`; the status counts as changed even if it wasn't in, as in the peers.
    fn drop_active(&mut self, uid: &Uid) {
        self.active.remove(uid);
        self.dropped.insert(uid.clone());
        self.changed = true;
    }

    /// Appends a Job to `active` and raises lastScheduleTime to the instant of its run.
    fn add_active(&mut self, job: &Job, at: WallTime) {
        self.active.push(ObjectReference {
            kind: "Job".into(),
            api_version: self.profile.api_version.into(),
            namespace: (&*job.key.namespace).into(),
            name: (&*job.key.name).into(),
            uid: job.uid.clone(),
            resource_version: job.resource_version.clone(),
            field_path: Box::default(),
        });
        self.status.last_schedule_time = self.status.last_schedule_time.max(Some(at));
        self.changed = true;
    }
}

/// Whether a Job belongs to the CronJob (rule `owner-by-uid`).
fn is_child(job: &Job, cronjob: &CronJob, profile: &Profile) -> bool {
    job.key.namespace == cronjob.key.namespace
        && job.controller.as_ref().is_some_and(|owner| {
            owner.uid == cronjob.uid
                && *owner.name == *cronjob.key.name
                && &*owner.kind == "CronJob"
                && group(&owner.api_version) == group(profile.api_version)
        })
}

/// The group in an `apiVersion`; empty for core.
fn group(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

fn no_answer() -> ApiFailure {
    ApiFailure { message: "no answer to this request".into(), ..Default::default() }
}

fn cronjob_of(answer: Answer) -> Result<Arc<CronJob>, ApiFailure> {
    match answer {
        Answer::CronJob(result) => result,
        Answer::Job(Err(failure)) | Answer::Deleted(Err(failure)) => Err(failure),
        _ => Err(no_answer()),
    }
}

fn job_of(answer: Answer) -> Result<Arc<Job>, ApiFailure> {
    match answer {
        Answer::Job(result) => result,
        Answer::CronJob(Err(failure)) | Answer::Deleted(Err(failure)) => Err(failure),
        _ => Err(no_answer()),
    }
}

fn deleted_of(answer: Answer) -> Result<(), ApiFailure> {
    match answer {
        Answer::Deleted(result) => result,
        Answer::CronJob(Err(failure)) | Answer::Job(Err(failure)) => Err(failure),
        _ => Err(no_answer()),
    }
}
