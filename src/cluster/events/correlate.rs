//! From what is said to what is written: similar events become one, repeated ones a count, floods are stopped.
//!
//! The three steps of client-go's correlator, with its numbers, in its order:
//! 1. From the tenth distinct message on, without a gap of ten minutes, events of one object, type and reason become one
//!    event "(combined from similar events)".
//! 2. The same event again is the old one with a higher count.
//! 3. Each object has 25 events of each type, and one more every five minutes; the counts of 1 and 2 go on all the same.
//!
//! One addition: an event that belongs to a due instant is said once. Its name tells the instant, so that it counts as said
//! whoever said it; a second time it is dropped here.

use std::time::Duration;

use chrono::TimeDelta;
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

use super::lru::Lru;
use super::wire::{Event, cut, name_of_instant, name_of_moment};
use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::model::{EventType, Happening, ObjectReference, WallTime};

/// Objects, and events, remembered at most.
const REMEMBERED: usize = 4096;
/// From so many distinct messages on events are combined.
const DISTINCT_MESSAGES: usize = 10;
/// Distinct messages further apart than this start a new count of them.
const SIMILARITY_GAP: TimeDelta = TimeDelta::seconds(600);
const SPAM_BURST: u32 = 25;
const SPAM_REFILL: Duration = Duration::from_secs(300);

/// Something said about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Saying {
    pub(crate) component: &'static str,
    pub(crate) about: ObjectReference,
    pub(crate) happening: Happening,
    pub(crate) at: WallTime,
}

/// Why a saying leads to no write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// It was said for this due instant.
    SaidAlready,
    /// The object has said too much.
    Spam,
}

/// The memory of what was said.
#[derive(Debug)]
pub(crate) struct Correlator {
    similar: Lru<String, Similar>,
    counts: Lru<String, Counted>,
    spam: Lru<String, Bucket>,
    clock: Clock,
    /// Nanoseconds in the last name made from a moment: names must differ where the clock stands still.
    last_moment: i64,
}

/// Distinct messages of one object, type and reason.
#[derive(Debug)]
struct Similar {
    messages: SmallVec<[u64; DISTINCT_MESSAGES]>,
    last: WallTime,
}

/// An event that was said.
#[derive(Clone, Debug)]
struct Counted {
    name: String,
    count: u32,
    first: WallTime,
}

impl Correlator {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            similar: Lru::new(REMEMBERED),
            counts: Lru::new(REMEMBERED),
            spam: Lru::new(REMEMBERED),
            clock,
            last_moment: 0,
        }
    }

    /// The event to write for what is said: made if its count is 1, else patched.
    ///
    /// # Errors
    /// Nothing is to be written.
    pub(crate) fn correlate(&mut self, saying: Saying) -> Result<Event, Unwritten> {
        let combined = self.combine(&saying);
        let event = self.count(saying, combined)?;
        self.pass(&event).map(|()| event)
    }

    /// Step 1: whether it is one of many similar ones.
    fn combine(&mut self, saying: &Saying) -> bool {
        let similar = self.similar.get_or_put(key(saying, &[saying.happening.reason]), || Similar {
            messages: SmallVec::new(),
            last: saying.at,
        });
        if saying.at.signed_duration_since(similar.last) > SIMILARITY_GAP {
            similar.messages.clear();
        }
        similar.last = saying.at;
        let message = hash(&saying.happening.message);
        if !similar.messages.contains(&message) {
            similar.messages.push(message);
        }
        let many = similar.messages.len() >= DISTINCT_MESSAGES;
        if many {
            // The oldest: what is left are nine, so that each further message, old or new, is the tenth again.
            similar.messages.remove(0);
        }
        many
    }

    /// Step 2: the event, with its count.
    fn count(&mut self, saying: Saying, combined: bool) -> Result<Event, Unwritten> {
        let Happening { event_type, reason, ref message, due_minutes } = saying.happening;
        let once = due_minutes.filter(|_| !combined);
        let identity = match once {
            Some(minutes) => key(&saying, &["once", reason, &minutes.to_string()]),
            None if combined => key(&saying, &["combined", reason]),
            None => key(&saying, &["single", &saying.about.field_path, reason, message]),
        };
        let fresh = match once {
            Some(minutes) => name_of_instant(&saying.about.name, reason, minutes),
            None => self.name_of_next_moment(&saying),
        };
        let counted = self.counts.get_or_put(identity, || Counted { name: fresh, count: 0, first: saying.at });
        if once.is_some() && counted.count > 0 {
            return Err(Unwritten::SaidAlready);
        }
        counted.count = counted.count.saturating_add(1);
        let message = if combined { format!("(combined from similar events): {message}") } else { message.clone() };
        let Counted { name, count, first } = counted.clone();
        let (component, about, last) = (saying.component, saying.about, saying.at);
        Ok(Event { name, component, about, event_type, reason, message: cut(message), count, first, last })
    }

    /// Step 3: whether the object may say that much.
    fn pass(&mut self, event: &Event) -> Result<(), Unwritten> {
        let key = object_key(event.component, &event.about, event.event_type, &[]);
        // Wall time may run faster than the bucket's clock; what is a flood is judged in wall time.
        let refill = SPAM_REFILL / self.clock.speed();
        let bucket = self.spam.get_or_put(key, || Bucket::new(&self.clock, SPAM_BURST, refill));
        bucket.take().map_err(|_empty| Unwritten::Spam)
    }

    fn name_of_next_moment(&mut self, saying: &Saying) -> String {
        let now = saying.at.timestamp_nanos_opt().unwrap_or_default();
        self.last_moment = now.max(self.last_moment.saturating_add(1));
        name_of_moment(&saying.about.name, self.last_moment)
    }
}

fn key(saying: &Saying, more: &[&str]) -> String {
    object_key(saying.component, &saying.about, saying.happening.event_type, more)
}

/// Texts of source, object and type, and more, parted by a character that names cannot hold.
fn object_key(component: &str, about: &ObjectReference, event_type: EventType, more: &[&str]) -> String {
    let object = [
        component,
        &about.api_version,
        &about.kind,
        &about.namespace,
        &about.name,
        about.uid.as_str(),
        event_type.as_str(),
    ];
    let mut key = object.join("\n");
    for part in more {
        key.push('\n');
        key.push_str(part);
    }
    key
}

fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
