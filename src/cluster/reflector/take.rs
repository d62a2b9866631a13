//! Taking objects into the store and telling the sink.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::store::Put;
use super::wire::identity;
use super::{Cached, Change, Reflector, Sink};

impl<T: Cached, S: Sink<T>> Reflector<T, S> {
    /// Takes in an object that exists; returns its version, if it has one that can be read.
    pub(super) fn take_in(&mut self, raw: &RawValue) -> Option<String> {
        match (self.decode)(raw) {
            Ok(object) => {
                let object = Arc::new(object);
                let version = object.resource_version().to_owned();
                self.put(object);
                Some(version)
            }
            Err(error) => self.leave_out(raw, &error),
        }
    }

    /// Takes out an object that is gone; returns the version of its deletion, if it can be read.
    pub(super) fn take_out(&mut self, raw: &RawValue) -> Option<String> {
        let Some(gone) = identity(raw) else {
            return self.leave_out(raw, "the metadata of a deleted object cannot be read");
        };
        // The last state is the one in the event: it is newer than ours if an update was folded into the deletion.
        let last = self.store.remove(&gone.key);
        if let Some(last) = last {
            let last = match (self.decode)(raw) {
                Ok(newer) if newer.uid() == last.uid() => Arc::new(newer),
                _ => last,
            };
            self.tell(Change::Deleted { last });
        }
        Some(gone.version)
    }

    /// Ends a full list: what it did not show is gone, and watches go on from `version`.
    pub(super) fn end_list(&mut self, version: String) {
        for last in self.store.end_list() {
            self.tell(Change::Deleted { last });
        }
        self.advance(version);
        if !self.store.has_synced() {
            self.store.set_synced(true);
            self.sink.on_change(Change::Synced);
            tracing::info!(resource = %self.options.resource, objects = self.store.len(), "cache synced");
        } else {
            self.sink.on_change(Change::Relisted);
        }
    }

    /// Everything up to `version` is in the store: watches may resume there.
    pub(super) fn advance(&mut self, version: String) {
        self.store.set_version(&version);
        self.version = Some(version);
    }

    /// The kind is not there: neither are its objects.
    pub(super) fn take_out_all(&mut self) {
        for last in self.store.clear() {
            self.tell(Change::Deleted { last });
        }
        self.store.set_synced(false);
        self.version = None;
    }

    fn put(&mut self, new: Arc<T>) {
        let old = match self.store.put(&new) {
            Put::Same => return,
            Put::New => None,
            Put::Update(old) => Some(old),
            Put::OtherUid(last) => {
                self.tell(Change::Deleted { last });
                None
            }
        };
        let initial = !self.store.has_synced();
        self.tell(Change::Applied { old, new, initial });
    }

    /// An object that cannot be read is not in the cache, whatever was there before.
    fn leave_out(&mut self, raw: &RawValue, error: &str) -> Option<String> {
        self.metrics.undecodable.inc();
        let Some(object) = identity(raw) else {
            tracing::error!(resource = %self.options.resource, error, "left out an object without readable metadata");
            return None;
        };
        tracing::error!(resource = %self.options.resource, object = %object.key, error, "left out an unreadable object");
        if let Some(last) = self.store.remove(&object.key) {
            self.tell(Change::Deleted { last });
        }
        self.tell(Change::Unreadable { key: object.key, uid: object.uid, error: error.to_owned() });
        Some(object.version)
    }

    fn tell(&mut self, change: Change<T>) {
        self.metrics.objects.set(self.store.len().try_into().unwrap_or(i64::MAX));
        self.sink.on_change(change);
    }
}
