//! How long a key that failed waits for its next attempt.
//!
//! Invariant: a limiter reads no clock and draws no random number of its own; time and seed come from outside, so that
//! the same calls give the same waits. Waits follow client-go's `util/workqueue` rate limiters.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustc_hash::FxBuildHasher;

use super::QueueKey;

/// Decides waits and remembers failures.
pub trait RateLimiter<K>: Send {
    /// How long `key` waits; counts one failure. `now` is the time since some fixed start.
    fn when(&mut self, key: &K, now: Duration) -> Duration;

    /// Forgets the failures of `key`.
    fn forget(&mut self, key: &K);

    /// Failures of `key` since it was last forgotten.
    fn num_requeues(&self, key: &K) -> u32;

    /// Of how many keys failures are remembered; what must be zero when all objects are gone.
    fn records(&self) -> usize;
}

/// Failures per key; the memory of the limiters below.
struct Failures<K> {
    counts: HashMap<K, u32, FxBuildHasher>,
}

impl<K: QueueKey> Failures<K> {
    fn new() -> Self {
        Self { counts: HashMap::default() }
    }

    /// Counts one more; how many there were before.
    fn count(&mut self, key: &K) -> u32 {
        let count = self.counts.entry(key.clone()).or_insert(0);
        let before = *count;
        *count = count.saturating_add(1);
        before
    }

    fn forget(&mut self, key: &K) {
        if self.counts.remove(key).is_some() {
            super::state::shrink(&mut self.counts);
        }
    }

    fn get(&self, key: &K) -> u32 {
        self.counts.get(key).copied().unwrap_or(0)
    }
}

/// Doubles the wait with each failure of a key: `base * 2^failures`, at most `max`.
pub struct ItemExponential<K> {
    base: Duration,
    max: Duration,
    failures: Failures<K>,
}

impl<K: QueueKey> ItemExponential<K> {
    /// Waits from `base` up to `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: Failures::new() }
    }
}

impl<K: QueueKey + Send> RateLimiter<K> for ItemExponential<K> {
    fn when(&mut self, key: &K, _now: Duration) -> Duration {
        let factor = 2_u32.checked_pow(self.failures.count(key));
        factor.and_then(|factor| self.base.checked_mul(factor)).map_or(self.max, |wait| wait.min(self.max))
    }

    fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.failures.get(key)
    }

    fn records(&self) -> usize {
        self.failures.counts.len()
    }
}

/// The first attempts of a key follow quickly, later ones slowly.
pub struct FastSlow<K> {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
    failures: Failures<K>,
}

impl<K: QueueKey> FastSlow<K> {
    /// Waits of `fast` for `fast_attempts` failures, of `slow` for all later ones.
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self { fast, slow, fast_attempts, failures: Failures::new() }
    }
}

impl<K: QueueKey + Send> RateLimiter<K> for FastSlow<K> {
    fn when(&mut self, key: &K, _now: Duration) -> Duration {
        if self.failures.count(key) < self.fast_attempts { self.fast } else { self.slow }
    }

    fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.failures.get(key)
    }

    fn records(&self) -> usize {
        self.failures.counts.len()
    }
}

/// One token bucket for all keys. It reserves: each call takes a token, earned or not, and waits until it is earned, so
/// the waits of a crowd grow one by one.
pub struct Bucket {
    /// Time to earn one token.
    per_token: Duration,
    /// Time to earn all of them.
    per_burst: Duration,
    /// When the bucket is full again if nobody takes from it; later than that much from now means debt.
    full_at: Duration,
}

impl Bucket {
    /// `per_second` tokens a second (0 counts as 1), up to `burst` saved; full at first.
    pub fn new(per_second: u32, burst: u32) -> Self {
        let per_token = Duration::from_secs(1) / per_second.max(1);
        Self { per_token, per_burst: per_token.saturating_mul(burst), full_at: Duration::ZERO }
    }
}

impl<K> RateLimiter<K> for Bucket {
    fn when(&mut self, _key: &K, now: Duration) -> Duration {
        self.full_at = self.full_at.max(now).saturating_add(self.per_token);
        self.full_at.saturating_sub(now).saturating_sub(self.per_burst)
    }

    fn forget(&mut self, _key: &K) {}

    fn num_requeues(&self, _key: &K) -> u32 {
        0
    }

    fn records(&self) -> usize {
        0
    }
}

