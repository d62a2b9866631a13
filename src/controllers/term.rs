//! The supervisor of the present term. Its actors hold what one leader knew and did; with the next term come others, built
//! from the caches.

use std::sync::{Arc, PoisonError, RwLock};

use super::{Deps, Options, Registration};
use crate::clock::Clock;
use crate::engine::{self, Kind, Supervisor};
use crate::workqueue::RateLimiterConfig;

/// What the supervisors of a controller are made of, one after the other.
pub(super) trait Blueprint: Send + Sync + 'static {
    /// What its actors do.
    type Kind: Kind;

    /// A supervisor without actors.
    fn supervisor(&self) -> Supervisor<Self::Kind>;

    /// Tells `next`, which stands by, of every object in the caches; `last` is what it replaces.
    fn refill(&self, last: &Supervisor<Self::Kind>, next: &Supervisor<Self::Kind>);

    /// The actors take over from another leader from now on.
    fn on_take_over(&self, _supervisor: &Supervisor<Self::Kind>) {}
}

/// How the supervisors of one controller run.
#[derive(Clone)]
pub(super) struct EngineSetup {
    /// Of the queue.
    name: &'static str,
    rate_limiter: RateLimiterConfig,
    concurrent_steps: usize,
    shards: usize,
    seed: u64,
    clock: Clock,
    engine_metrics: engine::Metrics,
    queue_metrics: crate::workqueue::Metrics,
}

impl EngineSetup {
    pub(super) fn new(registration: &Registration, deps: &Deps, options: &Options) -> Self {
        Self {
            name: registration.name,
            rate_limiter: options.rate_limiter,
            concurrent_steps: options.concurrent_syncs,
            shards: options.shards,
            seed: deps.seed,
            clock: deps.clock.clone(),
            engine_metrics: deps.metrics.engine.clone(),
            queue_metrics: deps.metrics.queues.clone(),
        }
    }

    /// The same under another name, for a further queue.
    pub(super) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The same with so many steps at a time.
    pub(super) fn stepping(self, concurrent_steps: usize) -> Self {
        Self { concurrent_steps, ..self }
    }

    /// The same with these waits after errors.
    pub(super) fn limited_by(self, rate_limiter: RateLimiterConfig) -> Self {
        Self { rate_limiter, ..self }
    }

    /// The options of a supervisor.
    pub(super) fn options(&self) -> engine::Options {
        engine::Options {
            shards: self.shards,
            concurrent_steps: self.concurrent_steps,
            rate_limiter: self.rate_limiter,
            seed: self.seed,
            queue_metrics: Some((self.queue_metrics.clone(), self.name.to_owned())),
            metrics: Some(self.engine_metrics.supervisor(self.name)),
            ..engine::Options::new(self.clock.clone())
        }
    }
}

/// The term of the moment. Clones share it.
pub(super) struct Term<B: Blueprint> {
    blueprint: Arc<B>,
    /// Replaced when a term ends; read by whoever sends.
    present: Arc<RwLock<Supervisor<B::Kind>>>,
}

impl<B: Blueprint> Clone for Term<B> {
    fn clone(&self) -> Self {
        Self { blueprint: self.blueprint.clone(), present: self.present.clone() }
    }
}

impl<B: Blueprint> Term<B> {
    pub(super) fn new(blueprint: B) -> Self {
        let present = Arc::new(RwLock::new(blueprint.supervisor()));
        Self { blueprint: Arc::new(blueprint), present }
    }

    /// Its supervisor.
    pub(super) fn supervisor(&self) -> Supervisor<B::Kind> {
        self.present.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether another process leads.
    pub(super) fn is_standing_by(&self) -> bool {
        self.supervisor().is_standing_by()
    }

    /// Hands news to the actor of `key`.
    pub(super) fn send(&self, key: <B::Kind as Kind>::Key, news: <B::Kind as Kind>::Message) {
        self.supervisor().send(key, news);
    }

    /// Hands news to the actor of `key` that its object is gone.
    pub(super) fn send_gone(&self, key: <B::Kind as Kind>::Key, news: <B::Kind as Kind>::Message) {
        self.supervisor().send_gone(key, news);
    }

    /// Lets steps run: all that they look at has synced.
    pub(super) fn begin(&self) {
        let supervisor = self.supervisor();
        if supervisor.is_standing_by() {
            self.blueprint.on_take_over(&supervisor);
            supervisor.take_over();
        } else {
            supervisor.open();
        }
    }

    /// Drops what the actors of the term know and builds those of the next, which stand by.
    pub(super) fn replace(&self) {
        let next = self.blueprint.supervisor();
        next.stand_by();
        let last = {
            let mut present = self.present.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *present, next.clone())
        };
        self.blueprint.refill(&last, &next);
    }
}
