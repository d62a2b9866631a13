//! The `workqueue_*` metrics of Kubernetes' component-base: same names, same label `name`, same meanings.
//!
//! Invariant: several queues (the shards of one controller) may count under one name. Counters, histograms and the depth
//! then add up; `unfinished_work_seconds` is the sum and `longest_running_processor_seconds` the maximum over all of them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    name: String,
}

type Seconds = Gauge<f64, AtomicU64>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The families of all queues of a process.
#[derive(Clone, Debug)]
pub struct Metrics {
    depth: Family<Labels, Gauge>,
    adds: Family<Labels, Counter>,
    retries: Family<Labels, Counter>,
    queue_duration: Histograms,
    work_duration: Histograms,
    unfinished: Family<Labels, Seconds>,
    longest: Family<Labels, Seconds>,
    /// What the queues of each name last said about what they have in flight.
    ages: Arc<Mutex<BTreeMap<String, Ages>>>,
}

/// The queues of one name: sum and maximum of the ages of what each has in flight, by the number of the queue.
#[derive(Debug, Default)]
struct Ages {
    next_queue: u64,
    by_queue: BTreeMap<u64, (Duration, Duration)>,
}

impl Metrics {
    /// Registers the families under `registry`, which must have no prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let ten_buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(1e-8, 10.0, 10));
        let metrics = Self {
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            queue_duration: Family::new_with_constructor(ten_buckets),
            work_duration: Family::new_with_constructor(ten_buckets),
            unfinished: Family::default(),
            longest: Family::default(),
            ages: Arc::default(),
        };
        registry.register(
            "workqueue_depth",
            "Keys that wait for a worker, those in flight and dirty included",
            metrics.depth.clone(),
        );
        // The encoder appends `_total` to the names of counters.
        registry.register(
            "workqueue_adds",
            "Keys added, repeated adds of a waiting key counted once",
            metrics.adds.clone(),
        );
        registry.register("workqueue_retries", "Keys added with a delay", metrics.retries.clone());
        registry.register(
            "workqueue_queue_duration_seconds",
            "How long keys waited for a worker",
            metrics.queue_duration.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "How long workers took for a key",
            metrics.work_duration.clone(),
        );
        registry.register(
            "workqueue_unfinished_work_seconds",
            "Sum of the ages of all keys in flight",
            metrics.unfinished.clone(),
        );
        registry.register(
            "workqueue_longest_running_processor_seconds",
            "Age of the oldest key in flight",
            metrics.longest.clone(),
        );
        metrics
    }

    /// The metrics of one more queue called `name`.
    pub fn queue(&self, name: &str) -> QueueMetrics {
        let labels = Labels { name: name.to_owned() };
        let number = self.with_ages(name, |ages| {
            ages.next_queue += 1;
            ages.next_queue
        });
        QueueMetrics {
            depth: self.depth.get_or_create_owned(&labels),
            adds: self.adds.get_or_create_owned(&labels),
            retries: self.retries.get_or_create_owned(&labels),
            queue_duration: self.queue_duration.get_or_create_owned(&labels),
            work_duration: self.work_duration.get_or_create_owned(&labels),
            unfinished: self.unfinished.get_or_create_owned(&labels),
            longest: self.longest.get_or_create_owned(&labels),
            name: labels.name,
            number,
            families: self.clone(),
        }
    }

    fn with_ages<R>(&self, name: &str, change: impl FnOnce(&mut Ages) -> R) -> R {
        let mut ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        change(ages.entry(name.to_owned()).or_default())
    }
}

/// The metrics of one queue.
#[derive(Debug)]
pub struct QueueMetrics {
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    queue_duration: Histogram,
    work_duration: Histogram,
    unfinished: Seconds,
    longest: Seconds,
    name: String,
    /// Tells the queues of one name apart.
    number: u64,
    families: Metrics,
}

impl QueueMetrics {
    /// A key became dirty.
    pub(super) fn on_add(&self) {
        self.adds.inc();
        self.depth.inc();
    }

    /// A key was handed out that had been dirty for `waited`.
    pub(super) fn on_get(&self, waited: Duration) {
        self.depth.dec();
        self.queue_duration.observe(waited.as_secs_f64());
    }

    /// A key came back that a worker had for `worked`.
    pub(super) fn on_done(&self, worked: Duration) {
        self.work_duration.observe(worked.as_secs_f64());
    }

    /// A key was added with a delay, however long.
    pub(super) fn on_add_after(&self) {
        self.retries.inc();
    }

    /// The sum and the maximum of the ages of what this queue has in flight.
    pub(super) fn set_ages(&self, sum: Duration, longest: Duration) {
        self.families.with_ages(&self.name, |ages| {
            ages.by_queue.insert(self.number, (sum, longest));
            self.unfinished.set(ages.by_queue.values().map(|(sum, _)| sum.as_secs_f64()).sum());
            let longest = ages.by_queue.values().map(|(_, longest)| *longest).max().unwrap_or_default();
            self.longest.set(longest.as_secs_f64());
        });
    }

    /// The queue goes, with `left` keys still dirty; the gauges of running work keep their last value.
    pub(super) fn on_drop(&self, left: usize) {
        self.depth.dec_by(i64::try_from(left).unwrap_or(i64::MAX));
        self.families.with_ages(&self.name, |ages| ages.by_queue.remove(&self.number));
    }
}
