//! Runs controllers together over one API client, one event recorder and one set of metrics.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::controller::{Controller, initialize};
use super::terms::Terms;
use super::{Counts, Deps, Metrics, Observer, Options, Registration, Serves};
use crate::clock::Clock;
use crate::cluster::{
    ApiClient, ApiClientOptions, Clients, Election, Elector, ElectorSetup, EventMetrics, EventOptions, EventTask,
    LeaderMetrics, Leadership, ReflectorMetrics, RequestMetrics, Validity, event_recorder,
};
use crate::telemetry::{ControllerMetrics, Health, Heartbeat, JobMetrics, Registry, Scope};
use crate::{engine, workqueue};

/// How often the runtime proves that its timers and tasks move.
const BEAT_EVERY: Duration = Duration::from_secs(5);

/// Without a sign of life for this long a restart is due: the check `loop` of `/livez` fails.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

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
    /// The election that decides whether this process works; `None`: it always does.
    pub election: Option<Election>,
}

/// The controllers of one process.
pub struct Manager {
    deps: Deps,
    options: Options,
    controllers: Vec<Arc<dyn Controller>>,
    events: EventTask,
    candidate: Option<Candidate>,
}

/// The part of a process in an election.
struct Candidate {
    elector: Elector,
    /// Writes the events about the Lease, which the gate of a leader's writes does not hold back.
    events: EventTask,
    /// The election's lease duration.
    lease_duration: Duration,
}

impl Manager {
    /// Builds `controllers`; nothing runs yet.
    pub fn new(setup: Setup, options: Options, controllers: &[&Registration]) -> Self {
        let Setup { clients, client_options, clock, seed, registry, health, observer, election } = setup;
        let client_options = ApiClientOptions { host: clients.host, ..client_options };
        let requests = registry.register(RequestMetrics::register);
        let event_metrics = registry.register(EventMetrics::register);
        let validity = election.as_ref().map(|_| Validity::new(clock.clone()));
        let candidate = election.zip(validity.clone()).map(|(election, validity)| {
            let lease_duration = election.timing.lease_duration;
            let own = ApiClient::new(clients.leases.clone(), clock.clone(), client_options.clone(), requests.clone());
            let (recorder, events) = event_recorder(own, clock.clone(), EventOptions::new(seed), event_metrics.clone());
            let elector = Elector::new(ElectorSetup {
                client: clients.leases,
                host: client_options.host.clone(),
                clock: clock.clone(),
                seed,
                election,
                validity,
                recorder,
                requests: requests.clone(),
                metrics: registry.register(LeaderMetrics::register),
            });
            elector.leadership().check(&health, &clock, lease_duration);
            Candidate { elector, events, lease_duration }
        });
        let api = ApiClient::gated(clients.requests, clock.clone(), client_options, requests, validity);
        let (recorder, events) = event_recorder(api.clone(), clock.clone(), EventOptions::new(seed), event_metrics);
        let metrics = Metrics {
            controllers: ControllerMetrics::register(&registry),
            engine: registry.register(engine::Metrics::register),
            queues: registry.register(workqueue::Metrics::register),
            reflectors: registry.register(ReflectorMetrics::register),
            jobs: job_metrics(&registry, controllers),
        };
        let deps = Deps { api, watches: clients.watches, recorder, clock, seed, metrics, health, observer };
        let controllers = controllers.iter().map(|r| initialize(r, &deps, &options)).collect();
        Self { deps, options, controllers, events, candidate }
    }

    /// A way to ask what each controller holds in memory, also while they run.
    pub fn counter(&self) -> impl Fn() -> Vec<Counts> + Send + Sync + use<> {
        let controllers = self.controllers.clone();
        move || controllers.iter().map(|it| it.counts()).collect()
    }

    /// Who leads; `None` without an election.
    pub fn leadership(&self) -> Option<Leadership> {
        self.candidate.as_ref().map(|candidate| candidate.elector.leadership())
    }

    /// Runs the controllers until `stop`, then ends them gracefully.
    pub async fn run(self, stop: CancellationToken) {
        let Self { deps, options, controllers, events, candidate } = self;
        let (background, watching) = (TaskTracker::new(), CancellationToken::new());
        // Dropping this future ends what it started.
        let _unwatches = watching.clone().drop_guard();
        let telling = Telling::start(events);
        if candidate.is_some() {
            controllers.iter().for_each(|it| it.stand_by());
        }
        let readiness: Vec<_> = controllers.iter().map(|it| it.watch(&deps, &background, &watching)).collect();
        for (controller, asked) in controllers.iter().zip(readiness.clone()) {
            deps.health.check(controller.name(), Scope::Ready, move || asked.check());
        }
        let caches = readiness.clone();
        deps.health.check("caches", Scope::Live, move || caches.iter().try_for_each(|it| it.check_that_they_move()));
        background.spawn(beat(deps.health.heartbeat("loop", Scope::Live, &deps.clock, SILENCE), watching.clone()));
        let budget = options.shutdown_budget;
        match candidate {
            None => {
                let working = controllers.iter().map(|it| it.work(stop.clone(), budget, CancellationToken::new()));
                tokio::join!(join_all(working), stop.cancelled());
            }
            Some(Candidate { elector, events, lease_duration }) => {
                let about_the_lease = Telling::start(events);
                let terms = Terms { elector, controllers, readiness, budget, patience: lease_duration };
                terms.run(stop, &telling).await;
                about_the_lease.end().await;
            }
        }
        watching.cancel();
        background.close();
        background.wait().await;
        telling.end().await;
    }
}

/// Shown only where a controller reports to them.
fn job_metrics(registry: &Registry, controllers: &[&Registration]) -> JobMetrics {
    let metrics = JobMetrics::new();
    if controllers.iter().any(|it| !matches!(it.serves, Serves::CronJobs(_))) {
        registry.register(|to| metrics.register(to));
    }
    metrics
}

/// A task that writes events, and its end.
pub(super) struct Telling {
    silence: CancellationToken,
    tasks: TaskTracker,
}

impl Telling {
    fn start(events: EventTask) -> Self {
        let (silence, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(events.run(silence.clone()));
        tasks.close();
        Self { silence, tasks }
    }

    /// Writes what is left; returns at once if that was done before.
    pub(super) async fn end(&self) {
        self.silence.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.silence.cancel();
    }
}

/// Gives signs of life until `stop`.
pub(super) async fn beat(heartbeat: Heartbeat, stop: CancellationToken) {
    let beating = async {
        loop {
            heartbeat.beat();
            tokio::time::sleep(BEAT_EVERY).await;
        }
    };
    stop.run_until_cancelled(beating).await;
}
