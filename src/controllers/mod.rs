//! The controllers: which there are ([`REGISTRY`]), what they need ([`Setup`]), and how they run together ([`Manager`]).
//!
//! Invariants
//! - A controller is a value. Clients, clocks, randomness and the end come in from outside, so the binary, the sandbox, tests
//!   and benchmarks run the very same code.
//! - Controllers know nothing of each other.
//! - With an election only the leader steps and writes; the others hold the same caches and wait.
//! - At the end nothing new is begun, steps in flight finish within the budget, and what was said is still written.

mod controller;
mod cronjob;
mod expiry;
mod job;
mod manager;
mod readiness;
mod reflectors;
mod registry;
mod requests;
pub mod shadow;
mod speech;
mod term;
mod terms;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::manager::{Manager, Setup};
pub use self::registry::{Gate, REGISTRY, Registration, Serves};

use crate::clock::Clock;
use crate::cluster::{ApiClient, EventRecorder, ReflectorMetrics};
use crate::engine;
use crate::jobs::Mandate;
use crate::jobs::names::MANAGED_BY_US;
use crate::model::{Happening, ObjectKey, WallTime};
use crate::schedule::Zone;
use crate::telemetry::{ControllerMetrics, Health, JobMetrics};
use crate::workqueue::{self, RateLimiterConfig};

/// What every controller gets.
#[derive(Clone)]
struct Deps {
    /// For single requests.
    api: ApiClient,
    /// For lists and watches.
    watches: kube::Client,
    recorder: EventRecorder,
    clock: Clock,
    seed: u64,
    metrics: Metrics,
    health: Health,
    observer: Option<Arc<dyn Observer>>,
}

/// The metrics that controllers report to.
#[derive(Clone)]
struct Metrics {
    controllers: ControllerMetrics,
    engine: engine::Metrics,
    queues: workqueue::Metrics,
    reflectors: ReflectorMetrics,
    jobs: JobMetrics,
}

/// How the controllers work.
#[derive(Clone, Debug)]
pub struct Options {
    /// Steps at a time of each CronJob controller (`--concurrent-cron-job-syncs`).
    pub concurrent_syncs: usize,
    /// Queues of each controller.
    pub shards: usize,
    /// Waits between attempts of a key.
    pub rate_limiter: RateLimiterConfig,
    /// The zone of schedules that name none (`--default-time-zone`).
    pub local_zone: Zone,
    /// How long steps in flight may take after the end was asked for.
    pub shutdown_budget: Duration,
    /// `spec.managedBy` of the `batch/v1` Jobs that the CronJob controller makes (`--job-managed-by`).
    pub job_managed_by: Option<Arc<str>>,
    /// Which Jobs the Job controller looks after (`--job-controller`, `--job-controller-name`).
    pub mandate: Mandate,
    /// Steps at a time of the Job controller, and of the one that deletes Jobs after their end (`--concurrent-job-syncs`).
    pub concurrent_job_syncs: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrent_syncs: 256,
            shards: 4,
            rate_limiter: RateLimiterConfig::default(),
            local_zone: Zone::UTC,
            shutdown_budget: Duration::from_secs(25),
            job_managed_by: None,
            mandate: Mandate::marked(MANAGED_BY_US),
            concurrent_job_syncs: 128,
        }
    }
}

/// Hears in this process what is said to users; must not block.
pub trait Observer: Send + Sync {
    /// `controller` said `happening` of the CronJob `about` at `at`.
    fn on_happening(&self, controller: &'static str, about: &ObjectKey, at: WallTime, happening: &Happening);
}

/// What a controller holds in memory; all zero once every object is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Actors and queues.
    pub engine: engine::Counts,
    /// CronJobs in the cache.
    pub cronjobs: usize,
    /// Jobs in the cache.
    pub jobs: usize,
    /// Pods in the cache.
    pub pods: usize,
    /// Owners in the index of Jobs, or of Pods.
    pub owners: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine::Counts { cells, queues } = self.engine;
        match self.pods {
            0 => write!(f, "{} CronJobs and {} Jobs", self.cronjobs, self.jobs)?,
            pods => write!(f, "{} Jobs and {pods} Pods", self.jobs)?,
        }
        write!(
            f,
            " of {} owners cached; {cells} actors; {} keys queued, {} in flight, {} delayed, {} backing off",
            self.owners, queues.queued, queues.in_flight, queues.delayed, queues.limiter_records
        )
    }
}
