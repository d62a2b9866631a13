//! Who may send next: a bounded number of requests in flight, given out by priority.
//!
//! Invariants
//! - In flight never exceeds the limit of the moment, except for what was in flight when the limit was cut.
//! - Among the waiting, the lane decides first, then the due instant (none is last), then who came first.
//! - The last eighth of the slots goes only to a creation whose tenant has nothing in flight: a herd in one namespace never
//!   makes another namespace's single run wait for the herd.
//! - A waiter that is dropped, at any moment, leaves no trace: neither a place in the queue nor a slot.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::limit::Limit;
use super::metrics::LaneMetrics;
use crate::model::WallTime;

/// What a request is for, most urgent first. A request travels in the lane of the most urgent request that its step is still
/// to send: a read or deletion that a creation waits for goes as [`Lane::Create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Creation of a Job.
    Create,
    /// Writes of `/status`.
    Status,
    /// Deletions for history.
    Delete,
    /// Reads that nobody waits for with something more urgent.
    Read,
    /// Events.
    Event,
}

impl Lane {
    /// The value of the metrics' label `lane`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Status => "status",
            Self::Delete => "delete",
            Self::Read => "read",
            Self::Event => "event",
        }
    }
}

/// How urgent a request is, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Urgency {
    /// Decides first.
    pub lane: Lane,
    /// The due instant that the request serves; earlier ones go first inside a lane, `None` last.
    pub due: Option<WallTime>,
    /// The namespace, for the slots that are kept for others than a herd.
    pub tenant: Arc<str>,
}

/// Place in the queue: lane, due instant, order of arrival.
type Rank = (Lane, WallTime, u64);

/// The slots and the queue for them.
#[derive(Debug)]
pub(crate) struct Lanes {
    state: Mutex<State>,
    metrics: LaneMetrics,
}

#[derive(Debug)]
struct State {
    limit: Limit,
    in_flight: usize,
    /// Requests in flight per tenant; a tenant without any has no entry.
    tenants: BTreeMap<Arc<str>, usize>,
    waiting: BTreeMap<Rank, Waiter>,
    arrivals: u64,
}

#[derive(Debug)]
struct Waiter {
    tenant: Arc<str>,
    granted: oneshot::Sender<Slot>,
}

/// The right to have one request in flight; given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    lanes: Arc<Lanes>,
    lane: Lane,
    tenant: Arc<str>,
    /// The limit's epoch when the slot was granted: a burst of refusals of one epoch cuts the limit once.
    epoch: u64,
    verdict: Verdict,
}

/// What the answer to a request says about the server's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answered in time.
    Fine,
    /// It refused for load, or did not answer in time.
    Congested,
    /// Nothing is known: the request was given up or the connection failed.
    Unknown,
}

impl Lanes {
    pub(crate) fn new(limit: Limit, metrics: LaneMetrics) -> Arc<Self> {
        metrics.limit.set(limit.current().try_into().unwrap_or(i64::MAX));
        let state = State { limit, in_flight: 0, tenants: BTreeMap::new(), waiting: BTreeMap::new(), arrivals: 0 };
        Arc::new(Self { state: Mutex::new(state), metrics })
    }

    /// Waits for a slot. May be dropped at any time.
    pub(crate) async fn enter(self: &Arc<Self>, urgency: &Urgency) -> Slot {
        loop {
            let (granted, grant) = oneshot::channel();
            let place = self.queue(urgency, granted);
            self.grant();
            // The sender lives in the queue until it sends, so an error cannot happen while the place is held; asking anew is
            // right all the same.
            if let Ok(slot) = grant.await {
                return slot;
            }
            drop(place);
        }
    }

    fn queue(self: &Arc<Self>, urgency: &Urgency, granted: oneshot::Sender<Slot>) -> Place {
        let mut state = self.lock();
        state.arrivals += 1;
        let rank = (urgency.lane, urgency.due.unwrap_or(WallTime::MAX_UTC), state.arrivals);
        state.waiting.insert(rank, Waiter { tenant: urgency.tenant.clone(), granted });
        self.metrics.queued(urgency.lane).inc();
        Place { lanes: self.clone(), rank }
    }

    /// Hands free slots to whoever is next.
    fn grant(self: &Arc<Self>) {
        while let Some((granted, slot)) = self.take_next() {
            // Outside the lock: a slot that nobody takes any more is dropped here and comes back through `release`.
            drop(granted.send(slot));
        }
    }

    fn take_next(self: &Arc<Self>) -> Option<(oneshot::Sender<Slot>, Slot)> {
        let mut state = self.lock();
        let rank = state.next()?;
        let waiter = state.waiting.remove(&rank)?;
        state.in_flight += 1;
        *state.tenants.entry(waiter.tenant.clone()).or_default() += 1;
        let lane = rank.0;
        self.metrics.queued(lane).dec();
        self.metrics.in_flight(lane).inc();
        let slot = Slot {
            lanes: self.clone(),
            lane,
            tenant: waiter.tenant,
            epoch: state.limit.epoch(),
            verdict: Verdict::Unknown,
        };
        Some((waiter.granted, slot))
    }

    fn release(self: &Arc<Self>, slot: &Slot) {
        {
            let mut state = self.lock();
            let busy = !state.waiting.is_empty();
            match slot.verdict {
                Verdict::Fine => state.limit.on_answer(busy),
                Verdict::Congested => state.limit.on_congestion(slot.epoch),
                Verdict::Unknown => {}
            }
            state.in_flight = state.in_flight.saturating_sub(1);
            state.leave(&slot.tenant);
            self.metrics.in_flight(slot.lane).dec();
            self.metrics.limit.set(state.limit.current().try_into().unwrap_or(i64::MAX));
        }
        self.grant();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whose turn it is, if a slot is free for them. Looks past the first waiter only among creations and only when no more
    /// than the kept slots are free; they are as few as the places for steps that have not given way.
    fn next(&self) -> Option<Rank> {
        let free = self.limit.current().saturating_sub(self.in_flight);
        if free > self.limit.kept() {
            return self.waiting.first_key_value().map(|(rank, _)| *rank);
        }
        let mut creations = self.waiting.iter().take_while(|(rank, _)| free > 0 && rank.0 == Lane::Create);
        creations.find(|(_, waiter)| !self.tenants.contains_key(&waiter.tenant)).map(|(rank, _)| *rank)
    }

    fn leave(&mut self, tenant: &Arc<str>) {
        if let Some(in_flight) = self.tenants.get_mut(tenant) {
            *in_flight -= 1;
            if *in_flight == 0 {
                self.tenants.remove(tenant);
            }
        }
    }
}

impl Slot {
    /// Gives the slot back and says what was learned.
    pub(crate) fn finish(mut self, verdict: Verdict) {
        self.verdict = verdict;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let lanes = self.lanes.clone();
        lanes.release(self);
    }
}

/// A place in the queue, left when dropped.
struct Place {
    lanes: Arc<Lanes>,
    rank: Rank,
}

impl Drop for Place {
    fn drop(&mut self) {
        // The waiter (and a slot that was sent to it and not taken) is dropped after the lock is released.
        let waiter = self.lanes.lock().waiting.remove(&self.rank);
        if waiter.is_some() {
            self.lanes.metrics.queued(self.rank.0).dec();
        }
    }
}

#[cfg(test)]
mod tests;
