//! What every clone of the service shares: the store behind its lock, the clock, faults and counts.
//!
//! Invariant: the store's lock is held only for synchronous work, never across an await, and watches are woken after it is
//! released.

use std::sync::{Mutex, PoisonError};

use super::counters::Counters;
use super::faults::Faults;
use super::ids::Ids;
use super::resources::{RESOURCES, Resource};
use super::store::{Moment, Store, collection_index};
use super::tap::Taps;
use crate::clock::Clock;
use crate::latest::{Follower, Latest};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Clock,
    pub(super) faults: Faults,
    pub(super) counters: Counters,
    pub(super) taps: Taps,
    state: Mutex<State>,
    /// One per row of [`RESOURCES`]: changes when it is written to.
    wakes: Vec<Latest<()>>,
}

#[derive(Debug)]
struct State {
    store: Store,
    ids: Ids,
}

impl Shared {
    pub(super) fn new(clock: Clock, seed: u64, store: Store) -> Self {
        Self {
            clock,
            // Faults draw from a sequence of their own, so that installing one does not change uids.
            faults: Faults::new(seed.rotate_left(32) ^ 0x5eed),
            counters: Counters::default(),
            taps: Taps::default(),
            state: Mutex::new(State { store, ids: Ids::new(seed) }),
            wakes: RESOURCES.iter().map(|_| Latest::new(())).collect(),
        }
    }

    pub(super) fn read<T>(&self, work: impl FnOnce(&Store) -> T) -> T {
        work(&self.state.lock().unwrap_or_else(PoisonError::into_inner).store)
    }

    /// Runs one synchronous piece of work on the store, then wakes the watches of what it touched.
    pub(super) fn write<T>(&self, work: impl FnOnce(&mut Store, &mut Moment<'_>) -> T) -> T {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { store, ids } = &mut *guard;
        let result = work(store, &mut Moment { now: self.clock.wall(), ids });
        let touched = store.take_touched();
        if !touched.is_empty() {
            self.taps.written(store);
        }
        drop(guard);
        for wake in touched.into_iter().filter_map(|row| self.wakes.get(row)) {
            wake.set(());
        }
        result
    }

    pub(super) fn wake_of(&self, resource: &Resource) -> Follower<()> {
        let wake = collection_index(resource).and_then(|row| self.wakes.get(row));
        wake.map_or_else(|| Latest::new(()).follow(), Latest::follow)
    }

    /// Makes every open watch look again: a fault has changed what it may show.
    pub(super) fn wake_all(&self) {
        for wake in &self.wakes {
            wake.set(());
        }
    }
}
