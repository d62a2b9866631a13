//! What is counted, and when.

use prometheus_client::registry::Registry;
use tokio::time::advance;

use super::*;

struct Metered {
    registry: Registry,
    metrics: Metrics,
}

impl Metered {
    fn new() -> Self {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        Self { registry, metrics }
    }

    fn queue(&self, name: &str) -> Queue<&'static str> {
        Queue::new(Options { metrics: Some(self.metrics.queue(name)), ..Options::new(Clock::system()) })
    }

    /// Value of a sample of the queue called `q`, by its name without `workqueue_`.
    fn value(&self, sample: &str) -> f64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let prefix = format!("workqueue_{sample}{{name=\"q\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
        line.unwrap_or_else(|| panic!("no {prefix}in\n{text}")).parse().unwrap()
    }

    fn values<const N: usize>(&self, samples: [&str; N]) -> [f64; N] {
        samples.map(|sample| self.value(sample))
    }
}

/// Sums of f64 seconds, to the nanosecond.
fn close(actual: f64, expected: f64) -> bool {
    (actual - expected).abs() < 1e-9
}

#[tokio::test(start_paused = true)]
async fn s24_metrics_mean_what_they_mean_in_component_base() {
    const WAITS: [&str; 2] = ["queue_duration_seconds_sum", "queue_duration_seconds_count"];
    const WORK: [&str; 2] = ["work_duration_seconds_sum", "work_duration_seconds_count"];
    let metered = Metered::new();
    let queue = metered.queue("q");
    queue.add("a");
    assert_eq!(metered.values(["adds_total", "depth"]), [1.0, 1.0]);

    advance(Duration::from_micros(50)).await;
    let guard = poll(&queue).unwrap();
    let [sum, count] = metered.values(WAITS);
    assert!(close(sum, 50e-6) && count == 1.0);
    assert_eq!(metered.value("depth"), 0.0);

    (0..5).for_each(|_| queue.add("a"));
    assert_eq!(metered.values(["adds_total", "depth"]), [2.0, 1.0]);

    advance(Duration::from_micros(25)).await;
    drop(guard);
    let [sum, count] = metered.values(WORK);
    assert!(close(sum, 25e-6) && count == 1.0);
    assert_eq!(metered.value("depth"), 1.0);

    let guard = poll(&queue).unwrap();
    let [sum, count] = metered.values(WAITS);
    assert!(close(sum, 75e-6) && count == 2.0, "the wait counts from the add, not from done");

    let mut gauges = Box::pin(queue.keep_gauges());
    assert!(gauges.as_mut().now_or_never().is_none());
    // tokio's timers round up to the millisecond.
    advance(ms(501)).await;
    assert!(gauges.as_mut().now_or_never().is_none());
    let [unfinished, longest] = metered.values(["unfinished_work_seconds", "longest_running_processor_seconds"]);
    assert!(close(unfinished, 0.501) && close(longest, 0.501));

    drop(guard);
    let [sum, count] = metered.values(WORK);
    assert!(close(sum, 0.501_025) && count == 2.0);
}

#[tokio::test(start_paused = true)]
async fn s25_after_shutdown_the_gauges_keep_their_last_value() {
    let metered = Metered::new();
    let queue = metered.queue("q");
    queue.add("a");
    let guard = poll(&queue).unwrap();
    let mut gauges = Box::pin(queue.keep_gauges());
    assert!(gauges.as_mut().now_or_never().is_none());
    advance(ms(500)).await;
    assert!(gauges.as_mut().now_or_never().is_none());
    queue.shut_down();
    assert!(gauges.now_or_never().is_some());
    drop(guard);
    advance(Duration::from_secs(3600)).await;
    assert!(queue.keep_gauges().now_or_never().is_some());
    assert!(close(metered.value("unfinished_work_seconds"), 0.5));
}

#[tokio::test(start_paused = true)]
async fn queues_of_one_name_add_up_and_a_dropped_one_leaves_nothing_behind() {
    let metered = Metered::new();
    let [one, two, other] = ["q", "q", "r"].map(|name| metered.queue(name));
    for queue in [&one, &two, &other] {
        queue.add("a");
        queue.add("b");
        queue.add_after("c", Duration::from_secs(7200));
        queue.add_after("c", Duration::ZERO);
    }
    let _guards = [poll(&one).unwrap(), poll(&two).unwrap()];
    assert_eq!(metered.values(["adds_total", "depth", "retries_total"]), [6.0, 4.0, 4.0]);
    advance(ms(250)).await;
    let _third = poll(&two).unwrap();
    let mut gauges = [Box::pin(one.keep_gauges()), Box::pin(two.keep_gauges())];
    gauges.iter_mut().for_each(|gauge| assert!(gauge.as_mut().now_or_never().is_none()));
    advance(ms(500)).await;
    gauges.iter_mut().for_each(|gauge| assert!(gauge.as_mut().now_or_never().is_none()));
    assert!(close(metered.value("unfinished_work_seconds"), 0.75 + 0.75 + 0.5));
    assert!(close(metered.value("longest_running_processor_seconds"), 0.75));
    drop(gauges);
    drop((one, other));
    assert_eq!(metered.value("depth"), 1.0 + 2.0, "the guard keeps its queue until it is done");
}
