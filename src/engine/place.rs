//! The right of a step to run: one of few while something urgent may depend on it, one of many once only records are left to write.
//!
//! Invariants
//! - No more than the few run that have not given way; no more than the many that have.
//! - A step that cannot get one of the many keeps its own: then fewer begin, and none is refused.
//! - A place is free again when it is dropped, wherever its step ends.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of one shard.
#[derive(Clone, Debug)]
pub(super) struct Places {
    front: Arc<Semaphore>,
    rear: Arc<Semaphore>,
}

/// The place of one step.
#[derive(Debug)]
pub(super) struct Place {
    permit: Mutex<OwnedSemaphorePermit>,
    rear: Arc<Semaphore>,
}

impl Places {
    /// `front` places (at least one) to begin in, and `rear` to move to.
    pub(super) fn new(front: usize, rear: usize) -> Self {
        let semaphore = |places: usize| Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        Self { front: semaphore(front.max(1)), rear: semaphore(rear) }
    }

    /// A place to begin in, when one is free. `None` never: the places are not closed.
    pub(super) async fn begin(&self) -> Option<Place> {
        let permit = self.front.clone().acquire_owned().await.ok()?;
        Some(Place { permit: Mutex::new(permit), rear: self.rear.clone() })
    }
}

impl Place {
    /// Moves to the rear, if there is room, so that another step may begin.
    pub(super) fn give_way(&self) {
        let mut permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(permit.semaphore(), &self.rear) {
            return;
        }
        if let Ok(behind) = self.rear.clone().try_acquire_owned() {
            *permit = behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn begin(places: &Places) -> Option<Place> {
        places.begin().now_or_never().flatten()
    }

    #[test]
    fn a_step_that_gives_way_lets_another_begin_as_long_as_there_is_room_behind() {
        let places = Places::new(1, 1);
        let first = begin(&places).expect("nobody is there");
        assert!(begin(&places).is_none());
        first.give_way();
        first.give_way();
        let second = begin(&places).expect("the first gave way");
        second.give_way();
        assert!(begin(&places).is_none(), "there is no room behind");
        drop(first);
        second.give_way();
        assert!(begin(&places).is_some(), "there is again");
    }

    #[test]
    fn a_place_is_free_again_wherever_its_step_ends() {
        let places = Places::new(1, 1);
        drop(begin(&places));
        let behind = begin(&places).expect("the first has ended");
        behind.give_way();
        drop(behind);
        begin(&places).expect("it is free").give_way();
        assert_eq!((places.front.available_permits(), places.rear.available_permits()), (1, 1));
    }
}
