//! What one operation of the work queue costs on one core: `cargo bench --bench workqueue`.

use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use cronjob_controller::clock::Clock;
use cronjob_controller::engine::stable_hash;
use cronjob_controller::model::ObjectKey;
use cronjob_controller::workqueue::{Metrics, Options, Queue};
use futures::FutureExt;
use prometheus_client::registry::Registry;

const PENDING: u64 = 1_000_000;

/// A queue as the controller runs it: tenants by namespace, with metrics.
fn queue() -> Queue<ObjectKey> {
    let metrics = Metrics::register(&mut Registry::default()).queue("bench");
    Queue::new(Options {
        tenant_of: |key: &ObjectKey| stable_hash(&key.namespace),
        metrics: Some(metrics),
        ..Options::new(Clock::system())
    })
}

fn keys(count: u64) -> Vec<ObjectKey> {
    (0..count).map(|n| ObjectKey::new(format!("team-{}", n % 100), format!("cron-{n}"))).collect()
}

fn cycle<K: cronjob_controller::workqueue::QueueKey>(queue: &Queue<K>, key: &K) {
    queue.add(key.clone());
    drop(queue.get().now_or_never().flatten());
}

fn add_get_done(c: &mut Criterion) {
    let mut group = c.benchmark_group("workqueue");
    group.throughput(Throughput::Elements(1)).measurement_time(Duration::from_secs(3));

    let bare = Queue::new(Options::new(Clock::system()));
    group.bench_function("add+get+done, number keys, no metrics", |b| b.iter(|| cycle(&bare, &7_u64)));

    let (full, keys) = (queue(), keys(1024));
    let mut turn = keys.iter().cycle();
    group.bench_function("add+get+done, object keys, metrics", |b| {
        b.iter(|| turn.next().map(|key| cycle(&full, key)));
    });
    group.finish();
}

fn add_after_with_a_million_pending(c: &mut Criterion) {
    let mut group = c.benchmark_group("workqueue");
    group.throughput(Throughput::Elements(1)).sample_size(20).measurement_time(Duration::from_secs(3));
    let queue = queue();
    let keys = keys(PENDING + 1);
    for (n, key) in keys.iter().skip(1).enumerate() {
        // Spread over a day, in no order, as schedules are.
        let at_s = stable_hash(&n) % 86_400;
        queue.add_after(key.clone(), Duration::from_secs(3600 + at_s));
    }
    group.bench_function("add_after+cancel, a million pending", |b| {
        b.iter_batched(
            || keys[0].clone(),
            |key| {
                queue.add_after(key.clone(), Duration::from_secs(40_000));
                queue.cancel(&key);
            },
            BatchSize::SmallInput,
        );
    });
    let mut turn = keys.iter().skip(1).cycle();
    group.bench_function("add_after, a later wish of a pending key", |b| {
        b.iter(|| turn.next().map(|key| queue.add_after(key.clone(), Duration::from_secs(200_000))));
    });
    group.finish();
}

/// Time that this thread has spent on a core, which other load on the machine does not stretch; 0 where it is not told.
fn on_core_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// The aim of two million a second on one core, in time on the core.
fn add_get_done_on_one_core(_: &mut Criterion) {
    const CYCLES: u64 = 2_000_000;
    let (bare, full) = (Queue::new(Options::new(Clock::system())), queue());
    let keys = keys(1024);
    for (name, cycles) in [
        ("number keys, no metrics", &mut (|n| cycle(&bare, &n)) as &mut dyn FnMut(u64)),
        ("object keys, metrics", &mut |n| cycle(&full, &keys[(n % 1024) as usize])),
    ] {
        let start_ns = on_core_ns();
        (0..CYCLES).for_each(cycles);
        let each_ns = (on_core_ns() - start_ns) as f64 / CYCLES as f64;
        if each_ns > 0.0 {
            println!("add+get+done, {name}: {each_ns:.0} ns on the core, {:.2} million a second", 1e3 / each_ns);
        }
    }
}

criterion_group!(benches, add_get_done_on_one_core, add_get_done, add_after_with_a_million_pending);
criterion_main!(benches);
