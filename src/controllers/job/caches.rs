//! The caches of Jobs and Pods, and how their changes reach the actors.

use super::orphans::Suspect;
use super::term::{JobBlueprint, OrphanBlueprint};
use super::voice::Voice;
use crate::cluster::{Change, Reflector, Sink, Store};
use crate::controllers::Deps;
use crate::controllers::reflectors::Source;
use crate::controllers::term::Term;
use crate::engine::Wake;
use crate::jobs::{
    Mandate, Operation, Reaction, on_job_added, on_job_deleted, on_job_updated, on_pod_added, on_pod_deleted,
    on_pod_updated,
};
use crate::model::{BatchJob, ObjectKey, Pod, WallTime};

/// What both caches' changes have in common: whom they concern, and where they go.
#[derive(Clone)]
pub(super) struct Feed {
    pub(super) mandate: Mandate,
    pub(super) term: Term<JobBlueprint>,
    /// Is told nothing while standing by, for nobody would ever look at it: [`Feed::suspect_all`] makes up for it.
    pub(super) orphans: Term<OrphanBlueprint>,
    pub(super) voice: Voice,
    pub(super) jobs: Store<BatchJob>,
    pub(super) pods: Store<Pod>,
}

impl Feed {
    /// The reflector of Jobs; its changes go to this feed. Jobs that will start no Pod are kept without their template.
    pub(super) fn job_reflector(&self, name: &str, deps: &Deps) -> Reflector<BatchJob, impl Sink<BatchJob> + use<>> {
        let (feed, clock, mandate) = (self.clone(), deps.clock.clone(), self.mandate.clone());
        let starts_pods = move |job: &BatchJob| mandate.covers(job) && !job.finished();
        let sink = move |change| feed.on_job(change, clock.wall());
        Source::of(deps).batch_jobs(name, starts_pods, &self.jobs, sink)
    }

    /// The reflector of Pods; its changes go to this feed.
    pub(super) fn pod_reflector(&self, deps: &Deps) -> Reflector<Pod, impl Sink<Pod> + use<>> {
        let feed = self.clone();
        Source::of(deps).pods(&self.pods, move |change| feed.on_pod(change))
    }

    fn on_job(&self, change: Change<BatchJob>, now: WallTime) {
        match change {
            // What came and went unheard left its mark in the Pods, which are heard of by themselves.
            Change::Synced | Change::Relisted => {}
            Change::Unreadable { key, uid, error } if !self.term.is_standing_by() => {
                self.voice.say_unreadable(&key, uid, error);
            }
            Change::Unreadable { .. } => {}
            Change::Applied { old: None, new, initial } => self.send(on_job_added(&self.mandate, &new), initial),
            Change::Applied { old: Some(old), new, initial } => {
                self.send(on_job_updated(&self.mandate, &old, &new, now), initial);
            }
            Change::Deleted { last } => self.on_job_gone(&last),
        }
    }

    /// The actor of the Job goes; its Pods are looked at.
    fn on_job_gone(&self, last: &BatchJob) {
        let mut reaction = on_job_deleted(last);
        reaction.operations.retain(|operation| !matches!(operation, Operation::Sync(_)));
        if self.mandate.covers(last) {
            self.term.send_gone(last.key.clone(), Wake::Now);
        }
        self.send(reaction, false);
    }

    fn on_pod(&self, change: Change<Pod>) {
        let (reaction, initial) = match change {
            Change::Synced | Change::Relisted => return,
            Change::Unreadable { key, error, .. } => return self.voice.say_failed(&key, &error),
            Change::Applied { old: None, new, initial } => (on_pod_added(&new, &self.jobs), initial),
            Change::Applied { old: Some(old), new, initial } => (on_pod_updated(&old, &new, &self.jobs), initial),
            Change::Deleted { last } => (on_pod_deleted(&last, &self.jobs), false),
        };
        self.send(reaction, initial);
    }

    /// Hands a reaction to the actors and counts what it tells.
    fn send(&self, reaction: Reaction, initial: bool) {
        self.voice.count(&reaction);
        let now = if initial { Wake::Listed } else { Wake::Now };
        for operation in reaction.operations {
            match operation {
                Operation::Sync(key) => self.wake(key, now),
                Operation::SyncAfter(key, delay) => self.wake(key, Wake::After(delay)),
                Operation::Orphan(key) => self.suspect(Suspect::Pod(key), now),
                Operation::Sweep { namespace, uid, selector } => {
                    self.suspect(Suspect::Of { namespace, uid, selector }, now);
                }
            }
        }
    }

    /// Jobs of others have no actor.
    fn wake(&self, key: ObjectKey, wake: Wake) {
        if self.jobs.get(&key).is_some_and(|job| self.mandate.covers(&job)) {
            self.term.send(key, wake);
        }
    }

    fn suspect(&self, suspect: Suspect, wake: Wake) {
        if !self.orphans.is_standing_by() {
            self.orphans.send(suspect, wake);
        }
    }

    /// Looks at everything that may have lost its Job while nobody listened.
    pub(super) fn suspect_all(&self) {
        for pod in self.pods.list() {
            if pod.tracked {
                self.suspect(Suspect::Pod(pod.key.clone()), Wake::Listed);
            }
        }
    }
}
