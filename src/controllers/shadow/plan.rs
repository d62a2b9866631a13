//! What we would do now: the production machine ([`Step`]), driven to rest over a copy of what is seen.
//!
//! Invariants
//! - No request leaves here but GETs. Every write is answered by what the server would most likely say, and acts on the copy.
//! - Steps follow each other until one writes nothing, as the watch events of its own writes would wake the real controller.

use std::sync::Arc;

use chrono::TimeDelta;

use super::view::{Scene, View};
use crate::api::wire;
use crate::cluster::Store;
use crate::controllers::cronjob::Calls;
use crate::model::{ApiFailure, CronJob, CronJobStatus, Job, ObjectKey, OwnerReference, Policy, WallTime};
use crate::reconcile::{Answer, Call, JobCache, Memory, Next, Outcome, RunResult, Settings, Step};

/// Steps in one decision beyond those that history needs: create, record, delete, rest.
const ROUNDS: usize = 6;

/// Jobs that one step deletes for history at the least, where more lie beyond the limits.
const PORTION: usize = 50;

/// Whether the server may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// GETs go to the server.
    Server,
    /// The copy answers them: it is the copy of a moment that has passed, of which the server knows nothing any more.
    Copy,
}

/// What would become of the run that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Action {
    /// Its Job is created.
    Start,
    /// Active Jobs are deleted, then its Job is created.
    Replace,
    /// Forbid, and an earlier run is active.
    Skip,
    /// It is too late for it.
    Missed,
    /// A Job of its name exists.
    Exists,
    /// The CronJob is suspended.
    Suspended,
    /// Zone or schedule cannot be used.
    Invalid,
    /// Nothing is due.
    #[default]
    None,
}

impl Action {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Replace => "replace",
            Self::Skip => "skip",
            Self::Missed => "missed",
            Self::Exists => "exists",
            Self::Suspended => "suspended",
            Self::Invalid => "invalid",
            Self::None => "none",
        }
    }
}

/// A decision.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) action: Action,
    /// The due instant of the run to start.
    pub(super) start: Option<WallTime>,
    /// Finished Jobs to delete.
    pub(super) history: Vec<Arc<Job>>,
    /// Active Jobs to delete in favour of the run.
    pub(super) replaced: Vec<Arc<Job>>,
    /// What was seen: the state that was decided on.
    pub(super) before: View,
    /// When.
    pub(super) now: WallTime,
    /// What of the state is known to make the peers decide otherwise.
    pub(super) touched: Touched,
}

/// Marks of deviation rules that only the course of the steps shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    /// A run that the status forgot went back into `active`.
    pub(super) readopted: bool,
    /// A finished run that the status forgot was recorded.
    pub(super) recorded: bool,
    /// An entry of `active` was dropped because another uid has its name.
    pub(super) other_uid: bool,
    /// The live CronJob knew a Job that the cached one did not.
    pub(super) live_copy: bool,
    /// How many entries of `active` were dropped or replaced at once.
    pub(super) left_active: usize,
}

/// Makes plans.
pub(super) struct Planner {
    pub(super) settings: Settings,
    pub(super) jobs: Store<Job>,
    pub(super) calls: Calls,
}

/// What one step wrote.
#[derive(Default)]
struct Writes {
    created: Option<Arc<Job>>,
    deleted: Vec<Arc<Job>>,
    status: Option<CronJobStatus>,
}

impl Writes {
    fn is_empty(&self) -> bool {
        self.created.is_none() && self.deleted.is_empty() && self.status.is_none()
    }
}

impl Planner {
    /// What we would do about `view` at `now`; nothing due at or before `floor` starts.
    pub(super) async fn plan(&self, view: &View, floor: Option<WallTime>, now: WallTime, ask: Ask) -> Plan {
        let mut plan = Plan::nothing(view.clone(), now);
        let mut scratch = view.clone();
        for _ in 0..ROUNDS + view.jobs.len() / PORTION {
            let (outcome, writes) = self.step(&scratch, floor, &mut plan, ask).await;
            plan.note(&scratch.cronjob, &outcome);
            if writes.is_empty() {
                break;
            }
            plan.take(&writes, &scratch);
            for job in &writes.deleted {
                scratch.remove(&job.uid);
            }
            if let Some(job) = writes.created {
                scratch.put(job);
            }
            if let Some(status) = writes.status {
                scratch.set_status(status);
            }
        }
        plan
    }

