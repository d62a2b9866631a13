//! The store: every object, one revision, the rules of each verb. Pure and synchronous; time and random numbers come in.
//!
//! Invariants
//! - One revision counts over everything; each write takes the next one, and a write that changes nothing takes none and
//!   shows in no watch.
//! - A request is applied whole or not at all: checks come first, the write last, and nobody else runs in between.
//! - All that a watcher may see is in the logs of the collections; [`Store::take_touched`] says which of them to look at.

mod binding;
mod collection;
mod delete;
mod deletion;
mod gc;
mod log;
mod meta;
mod object;
mod quota;
mod read;
mod write;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

pub use collection::Collection;
pub use gc::OwnerIndex;
pub use log::{Change, Entry, Expired, Log};
pub use object::{Object, encode, key_of, prefix};
pub use read::{ListSource, revision_of};

use object::metadata_mut;

use super::call::{Call, Subresource, Verb};
use super::ids::Ids;
use super::resources::{self, RESOURCES, Resource};
use super::status::Refusal;
use crate::model::WallTime;

/// What the server answers when it does not refuse.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// HTTP status code.
    pub code: u16,
    /// The body.
    pub body: Bytes,
    /// Its media type.
    pub content_type: &'static str,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

impl Answer {
    fn json(code: u16, body: impl Into<Bytes>) -> Self {
        Self { code, body: body.into(), content_type: "application/json", warnings: Vec::new() }
    }
}

/// When and with which random numbers a request is applied.
#[derive(Debug)]
pub struct Moment<'a> {
    /// Wall time of the request.
    pub now: WallTime,
    /// Where uids and suffixes come from.
    pub ids: &'a mut Ids,
}

/// All objects and everything known about them.
#[derive(Debug)]
pub struct Store {
    /// One per row of [`RESOURCES`]; the row of `events.k8s.io` stays empty, its objects are those of core `events`.
    collections: Vec<Collection>,
    /// Revision of the last write.
    revision: u64,
    owners: OwnerIndex,
    /// Collections with changes since the last [`Store::take_touched`].
    touched: BTreeSet<usize>,
    /// Text of containers, by namespace/pod, then container. No revision, no watch.
    pod_logs: BTreeMap<String, BTreeMap<String, String>>,
    /// Writes of Events, oldest first: when, which, and at which revision.
    event_writes: VecDeque<(WallTime, Arc<str>, u64)>,
}

impl Store {
    /// An empty store; each collection's log keeps `log_limit` changes.
    pub fn new(log_limit: usize) -> Self {
        Self {
            collections: RESOURCES.iter().map(|resource| Collection::new(resource, log_limit)).collect(),
            // A real store has been written to before anybody asks; 0 means "any" to clients.
            revision: 1,
            owners: OwnerIndex::default(),
            touched: BTreeSet::new(),
            pod_logs: BTreeMap::new(),
            event_writes: VecDeque::new(),
        }
    }

    /// Applies one request, all but watches (which read the logs).
    ///
    /// # Errors
    /// The refusal to answer with; the store is unchanged then.
    pub fn apply(&mut self, call: &Call, moment: &mut Moment<'_>) -> Result<Answer, Refusal> {
        let before = self.revision;
        let answer = self.dispatch(call, moment)?;
        if self.revision > before && call.resource.plural == "events" {
            self.note_event_writes(before, moment.now);
        }
        Ok(answer)
    }

    fn dispatch(&mut self, call: &Call, moment: &mut Moment<'_>) -> Result<Answer, Refusal> {
        match call.verb {
            Verb::Get if call.subresource == Subresource::Log => self.read_pod_log(call),
            Verb::Get => self.read(call, moment.now),
            Verb::List => self.list(call, &ListSource::Current, moment.now),
            Verb::Watch => Err(Refusal::method_not_allowed()),
            Verb::Create => self.create(call, moment),
            Verb::Update => self.update(call, moment),
            Verb::Patch => self.patch(call, moment),
            Verb::Delete => self.delete(call, moment.now),
            Verb::DeleteCollection => self.delete_collection(call, moment.now),
        }
    }

    /// Revision of the last write.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The objects of a resource; both views of events give the same.
    pub fn collection(&self, resource: &Resource) -> Option<&Collection> {
        self.collections.get(collection_index(resource)?)
    }

    /// One object as a tree, in the form it is stored in.
    pub fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Value> {
        self.collection(resource)?.get(&key_of(namespace, name)).map(|object| object.value())
    }

