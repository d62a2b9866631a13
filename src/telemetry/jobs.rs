//! The metrics about `batch/v1` Jobs and their Pods: names, labels and buckets of the peer (`job_controller_*`,
//! `ttl_after_finished_controller_*`).
//!
//! Invariants
//! - Label values come from closed sets; what users write into a Job is mapped into one, so the number of series does not grow with
//!   the cluster. Managers, whose names are users', are the exception: [`MOST_MANAGERS`] are told apart.
//! - Series whose labels are few exist at zero from the start.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry as Registered;

/// Other managers of Jobs that are told apart; the rest is `other`.
const MOST_MANAGERS: usize = 16;

/// What is not one of the values that a label has.
const OTHER: &str = "other";

/// `reason` of `job_controller_jobs_finished_total`: the reasons that the controller gives.
const REASONS: [&str; 7] = [
    "CompletionsReached",
    "SuccessPolicy",
    "PodFailurePolicy",
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "MaxFailedIndexesExceeded",
    "FailedIndexes",
];

type Labels<const N: usize> = [(&'static str, &'static str); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;

/// The metrics of the Job controller and of the one that deletes Jobs after their end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct JobMetrics {
    syncs: Counters<3>,
    sync_duration: Family<Labels<3>, Histogram, fn() -> Histogram>,
    finished: Counters<3>,
    pods_finished: Counters<2>,
    failures_by_policy: Counters<1>,
    tracking: Counters<1>,
    finished_indexes: Counters<2>,
    pods_creation: Counters<2>,
    external: Family<[(&'static str, String); 1], Counter>,
    managers: Arc<Mutex<BTreeSet<String>>>,
    expiry: Histogram,
}

impl Default for JobMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl JobMetrics {
    /// The metrics, not shown by anybody yet.
    pub fn new() -> Self {
        let sync_buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(0.004, 2.0, 15));
        Self {
            syncs: Family::default(),
            sync_duration: Family::new_with_constructor(sync_buckets),
            finished: Family::default(),
            pods_finished: Family::default(),
            failures_by_policy: Family::default(),
            tracking: Family::default(),
            finished_indexes: Family::default(),
            pods_creation: Family::default(),
            external: Family::default(),
            managers: Arc::default(),
            expiry: Histogram::new(exponential_buckets(0.1, 2.0, 14)),
        }
    }

    /// Registers the metrics; only where a controller reports to them.
    pub fn register(&self, to: &mut Registered) {
        self.make_series();
        let it = self.clone();
        to.register("job_controller_job_syncs", "Steps of Jobs, by completion mode, result and action", it.syncs);
        to.register(
            "job_controller_job_sync_duration_seconds",
            "Time that a step of a Job took, by completion mode, result and action",
            it.sync_duration,
        );
        to.register(
            "job_controller_jobs_finished",
            "Jobs that ended, by completion mode, result and reason",
            it.finished,
        );
        to.register(
            "job_controller_job_pods_finished",
            "Pods that ended and were counted, by completion mode and result",
            it.pods_finished,
        );
        to.register(
            "job_controller_pod_failures_handled_by_failure_policy",
            "Failed Pods that a rule of a podFailurePolicy matched, by action",
            it.failures_by_policy,
        );
        to.register(
            "job_controller_terminated_pods_tracking_finalizer",
            "Pods that ended with the tracking finalizer (add), and that have it no more (delete)",
            it.tracking,
        );
        to.register(
            "job_controller_job_finished_indexes",
            "Indexes that ended, by status and kind of backoffLimit",
            it.finished_indexes,
        );
        to.register("job_controller_job_pods_creation", "Creations of Pods, by reason and status", it.pods_creation);
        to.register("job_controller_jobs_by_external_controller", "Jobs that somebody else manages", it.external);
        to.register(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "Time from when a Job could be deleted for its ttlSecondsAfterFinished until it was",
            it.expiry,
        );
    }

    /// Series at zero: the first of each family, and those of few labels.
    fn make_series(&self) {
        for event in ["add", "delete"] {
            drop(self.tracking.get_or_create(&[("event", event)]));
        }
        for action in ["FailJob", "FailIndex", "Ignore", "Count"] {
            drop(self.failures_by_policy.get_or_create(&[("action", action)]));
        }
        for mode in ["Indexed", "NonIndexed"] {
            for result in ["succeeded", "failed"] {
                drop(self.pods_finished.get_or_create(&[("completion_mode", mode), ("result", result)]));
            }
            for result in ["success", "error"] {
                let labels = [("completion_mode", mode), ("result", result), ("action", "reconciling")];
                drop((self.syncs.get_or_create(&labels), self.sync_duration.get_or_create(&labels)));
            }
            for (result, reason) in [("succeeded", REASONS[0]), ("failed", REASONS[3])] {
                drop(self.finished.get_or_create(&[("completion_mode", mode), ("result", result), ("reason", reason)]));
            }
        }
        for status in ["succeeded", "failed"] {
            drop(self.finished_indexes.get_or_create(&[("status", status), ("backoffLimit", "global")]));
            drop(self.pods_creation.get_or_create(&[("reason", "new"), ("status", status)]));
        }
    }

    /// One step: its Job's completion mode, whether it went well, what it did, and how long it took.
    pub fn synced(&self, mode: &'static str, well: bool, action: &'static str, took: Duration) {
        let result = if well { "success" } else { "error" };
        let labels = [("completion_mode", mode), ("result", result), ("action", action)];
        self.syncs.get_or_create(&labels).inc();
        self.sync_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A Job ended.
    pub fn finished(&self, mode: &'static str, complete: bool, reason: &str) {
        let reason = REASONS.into_iter().find(|known| *known == reason).unwrap_or(OTHER);
        let result = if complete { "succeeded" } else { "failed" };
        self.finished.get_or_create(&[("completion_mode", mode), ("result", result), ("reason", reason)]).inc();
    }

    /// So many Pods were counted.
    pub fn pods_finished(&self, mode: &'static str, succeeded: u64, failed: u64) {
        for (result, number) in [("succeeded", succeeded), ("failed", failed)] {
            self.pods_finished.get_or_create(&[("completion_mode", mode), ("result", result)]).inc_by(number);
        }
    }

    /// So many failed Pods matched a rule with this action.
    pub fn failures_by_policy(&self, action: &'static str, number: u64) {
        self.failures_by_policy.get_or_create(&[("action", action)]).inc_by(number);
    }

    /// So many indexes ended. `limit` is `perIndex` or `global`.
    pub fn finished_indexes(&self, limit: &'static str, succeeded: u64, failed: u64) {
        for (status, number) in [("succeeded", succeeded), ("failed", failed)] {
            if number > 0 {
                self.finished_indexes.get_or_create(&[("status", status), ("backoffLimit", limit)]).inc_by(number);
            }
        }
    }

    /// So many Pods were created, and so many could not be.
    pub fn pods_created(&self, reason: &'static str, succeeded: u64, failed: u64) {
        for (status, number) in [("succeeded", succeeded), ("failed", failed)] {
            if number > 0 {
                self.pods_creation.get_or_create(&[("reason", reason), ("status", status)]).inc_by(number);
            }
        }
    }

    /// A Pod that ended has the finalizer since now (`begins`), or has it no more.
    pub fn tracking(&self, begins: bool) {
        self.tracking.get_or_create(&[("event", if begins { "add" } else { "delete" })]).inc();
    }

    /// A Job appeared that `manager` looks after.
    pub fn external(&self, manager: &str) {
        let mut managers = self.managers.lock().unwrap_or_else(PoisonError::into_inner);
        if !managers.contains(manager) && managers.len() < MOST_MANAGERS {
            managers.insert(manager.to_owned());
        }
        let name = if managers.contains(manager) { manager } else { OTHER };
        self.external.get_or_create(&[("controller_name", name.to_owned())]).inc();
    }

    /// A Job was deleted so long after it could be.
    pub fn expired(&self, late: Duration) {
        self.expiry.observe(late.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{Exposition, Registry};

    #[test]
    fn what_happens_is_counted_under_the_peers_names() {
        let registry = Registry::new();
        let metrics = JobMetrics::new();
        registry.register(|to| metrics.register(to));
        metrics.synced("Indexed", false, "tracking", Duration::from_millis(5));
        metrics.finished("NonIndexed", true, "CompletionsReached");
        metrics.finished("NonIndexed", false, "written by a user");
        metrics.pods_finished("Indexed", 2, 1);
        metrics.finished_indexes("perIndex", 2, 0);
        metrics.pods_created("new", 3, 1);
        metrics.tracking(true);
        metrics.failures_by_policy("Ignore", 2);
        metrics.expired(Duration::from_millis(300));
        (0..20).for_each(|number| metrics.external(&format!("a.io/{number}")));
        let text = registry.encode(Exposition::PrometheusText).unwrap();
        for line in [
            "job_controller_job_syncs_total{completion_mode=\"Indexed\",result=\"error\",action=\"tracking\"} 1\n",
            "job_controller_job_sync_duration_seconds_bucket{completion_mode=\"Indexed\",result=\"error\",action=\"tracking\",le=\"0.008\"} 1\n",
            "job_controller_jobs_finished_total{completion_mode=\"NonIndexed\",result=\"succeeded\",reason=\"CompletionsReached\"} 1\n",
            "job_controller_jobs_finished_total{completion_mode=\"NonIndexed\",result=\"failed\",reason=\"other\"} 1\n",
            "job_controller_job_pods_finished_total{completion_mode=\"Indexed\",result=\"succeeded\"} 2\n",
            "job_controller_job_pods_finished_total{completion_mode=\"NonIndexed\",result=\"failed\"} 0\n",
            "job_controller_job_finished_indexes_total{status=\"succeeded\",backoffLimit=\"perIndex\"} 2\n",
            "job_controller_job_pods_creation_total{reason=\"new\",status=\"failed\"} 1\n",
            "job_controller_terminated_pods_tracking_finalizer_total{event=\"delete\"} 0\n",
            "job_controller_pod_failures_handled_by_failure_policy_total{action=\"Ignore\"} 2\n",
            "job_controller_jobs_by_external_controller_total{controller_name=\"other\"} 4\n",
            "ttl_after_finished_controller_job_deletion_duration_seconds_count 1\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