    /// One step, its writes kept back.
    async fn step(&self, view: &View, floor: Option<WallTime>, plan: &mut Plan, ask: Ask) -> (Outcome, Writes) {
        let scene = Scene { view, cache: &self.jobs };
        let mut memory = Memory::default();
        if let Some(floor) = floor {
            memory.raise_floor(floor);
        }
        let mut step = Step::begin(self.settings, view.cronjob.clone(), &scene, &mut memory, plan.now);
        let (mut answer, mut writes) = (None, Writes::default());
        loop {
            match step.advance(answer.take()) {
                Next::Done(outcome) => return (*outcome, writes),
                Next::Call(call) => answer = Some(self.answer(&call, &scene, &mut writes, plan, ask).await),
            }
        }
    }

    async fn answer(&self, call: &Call, scene: &Scene<'_>, writes: &mut Writes, plan: &mut Plan, ask: Ask) -> Answer {
        match call {
            Call::GetCronJob { .. } | Call::GetJob { .. } => self.read(call, scene, &mut plan.touched, ask).await,
            Call::CreateJob { cronjob, name, at, .. } => {
                let job = made_up(scene, wire(self.settings.flavor).api_version, cronjob, name, *at);
                writes.created = job.as_ref().ok().cloned();
                Answer::Job(job)
            }
            Call::DeleteJob { key, .. } => {
                writes.deleted.extend(scene.view.jobs.iter().find(|job| job.key == *key).cloned());
                Answer::Deleted(Ok(()))
            }
            Call::PatchStatus { base, status } => {
                writes.status = Some(status.clone());
                Answer::CronJob(Ok(Arc::new(CronJob { status: status.clone(), ..CronJob::clone(base) })))
            }
        }
    }

    /// A GET: answered by the copy where it can, else by the server if that may be asked.
    async fn read(&self, call: &Call, scene: &Scene<'_>, touched: &mut Touched, ask: Ask) -> Answer {
        let known = match call {
            Call::GetJob { key } => scene.get(key).map(|job| Answer::Job(Ok(job))),
            _ => None,
        };
        let answer = match (known, ask) {
            (Some(answer), _) => answer,
            (None, Ask::Copy) => copy_of(call, scene),
            (None, Ask::Server) => {
                let answer = self.calls.perform(&scene.view.cronjob.key.namespace, None, call).await;
                if is_answered(&answer) { answer } else { copy_of(call, scene) }
            }
        };
        touched.see(&answer, scene.view);
        answer
    }
}

/// What the copy says itself.
fn copy_of(call: &Call, scene: &Scene<'_>) -> Answer {
    match call {
        Call::GetJob { .. } => Answer::Job(Err(refusal(404, "NotFound"))),
        _ => Answer::CronJob(Ok(scene.view.cronjob.clone())),
    }
}

/// Whether the server said something that a decision can be made on: an object, or that there is none.
fn is_answered(answer: &Answer) -> bool {
    match answer {
        Answer::CronJob(Err(failure)) | Answer::Job(Err(failure)) | Answer::Deleted(Err(failure)) => {
            failure.is_not_found()
        }
        _ => true,
    }
}

/// What the server would return for a creation. Quotas, admission and a namespace that is going are not foreseen.
fn made_up(
    scene: &Scene<'_>,
    api_version: &str,
    cronjob: &CronJob,
    name: &str,
    at: WallTime,
) -> Result<Arc<Job>, ApiFailure> {
    let key = ObjectKey::new(cronjob.key.namespace.clone(), name);
    if scene.get(&key).is_some() {
        return Err(refusal(409, "AlreadyExists"));
    }
    let owner = OwnerReference {
        api_version: api_version.into(),
        kind: "CronJob".into(),
        name: (&*cronjob.key.name).into(),
        uid: cronjob.uid.clone(),
    };
    Ok(Arc::new(Job {
        uid: format!("planned:{key}").into(),
        key,
        resource_version: Box::default(),
        creation_time: None,
        start_time: None,
        deleting: false,
        controller: Some(owner),
        scheduled_time: Some(at),
        finish: None,
        succeeded: false,
        completion_time: None,
    }))
}

fn refusal(code: u16, reason: &str) -> ApiFailure {
    ApiFailure { code, reason: reason.into(), message: reason.into(), ..ApiFailure::default() }
}

