//! The queue that workers and producers share: the lock, the waiting and the guard.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::{Instant, sleep};

use super::Class;
use super::limiter::{RateLimiter, RateLimiterConfig};
use super::metrics::QueueMetrics;
use super::state::{Signals, State};
use crate::clock::Clock;

/// How often the gauges of running work are written, as in component-base.
const GAUGE_PERIOD: Duration = Duration::from_millis(500);

/// The longest sleep at a stretch: tokio's timer wheel is exact to the millisecond over two years, delays may be longer.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 3600);

/// What a key of a queue must be able to do.
pub trait QueueKey: Clone + Eq + Hash {}

impl<K: Clone + Eq + Hash> QueueKey for K {}

/// What a queue is made of; start from [`Options::new`].
pub struct Options<K> {
    /// Its monotonic half is the queue's time.
    pub clock: Clock,
    /// Decides the waits of [`Queue::add_rate_limited`].
    pub limiter: Box<dyn RateLimiter<K>>,
    /// The tenant of a key, for instance a hash of its namespace: tenants take turns. Must be a pure function.
    pub tenant_of: fn(&K) -> u64,
    /// Where to count; several queues (shards) may share one name.
    pub metrics: Option<QueueMetrics>,
}

impl<K: QueueKey + Send + 'static> Options<K> {
    /// One tenant, the default limiter without seed, no metrics.
    pub fn new(clock: Clock) -> Self {
        Self { clock, limiter: RateLimiterConfig::default().build(0), tenant_of: |_| 0, metrics: None }
    }
}

/// How much of everything a queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys that wait for a worker.
    pub queued: usize,
    /// Keys that a worker has.
    pub in_flight: usize,
    /// Keys that wait for an instant.
    pub delayed: usize,
    /// Keys of which the limiter remembers failures.
    pub limiter_records: usize,
}

/// A rate-limited delaying work queue. Clones share it.
pub struct Queue<K: QueueKey> {
    shared: Arc<Shared<K>>,
}

struct Shared<K: QueueKey> {
    state: Mutex<State<K>>,
    clock: Clock,
    /// Zero of the state's nanoseconds.
    origin: Instant,
    /// Wakes one getter per key that became ready, all on shutdown.
    ready: Notify,
    /// Wakes the timekeeper when the earliest delay became earlier.
    earlier: Notify,
    /// Wakes whoever waits for the shutdown or for the end of a drain.
    phase: Notify,
    /// Wakes the keeper of the gauges when a key is handed out.
    busy: Notify,
    /// Held by the one waiting getter that sleeps until the earliest delay. Fair, and released when that getter is dropped.
    timekeeper: AsyncMutex<()>,
}

impl<K: QueueKey> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: QueueKey> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts().fmt(f)
    }
}

impl<K: QueueKey> Queue<K> {
    /// An empty queue. It starts no task; see [`Queue::keep_gauges`] for the one that metrics want.
    pub fn new(options: Options<K>) -> Self {
        let clock = options.clock.clone();
        Self {
            shared: Arc::new(Shared {
                origin: clock.mono(),
                clock,
                state: Mutex::new(State::new(options)),
                ready: Notify::new(),
                earlier: Notify::new(),
                phase: Notify::new(),
                busy: Notify::new(),
                timekeeper: AsyncMutex::new(()),
            }),
        }
    }

    /// Asks for one hand-out of `key` as due; see [`Queue::add_in`].
    pub fn add(&self, key: K) {
        self.add_in(key, Class::Due);
    }

    /// Asks for one hand-out of `key`. A key that already waits keeps its place, unless `class` is more urgent: then it
    /// goes behind what waits there. A key in flight is handed out again after its guard has been dropped. Ignored after
    /// shutdown.
    pub fn add_in(&self, key: K, class: Class) {
        self.with(|state, now_ns| state.add(key, class, now_ns));
    }

