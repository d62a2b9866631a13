//! The queue's state as plain code: no lock, no clock, no waiting; every operation is told the time.
//!
//! Invariants
//! - `dirty` holds what needs a hand-out; `running` what is handed out. A key waits in `turns` if and only if it is dirty
//!   and not running, under the class and number of its dirty record.
//! - Nothing enters once `phase` is not `Open`; what is dirty by then is still handed out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use rustc_hash::FxBuildHasher;

use super::delays::Delays;
use super::limiter::RateLimiter;
use super::metrics::QueueMetrics;
use super::turns::Turns;
use super::{Class, Counts, Options, QueueKey};

/// The queue but for its lock and its waiters. Instants are nanoseconds since the queue was made.
pub(super) struct State<K: QueueKey> {
    turns: Turns<K>,
    dirty: HashMap<K, Dirty, FxBuildHasher>,
    /// When each key in flight was handed out (ns).
    running: HashMap<K, u64, FxBuildHasher>,
    delays: Delays<K>,
    limiter: Box<dyn RateLimiter<K>>,
    metrics: Option<QueueMetrics>,
    phase: Phase,
    signals: Signals,
}

/// A key that needs a hand-out.
struct Dirty {
    class: Class,
    /// Its number in the turns; meaningless while `in_flight`.
    seq: u64,
    in_flight: bool,
    /// When the first counted add came (ns).
    since_ns: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Shut down: hands out what waits, takes nothing in.
    Closed,
    /// Shut down, and somebody waits until nothing is left.
    Draining,
}

/// Whom to wake once the lock is released.
#[derive(Default)]
pub(super) struct Signals {
    /// How many keys became ready.
    pub(super) ready: usize,
    /// The earliest delay became earlier.
    pub(super) earlier: bool,
    /// The phase changed, or the last key went while somebody drains.
    pub(super) phase: bool,
}

impl<K: QueueKey> State<K> {
    pub(super) fn new(options: Options<K>) -> Self {
        Self {
            turns: Turns::new(options.tenant_of),
            dirty: HashMap::default(),
            running: HashMap::default(),
            delays: Delays::new(),
            limiter: options.limiter,
            metrics: options.metrics,
            phase: Phase::Open,
            signals: Signals::default(),
        }
    }

    /// Moves every delay that has run out to the turns, in the order of deadlines.
    pub(super) fn promote(&mut self, now_ns: u64) {
        while let Some((key, at_ns)) = self.delays.pop_due(now_ns) {
            // Its wait is counted from its deadline, even when nobody looked at the queue in between.
            self.enter(key, Class::Due, at_ns);
        }
    }

    pub(super) fn add(&mut self, key: K, class: Class, now_ns: u64) {
        if self.phase == Phase::Open {
            self.enter(key, class, now_ns);
        }
    }

