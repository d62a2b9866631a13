//! The latest value of something, and whoever waits for the next one.
//!
//! Invariants
//! - Those who wait are woken in the order in which they began to wait. `tokio::sync::watch` spreads them at random over eight
//!   lists and wakes list after list, so a run that depends on their order would not repeat; `clippy.toml` bans it.
//! - No change is missed by who waits, but several may be seen as one: only the latest value is kept.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Notify;

/// A value that is replaced now and then. Clones share it.
#[derive(Debug)]
pub struct Latest<T> {
    shared: Arc<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    state: RwLock<State<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<T> {
    value: T,
    /// How often it was changed.
    version: u64,
}

impl<T> Clone for Latest<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Latest<T> {
    /// Begins with `value`.
    pub fn new(value: T) -> Self {
        let state = RwLock::new(State { value, version: 0 });
        Self { shared: Arc::new(Shared { state, changed: Notify::new() }) }
    }

    /// Replaces the value and wakes everybody, also if it is the same.
    pub fn set(&self, value: T) {
        self.update(|old| *old = value);
    }

    /// Changes the value in its place and wakes everybody, also if it stays the same.
    pub fn update(&self, change: impl FnOnce(&mut T)) {
        let mut state = self.shared.state.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut state.value);
        state.version += 1;
        drop(state);
        self.shared.changed.notify_waiters();
    }

    /// Looks at the value; `look` must be short and must not come back here.
    fn with<R>(&self, look: impl FnOnce(&State<T>) -> R) -> R {
        look(&self.shared.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Somebody who has seen what there is now, and waits for changes.
    pub fn follow(&self) -> Follower<T> {
        Follower { latest: self.clone(), seen: self.with(|state| state.version) }
    }

    /// Waits until `answer` has one, and returns it.
    async fn until<R>(&self, mut answer: impl FnMut(&State<T>) -> Option<R>) -> R {
        loop {
            // Made before the look: a change in between wakes it.
            let changed = self.shared.changed.notified();
            if let Some(answer) = self.with(&mut answer) {
                return answer;
            }
            changed.await;
        }
    }
}

impl<T: Copy> Latest<T> {
    /// The value now.
    pub fn get(&self) -> T {
        self.with(|state| state.value)
    }

    /// Waits until the value is one that is `wanted`, and returns it. May be dropped at any point.
    pub async fn wait_for(&self, wanted: impl Fn(&T) -> bool) -> T {
        self.until(|state| wanted(&state.value).then_some(state.value)).await
    }
}

/// Who remembers which change it has seen.
#[derive(Debug)]
pub struct Follower<T> {
    latest: Latest<T>,
    seen: u64,
}

impl<T> Follower<T> {
    /// What there is now counts as seen.
    pub fn mark_seen(&mut self) {
        self.seen = self.latest.with(|state| state.version);
    }

    /// Waits for a change that has not been seen, which then has. May be dropped at any point without missing one.
    pub async fn changed(&mut self) {
        let seen = self.seen;
        self.seen = self.latest.until(|state| (state.version != seen).then_some(state.version)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt;
    use tokio_util::task::TaskTracker;

    use super::*;

    #[tokio::test]
    async fn those_who_wait_are_woken_in_the_order_in_which_they_began() {
        let (latest, woken) = (Latest::new(0), Arc::new(Mutex::new(Vec::new())));
        let tasks = TaskTracker::new();
        for number in 0..100 {
            let (latest, woken) = (latest.clone(), woken.clone());
            tasks.spawn(async move {
                latest.wait_for(|value| *value == 1).await;
                woken.lock().unwrap().push(number);
            });
        }
        tasks.close();
        // The runtime comes back here before it has begun all of them.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        latest.set(1);
        tasks.wait().await;
        assert_eq!(*woken.lock().unwrap(), (0..100).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_wished_value_is_waited_for_and_others_are_passed_over() {
        let latest = Latest::new(1);
        assert_eq!(latest.wait_for(|value| *value == 1).now_or_never(), Some(1));
        let mut waits = Box::pin(latest.wait_for(|value| *value > 2));
        assert_eq!(waits.as_mut().now_or_never(), None);
        latest.set(2);
        assert_eq!(waits.as_mut().now_or_never(), None);
        latest.update(|value| *value += 1);
        assert_eq!((waits.as_mut().now_or_never(), latest.get()), (Some(3), 3));
    }

    #[tokio::test]
    async fn a_follower_sees_each_change_once_and_several_as_one() {
        let latest = Latest::new(0);
        let mut follower = latest.follow();
        assert_eq!(follower.changed().now_or_never(), None);
        latest.set(0);
        latest.set(0);
        assert_eq!(follower.changed().now_or_never(), Some(()));
        assert_eq!(follower.changed().now_or_never(), None);
        latest.set(0);
        follower.mark_seen();
        assert_eq!(follower.changed().now_or_never(), None);
    }

    #[tokio::test]
    async fn a_change_after_a_wait_was_given_up_is_seen() {
        let latest = Latest::new(0);
        let mut follower = latest.follow();
        let mut given_up = Box::pin(follower.changed());
        assert_eq!(given_up.as_mut().now_or_never(), None);
        latest.set(1);
        drop(given_up);
        assert_eq!(follower.changed().now_or_never(), Some(()));
    }
}
