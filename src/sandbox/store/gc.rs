//! Garbage collection by owner reference: what a real cluster does in the background, here one step at a time.
//!
//! Invariants
//! - Work is found by uid in an index, never by looking at all objects.
//! - An object is collected only if each owner it names is absent or waits for its dependents to go; objects without owners
//!   stay.
//! - What is collected is deleted as by a request: a Pod that runs gets its grace.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::deletion::{FOREGROUND, ORPHAN, Propagation};
use super::object::{Object, metadata_mut};
use super::{Store, meta};
use crate::model::WallTime;
use crate::sandbox::resources::{RESOURCES, Resource};

/// A place in the store: row of [`RESOURCES`] and key.
type Place = (usize, Arc<str>);

/// Who owns whom, and what the collector has to look at. Hash maps here are only ever asked for one key.
#[derive(Debug, Default)]
pub struct OwnerIndex {
    /// Uids of all objects.
    live: FxHashSet<Arc<str>>,
    /// Uid of an owner (there or not) to the objects that name it.
    dependents: FxHashMap<Arc<str>, BTreeSet<Place>>,
    /// Objects that name an owner which was absent when the reference or the absence came.
    suspects: BTreeSet<Place>,
    /// Objects being deleted that the collector may have to do something about: orphan or foreground.
    waiting: BTreeSet<Place>,
    /// Uids of objects in a foreground deletion: they do not keep their dependents.
    leaving: FxHashSet<Arc<str>>,
    /// Uids of foreground deletions that wait for dependents; back to `waiting` when a dependent changes.
    blocked: FxHashMap<Arc<str>, Place>,
}

impl OwnerIndex {
    pub(super) fn on_put(&mut self, row: usize, object: &Object, previous: Option<&Object>) {
        let place = (row, object.key.clone());
        match previous {
            None => {
                self.live.insert(object.uid.clone());
            }
            Some(previous) if previous.owners != object.owners => self.forget_owners(&place, previous),
            Some(_) => {}
        }
        for owner in &object.owners {
            self.dependents.entry(owner.clone()).or_default().insert(place.clone());
            if !self.live.contains(owner) {
                self.suspects.insert(place.clone());
            }
        }
        self.unblock_owners(object);
        if let Some(previous) = previous {
            self.unblock_owners(previous);
        }
        if object.deleting {
            self.waiting.insert(place);
            if object.finalizers && meta::finalizers(&object.value()).contains(&FOREGROUND) {
                self.leaving.insert(object.uid.clone());
            } else {
                self.leaving.remove(&object.uid);
            }
        }
    }

    pub(super) fn on_remove(&mut self, row: usize, object: &Object) {
        let place = (row, object.key.clone());
        self.live.remove(&object.uid);
        self.leaving.remove(&object.uid);
        self.forget_owners(&place, object);
        self.suspects.remove(&place);
        self.waiting.remove(&place);
        self.blocked.remove(&object.uid);
        self.unblock_owners(object);
        if let Some(dependents) = self.dependents.get(&object.uid) {
            self.suspects.extend(dependents.iter().cloned());
        }
    }

    fn unblock_owners(&mut self, dependent: &Object) {
        if self.blocked.is_empty() {
            return;
        }
        for owner in &dependent.owners {
            self.waiting.extend(self.blocked.remove(owner));
        }
    }

    fn forget_owners(&mut self, place: &Place, object: &Object) {
        for owner in &object.owners {
            let Some(dependents) = self.dependents.get_mut(owner) else { continue };
            dependents.remove(place);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }

    /// Whether an owner keeps its dependents: it is there and does not wait for them to go.
    fn keeps(&self, uid: &str) -> bool {
        self.live.contains(uid) && !self.leaving.contains(uid)
    }

    fn dependents_of(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }
}

impl Store {
    /// Whether the collector has anything to look at.
    pub fn gc_pending(&self) -> bool {
        !self.owners.suspects.is_empty() || !self.owners.waiting.is_empty()
    }

