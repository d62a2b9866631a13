//! Shadow mode: watches and decides as the controllers do, writes nothing, and reports where the controller in charge did otherwise.
//!
//! Invariants
//! - Nothing but lists, watches and GETs leaves here: there is neither an event recorder nor an election, and what a step asks
//!   to be written is answered in [`plan`].
//! - There is no second decision: what would be done is what [`crate::reconcile::Step`] says.
//! - A plan is made without what the controller in charge did for the same instant; after it was judged, reality counts.
//! - One [`Record`] for each due instant of each CronJob; a further one where something is told about it later.

mod actor;
mod case;
mod explain;
mod feed;
mod judge;
mod ledger;
mod plan;
mod record;
mod tally;
mod view;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::record::{API_VERSION, Difference, Planned, Record, Report, Seen, Summary, UNEXPLAINED};

use self::actor::Shadows;
use self::feed::Feed;
use self::judge::Judge;
use self::plan::Planner;
use self::tally::{ShadowMetrics, Tally};
use super::cronjob::Calls;
use super::manager::{SILENCE, beat};
use super::readiness::is_ready;
use super::reflectors::Source;
use super::{Options, Registration, Serves, Setup};
use crate::clock::Clock;
use crate::cluster::{ApiClient, ApiClientOptions, ReflectorMetrics, RequestMetrics, Store};
use crate::engine::{self, Supervisor};
use crate::model::{CronJob, Flavor, Job};
use crate::reconcile::Settings;
use crate::telemetry::{Health, Scope};
use crate::workqueue;

/// The shadows of one process, one for each controller that is compared with.
pub struct Shadow {
    shared: Shared,
    options: Options,
    controllers: Vec<Controller>,
    tally: Tally,
    open: Arc<AtomicUsize>,
}

/// What every shadow needs.
#[derive(Clone)]
struct Shared {
    watches: kube::Client,
    clock: Clock,
    seed: u64,
    health: Health,
    reflectors: ReflectorMetrics,
}

/// The shadow of one controller.
#[derive(Clone)]
struct Controller {
    name: &'static str,
    feed: Feed,
    jobs: Store<Job>,
}

impl Shadow {
    /// Builds the shadows of those of `controllers` that serve CronJobs; nothing runs yet. Of `setup` the observer is not used: nothing is said to users.
    pub fn new(setup: Setup, options: Options, controllers: &[&Registration], report: Arc<dyn Report>) -> Self {
        let Setup { clients, client_options, clock, seed, registry, health, .. } = setup;
        let client_options = ApiClientOptions { host: clients.host, ..client_options };
        let requests = registry.register(RequestMetrics::register);
        let api = ApiClient::new(clients.requests, clock.clone(), client_options, requests);
        let (metrics, queues) =
            (registry.register(engine::Metrics::register), registry.register(workqueue::Metrics::register));
        let shadow_metrics = registry.register(ShadowMetrics::register);
        let names = controllers.iter().map(|registration| registration.name);
        let tally = Tally::new(shadow_metrics, report, names, clock.wall());
        let open = Arc::new(AtomicUsize::new(0));
        let reflectors = registry.register(ReflectorMetrics::register);
        let shared = Shared { watches: clients.watches, clock, seed, health, reflectors };
        let initialize = |registration: &&Registration| {
            let Serves::CronJobs(flavor) = registration.serves else { return None };
            let engine_options = engine::Options {
                shards: options.shards,
                concurrent_steps: options.concurrent_syncs,
                rate_limiter: options.rate_limiter,
                seed,
                queue_metrics: Some((queues.clone(), registration.name.to_owned())),
                metrics: Some(metrics.supervisor(registration.name)),
                ..engine::Options::new(shared.clock.clone())
            };
            let calls = Calls::new(api.clone(), flavor, options.job_managed_by.clone());
            let judge = Judge { controller: registration.name, tally: tally.clone(), open: open.clone() };
            Some(Controller::new((registration, flavor), &options, calls, judge, engine_options))
        };
        let controllers = controllers.iter().filter_map(initialize).collect();
        Self { shared, options, controllers, tally, open }
    }

    /// Watches until `stop`, then reports the summary.
    pub async fn run(self, stop: CancellationToken) {
        let Self { shared, options, controllers, tally, open } = self;
        let (tasks, stop) = (TaskTracker::new(), stop.child_token());
        // Dropping this future ends what it started.
        let _stops = stop.clone().drop_guard();
        for controller in controllers {
            let (shared, stop, budget) = (shared.clone(), stop.clone(), options.shutdown_budget);
            tasks.spawn(async move { controller.run(&shared, budget, stop).await });
        }
        tasks.spawn(beat(shared.health.heartbeat("loop", Scope::Live, &shared.clock, SILENCE), stop.clone()));
        tasks.close();
        stop.cancelled().await;
        tasks.wait().await;
        tally.end(shared.clock.wall(), open.load(Ordering::Relaxed));
    }
}

impl Controller {
    fn new(
        (registration, flavor): (&Registration, Flavor),
        options: &Options,
        calls: Calls,
        judge: Judge,
        engine: engine::Options,
    ) -> Self {
        let settings = Settings { flavor, local_zone: options.local_zone };
        let (cronjobs, jobs): (Store<CronJob>, Store<Job>) = Default::default();
        let planner = Planner { settings, jobs: jobs.clone(), calls };
        let kind = Shadows { planner, judge, cronjobs: cronjobs.clone(), watches: OnceLock::new() };
        let supervisor = Supervisor::new(kind, engine);
        Self { name: registration.name, feed: Feed { settings, supervisor, cronjobs }, jobs }
    }

    /// Runs until `stop`.
    async fn run(self, shared: &Shared, budget: Duration, stop: CancellationToken) {
        let Shared { watches, clock, seed, health, reflectors } = shared;
        let (flavor, source) = (self.feed.settings.flavor, Source { watches, clock, seed: *seed, metrics: reflectors });
        let (told, now) = (self.feed.clone(), clock.clone());
        let cronjobs = source.cronjobs(flavor, &self.feed.cronjobs, move |change| told.on_cronjob(change, now.wall()));
        let told = self.feed.clone();
        let jobs = source.jobs(flavor, &self.jobs, move |change| told.on_job(change));
        let watching = [cronjobs.health(), jobs.health()];
        // Set once, as `run` takes the value.
        drop(self.feed.supervisor.kind().watches.set(watching.clone()));
        let (stores, [of_cronjobs, of_jobs]) = (self.clone(), watching);
        health.check(self.name, Scope::Ready, move || {
            is_ready("CronJobs", stores.feed.cronjobs.has_synced(), &of_cronjobs)?;
            is_ready("Jobs", stores.jobs.has_synced(), &of_jobs)
        });
        let (tasks, watched) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(cronjobs.run(watched.clone()));
        tasks.spawn(jobs.run(watched.clone()));
        tokio::select! {
            biased;
            _ = self.feed.supervisor.run(stop, budget) => {}
            () = self.open_when_synced() => {}
        }
        watched.cancel();
        tasks.close();
        tasks.wait().await;
    }

    /// Never returns.
    async fn open_when_synced(&self) {
        self.feed.cronjobs.synced().await;
        self.jobs.synced().await;
        let (cronjobs, jobs) = (self.feed.cronjobs.len(), self.jobs.len());
        tracing::info!(
            controller = self.name,
            cronjobs,
            jobs,
            "caches have synced; watching what the controller in charge does"
        );
        self.feed.supervisor.open();
        std::future::pending::<()>().await;
    }
}
