//! Everything a CronJob controller says: events, metrics, log lines, and whoever observes it in this process.

use chrono::TimeDelta;

use crate::api::wire;
use crate::controllers::speech::Speaker;
use crate::controllers::{Deps, Registration};
use crate::model::{CronJob, Flavor, Happening, ObjectKey, Uid};
use crate::reconcile::{self, Call, Outcome};
use crate::schedule::MissedCount;
use crate::telemetry::{Breach, CronMetrics, InvalidReason, RunResult};

/// Speaks for one controller. Cheap to clone.
#[derive(Clone)]
pub(super) struct Voice {
    controller: &'static str,
    speaker: Speaker,
    metrics: CronMetrics,
}

impl Voice {
    pub(super) fn new(registration: &Registration, flavor: Flavor, deps: &Deps) -> Self {
        let component = match flavor {
            Flavor::Kubernetes => "cronjob-controller",
            Flavor::Volcano => "vc-controller-manager",
        };
        let controller = registration.name;
        let speaker = Speaker::new(controller, component, (wire(flavor).api_version, "CronJob"), deps);
        Self { controller, speaker, metrics: deps.metrics.controllers.cron(controller) }
    }

    pub(super) fn metrics(&self) -> &CronMetrics {
        &self.metrics
    }

    /// Tells what happened to a CronJob.
    pub(super) fn say_all(&self, cronjob: &CronJob, happenings: &[Happening]) {
        for happening in happenings {
            let version = cronjob.resource_version.clone();
            self.speaker.say(&cronjob.key, cronjob.uid.clone(), version, happening.clone());
        }
    }

    /// Tells of a CronJob that cannot be read.
    pub(super) fn say_unreadable(&self, key: &ObjectKey, uid: Uid, error: String) {
        self.speaker.say_unreadable(key, uid, error);
    }

    /// Counts what a step came to.
    pub(super) fn report(&self, cronjob: &CronJob, outcome: &Outcome) {
        if let Some(error) = &outcome.error {
            tracing::warn!(controller = self.controller, cronjob = %cronjob.key, %error, retry = ?error.retry, "step failed");
        }
        for result in &outcome.results {
            self.metrics.run(label_of(*result));
        }
        match outcome.missed {
            Some(MissedCount::Exactly(count)) => self.metrics.missed(count),
            Some(MissedCount::More) => self.metrics.missed(101),
            None => {}
        }
        if let Some(skew_s) = outcome.skew_s {
            self.metrics.creation_skew(TimeDelta::try_seconds(skew_s).unwrap_or(TimeDelta::MAX));
        }
    }

    /// Counts what must never be.
    pub(super) fn report_breach(&self, cronjob: &CronJob, breach: Breach, call: &Call) {
        tracing::error!(controller = self.controller, cronjob = %cronjob.key, breach = breach.as_str(), ?call, "this is a bug");
        self.metrics.broken(breach);
    }
}

/// Whether an event says that its CronJob cannot run, and why.
pub(super) fn invalid_by(happening: &Happening) -> Option<InvalidReason> {
    match happening.reason {
        "UnknownTimeZone" | "InvalidTimeZone" => Some(InvalidReason::TimeZone),
        "UnparseableSchedule" | "InvalidSchedule" => Some(InvalidReason::Schedule),
        "LastScheduleTimeAhead" => Some(InvalidReason::LastScheduleTime),
        _ => None,
    }
}

fn label_of(result: reconcile::RunResult) -> RunResult {
    match result {
        reconcile::RunResult::Created => RunResult::Created,
        reconcile::RunResult::SkippedForbid => RunResult::SkippedForbid,
        reconcile::RunResult::Replaced => RunResult::Replaced,
        reconcile::RunResult::MissedDeadline => RunResult::MissedDeadline,
        reconcile::RunResult::AlreadyExists => RunResult::AlreadyExists,
        reconcile::RunResult::Failed => RunResult::Failed,
    }
}
