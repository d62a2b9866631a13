//! The metrics about CronJobs (`cron_*`). What every controller has besides is counted by its queue (`workqueue_*`), its actors
//! (`engine_*`) and the client (`rest_client_*`), in their own rooms.
//!
//! Invariants
//! - Every label value comes from a closed set known at compile time, so the number of series does not grow with the cluster.
//! - Every counter of a controller exists at zero as soon as the controller does, so that the first increase is seen by
//!   `increase()` and not lost as "no data".

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::Registry;

/// The built-in controller's buckets (1 s to 512 s, doubling), with finer ones below: a healthy controller lives there.
const SKEW_BUCKETS_S: [f64; 19] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0,
];

/// A CronJob with more active Jobs than this is crowded: its Jobs come faster than they end, and nothing stops them.
pub const CROWD: usize = 100;

type Label = (&'static str, &'static str);
type ByController<M> = Family<[Label; 1], M, fn() -> M>;
type ByControllerAnd<M> = Family<[Label; 2], M, fn() -> M>;

/// What became of one due instant: label `result` of `cron_runs_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// Its Job was created.
    Created,
    /// Its Job was created after active ones were deleted (policy Replace).
    Replaced,
    /// Skipped because an earlier Job is active (policy Forbid).
    SkippedForbid,
    /// Not started within `startingDeadlineSeconds`.
    MissedDeadline,
    /// A Job of its name was there already.
    AlreadyExists,
    /// The API server refused the Job, or a Job in its way could not be deleted.
    Failed,
}

impl RunResult {
    const ALL: [Self; 6] =
        [Self::Created, Self::Replaced, Self::SkippedForbid, Self::MissedDeadline, Self::AlreadyExists, Self::Failed];

    /// The text of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Replaced => "replaced",
            Self::SkippedForbid => "skipped_forbid",
            Self::MissedDeadline => "missed_deadline",
            Self::AlreadyExists => "already_exists",
            Self::Failed => "failed",
        }
    }
}

/// Why a CronJob cannot run: label `reason` of `cron_invalid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidReason {
    /// `spec.schedule` does not parse or never comes due.
    Schedule,
    /// `spec.timeZone` is not a zone.
    TimeZone,
    /// `status.lastScheduleTime` lies ahead of the clock, so that nothing is due.
    LastScheduleTime,
}

impl InvalidReason {
    const ALL: [Self; 3] = [Self::Schedule, Self::TimeZone, Self::LastScheduleTime];

    /// The text of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::TimeZone => "time_zone",
            Self::LastScheduleTime => "last_schedule_time",
        }
    }
}

/// What must never be, and was about to be done: label `invariant` of `cron_broken_invariants_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// A Job was created for an instant that has not come, was started before, or while suspended or deleted.
    CreatedNotDue,
    /// A time of the status would have gone back.
    StatusWentBack,
    /// lastScheduleTime would have been set beyond now, and nothing would be due until then.
    RecordedAhead,
    /// A finished Job was deleted before its run was recorded.
    DeletedUnrecorded,
    /// An unfinished Job was deleted though nothing replaces it.
    DeletedUnfinished,
}

impl Breach {
    const ALL: [Self; 5] = [
        Self::CreatedNotDue,
        Self::StatusWentBack,
        Self::RecordedAhead,
        Self::DeletedUnrecorded,
        Self::DeletedUnfinished,
    ];

    /// The text of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CreatedNotDue => "created_not_due",
            Self::StatusWentBack => "status_went_back",
            Self::RecordedAhead => "recorded_ahead",
            Self::DeletedUnrecorded => "deleted_unrecorded",
            Self::DeletedUnfinished => "deleted_unfinished",
        }
    }
}

/// The metrics of all CronJob controllers of one process. Register once, then take each controller's part.
#[derive(Clone, Debug)]
pub struct ControllerMetrics {
    runs: ByControllerAnd<Counter>,
    missed: ByController<Counter>,
    invalid: ByControllerAnd<Gauge>,
    crowded: ByController<Gauge>,
    broken: ByControllerAnd<Counter>,
    lag: ByController<Histogram>,
    skew: Histogram,
}

