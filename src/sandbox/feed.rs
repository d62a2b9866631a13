//! What has happened to the objects of one kind, for the stand-ins inside the process: no request, no copy.

use std::sync::Arc;

use super::resources::Resource;
use super::shared::Shared;
use super::store::{Change, Object, Store};
use crate::latest::Follower;

/// Most changes handed out at once, before everybody else gets a turn.
const BATCH: usize = 256;

/// A reader of one kind.
#[derive(Debug)]
pub(super) struct Feed {
    resource: &'static Resource,
    /// Every change up to this revision has been seen.
    position: u64,
    wake: Follower<()>,
}

/// What a reader is told.
#[derive(Debug)]
pub(super) enum News {
    /// Changes in their order; `false`: it is gone.
    Changes(Vec<(bool, Arc<Object>)>),
    /// The log has left this reader behind: all that is there now.
    Everything(Vec<Arc<Object>>),
}

impl Feed {
    /// A reader that starts with what is there.
    pub(super) fn new(shared: &Shared, resource: &'static Resource) -> Self {
        Self { resource, position: 0, wake: shared.wake_of(resource) }
    }

    /// What has happened since the last call, at most a batch of it. `None`: nothing.
    pub(super) fn take(&mut self, store: &Store) -> Option<News> {
        self.wake.mark_seen();
        let collection = store.collection(self.resource)?;
        let Ok(entries) = collection.log().since(self.position) else {
            self.position = store.revision();
            return Some(News::Everything(collection.range("", None).cloned().collect()));
        };
        let changes: Vec<_> = entries
            .take(BATCH)
            .map(|entry| {
                self.position = entry.revision;
                (entry.change != Change::Deleted, entry.object.clone())
            })
            .collect();
        (!changes.is_empty()).then_some(News::Changes(changes))
    }

    /// Returns when there may be more.
    pub(super) async fn changed(&mut self) {
        self.wake.changed().await;
    }
}
