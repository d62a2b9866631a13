//! Objects for the tests of this room.

use std::sync::Arc;

use chrono::TimeDelta;

use super::call::{Answer, Call, Next, Outcome};
use super::memory::{JobCache, Memory};
use super::step::{Settings, Step};
use crate::model::{
    ApiFailure, CronJob, CronJobSpec, CronJobStatus, Finish, Flavor, Job, JobTemplate, ObjectKey, ObjectReference,
    OwnerReference, Policy, Uid, WallTime, job_name,
};
use crate::schedule::Zone;

/// `minutes` after 2024-03-01 10:00 UTC.
pub(super) fn at(minutes: i64) -> WallTime {
    WallTime::from_timestamp(1_709_287_200, 0).unwrap() + TimeDelta::minutes(minutes)
}

/// `ns/cj`, hourly at the full hour, Allow, created at 09:30.
pub(super) fn cronjob() -> CronJob {
    CronJob {
        key: ObjectKey::new("ns", "cj"),
        uid: "cj-uid".into(),
        resource_version: "9".into(),
        creation_time: Some(at(-30)),
        deleting: false,
        spec: CronJobSpec {
            schedule: "0 * * * *".into(),
            time_zone: None,
            starting_deadline_s: None,
            policy: Policy::Allow,
            suspend: false,
            successful_limit: None,
            failed_limit: None,
            template: Arc::new(JobTemplate::default()),
        },
        status: CronJobStatus::default(),
    }
}

pub(super) fn api_version(flavor: Flavor) -> &'static str {
    match flavor {
        Flavor::Kubernetes => "batch/v1",
        Flavor::Volcano => "batch.volcano.sh/v1alpha1",
    }
}

/// An unfinished Job `name` with uid `name`, controlled by [`cronjob`], created (and started) at that minute. Of batch/v1.
pub(super) fn child(name: &str, minute: i64) -> Job {
    child_of(Flavor::Kubernetes, name, minute)
}

pub(super) fn child_of(flavor: Flavor, name: &str, minute: i64) -> Job {
    Job {
        key: ObjectKey::new("ns", name),
        uid: name.into(),
        resource_version: "5".into(),
        creation_time: Some(at(minute)),
        start_time: Some(at(minute)),
        deleting: false,
        controller: Some(OwnerReference {
            api_version: api_version(flavor).into(),
            kind: "CronJob".into(),
            name: "cj".into(),
            uid: "cj-uid".into(),
        }),
        scheduled_time: None,
        finish: None,
        succeeded: false,
        completion_time: None,
    }
}

/// The same Job, finished.
pub(super) fn finished(finish: Finish, job: Job) -> Job {
    Job { finish: Some(finish), succeeded: finish == Finish::Complete, completion_time: job.start_time, ..job }
}

/// The run of a due instant, as the controller creates it.
pub(super) fn run(flavor: Flavor, minute: i64) -> Job {
    let name = job_name("cj", at(minute));
    Job { scheduled_time: Some(at(minute)), ..child_of(flavor, &name, minute) }
}

pub(super) fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        namespace: (&*job.key.namespace).into(),
        name: (&*job.key.name).into(),
        uid: job.uid.clone(),
        ..ObjectReference::default()
    }
}

pub(super) fn failure(reason: &str) -> ApiFailure {
    ApiFailure { code: 500, reason: reason.into(), message: format!("it is {reason}").into(), ..ApiFailure::default() }
}

/// What one step sees, and how its calls are answered unless [`Scene::answers`] says otherwise.
pub(super) struct Scene {
    pub flavor: Flavor,
    pub cronjob: CronJob,
    /// What a live GET returns; the cached one unless set.
    pub live: Option<CronJob>,
    /// The cache, which is also what the server holds unless `server` is set.
    pub jobs: Vec<Job>,
    pub server: Option<Vec<Job>>,
    pub memory: Memory,
    pub now: WallTime,
    /// Calls that are answered by a failure: the call's text and the failure.
    pub failing: Vec<(&'static str, ApiFailure)>,
}

/// What one step did.
pub(super) struct Run {
    pub calls: Vec<String>,
    pub outcome: Outcome,
    /// The status in the last write.
    pub written: Option<CronJobStatus>,
    /// Resource version in the last write.
    pub version: Option<Box<str>>,
}

impl Run {
    pub(super) fn reasons(&self) -> Vec<&'static str> {
        self.outcome.happenings.iter().map(|happening| happening.reason).collect()
    }
}

