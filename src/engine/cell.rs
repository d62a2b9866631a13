//! The actors at rest: one cell per key in one concurrent map.
//!
//! Invariant: a cell's state is absent only before its first step, while a worker has it checked out, and after a panic.
//! The cell's entry lock is taken before its shard's queue lock, never the other way round.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use rustc_hash::FxBuildHasher;

use super::kind::{Kind, Wake};
use super::metrics::EngineMetrics;
use crate::model::WallTime;
use crate::workqueue::Queue;

/// A key as the engine holds it: one allocation that map, queue and timer share.
pub(super) type Name<K> = Arc<<K as Kind>::Key>;

/// One actor at rest.
pub(super) struct Cell<K: Kind> {
    mailbox: K::Mailbox,
    /// Inline: one allocation per actor is worth more than the copy at check-out.
    state: Option<K::State>,
    /// The last due instant that a step named; armed again after every step.
    due: Option<WallTime>,
    /// Whether something was folded since the last step began.
    unseen: bool,
    /// Whether a step runs: from check-out until the state is put back.
    stepping: bool,
}

/// What a step begins with: the mail, and the state unless there is none yet.
type CheckedOut<K> = (<K as Kind>::Mail, Option<<K as Kind>::State>);

/// All actors. The cells are boxed, so that the empty places of the map are small.
pub(super) struct Cells<K: Kind> {
    map: DashMap<Name<K>, Box<Cell<K>>, FxBuildHasher>,
    len: AtomicUsize,
}

impl<K: Kind> Cells<K> {
    pub(super) fn new() -> Self {
        Self { map: DashMap::with_hasher(FxBuildHasher), len: AtomicUsize::new(0) }
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Folds `message` into the mailbox of `key`, opening a cell if the news is worth a step, and lets `wake` ask the queue
    /// for it before anybody else can see the cell.
    pub(super) fn fold(
        &self,
        kind: &K,
        key: K::Key,
        message: K::Message,
        now: WallTime,
        metrics: Option<&EngineMetrics>,
        wake: impl FnOnce(&Name<K>, Wake),
    ) {
        let fold = |key: &K::Key, mailbox: &mut K::Mailbox| {
            // A message that makes `fold` panic must not take the watch down with it; a step shall look at the rest.
            catch_unwind(AssertUnwindSafe(|| kind.fold(key, mailbox, message, now))).unwrap_or_else(|_| {
                metrics.inspect(|metrics| metrics.on_panicked_fold());
                tracing::error!(%key, "a message could not be folded: panic");
                Wake::Now
            })
        };
        match self.map.entry(Arc::new(key)) {
            Entry::Occupied(slot) => {
                let mut slot = slot.into_ref();
                let (name, cell) = slot.pair_mut();
                let answer = fold(name, &mut cell.mailbox);
                cell.unseen = true;
                wake(name, answer);
            }
            Entry::Vacant(slot) => {
                let mut mailbox = K::Mailbox::default();
                let answer = fold(slot.key(), &mut mailbox);
                if answer != Wake::Nothing {
                    let cell = Cell { mailbox, state: None, due: None, unseen: true, stepping: false };
                    let slot = slot.insert(Box::new(cell));
                    let actors = self.len.fetch_add(1, Ordering::Relaxed) + 1;
                    metrics.inspect(|metrics| metrics.set_actors(actors));
                    wake(slot.key(), answer);
                }
            }
        }
    }

    /// The mail of `key`, if it has an actor.
    pub(super) fn mail(&self, kind: &K, key: &K::Key) -> Option<K::Mail> {
        self.map.get(key).map(|cell| kind.collect(key, &cell.mailbox))
    }

    /// Every actor's key and mail, in the order of keys.
    pub(super) fn all_mail(&self, kind: &K) -> Vec<(Name<K>, K::Mail)> {
        let mut all: Vec<_> =
            self.map.iter().map(|cell| (cell.key().clone(), kind.collect(cell.key(), &cell.mailbox))).collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    /// Begins a step: the mail and, unless there is none yet, the state. `None` if there is no such actor. The queue hands a key out to
    /// one worker at a time; should it ever not, that is counted.
    pub(super) fn check_out(&self, kind: &K, key: &K::Key, metrics: Option<&EngineMetrics>) -> Option<CheckedOut<K>> {
        let mut cell = self.map.get_mut(key)?;
        let mail = kind.collect(key, &cell.mailbox);
        cell.unseen = false;
        if std::mem::replace(&mut cell.stepping, true) {
            tracing::error!(%key, "two steps of one object at once: this is a bug");
            metrics.inspect(|metrics| metrics.on_overlap());
        }
        Some((mail, cell.state.take()))
    }

    /// Ends a step: puts the state back, lets `due` change the due instant and `arm` it under the lock.
    pub(super) fn put_back(
        &self,
        key: &K::Key,
        state: Option<K::State>,
        due: impl FnOnce(Option<WallTime>) -> Option<WallTime>,
        arm: impl FnOnce(Option<WallTime>),
    ) {
        if let Some(mut cell) = self.map.get_mut(key) {
            cell.state = state;
            cell.stepping = false;
            cell.due = due(cell.due);
            arm(cell.due);
        }
    }

    /// Removes the actor and what `queue` knows of its key, unless something was heard since its step began; whether it went.
    pub(super) fn remove(&self, key: &K::Key, queue: &Queue<Name<K>>, metrics: Option<&EngineMetrics>) -> bool {
        let gone = self.map.remove_if(key, |key, cell| {
            if !cell.unseen {
                queue.cancel(key);
            }
            !cell.unseen
        });
        if gone.is_some() {
            self.on_removed(metrics);
        }
        gone.is_some()
    }

    /// Removes the actor, whatever it has heard.
    pub(super) fn discard(&self, key: &K::Key, metrics: Option<&EngineMetrics>) {
        if self.map.remove(key).is_some() {
            self.on_removed(metrics);
        }
    }

    fn on_removed(&self, metrics: Option<&EngineMetrics>) {
        let actors = self.len.fetch_sub(1, Ordering::Relaxed) - 1;
        metrics.inspect(|metrics| metrics.set_actors(actors));
        if actors == 0 {
            self.map.shrink_to_fit();
        }
    }

    /// Every actor's key and due instant, and whether it has unseen news; the earliest first, those never due last, equal ones by key.
    pub(super) fn by_due(&self) -> Vec<(Option<WallTime>, bool, Name<K>)> {
        let mut all: Vec<_> = self.map.iter().map(|cell| (cell.due, cell.unseen, cell.key().clone())).collect();
        all.sort_unstable_by(|(a, _, a_key), (b, _, b_key)| {
            a.is_none().cmp(&b.is_none()).then_with(|| a.cmp(b)).then_with(|| a_key.cmp(b_key))
        });
        all
    }
}