impl Plan {
    /// A plan to do nothing about `before`.
    pub(super) fn nothing(before: View, now: WallTime) -> Self {
        Self {
            action: Action::None,
            start: None,
            history: Vec::new(),
            replaced: Vec::new(),
            before,
            now,
            touched: Touched::default(),
        }
    }

    /// Every Job that would be deleted.
    pub(super) fn deletions(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.history.iter().chain(&self.replaced)
    }

    /// Takes note of what a step said; the first that says something decides.
    fn note(&mut self, cronjob: &CronJob, outcome: &Outcome) {
        if self.action != Action::None {
            return;
        }
        let has = |result| outcome.results.contains(&result);
        let said = |reasons: &[&str]| outcome.happenings.iter().any(|said| reasons.contains(&said.reason));
        self.action = if has(RunResult::Replaced) && has(RunResult::Created) {
            Action::Replace
        } else if has(RunResult::Created) {
            Action::Start
        } else if has(RunResult::SkippedForbid) {
            Action::Skip
        } else if has(RunResult::MissedDeadline) {
            Action::Missed
        } else if has(RunResult::AlreadyExists) {
            Action::Exists
        } else if said(&["UnknownTimeZone", "InvalidTimeZone", "UnparseableSchedule", "InvalidSchedule"]) {
            Action::Invalid
        } else if cronjob.spec.suspend {
            Action::Suspended
        } else {
            Action::None
        };
    }

    /// Takes over what a step wrote about `view`.
    fn take(&mut self, writes: &Writes, view: &View) {
        let created = writes.created.as_ref();
        self.start = self.start.or_else(|| created.and_then(|job| job.scheduled_time));
        let (history, replaced): (Vec<_>, Vec<_>) =
            writes.deleted.iter().cloned().partition(|job| job.finish.is_some());
        let active = &view.cronjob.status.active;
        let forgotten = |job: &Arc<Job>| !active.iter().any(|reference| reference.uid == job.uid);
        // Back into `active` and replaced in one step.
        self.touched.readopted |= replaced.iter().any(forgotten);
        self.history.extend(history);
        self.replaced.extend(replaced);
        if let Some(status) = &writes.status {
            self.touched.compare(&view.cronjob, status, created);
        }
    }

    /// Whether this and `other` would do the same about runs.
    pub(super) fn starts_as(&self, other: &Self) -> bool {
        self.start == other.start && (self.start.is_some() || self.action == other.action)
    }

    pub(super) fn policy(&self) -> Policy {
        self.before.cronjob.spec.policy
    }
}

impl Touched {
    /// What an answer shows.
    fn see(&mut self, answer: &Answer, view: &View) {
        match answer {
            Answer::CronJob(Ok(live)) => {
                let cached = &view.cronjob.status.active;
                let newer = |uid| !cached.iter().any(|reference| reference.uid == uid);
                let known = live.status.active.iter().any(|reference| newer(reference.uid.clone()));
                self.live_copy |= known && live.uid == view.cronjob.uid;
            }
            Answer::Job(Ok(job)) => {
                let active = &view.cronjob.status.active;
                let named = active.iter().find(|reference| *reference.name == *job.key.name);
                self.other_uid |= named.is_some_and(|reference| reference.uid != job.uid);
            }
            _ => {}
        }
    }

    /// What the status that a step wrote shows.
    fn compare(&mut self, cronjob: &CronJob, written: &CronJobStatus, created: Option<&Arc<Job>>) {
        let before = &cronjob.status;
        let is_new = |uid| created.is_some_and(|job| job.uid == uid);
        let added = written.active.iter().filter(|entry| !before.active.iter().any(|old| old.uid == entry.uid));
        let readopted = added.filter(|entry| !is_new(entry.uid.clone())).count() > 0;
        self.readopted |= readopted;
        let raised = written.last_schedule_time > before.last_schedule_time;
        self.recorded |= raised && created.is_none() && !readopted;
        let left = before.active.iter().filter(|entry| !written.active.iter().any(|kept| kept.uid == entry.uid));
        self.left_active = self.left_active.max(left.count());
    }
}

/// Later than this after a due instant, a plan is made for the present and not for the instant.
pub(super) const PUNCTUAL: TimeDelta = TimeDelta::seconds(5);
