//! What a reflector says of itself to health checks and to people.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Every wait of a reflector ends sooner, whatever the server does: the longest is for a watch that was asked to last 10 min and that no
/// bookmark shows to be dead. Pauses come on top.
const STANDSTILL: Duration = Duration::from_secs(15 * 60);

/// What a reflector is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Takes in a full list.
    Listing,
    /// Watches.
    Watching,
    /// Pauses after a failure.
    Pausing,
    /// The server does not know the kind; looks again now and then.
    Absent,
}

/// A reflector's state at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorReport {
    /// What it is doing.
    pub phase: Phase,
    /// Whether the server did not know the kind when it last said anything about it: troubles since then tell nothing else.
    pub absent: bool,
    /// When it last heard from the server anything that moves it on: a page, an object, a bookmark, the start of a watch.
    pub last_progress: Instant,
    /// When its loop will have moved again, with success or without. Past it, it has come to a standstill: a bug of ours, and only a new
    /// process helps.
    pub moves_by: Instant,
    /// Why it last failed; `None` when it has made progress since.
    pub trouble: Option<String>,
}

/// A reflector's state, kept up to date by it. Cheap to clone; clones show the same state.
#[derive(Clone, Debug)]
pub struct ReflectorHealth {
    report: Arc<Mutex<ReflectorReport>>,
}

impl ReflectorHealth {
    pub(crate) fn new(now: Instant) -> Self {
        let report = ReflectorReport {
            phase: Phase::Listing,
            absent: false,
            last_progress: now,
            moves_by: now + STANDSTILL,
            trouble: None,
        };
        Self { report: Arc::new(Mutex::new(report)) }
    }

    /// The state now.
    pub fn report(&self) -> ReflectorReport {
        self.with(|report| report.clone())
    }

    pub(crate) fn on_progress(&self, phase: Phase, now: Instant) {
        self.with(|report| {
            report.phase = phase;
            report.absent = false;
            report.last_progress = now;
            report.moves_by = now + STANDSTILL;
            report.trouble = None;
        });
    }

    /// A failure at `now`, after which it pauses.
    pub(crate) fn on_trouble(&self, phase: Phase, trouble: String, now: Instant, pause: Duration) {
        self.with(|report| {
            report.moves_by = now.checked_add(pause + STANDSTILL).unwrap_or(report.moves_by);
            report.phase = phase;
            report.absent |= phase == Phase::Absent;
            report.trouble = Some(trouble);
        });
    }

    fn with<R>(&self, f: impl FnOnce(&mut ReflectorReport) -> R) -> R {
        f(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
