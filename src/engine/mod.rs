//! Actors: one per object, run by a supervisor that spreads keys over shards. Generic over the kind of object ([`Kind`]).
//!
//! Invariants
//! - An idle actor is a cell of a few hundred bytes and at most one armed timer; it has no task.
//! - At most one step per key runs at a time: the shard of a key is a pure function of the key, and its queue hands a key
//!   to one worker only.
//! - No wake-up is lost. A message is folded and its wake-up asked for under the lock of the actor's cell. Whatever ends a
//!   step (value, error, panic, cancellation), the next due instant is armed again before the key is given back.
//! - No retry is immediate: what fails, and what is due again at once, goes through the limiter, so nothing runs hot.
//! - When an object goes, its cell, delay and limiter record go in one critical section; a message that races with that
//!   either keeps the cell or opens a new one.
//! - Locks nest in one order, cell before queue, and none is held across an await.
//! - Nothing steps before the supervisor is told that what the steps look at has synced ([`Supervisor::open`]), or that its turn
//!   has come ([`Supervisor::take_over`]).

mod cell;
mod kind;
mod metrics;
mod place;
mod supervisor;
mod takeover;
mod visit;
mod watch;

#[cfg(test)]
mod tests;

pub use kind::{Kind, Next, Outcome, Retry, StepContext, Wake};
pub use metrics::{EngineMetrics, Metrics};
pub use supervisor::{Counts, Options, Supervisor};

use std::hash::{BuildHasher, Hash};

use rustc_hash::FxBuildHasher;

/// A hash that is the same in every process of one architecture; for shards and tenants.
pub fn stable_hash<T: Hash + ?Sized>(value: &T) -> u64 {
    FxBuildHasher.hash_one(value)
}
