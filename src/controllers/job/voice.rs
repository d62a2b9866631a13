//! Everything the Job controller says: events and metrics.

use std::time::Duration;

use crate::controllers::Deps;
use crate::controllers::speech::Speaker;
use crate::jobs::names::{API_VERSION, KIND};
use crate::jobs::{Outcome, Reaction, Tally, Tracking};
use crate::model::{BatchJob, Happening, ObjectKey, PodFailureAction, Uid};
use crate::telemetry::JobMetrics;

/// `source.component` of the peer's events.
const COMPONENT: &str = "job-controller";

/// Speaks for the Job controller. Cheap to clone.
#[derive(Clone)]
pub(super) struct Voice {
    controller: &'static str,
    speaker: Speaker,
    metrics: JobMetrics,
}

impl Voice {
    pub(super) fn new(controller: &'static str, deps: &Deps) -> Self {
        let speaker = Speaker::new(controller, COMPONENT, (API_VERSION, KIND), deps);
        Self { controller, speaker, metrics: deps.metrics.jobs.clone() }
    }

    /// Tells what happened to a Job.
    pub(super) fn say_all(&self, job: &BatchJob, happenings: Vec<Happening>) {
        for happening in happenings {
            self.speaker.say(&job.key, job.uid.clone(), job.resource_version.clone(), happening);
        }
    }

    /// Tells of a Job that cannot be read.
    pub(super) fn say_unreadable(&self, key: &ObjectKey, uid: Uid, error: String) {
        self.speaker.say_unreadable(key, uid, error);
    }

    /// Tells of something that failed about an object and is tried again.
    pub(super) fn say_failed(&self, about: &dyn std::fmt::Display, error: &dyn std::fmt::Display) {
        tracing::warn!(controller = self.controller, %about, %error, "step failed");
    }

    /// Counts what a watch event means.
    pub(super) fn count(&self, reaction: &Reaction) {
        match reaction.tracking {
            Some(Tracking::Add) => self.metrics.tracking(true),
            Some(Tracking::Delete) => self.metrics.tracking(false),
            None => {}
        }
        if let Some(manager) = &reaction.external {
            let named = if manager.is_empty() { crate::jobs::names::MANAGED_BY_BUILT_IN } else { manager };
            self.metrics.external(named);
        }
    }

    /// Counts what a step came to, which took so long.
    pub(super) fn report(&self, job: &BatchJob, outcome: &Outcome, took: Duration) {
        if let Some(error) = &outcome.error {
            self.say_failed(&job.key, error);
        }
        let mode = if job.indexed() { "Indexed" } else { "NonIndexed" };
        let Tally { action, finished, .. } = &outcome.tally;
        let Some(action) = action else { return };
        self.metrics.synced(mode, outcome.error.is_none(), action.as_str(), took);
        if let Some((complete, reason)) = finished {
            self.metrics.finished(mode, *complete, reason);
        }
        self.count_pods(job, mode, &outcome.tally);
    }

    fn count_pods(&self, job: &BatchJob, mode: &'static str, tally: &Tally) {
        self.metrics.pods_finished(mode, number(tally.pods_succeeded), number(tally.pods_failed));
        let limit = if job.spec.backoff_limit_per_index.is_some() { "perIndex" } else { "global" };
        self.metrics.finished_indexes(limit, number(tally.indexes_succeeded), number(tally.indexes_failed));
        for (action, number) in &tally.failures_by_action {
            let action = match action {
                PodFailureAction::FailJob => "FailJob",
                PodFailureAction::FailIndex => "FailIndex",
                PodFailureAction::Ignore => "Ignore",
                PodFailureAction::Count => "Count",
                PodFailureAction::Unknown => continue,
            };
            self.metrics.failures_by_policy(action, (*number).into());
        }
        if let Some(reason) = tally.creation_reason {
            let (created, not_created) = (tally.pods_created.into(), tally.pods_not_created.into());
            self.metrics.pods_created(reason.as_str(), created, not_created);
        }
    }
}

/// A number that is never below zero.
fn number(of: i32) -> u64 {
    u64::try_from(of).unwrap_or_default()
}
