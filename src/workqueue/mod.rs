//! The rate-limited delaying work queue: what is to be looked at next, by which worker, and when.
//!
//! Invariants
//! - A key is handed out to at most one worker at a time; any number of adds meanwhile become exactly one further hand-out.
//! - A key waits in the turns if and only if it is dirty and not in flight.
//! - At most one delayed entry exists per key; the earliest deadline asked for wins. Delays know nothing of the rest: an
//!   immediate add neither cancels nor postpones one.
//! - No wake-up is lost: a getter registers before it looks, a guard's drop is `done`, and one waiting getter at a time
//!   keeps the timer of the earliest delay; the part passes on when that getter leaves or is dropped.
//! - All state sits behind one short std mutex that is never held across an await; what happens inside is plain code
//!   that is told the time (`state.rs`).
//!
//! The behaviour follows client-go's `util/workqueue`, with the additions listed in `docs/workqueue.md`.

mod delays;
mod limiter;
mod metrics;
mod queue;
mod state;
mod turns;

#[cfg(test)]
mod tests;

pub use limiter::{
    Bucket, FastSlow, ItemExponential, Jittered, MaxOf, MaxWait, RateLimiter, RateLimiterConfig, UnknownRateLimiter,
};
pub use metrics::{Metrics, QueueMetrics};
pub use queue::{Counts, Guard, Options, Queue, QueueKey};

/// Whose turn comes first: keys of a class are handed out only when no more urgent class waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Something happened or is due: watch events, delays that have run out, retries.
    Due,
    /// Merely listed again, at start or on a resync.
    Listed,
}
