//! One step: the actor checked out, stepped, put back, and woken again, whatever happens in between.
//!
//! Invariant: from the moment a visit exists until it has ended, dropping it (cancellation at any await) puts the state
//! back and arms the key like a failed step.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use super::cell::Name;
use super::kind::{Kind, Next, Outcome, Retry, StepContext};
use super::metrics::StepResult;
use super::place::Place;
use super::supervisor::Engine;
use crate::workqueue::Queue;

/// An actor that a worker has checked out.
struct Visit<'a, K: Kind> {
    engine: &'a Engine<K>,
    queue: &'a Queue<Name<K>>,
    key: &'a Name<K>,
    state: Option<K::State>,
    ended: bool,
}

impl<K: Kind> Engine<K> {
    /// Steps the actor of `key`, which `queue` has handed out and which stays in flight meanwhile.
    pub(super) async fn visit(
        &self,
        queue: &Queue<Name<K>>,
        key: &Name<K>,
        place: Place,
        stopping: &CancellationToken,
    ) {
        let mut visit = Visit { engine: self, queue, key, state: None, ended: false };
        let end = AssertUnwindSafe(visit.step(place, stopping)).catch_unwind().await;
        match end {
            Ok(Some(next)) => visit.end(next.outcome.into(), next),
            // The key waited when its actor went.
            Ok(None) => visit.ended = true,
            Err(panic) => {
                tracing::error!(%key, panic = text_of(&*panic), "a step panicked");
                visit.state = None;
                visit.end(StepResult::panicked, Next::failed(Retry::Backoff, None));
            }
        }
    }
}

impl<K: Kind> Visit<'_, K> {
    async fn step(&mut self, place: Place, stopping: &CancellationToken) -> Option<Next> {
        let kind = &self.engine.kind;
        let (mail, state) = self.engine.cells.check_out(kind, self.key, self.engine.metrics.as_ref())?;
        self.state = state;
        let state = self.state.get_or_insert_with(|| kind.open(self.key));
        let context = StepContext {
            now: self.engine.clock.wall(),
            failures: self.queue.num_requeues(self.key),
            stopping: stopping.clone(),
            place,
        };
        Some(kind.step(self.key, state, mail, &context).await)
    }

    fn end(&mut self, result: StepResult, next: Next) {
        self.ended = true;
        let (cells, metrics) = (&self.engine.cells, self.engine.metrics.as_ref());
        metrics.inspect(|metrics| metrics.on_step(result));
        match next.outcome {
            Outcome::Gone if cells.remove(self.key, self.queue, metrics) => {}
            // Something was heard meanwhile: the object may exist again.
            Outcome::Gone => {
                cells.put_back(self.key, self.state.take(), |_| None, |_| self.queue.add(self.key.clone()))
            }
            Outcome::Done => cells.put_back(
                self.key,
                self.state.take(),
                |_| next.due,
                |due| {
                    self.arm_done(due.map(|due| self.engine.clock.until(due)));
                },
            ),
            Outcome::Failed(retry) => cells.put_back(
                self.key,
                self.state.take(),
                |known| next.due.or(known),
                |due| {
                    self.arm_failed(retry, due.map(|due| self.engine.clock.until(due)));
                },
            ),
        }
    }

    /// `wait` is the time until the due instant, zero if it has passed.
    fn arm_done(&self, wait: Option<Duration>) {
        match wait {
            // Due again already: at once, but through the limiter, so that a step that stands still cannot run hot.
            Some(Duration::ZERO) => self.queue.add_rate_limited(self.key.clone()),
            Some(wait) => {
                self.queue.forget(self.key);
                self.queue.add_after(self.key.clone(), wait);
            }
            None => self.queue.forget(self.key),
        }
    }

    fn arm_failed(&self, retry: Retry, wait: Option<Duration>) {
        let passed = wait == Some(Duration::ZERO);
        match retry {
            Retry::After(delay) if !delay.is_zero() => self.queue.add_after(self.key.clone(), delay),
            Retry::AtNextDue if !passed => {}
            Retry::Backoff | Retry::Conflict | Retry::After(_) | Retry::AtNextDue => {
                self.queue.add_rate_limited(self.key.clone());
            }
        }
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            self.queue.add_after(self.key.clone(), wait);
        }
    }
}

impl<K: Kind> Drop for Visit<'_, K> {
    fn drop(&mut self) {
        if !self.ended {
            self.end(StepResult::cancelled, Next::failed(Retry::Backoff, None));
        }
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}
