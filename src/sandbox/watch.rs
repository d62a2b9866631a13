//! A watch: the event log of a collection from a revision on, as frames.
//!
//! Invariants
//! - A watch either sends every change its selector may see, in order, or it ends.
//! - In a frame `type` comes before `object`: clients that decode in one pass depend on it.
//! - After a bookmark with revision R nothing at or before R follows.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::call::Call;
use super::render::{View, bookmark};
use super::resources::Resource;
use super::selector::Selector;
use super::shared::Shared;
use super::status::Refusal;
use super::store::{Change, Entry, Expired, Object, revision_of};
use crate::latest::Follower;

/// Between bookmarks of an idle watch.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The last bookmark comes this long before the deadline.
const LAST_BOOKMARK_BEFORE: Duration = Duration::from_secs(2);
/// How long a watch lasts that does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);
/// Frames are gathered up to about this size, in bytes.
const BATCH: usize = 64 * 1024;

/// What faults do to one watch.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct WatchFaults {
    pub(super) cut_after: Option<Duration>,
    pub(super) stalled: bool,
    pub(super) expired: bool,
}

pub(super) struct Watch {
    shared: Arc<Shared>,
    call: Arc<Call>,
    selector: Selector,
    /// Objects that stand for the state at the start, not yet sent.
    initial: VecDeque<Arc<Object>>,
    /// Whether the end of `initial` is still to be said.
    initial_end: bool,
    /// Everything at or before this revision has been sent or filtered out.
    position: u64,
    wake: Follower<()>,
    /// End of the stream.
    deadline: Instant,
    next_bookmark: Instant,
    last_bookmark_sent: bool,
    /// Whether no frame has been sent yet.
    first: bool,
    /// Cuts that had been ordered when this watch began.
    cuts: u64,
    stalled: bool,
}

impl Watch {
    /// Opens a watch.
    ///
    /// # Errors
    /// 400 and 422 for options that cannot be read. A revision that the log no longer reaches is not an error but an ERROR
    /// event, as on the real server.
    pub(super) fn open(
        shared: Arc<Shared>,
        call: Call,
        faults: WatchFaults,
    ) -> Result<impl Stream<Item = Bytes> + Send + use<>, Refusal> {
        let options = &call.options;
        let selector = Selector::parse(call.resource, &options.label_selector, &options.field_selector)?;
        let from = revision_of(&options.resource_version).map_err(Refusal::internal)?;
        let wanted = options.initial_events.unwrap_or_default();
        let replay = from == 0 || wanted;
        let now = shared.clock.mono();
        let timeout = options.timeout_s.filter(|timeout_s| *timeout_s > 0).map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        let deadline = now + faults.cut_after.map_or(timeout, |cut| cut.min(timeout));
        let wake = shared.wake_of(call.resource);
        let cuts = shared.faults.cuts();
        let initial_end = wanted && options.bookmarks;
        let mut watch = Self {
            shared,
            call: Arc::new(call),
            selector,
            initial: VecDeque::new(),
            initial_end,
            position: from,
            wake,
            deadline,
            next_bookmark: now + BOOKMARK_EVERY,
            last_bookmark_sent: false,
            first: true,
            cuts,
            stalled: faults.stalled,
        };
        let begun = if replay { watch.load_initial() } else { watch.check_reachable(from) };
        let error = match begun {
            Err(refusal) => Some(refusal),
            Ok(()) => faults.expired.then(|| Refusal::expired(from, from + 1)),
        };
        let first = error.map(|refusal| frame("ERROR", refusal.to_value().to_string().as_bytes()));
        Ok(stream::unfold((Some(watch), first), |(watch, first)| async move {
            match (watch, first) {
                (_, Some(error)) => Some((error, (None, None))),
                (Some(mut watch), None) => watch.next_frames().await.map(|frames| (frames, (Some(watch), None))),
                (None, None) => None,
            }
        }))
    }

