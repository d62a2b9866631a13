//! Our own informer: keeps a [`Store`] equal to what the API server has, and says what changed.
//!
//! Invariants
//! - The sink hears each change after the store shows it, in the order of the stream, from one task.
//! - Nothing goes unheard: what vanished while no watch ran is heard as deleted when the next list ends; an object created
//!   anew under its old name is heard as deleted and then as new.
//! - Objects that a list shows again unchanged are not heard again.
//! - A watch resumes only after a version that the store has taken in. Objects of a list in progress move no version.
//! - Every failure, a watch that fails right after a good list included, is followed by a growing pause. What is asked for
//!   after an outage, and the list that the outage made necessary, wait for seconds only (see [`backoff`]).
//! - One unreadable object costs that object, never the stream.
//!
//! The rules for what the server may answer are those of client-go's reflector; `docs/adr/0020-own-reflector.md` says why
//! it is not kube's.

mod backoff;
mod health;
pub(super) mod lines;
mod list;
mod run;
pub(crate) mod store;
mod take;
mod watch;
pub(super) mod wire;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use serde_json::value::RawValue;

use self::backoff::Pauses;
pub use self::health::{Phase, ReflectorHealth, ReflectorReport};
use self::store::Store;
use self::wire::Requests;
use super::metrics::{ReflectorMetrics, ResourceMetrics};
use crate::clock::Clock;
use crate::model::{BatchJob, CronJob, Job, ObjectKey, Pod, Uid};

/// What the cache must know of an object.
pub trait Cached: Send + Sync + 'static {
    /// Namespace and name.
    fn key(&self) -> &ObjectKey;
    /// `metadata.uid`.
    fn uid(&self) -> &Uid;
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> &str;
    /// The uid of the controller owner reference.
    fn owner(&self) -> Option<&Uid>;
    /// Whether those without an owner are found by their namespace ([`Store::unowned`]).
    const UNOWNED_ARE_INDEXED: bool = false;
}

impl Cached for CronJob {
    fn key(&self) -> &ObjectKey {
        &self.key
    }
    fn uid(&self) -> &Uid {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.resource_version
    }
    fn owner(&self) -> Option<&Uid> {
        None
    }
}

impl Cached for Job {
    fn key(&self) -> &ObjectKey {
        &self.key
    }
    fn uid(&self) -> &Uid {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.resource_version
    }
    fn owner(&self) -> Option<&Uid> {
        self.controller.as_ref().map(|owner| &owner.uid)
    }
}

impl Cached for BatchJob {
    fn key(&self) -> &ObjectKey {
        &self.key
    }
    fn uid(&self) -> &Uid {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.resource_version
    }
    fn owner(&self) -> Option<&Uid> {
        None
    }
}

impl Cached for Pod {
    const UNOWNED_ARE_INDEXED: bool = true;

    fn key(&self) -> &ObjectKey {
        &self.key
    }
    fn uid(&self) -> &Uid {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.resource_version
    }
    fn owner(&self) -> Option<&Uid> {
        self.controller.as_ref().map(|owner| &owner.uid)
    }
}

/// A change of the store.
#[derive(Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// An object is new or another version than before.
    Applied {
        /// What the store had before.
        old: Option<Arc<T>>,
        /// What it has now.
        new: Arc<T>,
        /// Whether the store was not synced yet: the object is merely listed at start.
        initial: bool,
    },
    /// An object is gone.
    Deleted {
        /// As it was last seen; older than its deletion if that was missed.
        last: Arc<T>,
    },
    /// An object exists that cannot be read; it is not, or no longer, in the store.
    Unreadable {
        /// Namespace and name.
        key: ObjectKey,
        /// `metadata.uid`.
        uid: Uid,
        /// What is wrong with it.
        error: String,
    },
    /// The first full list since the start, or since the kind appeared, has been taken in.
    Synced,
    /// A later full list has been taken in: what came and went before it was perhaps never told.
    Relisted,
}

/// Whoever hears of changes. Must not block: the watch waits for it.
pub trait Sink<T>: Send + 'static {
    /// A change, which the store already shows.
    fn on_change(&mut self, change: Change<T>);
}

