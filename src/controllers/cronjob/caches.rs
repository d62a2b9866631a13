//! The caches of CronJobs and Jobs, and how their changes reach the actors.

use std::sync::Arc;

use super::actor::News;
use super::term::Blueprint;
use super::voice::Voice;
use crate::cluster::{Change, Reflector, Sink, Store};
use crate::controllers::Deps;
use crate::controllers::reflectors::Source;
use crate::controllers::term::Term;
use crate::engine::Wake;
use crate::model::{CronJob, Job, ObjectKey, Uid, WallTime};
use crate::reconcile::{
    JobCache, Operation, Reaction, Settings, on_cronjob_added, on_cronjob_deleted, on_cronjob_updated, on_job_added,
    on_job_deleted, on_job_updated, on_name_freed,
};

impl JobCache for Store<Job> {
    fn children(&self, owner: &Uid) -> Vec<Arc<Job>> {
        Self::children(self, owner)
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<Job>> {
        Self::get(self, key)
    }

    fn version(&self) -> Option<Box<str>> {
        Self::version(self)
    }
}

/// What both caches' changes have in common: whom they concern, and where they go.
#[derive(Clone)]
pub(super) struct Feed {
    pub(super) settings: Settings,
    pub(super) term: Term<Blueprint>,
    pub(super) voice: Voice,
    pub(super) cronjobs: Store<CronJob>,
    pub(super) jobs: Store<Job>,
}

impl Feed {
    /// The reflector of CronJobs; its changes go to this feed.
    pub(super) fn cronjob_reflector(&self, deps: &Deps) -> Reflector<CronJob, impl Sink<CronJob> + use<>> {
        let (feed, clock) = (self.clone(), deps.clock.clone());
        Source::of(deps)
            .cronjobs(self.settings.flavor, &self.cronjobs, move |change| feed.on_cronjob(change, clock.wall()))
    }

    /// The reflector of Jobs; its changes go to this feed.
    pub(super) fn job_reflector(&self, deps: &Deps) -> Reflector<Job, impl Sink<Job> + use<>> {
        let feed = self.clone();
        Source::of(deps).jobs(self.settings.flavor, &self.jobs, move |change| feed.on_job(change))
    }

    fn on_cronjob(&self, change: Change<CronJob>, now: WallTime) {
        let (about, reaction, initial) = match change {
            Change::Synced | Change::Relisted => return,
            Change::Unreadable { key, uid, error } => return self.say_unreadable(&key, uid, error),
            Change::Applied { old: None, new, initial } => (new.clone(), on_cronjob_added(&new), initial),
            Change::Applied { old: Some(old), new, initial } => {
                (new.clone(), on_cronjob_updated(self.settings, &old, &new, now), initial)
            }
            Change::Deleted { last } => return self.on_gone(&on_cronjob_deleted(&last)),
        };
        if !self.term.is_standing_by() {
            self.voice.say_all(&about, &reaction.happenings);
        }
        self.wake(&about.key, &reaction, initial);
    }

    fn on_gone(&self, reaction: &Reaction) {
        for operation in &reaction.operations {
            let (Operation::Add(key) | Operation::AddAfter(key, _)) = operation;
            self.term.send_gone(key.clone(), News { edited: None, wake: Wake::Now });
        }
    }

    /// While standing by the leader speaks, who sees the same.
    fn say_unreadable(&self, key: &ObjectKey, uid: Uid, error: String) {
        if !self.term.is_standing_by() {
            self.voice.say_unreadable(key, uid, error);
        }
    }

    fn on_job(&self, change: Change<Job>) {
        let flavor = self.settings.flavor;
        let owners = |key: &ObjectKey| self.cronjobs.get(key).map(|cronjob| cronjob.uid.clone());
        let (key, reaction, initial) = match change {
            Change::Relisted => return self.look_at_active(),
            // A Job that cannot be read was told as deleted; its name still keeps its run from starting twice.
            Change::Synced | Change::Unreadable { .. } => return,
            Change::Applied { old: None, new, initial } => {
                (new.key.clone(), on_job_added(flavor, &new, &owners), initial)
            }
            Change::Applied { old: Some(old), new, initial } => {
                (new.key.clone(), on_job_updated(flavor, &old, &new, &owners), initial)
            }
            Change::Deleted { last } => {
                self.wake(&last.key, &on_name_freed(&last, &owners), false);
                (last.key.clone(), on_job_deleted(flavor, &last, &owners), false)
            }
        };
        self.wake(&key, &reaction, initial);
    }

    /// All Jobs were listed anew. One that came and went while the watch was silent is in no cache and in no event; only its entry in
    /// `active` tells of it.
    fn look_at_active(&self) {
        for cronjob in self.cronjobs.list() {
            if !cronjob.status.active.is_empty() {
                self.term.send(cronjob.key.clone(), News { edited: None, wake: Wake::Listed });
            }
        }
    }

    /// Hands a reaction to the actors. `about` is the object that changed: an edit that asks for no step must still be known
    /// to its actor.
    fn wake(&self, about: &ObjectKey, reaction: &Reaction, initial: bool) {
        let edited = reaction.edited;
        if reaction.operations.is_empty() && edited.is_some() {
            self.term.send(about.clone(), News { edited, wake: Wake::Nothing });
        }
        for operation in &reaction.operations {
            let (key, wake) = match operation {
                Operation::Add(key) if initial => (key, Wake::Listed),
                Operation::Add(key) => (key, Wake::Now),
                Operation::AddAfter(key, delay) => (key, Wake::After(*delay)),
            };
            self.term.send(key.clone(), News { edited, wake });
        }
    }
}
