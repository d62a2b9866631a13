//! The supervisor: routes messages to actors and keys to shards, runs the steps, ends them.

use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::cell::{Cells, Name};
use super::kind::{Kind, Wake};
use super::metrics::EngineMetrics;
use super::place::{Place, Places};
use super::stable_hash;
use crate::clock::Clock;
use crate::latest::Latest;
use crate::workqueue::{self, Class, Guard, Queue, QueueMetrics, RateLimiterConfig};

/// How many steps that have given way may wait for the rest of their requests, over all shards. Each takes some three kilobytes;
/// beyond this many, fewer begin.
const STEPS_BEHIND: usize = 16_384;

/// How a supervisor is made.
pub struct Options {
    /// Both clocks.
    pub clock: Clock,
    /// How many queues the keys are spread over; 0 counts as 1.
    pub shards: usize,
    /// How many steps may run at a time, over all shards, without those that have [given way](super::StepContext::give_way); at least
    /// one per shard.
    pub concurrent_steps: usize,
    /// Waits between attempts of a key.
    pub rate_limiter: RateLimiterConfig,
    /// For the jitter of the limiters.
    pub seed: u64,
    /// The `workqueue_*` metrics and the name that all shards share.
    pub queue_metrics: Option<(workqueue::Metrics, String)>,
    /// The metrics of the actors.
    pub metrics: Option<EngineMetrics>,
}

impl Options {
    /// Four shards, 256 steps at a time, the default limiter, seed 0, no metrics.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            shards: 4,
            concurrent_steps: 256,
            rate_limiter: RateLimiterConfig::default(),
            seed: 0,
            queue_metrics: None,
            metrics: None,
        }
    }
}

/// How much of everything a supervisor holds; all zero once every object is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Actors.
    pub cells: usize,
    /// Sums over the queues of all shards.
    pub queues: workqueue::Counts,
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (own, others) = (self.queues, other.queues);
        let queues = workqueue::Counts {
            queued: own.queued + others.queued,
            in_flight: own.in_flight + others.in_flight,
            delayed: own.delayed + others.delayed,
            limiter_records: own.limiter_records + others.limiter_records,
        };
        Self { cells: self.cells + other.cells, queues }
    }
}

/// The actors of one kind of object, and who runs them. Clones share them.
pub struct Supervisor<K: Kind> {
    pub(super) engine: Arc<Engine<K>>,
}

/// What senders, steps and the watch on the clock share.
pub(super) struct Engine<K: Kind> {
    pub(super) kind: K,
    pub(super) clock: Clock,
    pub(super) cells: Cells<K>,
    /// One per shard.
    queues: Box<[Queue<Name<K>>]>,
    /// One per shard.
    places: Box<[Places]>,
    pub(super) metrics: Option<EngineMetrics>,
    /// Whether steps may run.
    pub(super) phase: Latest<Phase>,
    /// [`Clock::drift`] before the first timer was armed.
    pub(super) drift_at_start: TimeDelta,
    /// Steps cut off in the middle: the budget of a shutdown was spent, or the term was lost.
    cut_off: AtomicUsize,
}

/// How steps end: no new ones after `stop`, and those in flight are dropped at `cut`.
#[derive(Clone)]
struct Ends {
    stop: CancellationToken,
    cut: CancellationToken,
}

/// How far a supervisor is. It goes from the first to the last, or directly from the second to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Messages are folded and nothing else: no key is queued, no timer armed.
    StandingBy,
    /// What messages want is queued; nothing steps yet.
    Warming,
    /// Steps run.
    Open,
}

impl<K: Kind> Clone for Supervisor<K> {
    fn clone(&self) -> Self {
        Self { engine: Arc::clone(&self.engine) }
    }
}

impl<K: Kind> Supervisor<K> {
    /// A supervisor without actors. It takes messages at once, and steps when it runs and is opened.
    pub fn new(kind: K, options: Options) -> Self {
        let Options { clock, shards, concurrent_steps, rate_limiter, seed, queue_metrics, metrics } = options;
        let shards = shards.max(1);
        let queue = |shard: usize| {
            Queue::new(workqueue::Options {
                clock: clock.clone(),
                limiter: rate_limiter.build(seed.wrapping_add(shard as u64)),
                tenant_of: |name: &Name<K>| K::tenant(name),
                metrics: queue_metrics.as_ref().map(|(metrics, name)| -> QueueMetrics { metrics.queue(name) }),
            })
        };
        let engine = Engine {
            kind,
            cells: Cells::new(),
            queues: (0..shards).map(queue).collect(),
            places: (0..shards)
                .map(|_| Places::new(concurrent_steps.div_ceil(shards), STEPS_BEHIND.div_ceil(shards)))
                .collect(),
            metrics,
            phase: Latest::new(Phase::Warming),
            drift_at_start: clock.drift(),
            cut_off: AtomicUsize::new(0),
            clock,
        };
        Self { engine: Arc::new(engine) }
    }

    /// The kind that was given to [`Supervisor::new`].
    pub fn kind(&self) -> &K {
        &self.engine.kind
    }

