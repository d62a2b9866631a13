//! The supervisor of the present term. Its actors hold what one leader knew and did; with the next term come others, built
//! from the caches.

use std::sync::{Arc, PoisonError, RwLock};

use super::actor::{CronJobs, News};
use super::calls::Calls;
use super::voice::Voice;
use crate::clock::Clock;
use crate::cluster::Store;
use crate::controllers::{Deps, Options, Registration};
use crate::engine::{self, Supervisor, Wake};
use crate::model::{CronJob, Job, ObjectKey};
use crate::reconcile::Settings;

/// Everything that a supervisor of one controller is made of.
pub(super) struct Blueprint {
    pub(super) settings: Settings,
    pub(super) cronjobs: Store<CronJob>,
    pub(super) jobs: Store<Job>,
    pub(super) calls: Calls,
    pub(super) voice: Voice,
    pub(super) name: &'static str,
    pub(super) options: Options,
    pub(super) seed: u64,
    pub(super) clock: Clock,
    pub(super) engine_metrics: engine::Metrics,
    pub(super) queue_metrics: crate::workqueue::Metrics,
}

impl Blueprint {
    pub(super) fn new(
        registration: &Registration,
        deps: &Deps,
        options: &Options,
        (cronjobs, jobs): (Store<CronJob>, Store<Job>),
    ) -> Self {
        Self {
            settings: Settings { flavor: registration.flavor, local_zone: options.local_zone },
            cronjobs,
            jobs,
            calls: Calls::new(deps.api.clone(), registration.flavor),
            voice: Voice::new(registration, deps),
            name: registration.name,
            options: *options,
            seed: deps.seed,
            clock: deps.clock.clone(),
            engine_metrics: deps.metrics.engine.clone(),
            queue_metrics: deps.metrics.queues.clone(),
        }
    }

    /// A supervisor without actors.
    fn supervisor(&self) -> Supervisor<CronJobs> {
        let (cronjobs, jobs) = (self.cronjobs.clone(), self.jobs.clone());
        let kind =
            CronJobs::new(self.settings, cronjobs, jobs, self.calls.clone(), self.voice.clone(), self.clock.clone());
        let options = engine::Options {
            shards: self.options.shards,
            concurrent_steps: self.options.concurrent_syncs,
            rate_limiter: self.options.rate_limiter,
            seed: self.seed,
            queue_metrics: Some((self.queue_metrics.clone(), self.name.to_owned())),
            metrics: Some(self.engine_metrics.supervisor(self.name)),
            ..engine::Options::new(self.clock.clone())
        };
        Supervisor::new(kind, options)
    }
}

/// The term of the moment. Clones share it.
#[derive(Clone)]
pub(super) struct Term {
    blueprint: Arc<Blueprint>,
    /// Replaced when a term ends; read by whoever sends.
    present: Arc<RwLock<Supervisor<CronJobs>>>,
}

impl Term {
    pub(super) fn new(blueprint: Blueprint) -> Self {
        let present = Arc::new(RwLock::new(blueprint.supervisor()));
        Self { blueprint: Arc::new(blueprint), present }
    }

    /// Its supervisor.
    pub(super) fn supervisor(&self) -> Supervisor<CronJobs> {
        self.present.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Hands news to the actor of `key`.
    pub(super) fn send(&self, key: ObjectKey, news: News) {
        self.supervisor().send(key, news);
    }

    /// Hands news to the actor of `key` that its object is gone.
    pub(super) fn send_gone(&self, key: ObjectKey, news: News) {
        self.supervisor().send_gone(key, news);
    }

    /// Drops what the actors of the term know and builds those of the next, which stand by, from the caches. Edits are facts about
    /// the objects and stay known.
    pub(super) fn replace(&self) {
        let next = self.blueprint.supervisor();
        next.stand_by();
        let last = {
            let mut present = self.present.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *present, next.clone())
        };
        self.blueprint.voice.metrics().nobody_is_counted();
        for cronjob in self.blueprint.cronjobs.list() {
            let edited = last.mail(&cronjob.key).flatten();
            next.send(cronjob.key.clone(), News { edited, wake: Wake::Listed });
        }
    }
}
