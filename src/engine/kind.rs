//! What the engine asks of a controller, and what a controller tells the engine.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::place::Place;
use crate::model::WallTime;

/// A kind of object and what its actors do; one value serves all of them.
pub trait Kind: Send + Sync + 'static {
    /// Names an object; namespace and name.
    type Key: Clone + Ord + Hash + Debug + Display + Send + Sync + 'static;

    /// News about an object, for instance a watch event.
    type Message;

    /// What was last heard about an object. It lives as long as the actor and persists between steps, so that
    /// [`Kind::fold`] can compare old and new. The latest news wins: it holds facts, not a list of messages.
    type Mailbox: Default + Send + Sync + 'static;

    /// What a step takes with it from the mailbox.
    type Mail: Send;

    /// What an actor knows by itself: own last writes, compiled schedule, what it said. A step must leave it sound at each
    /// await, since it may be dropped there; after a panic it is thrown away and opened anew.
    type State: Send + Sync + 'static;

    /// The tenant of a key, for instance [`super::stable_hash`] of its namespace: tenants take turns.
    fn tenant(key: &Self::Key) -> u64;

    /// Puts news into the mailbox and says when a step is wanted. Called under the lock of the actor's cell, by whoever
    /// sends: short, without I/O, and without a call back into the supervisor.
    fn fold(&self, key: &Self::Key, mailbox: &mut Self::Mailbox, message: Self::Message, now: WallTime) -> Wake;

    /// What a step that begins now takes with it. It reads the mailbox and takes nothing out, so a step that dies loses no
    /// news. Called under the lock of the actor's cell.
    fn collect(&self, key: &Self::Key, mailbox: &Self::Mailbox) -> Self::Mail;

    /// When an object is due, or has been since, that no actor has stepped yet: orders the first steps after a
    /// [take-over](super::Supervisor::take_over) and arms their timers. `None`: not by itself. An estimate will do; the step decides.
    fn due(&self, key: &Self::Key, mail: &Self::Mail, now: WallTime) -> Option<WallTime>;

    /// The state of an actor before its first step, and after a panic.
    fn open(&self, key: &Self::Key) -> Self::State;

    /// Looks at everything and does what is to be done. News that arrives meanwhile stays in the mailbox and leads to
    /// another step.
    fn step(
        &self,
        key: &Self::Key,
        state: &mut Self::State,
        mail: Self::Mail,
        context: &StepContext,
    ) -> impl Future<Output = Next> + Send;
}

/// When a message wants a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// As soon as there is a place for a step.
    Now,
    /// When everything that is due has had its turn: the object was merely listed again. Until the supervisor is opened,
    /// `Now` means this.
    Listed,
    /// After this delay, or earlier if something else wants a step earlier; a delay earlier still uses this one up.
    After(Duration),
    /// Not because of this message. If the object has no actor yet, none is made and the message is forgotten, so that
    /// news about what does not exist leaves no trace.
    Nothing,
}

/// What a step gets from the engine.
#[derive(Debug)]
pub struct StepContext {
    /// Wall time at the start of the step.
    pub now: WallTime,
    /// How many attempts of this key failed in a row.
    pub failures: u32,
    /// Cancelled at shutdown: the step may finish within the budget, better soon.
    pub stopping: CancellationToken,
    pub(super) place: Place,
}

impl StepContext {
    /// Says that what is left of this step is less urgent than what other steps may begin with: one of them begins in its place, while
    /// this one goes on. Without this, steps whose records wait behind the runs of others would keep those runs from starting.
    pub fn give_way(&self) {
        self.place.give_way();
    }
}

/// What a step returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// How the step went.
    pub outcome: Outcome,
    /// When the object is due again. After [`Outcome::Done`], `None` means never by itself; after a failure it means that
    /// the instant known before still stands.
    pub due: Option<WallTime>,
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as it should be; earlier failures are forgotten.
    Done,
    /// Something did not work.
    Failed(Retry),
    /// The object does not exist any more. If nothing was heard about it since the step began, the actor goes with every
    /// trace; otherwise it steps again.
    Gone,
}

/// When a failed step is tried again. In every case a due instant in the future still wakes the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After the limiter's wait.
    Backoff,
    /// After the limiter's wait; the object was not as new as thought.
    Conflict,
    /// After this long, because the server said so; zero counts as `Backoff`.
    After(Duration),
    /// At the due instant, or on news about the object.
    AtNextDue,
}

impl Next {
    /// All is well; due again at `due`.
    pub fn done(due: Option<WallTime>) -> Self {
        Self { outcome: Outcome::Done, due }
    }

    /// Failed; the due instant known before still stands unless `due` replaces it.
    pub fn failed(retry: Retry, due: Option<WallTime>) -> Self {
        Self { outcome: Outcome::Failed(retry), due }
    }

    /// The object does not exist any more.
    pub fn gone() -> Self {
        Self { outcome: Outcome::Gone, due: None }
    }
}