    /// Folds news about `key` into its actor's mailbox and wakes the actor as [`Kind::fold`] says.
    pub fn send(&self, key: K::Key, message: K::Message) {
        let engine = &*self.engine;
        let now = engine.clock.wall();
        engine.cells.fold(&engine.kind, key, message, now, engine.metrics.as_ref(), |key, wake| engine.wake(key, wake));
    }

    /// Lets steps run: what they look at has synced. Keys that were sent before come first come first served, behind
    /// whatever is due.
    pub fn open(&self) {
        self.engine.phase.set(Phase::Open);
    }

    /// How much of everything there is.
    pub fn debug_counts(&self) -> Counts {
        let of_queue = |queue: &Queue<Name<K>>| Counts { cells: 0, queues: queue.counts() };
        let queues = self.engine.queues.iter().map(of_queue).fold(Counts::default(), Add::add);
        Counts { cells: self.engine.cells.len(), ..queues }
    }

    /// Runs the actors until `stop`; then takes no new work, lets the steps in flight finish within `budget`, and cuts off
    /// those that do not. How many were cut off. Dropping this future ends everything at once. Run it once.
    pub async fn run(&self, stop: CancellationToken, budget: Duration) -> usize {
        self.run_until_cut(stop, budget, CancellationToken::new()).await
    }

    /// The same; `cut` ends everything at once, and what was in flight is dropped when this returns.
    pub async fn run_until_cut(&self, stop: CancellationToken, budget: Duration, cut: CancellationToken) -> usize {
        let tasks = TaskTracker::new();
        let cut = cut.child_token();
        let _ends_with_this_future = cut.clone().drop_guard();
        let stop = stop.child_token();
        let _stops_with_this_future = stop.clone().drop_guard();
        for shard in 0..self.engine.queues.len() {
            let ends = Ends { stop: stop.clone(), cut: cut.clone() };
            tasks.spawn(Arc::clone(&self.engine).work(shard, tasks.clone(), ends));
            let (engine, stop) = (Arc::clone(&self.engine), stop.clone());
            tasks.spawn(async move { engine.keep_gauges(shard, &stop).await });
        }
        let (engine, watch_stop) = (Arc::clone(&self.engine), stop.clone());
        tasks.spawn(async move { engine.watch_clock(&watch_stop).await });
        tasks.close();

        cut.run_until_cancelled(stop.cancelled()).await;
        stop.cancel();
        self.engine.queues.iter().for_each(Queue::shut_down);
        cut.run_until_cancelled(tokio::time::timeout(budget, tasks.wait())).await;
        cut.cancel();
        tasks.wait().await;
        self.engine.cut_off.load(Ordering::Relaxed)
    }
}

impl<K: Kind> Engine<K> {
    /// The queue of the shard of `key`.
    pub(super) fn queue_of(&self, key: &K::Key) -> &Queue<Name<K>> {
        &self.queues[shard_of(key, self.queues.len())]
    }

    /// Asks for the step that a message wants; runs under the lock of the actor's cell.
    fn wake(&self, key: &Name<K>, wake: Wake) {
        let (queue, phase) = (self.queue_of(key), self.phase.get());
        match wake {
            _ if phase == Phase::StandingBy => {}
            Wake::Now if phase == Phase::Open => queue.add(key.clone()),
            Wake::Now | Wake::Listed => queue.add_in(key.clone(), Class::Listed),
            Wake::After(delay) => queue.add_after(key.clone(), delay),
            Wake::Nothing => {}
        }
    }

    /// The worker of a shard: begins one step after the other, as places are free, until it is told to stop.
    async fn work(self: Arc<Self>, shard: usize, tasks: TaskTracker, ends: Ends) {
        let (Some(queue), Some(places)) = (self.queues.get(shard), self.places.get(shard)) else { return };
        ends.stop.run_until_cancelled(self.phase.wait_for(|phase| *phase == Phase::Open)).await;
        loop {
            // A queue that is never empty must not keep the other tasks of this thread from running.
            tokio::task::coop::consume_budget().await;
            let next = async { Some((places.begin().await?, queue.get().await?)) };
            let Some(Some((place, key))) = ends.stop.run_until_cancelled(next).await else { return };
            let (engine, ends) = (Arc::clone(&self), ends.clone());
            tasks.spawn(async move { engine.run_step(shard, key, place, &ends).await });
        }
    }

    /// One step, from the key to its return; `cut` ends it in the middle.
    async fn run_step(&self, shard: usize, key: Guard<Name<K>>, place: Place, ends: &Ends) {
        let Some(queue) = self.queues.get(shard) else { return };
        tokio::select! {
            biased;
            () = ends.cut.cancelled() => {
                self.cut_off.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(key = ?*key, "a step was cut off");
            }
            () = self.visit(queue, &key, place, &ends.stop) => {}
        }
    }

    async fn keep_gauges(&self, shard: usize, stop: &CancellationToken) {
        if let Some(queue) = self.queues.get(shard) {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = queue.keep_gauges() => {}
            }
        }
    }
}

/// The shard of a key: a pure function of the key and the number of shards. It uses bits of the hash that hash tables
/// neither choose a bucket by nor compare, so that the tables inside a shard stay well filled.
pub(super) fn shard_of<T: std::hash::Hash>(key: &T, shards: usize) -> usize {
    let shards = shards.max(1) as u64;
    ((stable_hash(key) >> 20) % shards) as usize
}
