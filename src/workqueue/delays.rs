//! Keys that wait for an instant.
//!
//! Invariants: `deadlines` is canonical; `order` holds the same entries, sorted. Equal deadlines come out in the order in
//! which they were asked for. Instants are nanoseconds since the queue was made and saturate after 584 years, so there is
//! no horizon and no overflow.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use rustc_hash::FxBuildHasher;

/// One delayed entry per key, the earliest deadline first.
pub(super) struct Delays<K> {
    /// Each key's deadline (ns) and the number that breaks ties.
    deadlines: HashMap<K, (u64, u64), FxBuildHasher>,
    order: BTreeMap<(u64, u64), K>,
    next_seq: u64,
}

impl<K: Clone + Eq + Hash> Delays<K> {
    pub(super) fn new() -> Self {
        Self { deadlines: HashMap::default(), order: BTreeMap::new(), next_seq: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Deadline of the first entry (ns).
    pub(super) fn first_ns(&self) -> Option<u64> {
        self.order.first_key_value().map(|((at_ns, _), _)| *at_ns)
    }

    /// Delays `key` until `at_ns`, unless an entry exists that is not later. Whether the first deadline of all became
    /// earlier by it.
    pub(super) fn insert(&mut self, key: K, at_ns: u64) -> bool {
        let place = (at_ns, self.next_seq);
        let became_first = self.first_ns().is_none_or(|first_ns| at_ns < first_ns);
        match self.deadlines.entry(key) {
            Entry::Occupied(slot) if slot.get().0 <= at_ns => return false,
            Entry::Occupied(mut slot) => {
                if let Some(key) = self.order.remove(slot.get()) {
                    self.order.insert(place, key);
                }
                slot.insert(place);
            }
            Entry::Vacant(slot) => {
                self.order.insert(place, slot.key().clone());
                slot.insert(place);
            }
        }
        self.next_seq += 1;
        became_first
    }

    /// The first entry, if its deadline has come: its key and its deadline (ns).
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<(K, u64)> {
        let first = self.order.first_entry()?;
        let at_ns = first.key().0;
        if at_ns > now_ns {
            return None;
        }
        let key = first.remove();
        self.deadlines.remove(&key);
        super::state::shrink(&mut self.deadlines);
        Some((key, at_ns))
    }

    /// Drops the entry of `key`.
    pub(super) fn remove(&mut self, key: &K) {
        if let Some(place) = self.deadlines.remove(key) {
            self.order.remove(&place);
            super::state::shrink(&mut self.deadlines);
        }
    }

    /// Drops all entries.
    pub(super) fn clear(&mut self) {
        self.deadlines = HashMap::default();
        self.order = BTreeMap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_wish_wins_and_only_a_new_first_needs_the_timer_set_anew() {
        let mut delays = Delays::new();
        assert!(delays.insert("a", 50));
        assert!(!delays.insert("a", 70));
        assert!(!delays.insert("b", 60));
        assert!(delays.insert("a", 30));
        assert_eq!((delays.len(), delays.first_ns()), (2, Some(30)));
        assert_eq!(delays.pop_due(29), None);
        assert_eq!(delays.pop_due(60), Some(("a", 30)));
        assert_eq!(delays.pop_due(60), Some(("b", 60)));
        assert_eq!(delays.pop_due(u64::MAX), None);
    }

    #[test]
    fn a_removed_entry_never_comes() {
        let mut delays = Delays::new();
        delays.insert("a", 1);
        delays.remove(&"a");
        assert_eq!(delays.pop_due(u64::MAX), None);
        assert!(delays.deadlines.is_empty());
    }
}