    fn enter(&mut self, key: K, class: Class, now_ns: u64) {
        match self.dirty.entry(key) {
            Entry::Occupied(mut slot) if class < slot.get().class => {
                let Dirty { class: old, seq, in_flight, .. } = *slot.get();
                slot.get_mut().class = class;
                if !in_flight && let Some(key) = self.turns.remove(slot.key(), old, seq) {
                    slot.get_mut().seq = self.turns.push(key, class);
                }
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(slot) => {
                let in_flight = self.running.contains_key(slot.key());
                let seq = if in_flight { 0 } else { self.turns.push(slot.key().clone(), class) };
                self.signals.ready += usize::from(!in_flight);
                slot.insert(Dirty { class, seq, in_flight, since_ns: now_ns });
                self.observe(QueueMetrics::on_add);
            }
        }
    }

    /// Hands out the key whose turn it is.
    pub(super) fn take(&mut self, now_ns: u64) -> Option<K> {
        let key = self.turns.pop()?;
        if let Some((own, dirty)) = self.dirty.remove_entry(&key) {
            shrink(&mut self.dirty);
            self.running.insert(own, now_ns);
            self.observe(|metrics| metrics.on_get(elapsed(dirty.since_ns, now_ns)));
        }
        Some(key)
    }

    /// The worker is done with `key`.
    pub(super) fn done(&mut self, key: &K, now_ns: u64) {
        if let Some(since_ns) = self.running.remove(key) {
            self.observe(|metrics| metrics.on_done(elapsed(since_ns, now_ns)));
        }
        if let Some(dirty) = self.dirty.get_mut(key) {
            dirty.seq = self.turns.push(key.clone(), dirty.class);
            dirty.in_flight = false;
            self.signals.ready += 1;
        }
        self.signals.phase |= self.phase == Phase::Draining && self.is_empty();
    }

    pub(super) fn add_after(&mut self, key: K, delay: Duration, now_ns: u64) {
        if self.phase != Phase::Open {
            return;
        }
        self.observe(QueueMetrics::on_add_after);
        if delay.is_zero() {
            return self.enter(key, Class::Due, now_ns);
        }
        let at_ns = now_ns.saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX));
        self.signals.earlier |= self.delays.insert(key, at_ns);
    }

    pub(super) fn add_rate_limited(&mut self, key: K, now_ns: u64) {
        if self.phase == Phase::Open {
            let delay = self.limiter.when(&key, Duration::from_nanos(now_ns));
            self.add_after(key, delay, now_ns);
        }
    }

    pub(super) fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }

    pub(super) fn num_requeues(&self, key: &K) -> u32 {
        self.limiter.num_requeues(key)
    }

    pub(super) fn cancel(&mut self, key: &K) {
        self.delays.remove(key);
        self.limiter.forget(key);
    }

    /// Takes nothing in any more and drops what is delayed; `drain` says whether somebody waits for the end.
    pub(super) fn shut_down(&mut self, drain: bool) {
        self.phase = if drain { Phase::Draining } else { Phase::Closed };
        self.delays.clear();
        self.signals.phase = true;
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.phase != Phase::Open
    }

    /// Whether whoever drains may go: nothing waits and nothing is in flight, or a plain shutdown released him.
    pub(super) fn is_drained(&self) -> bool {
        self.phase == Phase::Closed || self.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.running.is_empty()
    }

    /// Deadline of the earliest delay (ns).
    pub(super) fn first_due_ns(&self) -> Option<u64> {
        self.delays.first_ns()
    }

    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            queued: self.turns.len(),
            in_flight: self.running.len(),
            delayed: self.delays.len(),
            limiter_records: self.limiter.records(),
        }
    }

    pub(super) fn has_metrics(&self) -> bool {
        self.metrics.is_some()
    }

    /// Writes the gauges of the ages of what is in flight; never again after shutdown.
    pub(super) fn refresh_gauges(&self, now_ns: u64) {
        if let Some(metrics) = &self.metrics
            && !self.is_shut_down()
        {
            let ages = self.running.values().map(|since_ns| now_ns.saturating_sub(*since_ns));
            let (sum, longest) = ages.fold((0, 0), |(sum, longest): (u64, u64), age| (sum + age, longest.max(age)));
            metrics.set_ages(Duration::from_nanos(sum), Duration::from_nanos(longest));
        }
    }

    pub(super) fn take_signals(&mut self) -> Signals {
        std::mem::take(&mut self.signals)
    }

    fn observe(&self, observation: impl FnOnce(&QueueMetrics)) {
        if let Some(metrics) = &self.metrics {
            observation(metrics);
        }
    }
}

impl<K: QueueKey> Drop for State<K> {
    fn drop(&mut self) {
        let left = self.dirty.len();
        self.observe(|metrics| metrics.on_drop(left));
    }
}

fn elapsed(since_ns: u64, now_ns: u64) -> Duration {
    Duration::from_nanos(now_ns.saturating_sub(since_ns))
}

/// Gives memory back after a herd: a table that is mostly empty shrinks, at a cost that the removals before it have paid.
pub(super) fn shrink<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) {
    const WORTH_IT: usize = 1024;
    if map.capacity() > WORTH_IT && map.len() < map.capacity() / 8 {
        map.shrink_to(map.len() * 2);
    }
}