impl JobCache for Scene {
    fn children(&self, owner: &Uid) -> Vec<Arc<Job>> {
        let owned = |job: &&Job| job.controller.as_ref().is_some_and(|controller| controller.uid == *owner);
        self.jobs.iter().filter(owned).cloned().map(Arc::new).collect()
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<Job>> {
        self.jobs.iter().find(|job| job.key == *key).cloned().map(Arc::new)
    }
}

impl Scene {
    /// A scene at 100 ms past `minute`, around [`cronjob`] without Jobs.
    pub(super) fn new(flavor: Flavor, minute: i64) -> Self {
        Self {
            flavor,
            cronjob: cronjob(),
            live: None,
            jobs: Vec::new(),
            server: None,
            memory: Memory::default(),
            now: at(minute) + TimeDelta::milliseconds(100),
            failing: Vec::new(),
        }
    }

    /// Runs one step to its end.
    pub(super) fn step(&mut self) -> Run {
        let settings = Settings { flavor: self.flavor, local_zone: Zone::UTC };
        let mut memory = std::mem::take(&mut self.memory);
        let mut step = Step::begin(settings, Arc::new(self.cronjob.clone()), &*self, &mut memory, self.now);
        let (mut calls, mut written, mut version) = (Vec::new(), None, None);
        let mut answer = None;
        let outcome = loop {
            match step.advance(answer.take()) {
                Next::Done(outcome) => break *outcome,
                Next::Call(call) => {
                    calls.push(text(&call));
                    if let Call::PatchStatus { base, status } = &call {
                        written = Some(status.clone());
                        version = Some(base.resource_version.clone());
                    }
                    answer = Some(self.answer(&call));
                }
            }
        };
        self.memory = memory;
        Run { calls, outcome, written, version }
    }

    fn answer(&self, call: &Call) -> Answer {
        let called = text(call);
        let fault = self.failing.iter().find(|(what, _)| *what == called).map(|(_, failure)| failure.clone());
        let server = self.server.as_ref().unwrap_or(&self.jobs);
        let stored = |key: &ObjectKey| server.iter().find(|job| job.key == *key).cloned().map(Arc::new);
        match call {
            Call::GetCronJob { .. } => {
                let live = self.live.as_ref().unwrap_or(&self.cronjob);
                Answer::CronJob(fault.map_or(Ok(Arc::new(live.clone())), Err))
            }
            Call::GetJob { key } => {
                Answer::Job(fault.map_or_else(|| stored(key).ok_or_else(|| failure("NotFound")), Err))
            }
            Call::CreateJob { at, name, .. } => {
                let key = ObjectKey::new("ns", &**name);
                let taken = stored(&key).map(|_| failure("AlreadyExists"));
                let created = Job {
                    key,
                    scheduled_time: Some(*at),
                    creation_time: Some(self.now),
                    uid: format!("created-{name}").into(),
                    resource_version: "100".into(),
                    ..child_of(self.flavor, "", 0)
                };
                Answer::Job(fault.or(taken).map_or(Ok(Arc::new(created)), Err))
            }
            Call::DeleteJob { key, .. } => {
                let missing = stored(key).is_none().then(|| failure("NotFound"));
                Answer::Deleted(fault.or(missing).map_or(Ok(()), Err))
            }
            Call::PatchStatus { base, status } => {
                let after = CronJob { status: status.clone(), resource_version: "101".into(), ..(**base).clone() };
                Answer::CronJob(fault.map_or(Ok(Arc::new(after)), Err))
            }
        }
    }
}

/// A call in the words of the vectors.
pub(super) fn text(call: &Call) -> String {
    match call {
        Call::GetCronJob { key } => format!("getCronJob {key}"),
        Call::GetJob { key } => format!("getJob {key}"),
        Call::CreateJob { cronjob, name, .. } => format!("createJob {}/{name}", cronjob.key.namespace),
        Call::DeleteJob { key, .. } => format!("deleteJob {key}"),
        Call::PatchStatus { base, .. } => format!("updateStatus {}", base.key),
    }
}
