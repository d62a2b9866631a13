//! Everything that happened in a run, in order, with its time: what the oracle judges, and what a trace shows.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat};
use cronjob_controller::clock::Clock;
use cronjob_controller::controllers::Observer;
use cronjob_controller::model::{Happening, ObjectKey, WallTime};
use cronjob_controller::sandbox::call::{Call, Subresource, Verb};
use cronjob_controller::sandbox::resources::{RESOURCES, Resource};
use cronjob_controller::sandbox::store::{Change, Object, Store};
use cronjob_controller::sandbox::tap::{Served, Tap};
use serde::Deserialize;
use tokio::time::Instant;

use crate::plan::Ms;

/// One thing that happened.
pub(crate) struct Entry {
    pub(crate) at: Ms,
    pub(crate) what: What,
}

pub(crate) enum What {
    /// An object has another version, or is gone.
    Changed(Changed),
    /// A request of a replica was applied or refused.
    Served { replica: usize, request: Asked },
    /// A replica said something about a CronJob.
    Said(Said),
    /// A replica started.
    Started { replica: usize, process: u32 },
    /// It is gone.
    Ended { replica: usize, process: u32 },
    /// A replica's wall clock is off by so much from now on.
    Clock { replica: usize, off_ms: i64 },
    /// Nothing must be right before this time.
    Unsettled { until: Ms },
    /// A word of the driver: a trouble, a deed of a user.
    Note(String),
    /// A replica found a mistake of its own.
    Breach(String),
    /// What was still held in memory when every object was gone.
    Leftovers(String),
}

/// Something said about a CronJob.
pub(crate) struct Said {
    pub(crate) replica: usize,
    pub(crate) process: u32,
    pub(crate) controller: &'static str,
    pub(crate) about: ObjectKey,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) minutes: Option<i64>,
}

/// A change in the store.
pub(crate) struct Changed {
    pub(crate) revision: u64,
    pub(crate) resource: &'static Resource,
    pub(crate) change: Change,
    pub(crate) object: Arc<Object>,
    /// The replica whose request did it; `None` for anybody else.
    pub(crate) by: Option<usize>,
}

/// What was asked, and the answer's code.
pub(crate) struct Asked {
    pub(crate) verb: Verb,
    pub(crate) resource: &'static Resource,
    pub(crate) namespace: String,
    /// Of a creation, the name in its body.
    pub(crate) name: String,
    pub(crate) status: bool,
    pub(crate) code: u16,
    /// Of the creation of a Job, what was sent.
    pub(crate) body: Bytes,
}

struct Inner {
    entries: Vec<Entry>,
    watched: Vec<&'static Resource>,
    /// Every change of theirs up to this revision is among the entries.
    seen: u64,
}

/// Writes everything down. Clones write into the same book.
#[derive(Clone)]
pub(crate) struct Recorder {
    inner: Arc<Mutex<Inner>>,
    clock: Clock,
    began: Instant,
}

/// Kinds whose changes matter; the others are not looked at.
fn is_watched(resource: &Resource) -> bool {
    match resource.plural {
        "cronjobs" | "jobs" | "namespaces" | "resourcequotas" | "leases" => true,
        // Both APIs show the same events.
        "events" => resource.group.is_empty(),
        _ => false,
    }
}

impl Recorder {
    pub(crate) fn new(clock: Clock) -> Self {
        let began = clock.mono();
        let watched = RESOURCES.iter().filter(|resource| is_watched(resource)).collect();
        let inner = Inner { entries: Vec::new(), watched, seen: 0 };
        Self { inner: Arc::new(Mutex::new(inner)), clock, began }
    }

    /// Milliseconds since the run began.
    pub(crate) fn now(&self) -> Ms {
        crate::plan::ms(self.clock.mono().saturating_duration_since(self.began))
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    pub(crate) fn note(&self, what: What) {
        let at = self.now();
        self.inner.lock().unwrap().entries.push(Entry { at, what });
    }

    pub(crate) fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.inner.lock().unwrap().entries)
    }
}

/// `r1` and the like.
fn replica_of(client: &str) -> Option<usize> {
    client.strip_prefix('r')?.parse().ok()
}

impl Tap for Recorder {
    fn on_written(&self, store: &Store) {
        let at = self.now();
        let Inner { entries, watched, seen } = &mut *self.inner.lock().unwrap();
        let first = entries.len();
        for resource in watched.iter().copied() {
            let Some(collection) = store.collection(resource) else { continue };
            for change in collection.log().since(*seen).unwrap_or_else(|_| panic!("the log was compacted unseen")) {
                let changed = Changed {
                    revision: change.revision,
                    resource,
                    change: change.change,
                    object: change.object.clone(),
                    by: None,
                };
                entries.push(Entry { at, what: What::Changed(changed) });
            }
        }
        // Whatever is written later, or forgotten meanwhile: up to here all has been seen.
        *seen = store.revision();
        // One write may touch several kinds (a namespace with what is in it).
        entries[first..].sort_by_key(|entry| match &entry.what {
            What::Changed(changed) => changed.revision,
            _ => 0,
        });
    }

    fn on_served(&self, served: &Served<'_>) {
        let Some(replica) = replica_of(served.client) else { return };
        let at = self.now();
        let Inner { entries, .. } = &mut *self.inner.lock().unwrap();
        let (before, after) = served.revisions;
        for entry in entries.iter_mut().rev() {
            match &mut entry.what {
                What::Changed(changed) if changed.revision > before && changed.revision <= after => {
                    changed.by = Some(replica);
                }
                _ => break,
            }
        }
        let Call { verb, resource, namespace, name, subresource, body, .. } = served.call;
        if resource.plural == "leases" {
            return;
        }
        let starts = *verb == Verb::Create && resource.plural == "jobs";
        let (name, body) = if starts { (name_in(body), body.clone()) } else { (name.clone(), Bytes::new()) };
        let status = *subresource == Subresource::Status;
        let request =
            Asked { verb: *verb, resource, namespace: namespace.clone(), name, status, code: served.code, body };
        entries.push(Entry { at, what: What::Served { replica, request } });
    }
}

fn name_in(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Shell {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        name: String,
    }
    serde_json::from_slice::<Shell>(body).map(|shell| shell.metadata.name).unwrap_or_default()
}

/// What one process says.
pub(crate) struct Ear {
    pub(crate) recorder: Recorder,
    pub(crate) replica: usize,
    pub(crate) process: u32,
}

impl Observer for Ear {
    fn on_happening(&self, controller: &'static str, about: &ObjectKey, _: WallTime, happening: &Happening) {
        self.recorder.note(What::Said(Said {
            replica: self.replica,
            process: self.process,
            controller,
            about: about.clone(),
            reason: happening.reason,
            message: happening.message.clone(),
            minutes: happening.due_minutes,
        }));
    }
}

/// A wall time as text.
pub(crate) fn text_of(at: WallTime) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The wall time that the server's clock showed, if nobody had stepped it, `at` milliseconds after `start`.
pub(crate) fn wall(start: WallTime, at: Ms, off_ms: i64) -> WallTime {
    let ms = start.timestamp_millis() + i64::try_from(at).unwrap() + off_ms;
    DateTime::from_timestamp_millis(ms).unwrap()
}