    /// Collects what is due now, at most `limit` objects: dependents whose owners are absent go, references to absent owners
    /// beside living ones are dropped, orphan and foreground deletions advance. Answers how many objects were written or
    /// removed; what this step causes is left to the next one.
    pub fn gc_step(&mut self, now: WallTime, limit: usize) -> usize {
        let suspects: Vec<Place> = self.owners.suspects.iter().take(limit).cloned().collect();
        let waiting: Vec<Place> = self.owners.waiting.iter().take(limit).cloned().collect();
        let mut writes = 0;
        for place in suspects {
            self.owners.suspects.remove(&place);
            writes += self.collect(&place, now);
        }
        for place in waiting {
            self.owners.waiting.remove(&place);
            writes += self.advance_deletion(&place, now);
        }
        writes
    }

    fn at(&self, place: &Place) -> Option<(&'static Resource, Arc<Object>)> {
        let object = self.collections.get(place.0)?.get(&place.1)?.clone();
        Some((RESOURCES.get(place.0)?, object))
    }

    /// One object that has lost an owner. Answers the writes.
    fn collect(&mut self, place: &Place, now: WallTime) -> usize {
        let Some((resource, object)) = self.at(place) else { return 0 };
        let kept = object.owners.iter().filter(|owner| self.owners.keeps(owner)).count();
        if kept == object.owners.len() || object.deleting {
            return 0;
        }
        if kept > 0 {
            self.drop_references(resource, &object, |store, uid| !store.owners.keeps(uid));
            return 1;
        }
        // Where an owner waits for it to be gone, what depends on it has to go first as well.
        let awaited = object.owners.iter().any(|owner| self.owners.leaving.contains(owner));
        let propagation = if awaited && !self.owners.dependents_of(&object.uid).is_empty() {
            Propagation::Foreground
        } else {
            Propagation::standing(&object, Propagation::Background)
        };
        self.delete_object(resource, &object, propagation, None, now);
        1
    }

    /// One object that is being deleted and carries a finalizer of the collector.
    fn advance_deletion(&mut self, place: &Place, now: WallTime) -> usize {
        let Some((resource, object)) = self.at(place) else { return 0 };
        let value = object.value();
        let finalizers = meta::finalizers(&value);
        let dependents = self.owners.dependents_of(&object.uid);
        if finalizers.contains(&ORPHAN) {
            for dependent in &dependents {
                let Some((resource, dependent)) = self.at(dependent) else { continue };
                self.drop_references(resource, &dependent, |_, uid| *uid == *object.uid);
            }
            self.drop_finalizer(resource, &object, value, ORPHAN);
            return 1 + dependents.len();
        }
        if !finalizers.contains(&FOREGROUND) {
            return 0;
        }
        let writes: usize = dependents.iter().map(|dependent| self.collect(dependent, now)).sum();
        let blocks = |place| self.at(place).is_some_and(|(_, dependent)| blocks(&dependent, &object.uid));
        if dependents.iter().any(blocks) {
            self.owners.blocked.insert(object.uid.clone(), place.clone());
            return writes;
        }
        self.drop_finalizer(resource, &object, value, FOREGROUND);
        writes + 1
    }

    fn drop_finalizer(&mut self, resource: &'static Resource, object: &Object, mut value: Value, finalizer: &str) {
        let kept = meta::finalizers(&value).into_iter().filter(|kept| *kept != finalizer).map(str::to_owned).collect();
        meta::set_finalizers(&mut value, kept);
        self.settle(resource, object.key.clone(), &value);
    }

    fn drop_references(&mut self, resource: &Resource, object: &Object, drop: impl Fn(&Self, &str) -> bool) {
        let mut value = object.value();
        if let Some(Value::Array(owners)) = metadata_mut(&mut value).get_mut("ownerReferences") {
            owners.retain(|owner| !drop(self, owner["uid"].as_str().unwrap_or_default()));
            if owners.is_empty() {
                metadata_mut(&mut value).remove("ownerReferences");
            }
        }
        self.put(resource, object.key.clone(), &value);
    }
}

/// Whether a dependent keeps its owner from going in a foreground deletion.
fn blocks(dependent: &Object, owner: &str) -> bool {
    let value = dependent.value();
    let owners = value["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    owners.iter().any(|reference| reference["uid"] == owner && reference["blockOwnerDeletion"] == true)
}