    /// Adds `key` once `delay` has passed; zero is [`Queue::add`]. The earliest wish per key wins, equal deadlines are first
    /// come first served, and there is no longest delay. Ignored after shutdown.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.with(|state, now_ns| state.add_after(key, delay, now_ns));
    }

    /// [`Queue::add_after`] the wait that the limiter asks for; counts one failure of `key`.
    pub fn add_rate_limited(&self, key: K) {
        self.with(|state, now_ns| state.add_rate_limited(key, now_ns));
    }

    /// Makes the limiter forget the failures of `key`. Does not touch its delay.
    pub fn forget(&self, key: &K) {
        self.with(|state, _| state.forget(key));
    }

    /// How often `key` was added by [`Queue::add_rate_limited`] since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.with(|state, _| state.num_requeues(key))
    }

    /// Drops the delay and the failures of `key`: its object is gone, or is another replica's now. Neither a waiting key
    /// nor one in flight is touched.
    pub fn cancel(&self, key: &K) {
        self.with(|state, _| state.cancel(key));
    }

    /// How many keys wait for a worker, without those in flight (even if dirty) and those delayed.
    pub fn len(&self) -> usize {
        self.with(|state, _| state.len())
    }

    /// Whether no key waits for a worker.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How much of everything the queue holds.
    pub fn counts(&self) -> Counts {
        self.with(|state, _| state.counts())
    }

    /// The next key, when there is one; `None` once the queue is shut down and no key waits. May be dropped at any point
    /// without losing a key or a wake-up.
    pub async fn get(&self) -> Option<Guard<K>> {
        loop {
            if let Poll::Ready(answer) = self.try_get() {
                return answer;
            }
            // Registered before the second look, so that a key added in between wakes us.
            let mut woken = pin!(self.shared.ready.notified());
            woken.as_mut().enable();
            if let Poll::Ready(answer) = self.try_get() {
                return answer;
            }
            tokio::select! {
                biased;
                () = woken => {}
                () = self.next_due() => {}
            }
        }
    }

    fn try_get(&self) -> Poll<Option<Guard<K>>> {
        let (key, closed) = self.with(|state, now_ns| (state.take(now_ns), state.is_shut_down()));
        match key {
            Some(key) => {
                self.shared.busy.notify_one();
                Poll::Ready(Some(Guard { key, queue: self.clone() }))
            }
            None if closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// Returns when the earliest delay has run out. Of all who wait here one sleeps, the others wait for its part.
    async fn next_due(&self) {
        let _part = self.shared.timekeeper.lock().await;
        loop {
            let mut earlier = pin!(self.shared.earlier.notified());
            earlier.as_mut().enable();
            let Some(due_ns) = self.with(|state, _| state.first_due_ns()) else {
                earlier.await;
                continue;
            };
            let wait = Duration::from_nanos(due_ns.saturating_sub(self.shared.now_ns()));
            if wait.is_zero() {
                return;
            }
            tokio::select! {
                biased;
                () = earlier => {}
                () = sleep(wait.min(LONGEST_SLEEP)) => {}
            }
        }
    }

    /// Takes nothing in from now on and drops what is delayed. What waits is still handed out; whoever drains is released.
    pub fn shut_down(&self) {
        self.with(|state, _| state.shut_down(false));
    }

    /// [`Queue::shut_down`], then waits until nothing waits and nothing is in flight. A later `shut_down` releases it.
    pub async fn shut_down_with_drain(&self) {
        self.with(|state, _| state.shut_down(true));
        loop {
            let mut phase = pin!(self.shared.phase.notified());
            phase.as_mut().enable();
            if self.with(|state, _| state.is_drained()) {
                return;
            }
            phase.await;
        }
    }

    /// Writes the gauges of running work every 500 ms while there is any, until shutdown; returns at once if the queue has no
    /// metrics. For a queue with metrics, drive this in a task.
    pub async fn keep_gauges(&self) {
        loop {
            let mut phase = pin!(self.shared.phase.notified());
            phase.as_mut().enable();
            if self.with(|state, _| state.is_shut_down() || !state.has_metrics()) {
                return;
            }
            let idle = self.with(|state, now_ns| {
                state.refresh_gauges(now_ns);
                state.counts().in_flight == 0
            });
            tokio::select! {
                biased;
                () = phase => {}
                () = self.shared.busy.notified(), if idle => {}
                () = sleep(GAUGE_PERIOD), if !idle => {}
            }
        }
    }

    /// Runs `operation` under the lock, with what has fallen due already in its place; then wakes whom it concerns.
    fn with<R>(&self, operation: impl FnOnce(&mut State<K>, u64) -> R) -> R {
        let shared = &*self.shared;
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ns = shared.now_ns();
        state.promote(now_ns);
        let result = operation(&mut state, now_ns);
        let signals = state.take_signals();
        drop(state);
        shared.send(&signals);
        result
    }
}

impl<K: QueueKey> Shared<K> {
    fn now_ns(&self) -> u64 {
        let age = self.clock.mono().saturating_duration_since(self.origin);
        u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)
    }

    fn send(&self, signals: &Signals) {
        for _ in 0..signals.ready {
            self.ready.notify_one();
        }
        if signals.earlier {
            self.earlier.notify_one();
        }
        if signals.phase {
            self.ready.notify_waiters();
            self.phase.notify_waiters();
        }
    }
}

/// A key that a worker has; dropping it is `done`, in a panic and in a cancelled task as well.
pub struct Guard<K: QueueKey> {
    key: K,
    queue: Queue<K>,
}

impl<K: QueueKey> Deref for Guard<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: QueueKey> Drop for Guard<K> {
    fn drop(&mut self) {
        self.queue.with(|state, now_ns| state.done(&self.key, now_ns));
    }
}

impl<K: QueueKey + fmt::Debug> fmt::Debug for Guard<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}
