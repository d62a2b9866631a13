//! The event log of one collection: every change in order, so that a watch resumes where it stopped and a list can be
//! answered as of an older revision.
//!
//! Invariants
//! - Revisions of entries strictly increase.
//! - The log holds every change after `trimmed` and none at or before it. Whoever asks for more is told `Expired`: nobody
//!   silently misses a change.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::object::Object;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It came.
    Added,
    /// It has a new version.
    Modified,
    /// It went.
    Deleted,
}

/// One change.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The revision of the write.
    pub revision: u64,
    /// What happened.
    pub change: Change,
    /// The new version; of a deletion the last one, stamped with the revision of the deletion.
    pub object: Arc<Object>,
    /// The version before; `None` if the object is new.
    pub previous: Option<Arc<Object>>,
}

/// The log no longer reaches back that far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    /// The newest revision that has been forgotten.
    pub trimmed: u64,
}

/// Changes of one collection, oldest first.
#[derive(Debug)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// Everything at or before this revision has been forgotten.
    trimmed: u64,
    /// Most entries kept.
    limit: usize,
}

impl Log {
    /// Keeps at most `limit` changes.
    pub fn new(limit: usize) -> Self {
        Self { entries: VecDeque::new(), trimmed: 0, limit: limit.max(1) }
    }

    /// Appends a change; the oldest one is forgotten when the log is full.
    pub fn push(&mut self, entry: Entry) {
        debug_assert!(self.entries.back().is_none_or(|last| last.revision < entry.revision));
        if self.entries.len() >= self.limit
            && let Some(oldest) = self.entries.pop_front()
        {
            self.trimmed = oldest.revision;
        }
        self.entries.push_back(entry);
    }

    /// The changes after `revision`, oldest first.
    ///
    /// # Errors
    /// When some of them have been forgotten.
    pub fn since(&self, revision: u64) -> Result<impl DoubleEndedIterator<Item = &Entry>, Expired> {
        if revision < self.trimmed {
            return Err(Expired { trimmed: self.trimmed });
        }
        let from = self.entries.partition_point(|entry| entry.revision <= revision);
        Ok(self.entries.range(from..))
    }

    /// Forgets everything at or before `revision`.
    pub fn compact(&mut self, revision: u64) {
        let gone = self.entries.partition_point(|entry| entry.revision <= revision);
        self.entries.drain(..gone);
        self.trimmed = self.trimmed.max(revision);
    }

    /// For each object that changed after `revision`, the version it had then (`None`: it did not exist).
    ///
    /// # Errors
    /// When the log does not reach back that far.
    pub fn undo_to(&self, revision: u64) -> Result<BTreeMap<Arc<str>, Option<Arc<Object>>>, Expired> {
        let mut then = BTreeMap::new();
        for entry in self.since(revision)?.rev() {
            then.insert(entry.object.key.clone(), entry.previous.clone());
        }
        Ok(then)
    }

    /// Number of changes kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no change is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn entry(revision: u64, key: &str, previous: Option<u64>) -> Entry {
        let object = |revision| {
            Arc::new(Object {
                key: key.into(),
                revision,
                uid: "u".into(),
                owners: Box::default(),
                deleting: false,
                finalizers: false,
                bytes: Bytes::new(),
            })
        };
        Entry { revision, change: Change::Modified, object: object(revision), previous: previous.map(object) }
    }

    #[test]
    fn replay_starts_right_after_the_asked_revision_and_expires_when_it_cannot() {
        let mut log = Log::new(3);
        for revision in 1..=5 {
            log.push(entry(revision, "a", None));
        }
        let seen = |log: &Log, from| log.since(from).map(|entries| entries.map(|e| e.revision).collect::<Vec<_>>());
        assert_eq!(seen(&log, 2), Ok(vec![3, 4, 5]));
        assert_eq!(seen(&log, 9), Ok(vec![]));
        assert_eq!(seen(&log, 1), Err(Expired { trimmed: 2 }));
        log.compact(4);
        assert_eq!(seen(&log, 3), Err(Expired { trimmed: 4 }));
        assert_eq!(seen(&log, 4), Ok(vec![5]));
    }

    #[test]
    fn undo_gives_the_oldest_version_that_was_replaced_after_the_revision() {
        let mut log = Log::new(10);
        log.push(entry(3, "a", None));
        log.push(entry(4, "b", Some(2)));
        log.push(entry(5, "a", Some(3)));
        let at = |revision, key: &str| {
            log.undo_to(revision).unwrap().get(key).map(|then| then.as_ref().map(|object| object.revision))
        };
        assert_eq!((at(2, "a"), at(2, "b")), (Some(None), Some(Some(2))));
        assert_eq!((at(4, "a"), at(4, "b")), (Some(Some(3)), None));
    }
}
