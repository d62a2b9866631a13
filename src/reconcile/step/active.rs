//! `status.active` while a step edits it: in order, and found by uid without a search.
//!
//! Invariants
//! - Order is that of the status and of additions; of a uid that stands several times all entries go together, as in the peers.
//! - A lookup, an addition and a removal cost the logarithm of the length, so that a step over thousands of Jobs is no square.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::model::{ObjectReference, Uid};

/// The list. Entries that were taken out leave a gap.
#[derive(Debug, Default)]
pub(super) struct ActiveList {
    entries: Vec<Option<ObjectReference>>,
    /// Where the entries of each uid stand.
    places: BTreeMap<Uid, SmallVec<[usize; 1]>>,
}

impl ActiveList {
    pub(super) fn new(entries: Vec<ObjectReference>) -> Self {
        let mut list = Self::default();
        list.entries.reserve(entries.len());
        for entry in entries {
            list.push(entry);
        }
        list
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn holds(&self, uid: &Uid) -> bool {
        self.places.contains_key(uid)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ObjectReference> {
        self.entries.iter().flatten()
    }

    pub(super) fn push(&mut self, entry: ObjectReference) {
        self.places.entry(entry.uid.clone()).or_default().push(self.entries.len());
        self.entries.push(Some(entry));
    }

    /// Takes out all entries of a uid.
    pub(super) fn remove(&mut self, uid: &Uid) {
        for place in self.places.remove(uid).unwrap_or_default() {
            if let Some(entry) = self.entries.get_mut(place) {
                *entry = None;
            }
        }
    }

    pub(super) fn to_vec(&self) -> Vec<ObjectReference> {
        self.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(uid: &str, name: &str) -> ObjectReference {
        ObjectReference { uid: uid.into(), name: name.into(), ..ObjectReference::default() }
    }

    fn names(list: &ActiveList) -> String {
        list.iter().map(|entry| &*entry.name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn all_entries_of_a_uid_go_and_the_others_keep_their_order() {
        let mut list = ActiveList::new(vec![entry("1", "a"), entry("2", "b"), entry("1", "c"), entry("3", "d")]);
        list.remove(&"1".into());
        list.remove(&"unknown".into());
        assert_eq!((names(&list).as_str(), list.holds(&"1".into()), list.holds(&"2".into())), ("b d", false, true));
        list.push(entry("1", "e"));
        assert_eq!((names(&list).as_str(), list.holds(&"1".into())), ("b d e", true));
    }

    #[test]
    fn it_is_empty_when_the_last_entry_has_gone() {
        let mut list = ActiveList::new(vec![entry("", "a")]);
        assert!(!list.is_empty() && list.holds(&Uid::default()));
        list.remove(&Uid::default());
        assert!(list.is_empty() && list.to_vec().is_empty());
    }
}