impl ControllerMetrics {
    /// Registers the metrics.
    pub fn register(registry: &Registry) -> Self {
        let metrics = Self {
            runs: Family::new_with_constructor(Counter::default),
            missed: Family::new_with_constructor(Counter::default),
            invalid: Family::new_with_constructor(Gauge::default),
            crowded: Family::new_with_constructor(Gauge::default),
            broken: Family::new_with_constructor(Counter::default),
            lag: Family::new_with_constructor(|| Histogram::new(SKEW_BUCKETS_S)),
            skew: Histogram::new(SKEW_BUCKETS_S),
        };
        let all = metrics.clone();
        registry.register(|to| {
            to.register("cron_runs", "Due instants by what became of them", all.runs);
            to.register("cron_missed_runs", "Due instants that passed without a Job and will get none", all.missed);
            to.register("cron_invalid", "CronJobs that cannot run, by reason", all.invalid);
            to.register("cron_crowded", "CronJobs with more than 100 active Jobs", all.crowded);
            to.register("cron_broken_invariants", "Requests that must never be sent: bugs of this program", all.broken);
            to.register(
                "cron_schedule_lag_seconds",
                "Time from a due instant to the answer to its Job's creation",
                all.lag,
            );
            to.register(
                "cronjob_controller_job_creation_skew_duration_seconds",
                "Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
                all.skew,
            );
        });
        metrics
    }

    /// The part of `controller`.
    pub fn cron(&self, controller: &'static str) -> CronMetrics {
        CronMetrics {
            runs: RunResult::ALL
                .map(|result| self.runs.get_or_create_owned(&by_and(controller, "result", result.as_str()))),
            missed: self.missed.get_or_create_owned(&by(controller)),
            invalid: InvalidReason::ALL
                .map(|reason| self.invalid.get_or_create_owned(&by_and(controller, "reason", reason.as_str()))),
            crowded: self.crowded.get_or_create_owned(&by(controller)),
            broken: Breach::ALL
                .map(|breach| self.broken.get_or_create_owned(&by_and(controller, "invariant", breach.as_str()))),
            lag: self.lag.get_or_create_owned(&by(controller)),
            skew: self.skew.clone(),
        }
    }
}

fn by(controller: &'static str) -> [Label; 1] {
    [("controller", controller)]
}

fn by_and(controller: &'static str, label: &'static str, value: &'static str) -> [Label; 2] {
    [("controller", controller), (label, value)]
}

/// What a CronJob controller counts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CronMetrics {
    /// In the order of [`RunResult::ALL`].
    runs: [Counter; RunResult::ALL.len()],
    missed: Counter,
    /// In the order of [`InvalidReason::ALL`].
    invalid: [Gauge; InvalidReason::ALL.len()],
    crowded: Gauge,
    /// In the order of [`Breach::ALL`].
    broken: [Counter; Breach::ALL.len()],
    lag: Histogram,
    skew: Histogram,
}

impl CronMetrics {
    /// Records what became of one due instant.
    pub fn run(&self, result: RunResult) {
        self.runs[result as usize].inc();
    }

    /// Records `count` due instants that passed and will get no Job.
    pub fn missed(&self, count: u32) {
        self.missed.inc_by(u64::from(count));
    }

    /// Moves one CronJob from one state of validity to another; `None` is valid (or gone).
    pub fn validity_changed(&self, from: Option<InvalidReason>, to: Option<InvalidReason>) {
        if let Some(reason) = from {
            self.invalid[reason as usize].dec();
        }
        if let Some(reason) = to {
            self.invalid[reason as usize].inc();
        }
    }

    /// Notes whether one CronJob had more than [`CROWD`] active Jobs, and whether it has.
    pub fn crowding_changed(&self, from: bool, to: bool) {
        self.crowded.inc_by(i64::from(to) - i64::from(from));
    }

