//! A tap on the server: whoever checks what happened hears of every write and every answered request, as it happens.
//!
//! Invariants
//! - Writes are told under the store's lock, in order, each before any watch shows it.
//! - A request is told when it was applied, with the revisions that it made, whether or not its answer arrives.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::call::Call;
use super::store::Store;

/// One request that was applied or refused. Those that a fault lost or refused before they reached the store are told too.
#[derive(Debug)]
pub struct Served<'a> {
    /// Who sent it; see [`crate::sandbox::Sandbox::service_of`].
    pub client: &'a str,
    /// What was asked.
    pub call: &'a Call,
    /// HTTP status code of the answer, [`super::counters::NO_ANSWER`] if it never reached the store.
    pub code: u16,
    /// The server's revision before it was applied and after; equal if it wrote nothing.
    pub revisions: (u64, u64),
}

/// Whoever listens. Must not block and must not call back into the sandbox.
pub trait Tap: Send + Sync {
    /// The store was written to by whomever.
    fn on_written(&self, store: &Store);

    /// A request was served.
    fn on_served(&self, served: &Served<'_>);
}

/// The place where one tap may be set.
#[derive(Default)]
pub(super) struct Taps(OnceLock<Arc<dyn Tap>>);

impl Taps {
    /// Sets it; whether none was there.
    pub(super) fn set(&self, tap: Arc<dyn Tap>) -> bool {
        self.0.set(tap).is_ok()
    }

    pub(super) fn written(&self, store: &Store) {
        if let Some(tap) = self.0.get() {
            tap.on_written(store);
        }
    }

    pub(super) fn served(&self, client: &str, call: &Call, code: u16, revisions: (u64, u64)) {
        if let Some(tap) = self.0.get() {
            tap.on_served(&Served { client, call, code, revisions });
        }
    }
}

impl fmt::Debug for Taps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Taps(set)" } else { "Taps(none)" })
    }
}
