//! Runs controllers together over one API client, one event recorder and one set of metrics.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::cronjob::CronJobController;
use super::{Counts, Deps, Metrics, Observer, Options, Registration};
use crate::clock::Clock;
use crate::cluster::{
    ApiClient, ApiClientOptions, Clients, EventMetrics, EventOptions, EventTask, ReflectorMetrics, RequestMetrics,
    event_recorder,
};
use crate::telemetry::{ControllerMetrics, Health, Heartbeat, Registry, Scope};
use crate::{engine, workqueue};

/// How often the runtime proves that its timers and tasks move.
const BEAT_EVERY: Duration = Duration::from_secs(5);

/// Without a sign of life for this long a restart is due: the check `loop` of `/livez` fails.
const SILENCE: Duration = Duration::from_secs(30);

/// What the outside world gives to the controllers.
pub struct Setup {
    /// How to reach the API server.
    pub clients: Clients,
    /// Limits of the client; its host is filled in from `clients`.
    pub client_options: ApiClientOptions,
    /// Both clocks.
    pub clock: Clock,
    /// Seed of all that is drawn at random.
    pub seed: u64,
    /// Where metrics are registered; once for each registry.
    pub registry: Registry,
    /// Where checks are added.
    pub health: Health,
    /// Who hears what is said to users.
    pub observer: Option<Arc<dyn Observer>>,
}

/// The controllers of one process.
pub struct Manager {
    deps: Deps,
    options: Options,
    controllers: Vec<CronJobController>,
    events: EventTask,
}

impl Manager {
    /// Builds `controllers`; nothing runs yet.
    pub fn new(setup: Setup, options: Options, controllers: &[&Registration]) -> Self {
        let Setup { clients, client_options, clock, seed, registry, health, observer } = setup;
        let client_options = ApiClientOptions { host: clients.host, ..client_options };
        let requests = registry.register(RequestMetrics::register);
        let api = ApiClient::new(clients.requests, clock.clone(), client_options, requests);
        let event_metrics = registry.register(EventMetrics::register);
        let (recorder, events) = event_recorder(api.clone(), clock.clone(), EventOptions::new(seed), event_metrics);
        let metrics = Metrics {
            controllers: ControllerMetrics::register(&registry),
            engine: registry.register(engine::Metrics::register),
            queues: registry.register(workqueue::Metrics::register),
            reflectors: registry.register(ReflectorMetrics::register),
        };
        let deps = Deps { api, watches: clients.watches, recorder, clock, seed, metrics, health, observer };
        let controllers = controllers.iter().map(|r| CronJobController::initialize(r, &deps, &options)).collect();
        Self { deps, options, controllers, events }
    }

    /// A way to ask what each controller holds in memory, also while they run.
    pub fn counter(&self) -> impl Fn() -> Vec<Counts> + Send + Sync + use<> {
        let controllers = self.controllers.clone();
        move || controllers.iter().map(CronJobController::counts).collect()
    }

    /// Runs the controllers until `stop`, then ends them gracefully.
    pub async fn run(self, stop: CancellationToken) {
        let Self { deps, options, controllers, events } = self;
        let (working, telling) = (TaskTracker::new(), TaskTracker::new());
        let (stop, silence) = (stop.child_token(), CancellationToken::new());
        // Dropping this future ends what it started.
        let _stops = stop.clone().drop_guard();
        let _silences = silence.clone().drop_guard();
        telling.spawn(events.run(silence.clone()));
        for controller in controllers {
            let (deps, stop) = (deps.clone(), stop.clone());
            working.spawn(async move { controller.run(&deps, &options, stop).await });
        }
        working.spawn(beat(deps.health.heartbeat("loop", Scope::Live, &deps.clock, SILENCE), stop.clone()));
        working.close();
        stop.cancelled().await;
        working.wait().await;
        // Only now, so that what the last steps said is still written.
        silence.cancel();
        telling.close();
        telling.wait().await;
    }
}

/// Gives signs of life until `stop`.
async fn beat(heartbeat: Heartbeat, stop: CancellationToken) {
    let beating = async {
        loop {
            heartbeat.beat();
            tokio::time::sleep(BEAT_EVERY).await;
        }
    };
    stop.run_until_cancelled(beating).await;
}