    fn resource(&self) -> &'static Resource {
        self.call.resource
    }

    fn ceiling(&self) -> u64 {
        self.shared.faults.visible(self.resource(), self.shared.clock.mono()).ceiling
    }

    /// Takes the state of now (or as far as it may be seen) as what to send first.
    fn load_initial(&mut self) -> Result<(), Refusal> {
        let ceiling = self.ceiling();
        let (revision, initial) = self.shared.read(|store| {
            let revision = store.revision().min(ceiling);
            let collection = store.collection(self.call.resource).ok_or_else(Refusal::no_such_path)?;
            let objects = collection
                .range_at(revision, &self.call.namespace, None)
                .map_err(|expired| Refusal::expired(revision, expired.trimmed))?;
            Ok((revision, objects.filter(|object| self.selector.matches(object)).collect()))
        })?;
        (self.position, self.initial) = (revision, initial);
        Ok(())
    }

    fn check_reachable(&self, from: u64) -> Result<(), Refusal> {
        self.shared.read(|store| {
            let collection = store.collection(self.call.resource).ok_or_else(Refusal::no_such_path)?;
            let reachable = collection.log().since(from).map(|_| ());
            reachable.map_err(|expired| Refusal::expired(from, expired.trimmed + 1))
        })
    }

    /// The next batch of frames; `None` ends the stream.
    async fn next_frames(&mut self) -> Option<Bytes> {
        loop {
            let now = self.shared.clock.mono();
            if now >= self.deadline || self.shared.faults.cuts() != self.cuts {
                return None;
            }
            self.wake.mark_seen();
            let visible = self.shared.faults.visible(self.resource(), now);
            if !self.stalled {
                // A watcher so slow that the log has left it behind is cut off, and finds out when it comes back.
                let frames = self.gather(visible.ceiling, now).ok()?;
                if !frames.is_empty() {
                    return Some(frames);
                }
            }
            let mut until = self.deadline.min(visible.until.unwrap_or(self.deadline));
            if self.call.options.bookmarks && !self.stalled {
                until = until.min(self.bookmark_due());
            }
            tokio::select! {
                biased;
                () = self.wake.changed() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// Everything there is to send now, up to the size of a batch.
    fn gather(&mut self, ceiling: u64, now: Instant) -> Result<Bytes, Expired> {
        let mut out = Vec::new();
        let call = self.call.clone();
        let mut view = View::of(&call, self.shared.clock.wall());
        while out.len() < BATCH
            && let Some(object) = self.initial.pop_front()
        {
            view.columns = std::mem::take(&mut self.first);
            push_frame(&mut out, "ADDED", &view.one(&object));
        }
        if !self.initial.is_empty() {
            return Ok(out.into());
        }
        if std::mem::take(&mut self.initial_end) {
            push_bookmark(&mut out, &view, self.position, true);
        }
        self.gather_changes(ceiling, view, &mut out)?;
        if self.call.options.bookmarks && now >= self.bookmark_due() && out.len() < BATCH {
            push_bookmark(&mut out, &view, self.position, false);
            self.last_bookmark_sent |= now + LAST_BOOKMARK_BEFORE >= self.deadline;
            self.next_bookmark = now + BOOKMARK_EVERY;
        }
        Ok(out.into())
    }

    /// Changes after `position`, up to `ceiling`.
    fn gather_changes(&mut self, ceiling: u64, mut view: View<'_>, out: &mut Vec<u8>) -> Result<(), Expired> {
        let (shared, call, selector) = (&self.shared, &self.call, &self.selector);
        let (position, first) = (&mut self.position, &mut self.first);
        shared.read(|store| {
            let Some(collection) = store.collection(call.resource) else { return Ok(()) };
            for entry in collection.log().since(*position)? {
                if entry.revision > ceiling || out.len() >= BATCH {
                    return Ok(());
                }
                *position = entry.revision;
                if in_namespace(&entry.object, &call.namespace)
                    && let Some((event, object)) = seen_as(entry, selector, collection.resource)
                {
                    view.columns = std::mem::take(first);
                    push_frame(out, event, &view.one(&object));
                }
            }
            *position = (*position).max(store.revision().min(ceiling));
            Ok(())
        })
    }

    fn bookmark_due(&self) -> Instant {
        let last = self.deadline.checked_sub(LAST_BOOKMARK_BEFORE).unwrap_or(self.deadline);
        if self.last_bookmark_sent { self.next_bookmark } else { self.next_bookmark.min(last) }
    }
}

fn in_namespace(object: &Object, namespace: &str) -> bool {
    namespace.is_empty() || object.namespace() == namespace
}

/// What a change is to somebody who sees only what the selector selects. An object that stops matching is gone to them: its
/// last matching version, stamped with the revision of the change.
fn seen_as(entry: &Entry, selector: &Selector, resource: &Resource) -> Option<(&'static str, Arc<Object>)> {
    let before = entry.previous.as_ref().filter(|previous| selector.matches(previous));
    let after = entry.change != Change::Deleted && selector.matches(&entry.object);
    match (before, after) {
        (None, true) => Some(("ADDED", entry.object.clone())),
        (Some(_), true) => Some(("MODIFIED", entry.object.clone())),
        (Some(_), false) if entry.change == Change::Deleted => Some(("DELETED", entry.object.clone())),
        (Some(previous), false) => Some(("DELETED", Arc::new(previous.restamped(resource, entry.revision)))),
        (None, false) => None,
    }
}

fn frame(event: &str, object: &[u8]) -> Bytes {
    let mut out = Vec::new();
    push_frame(&mut out, event, object);
    out.into()
}

fn push_frame(out: &mut Vec<u8>, event: &str, object: &[u8]) {
    out.reserve(object.len() + 32);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(event.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
}

fn push_bookmark(out: &mut Vec<u8>, view: &View<'_>, revision: u64, initial_end: bool) {
    let object: Value = bookmark(view.resource, view.form, revision, initial_end);
    push_frame(out, "BOOKMARK", object.to_string().as_bytes());
}
