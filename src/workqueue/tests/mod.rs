//! The queue's scenarios under paused time, most of them client-go's own; `sNN` are their numbers in `docs/workqueue.md`.

mod base;
mod delays;
mod limiters;
mod metrics;

use std::time::Duration;

use futures::FutureExt;

use super::*;
use crate::clock::Clock;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn queue<K: QueueKey + Send + 'static>() -> Queue<K> {
    Queue::new(Options::new(Clock::system()))
}

/// The next key, if one waits now.
fn poll<K: QueueKey>(queue: &Queue<K>) -> Option<Guard<K>> {
    queue.get().now_or_never().flatten()
}

/// Hands out and finishes everything that waits now.
fn drain<K: QueueKey>(queue: &Queue<K>) -> Vec<K> {
    std::iter::from_fn(|| poll(queue).map(|guard| (*guard).clone())).collect()
}
