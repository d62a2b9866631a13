//! Counts records, for metrics and for the summary, and hands them on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::record::{API_VERSION, Difference, Record, Report, Summary, UNEXPLAINED, time};
use crate::model::WallTime;
use crate::reconcile::Rule;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InstantLabels {
    controller: &'static str,
    difference: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RuleLabels {
    controller: &'static str,
    rule: &'static str,
}

/// The counters of all shadows of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadowMetrics {
    instants: Family<InstantLabels, Counter>,
    differences: Family<RuleLabels, Counter>,
}

impl ShadowMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let help = "Due instants judged in shadow mode, by how the controller in charge differed";
        registry.register("cron_shadow_instants", help, metrics.instants.clone());
        let help = "Due instants that the controller in charge decided otherwise, by the rule that explains it";
        registry.register("cron_shadow_differences", help, metrics.differences.clone());
        metrics
    }

    /// Shows every counter of `controller` at zero.
    fn begin(&self, controller: &'static str) {
        for difference in Difference::ALL {
            drop(self.instants.get_or_create(&InstantLabels { controller, difference: difference.as_str() }));
        }
        for rule in Rule::ALL.iter().map(|rule| rule.name()).chain([UNEXPLAINED]) {
            drop(self.differences.get_or_create(&RuleLabels { controller, rule }));
        }
    }
}

/// Where records go. Cheap to clone; clones count together.
#[derive(Clone)]
pub(super) struct Tally {
    metrics: ShadowMetrics,
    report: Arc<dyn Report>,
    counts: Arc<Mutex<Counts>>,
    from: WallTime,
}

#[derive(Default)]
struct Counts {
    records: u64,
    differences: BTreeMap<&'static str, u64>,
    rules: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub(super) fn new(
        metrics: ShadowMetrics,
        report: Arc<dyn Report>,
        controllers: impl IntoIterator<Item = &'static str>,
        from: WallTime,
    ) -> Self {
        controllers.into_iter().for_each(|controller| metrics.begin(controller));
        Self { metrics, report, counts: Arc::default(), from }
    }

    pub(super) fn record(&self, record: &Record) {
        let (controller, difference) = (record.controller, record.difference.as_str());
        self.metrics.instants.get_or_create(&InstantLabels { controller, difference }).inc();
        if let Some(rule) = record.rule {
            self.metrics.differences.get_or_create(&RuleLabels { controller, rule }).inc();
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.records += 1;
        *counts.differences.entry(difference).or_default() += 1;
        if let Some(rule) = record.rule {
            *counts.rules.entry(rule).or_default() += 1;
        }
        drop(counts);
        self.report.on_record(record);
    }

    /// Reports what it came to by `to`, with `open` instants left unjudged.
    pub(super) fn end(&self, to: WallTime, open: usize) {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let summary = Summary {
            api_version: API_VERSION,
            kind: "Summary",
            from: time(self.from),
            to: time(to),
            records: counts.records,
            differences: counts.differences.clone(),
            rules: counts.rules.clone(),
            open,
        };
        drop(counts);
        self.report.on_summary(&summary);
    }
}
