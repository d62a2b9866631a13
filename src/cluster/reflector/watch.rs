//! Watches: what happens after a list, and lists that are streamed as watches.

use std::cmp::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use super::lines::Lines;
use super::run::Trouble;
use super::wire::{Frame, identity};
use super::{Cached, Phase, Reflector, Sink};
use crate::cluster::exchange::open;
use crate::cluster::failure::{failure_from_frame, too_late};
use crate::model::newer_version;

/// A watch that ends sooner than this has failed, whatever it showed: reopened at once it would be reopened for ever.
const TOO_SHORT: Duration = Duration::from_secs(1);
/// Servers send a bookmark about once a minute and one before they end a watch. A watch that shows nothing at all for longer
/// may wait for a version that lies in the server's future (its data were restored from a backup), which no error tells. Where
/// the server sends bookmarks, a watch that falls silent is dead, though its connection looks open.
const TOO_SILENT: Duration = Duration::from_secs(90);

/// An open watch.
#[derive(Debug)]
pub(super) struct Watch {
    lines: Lines,
    /// When it was opened.
    opened: Instant,
    /// When the server was asked to have ended it, plus patience.
    dead_at: Instant,
    frames: u64,
}

/// What a frame of a streamed list or watch was.
#[derive(PartialEq, Eq)]
enum Seen {
    Object,
    Bookmark,
    /// The objects of a streamed list are complete, as of this version.
    EndOfList(String),
}

impl<T: Cached, S: Sink<T>> Reflector<T, S> {
    /// Takes in a full list as the beginning of a watch; returns the watch, which goes on.
    pub(super) async fn list_by_stream(&mut self) -> Result<Watch, Trouble> {
        let timeout = self.draw_timeout();
        let request = self.requests.streamed_list(timeout).map_err(|e| Trouble::Anew(e.to_string()))?;
        let mut watch = self.open_watch(request, timeout).await.map_err(Trouble::of_streamed_list)?;
        self.begin_list();
        loop {
            // A server that does not know streamed lists may ignore the wish and never send the end; that shows as silence.
            let until = watch.dead_at.min(self.clock.mono() + self.options.patience);
            let line = match timeout_at(until, watch.lines.next()).await {
                Err(_silent) => return Err(Trouble::NoStreaming("no end of the streamed list".into())),
                Ok(line) => line.map_err(|e| Trouble::Anew(e.to_string()))?,
            };
            let line = line.ok_or_else(|| Trouble::Anew("the stream ended before the end of the list".into()))?;
            watch.frames += 1;
            self.health.on_progress(Phase::Listing, self.clock.mono());
            if let Seen::EndOfList(version) = self.on_line(&line, true)? {
                self.end_list(version);
                return Ok(watch);
            }
        }
    }

    /// Watches from `version` on.
    pub(super) async fn watch_from(&mut self, version: &str) -> Result<Watch, Trouble> {
        let timeout = self.draw_timeout();
        let request = self.requests.watch(version, timeout).map_err(|e| Trouble::Anew(e.to_string()))?;
        self.open_watch(request, timeout).await
    }

    /// Takes in what a watch shows, until it ends as it should.
    pub(super) async fn follow(&mut self, mut watch: Watch) -> Result<(), Trouble> {
        self.health.on_progress(Phase::Watching, self.clock.mono());
        loop {
            let line = match timeout_at(self.silent_until(&watch), watch.lines.next()).await {
                Err(_dead) if watch.frames == 0 => return Err(Trouble::Anew("the watch showed nothing".into())),
                Err(_dead) => return Err(Trouble::Again("the watch fell silent".into())),
                Ok(line) => line.map_err(|e| Trouble::Again(e.to_string()))?,
            };
            let Some(line) = line else { return self.on_end(&watch) };
            watch.frames += 1;
            self.health.on_progress(Phase::Watching, self.clock.mono());
            self.bookmarks |= self.on_line(&line, false)? == Seen::Bookmark;
        }
    }

    async fn open_watch(
        &mut self,
        request: http::Request<kube::client::Body>,
        timeout: Duration,
    ) -> Result<Watch, Trouble> {
        let opened = self.clock.mono();
        let answer = timeout_at(opened + self.options.patience, open(&self.client, request)).await;
        let response = answer.unwrap_or_else(|_late| Err(too_late(self.options.patience))).map_err(Trouble::of)?;
        let dead_at = opened + timeout + self.options.patience;
        Ok(Watch { lines: Lines::new(response.into_body()), opened, dead_at, frames: 0 })
    }

    /// Versions of one server only grow; smaller ones are those of another, or of data restored from a backup.
    fn refuse_to_go_back(&self, version: &str) -> Result<(), Trouble> {
        match self.version.as_deref().and_then(|seen| newer_version(version, seen)) {
            Some(Ordering::Less) => Err(Trouble::Anew(format!("the server went back to version {version}"))),
            _ => Ok(()),
        }
    }

    /// When the next frame must have come.
    fn silent_until(&self, watch: &Watch) -> Instant {
        if self.bookmarks { watch.dead_at.min(self.clock.mono() + TOO_SILENT) } else { watch.dead_at }
    }

    fn draw_timeout(&mut self) -> Duration {
        let (shortest, longest) = self.options.watch_timeout;
        self.pauses.draw(shortest, longest)
    }

    fn on_end(&self, watch: &Watch) -> Result<(), Trouble> {
        let lasted = self.clock.mono().saturating_duration_since(watch.opened);
        match watch.frames {
            _ if lasted < TOO_SHORT => Err(Trouble::Again("the watch ended at once".into())),
            0 if lasted >= TOO_SILENT => Err(Trouble::Anew("the watch showed nothing, not even a bookmark".into())),
            _ => Ok(()),
        }
    }

    /// One frame. While a list is streamed its objects move no version.
    fn on_line(&mut self, line: &Bytes, listing: bool) -> Result<Seen, Trouble> {
        let frame: Frame<'_> =
            serde_json::from_slice(line).map_err(|e| Trouble::Anew(format!("unreadable frame: {e}")))?;
        let version = match &*frame.kind {
            "ADDED" | "MODIFIED" => self.take_in(frame.object),
            "DELETED" => self.take_out(frame.object),
            "BOOKMARK" => {
                let bookmark = identity(frame.object);
                if let Some(end) = bookmark.as_ref().filter(|b| listing && b.ends_initial) {
                    return Ok(Seen::EndOfList(end.version.clone()));
                }
                bookmark.map(|b| b.version)
            }
            "ERROR" => return Err(on_error(frame.object.get())),
            other => return Err(Trouble::Anew(format!("unknown type of frame: {other}"))),
        };
        if !listing && let Some(version) = version.filter(|v| !v.is_empty()) {
            self.refuse_to_go_back(&version)?;
            self.advance(version);
        }
        Ok(if frame.kind == "BOOKMARK" { Seen::Bookmark } else { Seen::Object })
    }
}

/// After an ERROR the stream says nothing more. Mostly the version is too old (410); whatever else it is, only a list is sure to help.
fn on_error(status: &str) -> Trouble {
    let failure = failure_from_frame(status);
    let message = failure.message.into();
    if failure.code == 410 { Trouble::Expired(message) } else { Trouble::Anew(message) }
}
