//! The CronJob controller of one API: two reflectors feed a supervisor, whose actors step through `reconcile`.
//!
//! Invariants
//! - No step runs before both caches have synced; a kind that the server does not know is waited for, and found when it appears.
//! - What a watch event means is decided in `reconcile::watch`, what a step does in `reconcile::step`; here is only the wiring.
//! - Everything said about a CronJob goes through [`voice::Voice`], everything sent through [`calls::Calls`].

mod actor;
mod caches;
mod calls;
mod voice;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::actor::CronJobs;
use self::caches::Feed;
use self::calls::Calls;
use self::voice::Voice;
use super::{Counts, Deps, Options, Registration};
use crate::cluster::{Phase, ReflectorHealth, Store};
use crate::engine::{self, Supervisor};
use crate::model::{CronJob, Job};
use crate::reconcile::Settings;
use crate::telemetry::Scope;

/// One CronJob controller.
#[derive(Clone)]
pub(super) struct CronJobController {
    name: &'static str,
    feed: Feed,
}

impl CronJobController {
    /// Builds the controller. Nothing runs yet.
    pub(super) fn initialize(registration: &Registration, deps: &Deps, options: &Options) -> Self {
        let settings = Settings { flavor: registration.flavor, local_zone: options.local_zone };
        let (cronjobs, jobs): (Store<CronJob>, Store<Job>) = Default::default();
        let voice = Voice::new(registration, deps);
        let calls = Calls::new(deps.api.clone(), registration.flavor);
        let kind = CronJobs::new(settings, cronjobs.clone(), jobs.clone(), calls, voice.clone(), deps.clock.clone());
        let engine_options = engine::Options {
            shards: options.shards,
            concurrent_steps: options.concurrent_syncs,
            rate_limiter: options.rate_limiter,
            seed: deps.seed,
            queue_metrics: Some((deps.metrics.queues.clone(), registration.name.to_owned())),
            metrics: Some(deps.metrics.engine.supervisor(registration.name)),
            ..engine::Options::new(deps.clock.clone())
        };
        let supervisor = Supervisor::new(kind, engine_options);
        Self { name: registration.name, feed: Feed { settings, supervisor, voice, cronjobs, jobs } }
    }

    /// Runs until `stop`: fills the caches, steps the actors once both have synced, and at the end gives the steps in flight
    /// `options.shutdown_budget`.
    pub(super) async fn run(self, deps: &Deps, options: &Options, stop: CancellationToken) {
        let (tasks, watching) = (TaskTracker::new(), CancellationToken::new());
        let cronjobs = self.feed.cronjob_reflector(deps);
        let jobs = self.feed.job_reflector(deps);
        self.check_readiness(deps, cronjobs.health(), jobs.health());
        tasks.spawn(cronjobs.run(watching.clone()));
        tasks.spawn(jobs.run(watching.clone()));
        tokio::select! {
            biased;
            cut_off = self.feed.supervisor.run(stop, options.shutdown_budget) => {
                tracing::info!(controller = self.name, cut_off, "stopped");
            }
            () = self.open_when_synced() => {}
        }
        watching.cancel();
        tasks.close();
        tasks.wait().await;
    }

    /// What is held in memory.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            engine: self.feed.supervisor.debug_counts(),
            cronjobs: self.feed.cronjobs.len(),
            jobs: self.feed.jobs.len(),
            owners: self.feed.jobs.owners(),
        }
    }

    /// Never returns.
    async fn open_when_synced(&self) {
        let Feed { cronjobs, jobs, supervisor, .. } = &self.feed;
        cronjobs.synced().await;
        jobs.synced().await;
        tracing::info!(
            controller = self.name,
            cronjobs = cronjobs.len(),
            jobs = jobs.len(),
            "caches have synced; work begins"
        );
        supervisor.open();
        std::future::pending::<()>().await;
    }

    fn check_readiness(&self, deps: &Deps, cronjobs: ReflectorHealth, jobs: ReflectorHealth) {
        let (feed, controller) = (self.feed.clone(), self.name);
        deps.health.check(controller, Scope::Ready, move || {
            is_ready("CronJobs", feed.cronjobs.has_synced(), &cronjobs)?;
            is_ready("Jobs", feed.jobs.has_synced(), &jobs)
        });
    }
}

/// A cache is ready when it has synced, or when the server does not know the kind, which is no fault of ours.
fn is_ready(what: &str, synced: bool, health: &ReflectorHealth) -> Result<(), String> {
    let report = health.report();
    if synced || report.phase == Phase::Absent {
        return Ok(());
    }
    Err(format!("{what} have not synced: {}", report.trouble.as_deref().unwrap_or("the list is not complete")))
}
