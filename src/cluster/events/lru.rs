//! A map that forgets what was used least recently.

use std::collections::BTreeMap;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// At most `capacity` entries; putting in one more drops the one that was used longest ago.
#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    entries: FxHashMap<K, (V, u64)>,
    /// Keys by the moment of their last use; as many as entries.
    uses: BTreeMap<u64, K>,
    moment: u64,
    capacity: usize,
}

impl<K: Hash + Eq + Clone, V> Lru<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { entries: FxHashMap::default(), uses: BTreeMap::new(), moment: 0, capacity }
    }

    /// The value of `key`, which counts as used; made by `make` if there is none.
    pub(crate) fn get_or_put(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        self.moment += 1;
        let moment = self.moment;
        if !self.entries.contains_key(&key) && self.entries.len() >= self.capacity {
            self.forget_oldest();
        }
        let (value, used) = self.entries.entry(key.clone()).or_insert_with(|| (make(), moment));
        self.uses.remove(used);
        *used = moment;
        self.uses.insert(moment, key);
        value
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.uses.pop_first() {
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_used_longest_ago_is_forgotten_first() {
        let mut lru = Lru::new(2);
        *lru.get_or_put("a", || 0) += 1;
        lru.get_or_put("b", || 0);
        *lru.get_or_put("a", || 0) += 1;
        lru.get_or_put("c", || 0);
        assert_eq!((*lru.get_or_put("a", || 0), lru.len()), (2, 2));
        assert_eq!(*lru.get_or_put("b", || 7), 7);
        assert_eq!(lru.uses.len(), 2);
    }
}
