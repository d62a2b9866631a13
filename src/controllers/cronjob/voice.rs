//! Everything a CronJob controller says: events, metrics, log lines, and whoever observes it in this process.

use std::sync::Arc;

use chrono::TimeDelta;

use crate::api::wire;
use crate::clock::Clock;
use crate::cluster::EventRecorder;
use crate::controllers::{Deps, Observer, Registration};
use crate::model::{CronJob, EventType, Flavor, Happening, ObjectKey, ObjectReference, Uid};
use crate::reconcile::{self, Call, Outcome};
use crate::schedule::MissedCount;
use crate::telemetry::{Breach, CronMetrics, InvalidReason, RunResult};

/// Speaks for one controller. Cheap to clone.
#[derive(Clone)]
pub(super) struct Voice {
    controller: &'static str,
    flavor: Flavor,
    recorder: EventRecorder,
    metrics: CronMetrics,
    clock: Clock,
    observer: Option<Arc<dyn Observer>>,
}

impl Voice {
    pub(super) fn new(registration: &Registration, deps: &Deps) -> Self {
        Self {
            controller: registration.name,
            flavor: registration.flavor,
            recorder: deps.recorder.clone(),
            metrics: deps.metrics.controllers.cron(registration.name),
            clock: deps.clock.clone(),
            observer: deps.observer.clone(),
        }
    }

    pub(super) fn metrics(&self) -> &CronMetrics {
        &self.metrics
    }

    /// Tells what happened to a CronJob.
    pub(super) fn say_all(&self, cronjob: &CronJob, happenings: &[Happening]) {
        for happening in happenings {
            let version = cronjob.resource_version.clone();
            self.say(&cronjob.key, cronjob.uid.clone(), version, happening.clone());
        }
    }

    /// Tells of a CronJob that cannot be read what is wrong with it. The peers' API clients cannot even see such objects.
    pub(super) fn say_unreadable(&self, key: &ObjectKey, uid: Uid, error: String) {
        let (event_type, reason) = (EventType::Warning, "UnreadableObject");
        let happening = Happening { event_type, reason, message: error, due_minutes: None };
        self.say(key, uid, Box::default(), happening);
    }

    fn say(&self, key: &ObjectKey, uid: Uid, resource_version: Box<str>, happening: Happening) {
        let Happening { reason, message, .. } = &happening;
        tracing::debug!(controller = self.controller, cronjob = %key, reason, message, "event");
        if let Some(observer) = &self.observer {
            observer.on_happening(self.controller, key, self.clock.wall(), &happening);
        }
        let about = ObjectReference {
            kind: "CronJob".into(),
            api_version: wire(self.flavor).api_version.into(),
            namespace: (&*key.namespace).into(),
            name: (&*key.name).into(),
            uid,
            resource_version,
            field_path: Box::default(),
        };
        self.recorder.record(self.component(), about, happening);
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

    /// `source.component` of the peer's events.
    fn component(&self) -> &'static str {
        match self.flavor {
            Flavor::Kubernetes => "cronjob-controller",
            Flavor::Volcano => "vc-controller-manager",
        }
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