/// Asks all its members each time and takes the longest wait.
pub struct MaxOf<K> {
    members: Vec<Box<dyn RateLimiter<K>>>,
}

impl<K> MaxOf<K> {
    /// The longest wait of `members`; without members no wait.
    pub fn new(members: Vec<Box<dyn RateLimiter<K>>>) -> Self {
        Self { members }
    }
}

impl<K> RateLimiter<K> for MaxOf<K> {
    fn when(&mut self, key: &K, now: Duration) -> Duration {
        self.members.iter_mut().map(|member| member.when(key, now)).max().unwrap_or(Duration::ZERO)
    }

    fn forget(&mut self, key: &K) {
        self.members.iter_mut().for_each(|member| member.forget(key));
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.members.iter().map(|member| member.num_requeues(key)).max().unwrap_or(0)
    }

    fn records(&self) -> usize {
        self.members.iter().map(|member| member.records()).max().unwrap_or(0)
    }
}

/// Cuts the waits of another limiter short.
pub struct MaxWait<L> {
    inner: L,
    max: Duration,
}

impl<L> MaxWait<L> {
    /// The waits of `inner`, at most `max`.
    pub fn new(inner: L, max: Duration) -> Self {
        Self { inner, max }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for MaxWait<L> {
    fn when(&mut self, key: &K, now: Duration) -> Duration {
        self.inner.when(key, now).min(self.max)
    }

    fn forget(&mut self, key: &K) {
        self.inner.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.inner.num_requeues(key)
    }

    fn records(&self) -> usize {
        self.inner.records()
    }
}

/// Spreads the waits of another limiter over their second half, so that keys which failed together do not return together.
pub struct Jittered<L> {
    inner: L,
    rng: StdRng,
}

impl<L> Jittered<L> {
    /// Waits between the half and the whole of what `inner` says, drawn from `seed`.
    pub fn new(inner: L, seed: u64) -> Self {
        Self { inner, rng: StdRng::seed_from_u64(seed) }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for Jittered<L> {
    fn when(&mut self, key: &K, now: Duration) -> Duration {
        let longest = self.inner.when(key, now);
        self.rng.random_range(longest / 2..=longest)
    }

    fn forget(&mut self, key: &K) {
        self.inner.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.inner.num_requeues(key)
    }

    fn records(&self) -> usize {
        self.inner.records()
    }
}

/// Which limiter a controller's queues run with; parsed from and shown as its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimiterConfig {
    /// `per-key`: each key on its own, 5 ms doubling to 30 s, with jitter. No shared bucket, since with one 20,000 keys
    /// that fail together wait half an hour a round.
    #[default]
    PerKey,
    /// `peers`: client-go's default, which the CronJob controller of Kubernetes runs with: the longer of 5 ms doubling to
    /// 1000 s per key and a bucket of 10 a second, 100 saved, for all keys of the queue.
    Peers,
    /// `job`: what the Job controller of Kubernetes runs with: each key on its own, 1 s doubling to 60 s.
    Job,
}

impl RateLimiterConfig {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::PerKey, Self::Peers, Self::Job];

    /// The name by which it is configured.
    pub fn name(self) -> &'static str {
        match self {
            Self::PerKey => "per-key",
            Self::Peers => "peers",
            Self::Job => "job",
        }
    }

    /// A fresh limiter; `seed` is for the jitter.
    pub fn build<K: QueueKey + Send + 'static>(self, seed: u64) -> Box<dyn RateLimiter<K>> {
        const BASE: Duration = Duration::from_millis(5);
        match self {
            Self::PerKey => Box::new(Jittered::new(ItemExponential::new(BASE, Duration::from_secs(30)), seed)),
            Self::Peers => Box::new(MaxOf::new(vec![
                Box::new(ItemExponential::new(BASE, Duration::from_secs(1000))),
                Box::new(Bucket::new(10, 100)),
            ])),
            Self::Job => Box::new(ItemExponential::new(Duration::from_secs(1), Duration::from_secs(60))),
        }
    }
}

impl fmt::Display for RateLimiterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A rate limiter of this name does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown rate limiter {0:?}: want per-key, peers or job")]
pub struct UnknownRateLimiter(String);

impl FromStr for RateLimiterConfig {
    type Err = UnknownRateLimiter;

    fn from_str(name: &str) -> Result<Self, UnknownRateLimiter> {
        Self::ALL.into_iter().find(|config| config.name() == name).ok_or_else(|| UnknownRateLimiter(name.to_owned()))
    }
}
