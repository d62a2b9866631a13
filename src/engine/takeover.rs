//! Standing by and taking over: a supervisor whose actors are built and told everything, but step only from a moment on.
//!
//! Invariant: every actor that exists at the take-over, or comes about during it, is queued. A message is folded and its wake-up
//! decided under the lock of its cell; the phase changes before the cells are gone through.

use super::cell::Name;
use super::kind::Kind;
use super::supervisor::{Phase, Supervisor};
use crate::model::WallTime;
use crate::workqueue::Class;

impl<K: Kind> Supervisor<K> {
    /// From now on messages are folded and nothing more, until [`Supervisor::take_over`]. To be called before the first message.
    pub fn stand_by(&self) {
        self.engine.phase.set(Phase::StandingBy);
    }

    /// Whether it stands by.
    pub fn is_standing_by(&self) -> bool {
        self.engine.phase.get() == Phase::StandingBy
    }

    /// [`Supervisor::send`] for news that the object of `key` is gone. While standing by no step would find that out, so its actor
    /// goes at once; with a take-over in between the step that it brings finds no actor.
    pub fn send_gone(&self, key: K::Key, message: K::Message) {
        if self.is_standing_by() {
            self.engine.cells.discard(&key, self.engine.metrics.as_ref());
        } else {
            self.send(key, message);
        }
    }

    /// Ends standing by: every actor gets a step. First those that are due by now, the longest due first; those that come due
    /// later when they do, the others meanwhile.
    pub fn take_over(&self) {
        self.engine.phase.set(Phase::Warming);
        let engine = &*self.engine;
        let now = engine.clock.wall();
        let mail = engine.cells.all_mail(&engine.kind);
        let with_due = |(key, mail): (Name<K>, K::Mail)| (engine.kind.due(&key, &mail, now), key);
        let mut actors: Vec<(Option<WallTime>, Name<K>)> = mail.into_iter().map(with_due).collect();
        // Stable, so that equals stay in the order of keys; those never due last.
        actors.sort_by_key(|(due, _)| (due.is_none(), *due));
        for (due, key) in actors {
            let queue = engine.queue_of(&key);
            match due {
                Some(due) if due <= now => queue.add(key),
                Some(due) => {
                    queue.add_in(key.clone(), Class::Listed);
                    queue.add_after(key, engine.clock.until(due));
                }
                None => queue.add_in(key, Class::Listed),
            }
        }
        self.open();
    }

    /// What the actor of `key` would take into a step now, if there is one: for whoever builds the next supervisor.
    pub fn mail(&self, key: &K::Key) -> Option<K::Mail> {
        self.engine.cells.mail(&self.engine.kind, key)
    }
}