    /// Forgets every change at or before `revision`: watches from there and older continue tokens answer 410.
    pub fn compact(&mut self, revision: u64) {
        for collection in &mut self.collections {
            collection.compact(revision.min(self.revision));
        }
    }

    /// Sets what `GET pods/NAME/log` answers for a container.
    pub fn set_log(&mut self, namespace: &str, pod: &str, container: &str, text: &str) {
        let containers = self.pod_logs.entry(key_of(namespace, pod)).or_default();
        containers.insert(container.to_owned(), text.to_owned());
    }

    fn note_event_writes(&mut self, since: u64, now: WallTime) {
        let Some(events) = resources::find("", "v1", "events").and_then(collection_index) else { return };
        let log = self.collections.get(events).map(Collection::log);
        for entry in log.and_then(|log| log.since(since).ok()).into_iter().flatten() {
            if entry.change != Change::Deleted {
                self.event_writes.push_back((now, entry.object.key.clone(), entry.revision));
            }
        }
    }

    /// Removes Events whose last write is older than `ttl`. Answers how many.
    pub fn expire_events(&mut self, now: WallTime, ttl: chrono::TimeDelta) -> usize {
        let Some(events) = resources::find("", "v1", "events") else { return 0 };
        let mut removed = 0;
        while let Some((written, _, _)) = self.event_writes.front()
            && now.signed_duration_since(*written) >= ttl
            && let Some((_, key, revision)) = self.event_writes.pop_front()
        {
            let current = self.collection(events).and_then(|collection| collection.get(&key));
            if current.is_some_and(|object| object.revision == revision) {
                self.remove(events, &key);
                removed += 1;
            }
        }
        removed
    }

    /// Makes a namespace, unless it is there.
    pub fn ensure_namespace(&mut self, name: &str, moment: &mut Moment<'_>) {
        let Some(namespaces) = resources::find("", "v1", "namespaces") else { return };
        if self.get(namespaces, "", name).is_none() {
            let mut value = Value::Object(serde_json::Map::new());
            meta::on_create(namespaces, &mut value, "", name, moment.ids.uid(), moment.now);
            self.put(namespaces, name.into(), &value);
        }
    }

    /// Puts `value` where its name says, past every rule. Answers whether another object was there.
    pub fn overwrite(&mut self, resource: &Resource, value: &Value) -> bool {
        let name_of = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
        let key = key_of(name_of("namespace"), name_of("name"));
        let there = self.collection(resource).is_some_and(|collection| collection.get(&key).is_some());
        let mut value = value.clone();
        metadata_mut(&mut value).remove("resourceVersion");
        self.put(resource, key.into(), &value);
        there
    }

    /// Rows of [`RESOURCES`] that changed since the last call.
    pub fn take_touched(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.touched)
    }

    /// The object that a call names.
    fn find(&self, call: &Call) -> Result<Arc<Object>, Refusal> {
        self.collection(call.resource)
            .and_then(|collection| collection.get(&key_of(&call.namespace, &call.name)))
            .cloned()
            .ok_or_else(|| Refusal::not_found(call.resource, &call.name))
    }

    /// Writes a version under the next revision.
    fn put(&mut self, resource: &Resource, key: Arc<str>, value: &Value) -> Option<Arc<Object>> {
        let index = collection_index(resource)?;
        let collection = self.collections.get_mut(index)?;
        self.revision += 1;
        let object = Arc::new(Object::new(collection.resource, key, self.revision, value));
        let previous = collection.put(object.clone());
        self.owners.on_put(index, &object, previous.as_deref());
        self.touched.insert(index);
        Some(object)
    }

    /// Removes an object under the next revision. Answers its last version.
    fn remove(&mut self, resource: &Resource, key: &str) -> Option<Arc<Object>> {
        let index = collection_index(resource)?;
        let collection = self.collections.get_mut(index)?;
        collection.get(key)?;
        self.revision += 1;
        let gone = collection.remove(key, self.revision)?;
        self.owners.on_remove(index, &gone);
        self.touched.insert(index);
        if resource.plural == "pods" {
            self.pod_logs.remove(key);
        }
        Some(gone)
    }
}

/// The row of [`RESOURCES`] under which objects of a resource are stored.
pub fn collection_index(resource: &Resource) -> Option<usize> {
    let stored = resources::stored_as(resource);
    RESOURCES.iter().position(|row| std::ptr::eq(row, stored))
}