impl<T, F: FnMut(Change<T>) + Send + 'static> Sink<T> for F {
    fn on_change(&mut self, change: Change<T>) {
        self(change);
    }
}

/// What to watch, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorOptions {
    /// Path of the collection over all namespaces, for example `/apis/batch/v1/cronjobs`, or of one namespace's.
    pub path: String,
    /// The resource in logs and metrics, for example `cronjobs.batch`.
    pub resource: String,
    /// `labelSelector` of lists and watches.
    pub label_selector: Option<String>,
    /// `fieldSelector` of lists and watches.
    pub field_selector: Option<String>,
    /// Whether to ask for lists as streams first (KEP-3157); paged lists are used when the server refuses.
    pub streamed_lists: bool,
    /// Objects per page of a paged list.
    pub page_size: u32,
    /// A watch asks the server to end it after a time drawn between these two.
    pub watch_timeout: (Duration, Duration),
    /// A watch that is older than its time-out by this much is dead. The same time is allowed for a page of a list, and
    /// between two objects of a streamed list.
    pub patience: Duration,
    /// How often to look for a kind that the server does not know.
    pub absent_recheck: Duration,
    /// Seed of the pauses' jitter and of the watches' time-outs.
    pub seed: u64,
}

impl ReflectorOptions {
    /// The usual options for a collection.
    pub fn new(path: impl Into<String>, resource: impl Into<String>, seed: u64) -> Self {
        Self {
            path: path.into(),
            resource: resource.into(),
            label_selector: None,
            field_selector: None,
            streamed_lists: true,
            page_size: 500,
            watch_timeout: (Duration::from_secs(300), Duration::from_secs(600)),
            patience: Duration::from_secs(30),
            absent_recheck: Duration::from_secs(30),
            seed,
        }
    }
}

/// Decodes one object; the error is text for the log and names the field.
type Decode<T> = Box<dyn Fn(&RawValue) -> Result<T, String> + Send + Sync>;

/// Keeps one store up to date while [`Reflector::run`] runs.
pub struct Reflector<T, S> {
    client: Client,
    clock: Clock,
    options: ReflectorOptions,
    requests: Requests,
    decode: Decode<T>,
    store: Store<T>,
    sink: S,
    pauses: Pauses,
    health: ReflectorHealth,
    metrics: ResourceMetrics,
    /// Where a watch may resume; `None` when a full list is needed.
    version: Option<String>,
    /// Whether streamed lists are still worth a try.
    streaming: bool,
    /// Whether the server was seen to send bookmarks: then silence tells something.
    bookmarks: bool,
}

impl<T: Cached, S: Sink<T>> Reflector<T, S> {
    /// A reflector of one collection. `decode` turns one object's JSON into a pruned value; items of a list of built-in kinds
    /// carry neither `apiVersion` nor `kind`. `client` must have no time limit on bodies.
    pub fn new<E: Display>(
        client: Client,
        clock: Clock,
        options: ReflectorOptions,
        decode: impl Fn(&RawValue) -> Result<T, E> + Send + Sync + 'static,
        sink: S,
        metrics: &ReflectorMetrics,
    ) -> Self {
        let requests = Requests {
            path: options.path.clone(),
            label_selector: options.label_selector.clone(),
            field_selector: options.field_selector.clone(),
            page_size: options.page_size,
        };
        Self {
            client,
            requests,
            decode: Box::new(move |raw| decode(raw).map_err(|e| e.to_string())),
            store: Store::default(),
            sink,
            pauses: Pauses::new(options.seed),
            health: ReflectorHealth::new(clock.mono()),
            metrics: metrics.of(&options.resource),
            version: None,
            streaming: options.streamed_lists,
            bookmarks: false,
            clock,
            options,
        }
    }

    /// The same, filling `store`, which nobody else may fill: for a sink that must know the store beforehand.
    pub fn filling(mut self, store: Store<T>) -> Self {
        self.store = store;
        self
    }

    /// The store that this reflector fills.
    pub fn store(&self) -> Store<T> {
        self.store.clone()
    }

    /// How it is doing, for health checks.
    pub fn health(&self) -> ReflectorHealth {
        self.health.clone()
    }
}

#[cfg(test)]
mod tests;
