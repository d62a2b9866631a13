//! Timers of the stand-ins: at most one for each key, on the monotonic clock.
//!
//! Timers with the same instant fire in the order in which they were set. A clock that runs faster shortens them.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// When, and in which order among those of the instant.
type Slot = (Instant, u64);

/// What each key does next, and when.
#[derive(Debug)]
pub(in crate::sandbox) struct Timers<K, S> {
    due: BTreeMap<Slot, (K, S)>,
    slots: BTreeMap<K, Slot>,
    set: u64,
    speed: u32,
}

impl<K: Ord + Clone, S: Copy> Timers<K, S> {
    pub(in crate::sandbox) fn new(speed: u32) -> Self {
        Self { due: BTreeMap::new(), slots: BTreeMap::new(), set: 0, speed: speed.max(1) }
    }

    /// Sets the timer of `key`, `after` in wall time from `now`; an earlier timer of the key is dropped.
    pub(in crate::sandbox) fn arm(&mut self, key: K, step: S, now: Instant, after: Duration) {
        self.disarm(&key);
        // Too far away to be expressed is never.
        if let Some(at) = now.checked_add(after / self.speed) {
            self.set += 1;
            self.slots.insert(key.clone(), (at, self.set));
            self.due.insert((at, self.set), (key, step));
        }
    }

    /// Drops the timer of `key`.
    pub(in crate::sandbox) fn disarm(&mut self, key: &K) {
        if let Some(slot) = self.slots.remove(key) {
            self.due.remove(&slot);
        }
    }

    /// What `key` does next, and how long it is until then in wall time.
    pub(in crate::sandbox) fn armed(&self, key: &K, now: Instant) -> Option<(S, Duration)> {
        let slot = self.slots.get(key)?;
        let (_, step) = self.due.get(slot)?;
        Some((*step, slot.0.saturating_duration_since(now) * self.speed))
    }

    /// The next timer that has come.
    pub(in crate::sandbox) fn take(&mut self, now: Instant) -> Option<(K, S)> {
        let first = self.due.first_entry().filter(|first| first.key().0 <= now)?;
        let (key, step) = first.remove();
        self.slots.remove(&key);
        Some((key, step))
    }

    /// The next instant at which [`take`](Self::take) has something.
    pub(in crate::sandbox) fn next_due(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }
}

/// Returns at `due`; never if there is none.
pub(in crate::sandbox) async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