    /// Records a bug.
    pub fn broken(&self, breach: Breach) {
        self.broken[breach as usize].inc();
    }

    /// Forgets every CronJob that cannot run or is crowded: whoever counts them next begins anew.
    pub fn nobody_is_counted(&self) {
        for gauge in self.invalid.iter().chain([&self.crowded]) {
            gauge.set(0);
        }
    }

    /// Records the time from a due instant to the answer to its creation, by our own clock.
    pub fn lag(&self, lag: Duration) {
        self.lag.observe(lag.as_secs_f64());
    }

    /// Records `creationTimestamp` minus due instant, the built-in controller's own metric. The server writes whole seconds,
    /// so the result may lie up to a second below the truth, and below zero if the server's clock is behind ours.
    pub fn creation_skew(&self, skew: chrono::TimeDelta) {
        self.skew.observe(skew.as_seconds_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Exposition;

    #[test]
    fn results_index_their_own_counters() {
        assert!(RunResult::ALL.iter().enumerate().all(|(at, result)| *result as usize == at));
        assert!(Breach::ALL.iter().enumerate().all(|(at, breach)| *breach as usize == at));
        assert!(InvalidReason::ALL.iter().enumerate().all(|(at, reason)| *reason as usize == at));
    }

    #[test]
    fn a_controllers_counters_exist_at_zero_before_anything_happens() {
        let registry = Registry::new();
        let metrics = ControllerMetrics::register(&registry);
        metrics.cron("kubernetes-cronjob");
        let text = registry.encode(Exposition::PrometheusText).unwrap();
        for line in [
            "cron_runs_total{controller=\"kubernetes-cronjob\",result=\"skipped_forbid\"} 0\n",
            "cron_missed_runs_total{controller=\"kubernetes-cronjob\"} 0\n",
            "cron_broken_invariants_total{controller=\"kubernetes-cronjob\",invariant=\"deleted_unrecorded\"} 0\n",
            "cron_invalid{controller=\"kubernetes-cronjob\",reason=\"time_zone\"} 0\n",
            "cronjob_controller_job_creation_skew_duration_seconds_count 0\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn what_happens_is_counted_under_its_controller() {
        let registry = Registry::new();
        let metrics = ControllerMetrics::register(&registry);
        let volcano = metrics.cron("volcano-cronjob");
        metrics.cron("kubernetes-cronjob").run(RunResult::Created);
        volcano.run(RunResult::Replaced);
        volcano.missed(3);
        volcano.validity_changed(None, Some(InvalidReason::TimeZone));
        volcano.validity_changed(Some(InvalidReason::TimeZone), Some(InvalidReason::Schedule));
        volcano.crowding_changed(false, true);
        volcano.crowding_changed(true, true);
        volcano.crowding_changed(false, true);
        volcano.crowding_changed(true, false);
        volcano.creation_skew(chrono::TimeDelta::seconds(3));
        volcano.lag(Duration::from_millis(2));
        let text = registry.encode(Exposition::PrometheusText).unwrap();
        for line in [
            "cron_runs_total{controller=\"kubernetes-cronjob\",result=\"created\"} 1\n",
            "cron_runs_total{controller=\"volcano-cronjob\",result=\"created\"} 0\n",
            "cron_runs_total{controller=\"volcano-cronjob\",result=\"replaced\"} 1\n",
            "cron_missed_runs_total{controller=\"volcano-cronjob\"} 3\n",
            "cron_invalid{controller=\"volcano-cronjob\",reason=\"time_zone\"} 0\n",
            "cron_invalid{controller=\"volcano-cronjob\",reason=\"schedule\"} 1\n",
            "cron_crowded{controller=\"volcano-cronjob\"} 1\n",
            "cronjob_controller_job_creation_skew_duration_seconds_bucket{le=\"2\"} 0\n",
            "cronjob_controller_job_creation_skew_duration_seconds_bucket{le=\"4\"} 1\n",
            "cron_schedule_lag_seconds_bucket{controller=\"volcano-cronjob\",le=\"0.0025\"} 1\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
