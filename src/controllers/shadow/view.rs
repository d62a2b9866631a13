//! One CronJob and its Jobs as the shadow sees them at one moment, and what would become of them by our own writes.
//!
//! Invariant: a view changes only by what a watch told, or on a copy that is thrown away after the decision.

use std::sync::Arc;

use crate::cluster::Store;
use crate::model::{CronJob, CronJobStatus, Job, ObjectKey, Uid, WallTime};
use crate::reconcile::JobCache;

/// A CronJob and the Jobs that its uid controls.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) cronjob: Arc<CronJob>,
    /// Sorted by name, as in the cache.
    pub(super) jobs: Vec<Arc<Job>>,
}

impl View {
    /// What the caches show.
    pub(super) fn of(cronjob: Arc<CronJob>, jobs: &Store<Job>) -> Self {
        let jobs = jobs.children(&cronjob.uid);
        Self { cronjob, jobs }
    }

    /// Whether the CronJob's uid controls `job`.
    pub(super) fn owns(&self, job: &Job) -> bool {
        job.controller.as_ref().is_some_and(|owner| owner.uid == self.cronjob.uid)
    }

    pub(super) fn job(&self, uid: &Uid) -> Option<&Arc<Job>> {
        self.jobs.iter().find(|job| job.uid == *uid)
    }

    /// Puts in `job`, in the place of an older version of it.
    pub(super) fn put(&mut self, job: Arc<Job>) {
        self.remove(&job.uid);
        let at = self.jobs.partition_point(|other| other.key < job.key);
        self.jobs.insert(at, job);
    }

    pub(super) fn remove(&mut self, uid: &Uid) {
        self.jobs.retain(|job| job.uid != *uid);
    }

    pub(super) fn set_status(&mut self, status: CronJobStatus) {
        if self.cronjob.status != status {
            self.cronjob = Arc::new(CronJob { status, ..CronJob::clone(&self.cronjob) });
        }
    }

    /// Takes out what was done for the run of `due` after it was due: its Job, the entry in `active`, and a lastScheduleTime as
    /// new as the run, in the place of which `last` comes back.
    pub(super) fn undo_start(&mut self, due: WallTime, job: Option<&Uid>, last: Option<WallTime>) {
        let mut status = self.cronjob.status.clone();
        if let Some(uid) = job {
            self.remove(uid);
            status.active.retain(|reference| reference.uid != *uid);
        }
        if status.last_schedule_time >= Some(due) {
            status.last_schedule_time = last;
        }
        self.set_status(status);
    }
}

/// What a decision reads: a view first, and the cache for what belongs to others.
pub(super) struct Scene<'a> {
    pub(super) view: &'a View,
    pub(super) cache: &'a Store<Job>,
}

impl JobCache for Scene<'_> {
    fn children(&self, owner: &Uid) -> Vec<Arc<Job>> {
        let owned = |job: &&Arc<Job>| job.controller.as_ref().is_some_and(|controller| controller.uid == *owner);
        self.view.jobs.iter().filter(owned).cloned().collect()
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<Job>> {
        let own = self.view.jobs.iter().find(|job| job.key == *key).cloned();
        // What the cache shows of our own Jobs may be newer than the view.
        own.or_else(|| self.cache.get(key).filter(|job| !self.view.owns(job)))
    }
}
