//! A server of model values: conditional status writes, names taken once, and a record of every Job it ever made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use cronjob_controller::model::{
    ApiFailure, CronJob, CronJobSpec, CronJobStatus, Finish, Flavor, Job, JobTemplate, ObjectKey, OwnerReference,
    Policy, Uid, WallTime,
};
use cronjob_controller::reconcile::{Answer, Call, JobCache};

/// `minutes` after 2024-03-01 10:00 UTC.
pub(crate) fn at(minutes: i64) -> WallTime {
    WallTime::from_timestamp(1_709_287_200, 0).unwrap() + TimeDelta::minutes(minutes)
}

/// `ns/cj`, every minute.
pub(crate) fn cronjob(policy: Policy) -> CronJob {
    CronJob {
        key: ObjectKey::new("ns", "cj"),
        uid: "cj-uid".into(),
        resource_version: "1".into(),
        creation_time: Some(at(0)),
        deleting: false,
        spec: CronJobSpec {
            schedule: "* * * * *".into(),
            time_zone: None,
            starting_deadline_s: None,
            policy,
            suspend: false,
            successful_limit: None,
            failed_limit: None,
            template: Arc::new(JobTemplate::default()),
        },
        status: CronJobStatus::default(),
    }
}

pub(crate) fn owner(flavor: Flavor) -> OwnerReference {
    let api_version = match flavor {
        Flavor::Kubernetes => "batch/v1",
        Flavor::Volcano => "batch.volcano.sh/v1alpha1",
    };
    OwnerReference { api_version: api_version.into(), kind: "CronJob".into(), name: "cj".into(), uid: "cj-uid".into() }
}

pub(crate) fn job(flavor: Flavor, name: &str, scheduled_time: Option<WallTime>) -> Job {
    Job {
        key: ObjectKey::new("ns", name),
        uid: format!("uid-of-{name}").into(),
        resource_version: "1".into(),
        creation_time: None,
        start_time: None,
        deleting: false,
        controller: Some(owner(flavor)),
        scheduled_time,
        finish: None,
        succeeded: false,
        completion_time: None,
    }
}

pub(crate) fn failure(code: u16, reason: &str) -> ApiFailure {
    ApiFailure { code, reason: reason.into(), message: reason.into(), ..ApiFailure::default() }
}

pub(crate) struct Server {
    pub flavor: Flavor,
    pub cronjob: CronJob,
    pub jobs: BTreeMap<String, Job>,
    /// Names of all Jobs ever made.
    pub ever: BTreeSet<String>,
    version: u64,
}

impl Server {
    pub(crate) fn new(flavor: Flavor, policy: Policy, history_limit: Option<i32>) -> Self {
        let mut cronjob = cronjob(policy);
        cronjob.spec.successful_limit = history_limit;
        Self { flavor, cronjob, jobs: BTreeMap::new(), ever: BTreeSet::new(), version: 1 }
    }

    fn next_version(&mut self) -> Box<str> {
        self.version += 1;
        self.version.to_string().into()
    }

    pub(crate) fn unfinished(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(|job| job.finish.is_none())
    }

    /// Ends the oldest unfinished Job.
    pub(crate) fn finish_one(&mut self, now: WallTime) {
        let Some(name) = self.unfinished().next().map(|job| job.key.name.to_string()) else { return };
        let version = self.next_version();
        if let Some(job) = self.jobs.get_mut(&name) {
            job.finish = Some(Finish::Complete);
            job.succeeded = true;
            job.completion_time = Some(now);
            job.resource_version = version;
        }
    }

    /// Carries a call out.
    pub(crate) fn apply(&mut self, call: &Call, now: WallTime) -> Answer {
        match call {
            Call::GetCronJob { .. } => Answer::CronJob(Ok(Arc::new(self.cronjob.clone()))),
            Call::GetJob { key } => Answer::Job(self.find(key).cloned().map(Arc::new).ok_or_else(not_found)),
            Call::DeleteJob { key, .. } => {
                Answer::Deleted(self.jobs.remove(&*key.name).map(drop).ok_or_else(not_found))
            }
            Call::CreateJob { cronjob, name, at, .. } => Answer::Job(self.create(cronjob, name, *at, now)),
            Call::PatchStatus { base, status } => Answer::CronJob(self.patch(base, status)),
        }
    }

    fn find(&self, key: &ObjectKey) -> Option<&Job> {
        self.jobs.get(&*key.name)
    }

    fn create(&mut self, cronjob: &CronJob, name: &str, at: WallTime, now: WallTime) -> Result<Arc<Job>, ApiFailure> {
        if self.jobs.contains_key(name) {
            return Err(failure(409, "AlreadyExists"));
        }
        assert!(self.ever.insert(name.to_owned()), "a second Job for one instant: {name}");
        if cronjob.spec.policy == Policy::Forbid {
            let running: Vec<_> = self.unfinished().map(|job| job.key.name.clone()).collect();
            assert_eq!(running, Vec::<Arc<str>>::new(), "Forbid, and {name} was created beside these");
        }
        let resource_version = self.next_version();
        let job = Job { resource_version, creation_time: Some(now), ..job(self.flavor, name, Some(at)) };
        self.jobs.insert(name.to_owned(), job.clone());
        Ok(Arc::new(job))
    }

    fn patch(&mut self, base: &CronJob, status: &CronJobStatus) -> Result<Arc<CronJob>, ApiFailure> {
        if base.resource_version != self.cronjob.resource_version {
            return Err(failure(409, "Conflict"));
        }
        assert!(status.last_schedule_time >= self.cronjob.status.last_schedule_time, "lastScheduleTime moved back");
        if *status != self.cronjob.status {
            self.cronjob.status = status.clone();
            self.cronjob.resource_version = self.next_version();
        }
        Ok(Arc::new(self.cronjob.clone()))
    }

    /// What a watch that has caught up shows.
    pub(crate) fn cache(&self) -> Cache {
        Cache {
            cronjob: Arc::new(self.cronjob.clone()),
            jobs: self.jobs.values().cloned().map(Arc::new).collect(),
            version: Some(self.version.to_string().into()),
        }
    }
}

fn not_found() -> ApiFailure {
    failure(404, "NotFound")
}

#[derive(Clone)]
pub(crate) struct Cache {
    pub cronjob: Arc<CronJob>,
    pub jobs: Vec<Arc<Job>>,
    pub version: Option<Box<str>>,
}

impl JobCache for Cache {
    fn children(&self, owner: &Uid) -> Vec<Arc<Job>> {
        let owned = |job: &&Arc<Job>| job.controller.as_ref().is_some_and(|controller| controller.uid == *owner);
        self.jobs.iter().filter(owned).cloned().collect()
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<Job>> {
        self.jobs.iter().find(|job| job.key == *key).cloned()
    }

    fn version(&self) -> Option<Box<str>> {
        self.version.clone()
    }
}
