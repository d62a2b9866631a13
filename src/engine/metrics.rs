//! What operators see of the actors.

use std::sync::Arc;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::kind::{Outcome, Retry};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    name: String,
    result: StepResult,
}

/// How a step ended, as a label value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the label's values")]
pub(super) enum StepResult {
    done,
    failed,
    conflict,
    gone,
    panicked,
    cancelled,
}

impl StepResult {
    const ALL: [Self; 6] = [Self::done, Self::failed, Self::conflict, Self::gone, Self::panicked, Self::cancelled];
}

impl From<Outcome> for StepResult {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::done,
            Outcome::Failed(Retry::Conflict) => Self::conflict,
            Outcome::Failed(_) => Self::failed,
            Outcome::Gone => Self::gone,
        }
    }
}

/// The families of all supervisors of a process.
#[derive(Clone, Debug)]
pub struct Metrics {
    actors: Family<Labels, Gauge>,
    steps: Family<StepLabels, Counter>,
    panicked_folds: Family<Labels, Counter>,
    clock_steps: Family<Labels, Counter>,
    overlaps: Family<Labels, Counter>,
}

impl Metrics {
    /// Registers the families under `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            actors: Family::default(),
            steps: Family::default(),
            panicked_folds: Family::default(),
            clock_steps: Family::default(),
            overlaps: Family::default(),
        };
        registry.register("engine_actors", "Actors, one per object", metrics.actors.clone());
        registry.register("engine_steps", "Steps of actors by their result", metrics.steps.clone());
        registry.register(
            "engine_panicked_messages",
            "Messages whose reading panicked",
            metrics.panicked_folds.clone(),
        );
        registry.register(
            "engine_clock_steps",
            "Steps of the wall clock that re-armed timers",
            metrics.clock_steps.clone(),
        );
        registry.register(
            "engine_overlapping_steps",
            "Steps that began while another of the same object ran: bugs of this program",
            metrics.overlaps.clone(),
        );
        metrics
    }

    /// The metrics of the supervisor called `name`. Its counters exist at zero from here on: `increase()` does not see a
    /// counter's first step out of nothing, and an alert waits for the first panic.
    pub fn supervisor(&self, name: &str) -> EngineMetrics {
        let metrics = EngineMetrics { families: self.clone(), name: Arc::from(name) };
        for result in StepResult::ALL {
            drop(self.steps.get_or_create(&metrics.step_labels(result)));
        }
        drop(self.panicked_folds.get_or_create(&metrics.labels()));
        drop(self.clock_steps.get_or_create(&metrics.labels()));
        drop(self.overlaps.get_or_create(&metrics.labels()));
        drop(self.actors.get_or_create(&metrics.labels()));
        metrics
    }
}

/// The metrics of one supervisor.
#[derive(Clone, Debug)]
pub struct EngineMetrics {
    families: Metrics,
    name: Arc<str>,
}

impl EngineMetrics {
    pub(super) fn set_actors(&self, actors: usize) {
        self.families.actors.get_or_create(&self.labels()).set(i64::try_from(actors).unwrap_or(i64::MAX));
    }

    pub(super) fn on_step(&self, result: StepResult) {
        self.families.steps.get_or_create(&self.step_labels(result)).inc();
    }

    pub(super) fn on_panicked_fold(&self) {
        self.families.panicked_folds.get_or_create(&self.labels()).inc();
    }

    pub(super) fn on_clock_step(&self) {
        self.families.clock_steps.get_or_create(&self.labels()).inc();
    }

    pub(super) fn on_overlap(&self) {
        self.families.overlaps.get_or_create(&self.labels()).inc();
    }

    fn labels(&self) -> Labels {
        Labels { name: self.name.to_string() }
    }

    fn step_labels(&self, result: StepResult) -> StepLabels {
        StepLabels { name: self.name.to_string(), result }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisors_counters_exist_at_zero_before_anything_happens() {
        let mut registry = Registry::default();
        Metrics::register(&mut registry).supervisor("cronjob");
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "engine_steps_total{name=\"cronjob\",result=\"panicked\"} 0\n",
            "engine_panicked_messages_total{name=\"cronjob\"} 0\n",
            "engine_clock_steps_total{name=\"cronjob\"} 0\n",
            "engine_actors{name=\"cronjob\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
