//! The places of a port: how many connections are open, and which gives way to a new one when all are taken.
//!
//! Invariants
//! - Never more than the number of places are held; who comes waits only until the one that gives way has gone.
//! - Who gives way: those still unproven before those greeted before those that have had an answer; among equals one of the
//!   address that holds the most; of those the one that has longest been where it is.
//! - So a flood takes its own places away, and not those of kubelet or of a scraper.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Connections that each address may hold before it counts as one that holds many.
const FEW: usize = 8;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Open, and no more.
    Open,
    /// The handshake is done.
    Greeted,
    /// It asked for something that it was given: who is known and may.
    Proven,
}

/// The places. Cheap to clone; clones share them.
#[derive(Clone)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    by: BTreeMap<u64, Holder>,
    /// Counts arrivals and steps, to tell who was first.
    turn: u64,
}

struct Holder {
    peer: IpAddr,
    stage: Stage,
    since: u64,
    give_way: CancellationToken,
}

/// A place; free again when dropped.
pub(super) struct Place {
    places: Places,
    id: u64,
    give_way: CancellationToken,
    _held: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), taken: Arc::default() }
    }

    /// A place for a connection from `peer`; when there is none, another connection is told to go.
    pub(super) async fn take(&self, peer: IpAddr) -> Place {
        let held = match self.free.clone().try_acquire_owned() {
            Ok(held) => Some(held),
            Err(_none) => {
                self.lock().make_way();
                // Nobody closes the semaphore.
                self.free.clone().acquire_owned().await.ok()
            }
        };
        let give_way = CancellationToken::new();
        let id = self.lock().enter(peer, give_way.clone());
        Place { places: self.clone(), id, give_way, _held: held }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn enter(&mut self, peer: IpAddr, give_way: CancellationToken) -> u64 {
        self.turn += 1;
        self.by.insert(self.turn, Holder { peer, stage: Stage::Open, since: self.turn, give_way });
        self.turn
    }

    fn make_way(&mut self) {
        let mut held: HashMap<IpAddr, usize> = HashMap::new();
        for holder in self.by.values() {
            *held.entry(holder.peer).or_default() += 1;
        }
        let many = |peer: &IpAddr| held.get(peer).copied().unwrap_or_default().max(FEW);
        let rank = |(_, holder): &(&u64, &Holder)| (holder.stage, Reverse(many(&holder.peer)), holder.since);
        if let Some(id) = self.by.iter().min_by_key(rank).map(|(id, _)| *id)
            && let Some(holder) = self.by.remove(&id)
        {
            holder.give_way.cancel();
        }
    }
}

impl Place {
    /// Cancelled when this connection has to go.
    pub(super) fn give_way(&self) -> CancellationToken {
        self.give_way.clone()
    }

    /// The connection has come to `stage`, or shows again that it is there.
    pub(super) fn reached(&self, stage: Stage) {
        let mut taken = self.places.lock();
        taken.turn += 1;
        let since = taken.turn;
        if let Some(holder) = taken.by.get_mut(&self.id) {
            (holder.stage, holder.since) = (holder.stage.max(stage), since);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().by.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn peer(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    /// Takes a place where there is none, once whoever must go has gone; who went, by index.
    fn who_gives_way(places: &Places, held: &mut Vec<Option<Place>>, from: IpAddr) -> usize {
        let places = places.clone();
        let mut taking = Box::pin(async move { places.take(from).await });
        assert!(taking.as_mut().now_or_never().is_none(), "a place too many");
        let told = |place: &Option<Place>| place.as_ref().is_some_and(|place| place.give_way.is_cancelled());
        let gone = held.iter().position(told).unwrap();
        held[gone] = None;
        held.push(Some(taking.now_or_never().unwrap()));
        gone
    }

    fn full(places: &Places, peers: &[u8]) -> Vec<Option<Place>> {
        peers.iter().map(|n| places.take(peer(*n)).now_or_never()).collect()
    }

    #[test]
    fn the_oldest_gives_way_and_never_more_than_all_places_are_held() {
        let places = Places::new(3);
        let mut held = full(&places, &[1, 1, 1]);
        assert_eq!(who_gives_way(&places, &mut held, peer(2)), 0);
        assert_eq!(who_gives_way(&places, &mut held, peer(2)), 1);
        drop(held);
        assert!(places.lock().by.is_empty());
    }

    #[test]
    fn the_unproven_give_way_before_the_greeted_before_the_proven() {
        let places = Places::new(3);
        let mut held = full(&places, &[1, 2, 3]);
        held[0].as_ref().unwrap().reached(Stage::Proven);
        held[1].as_ref().unwrap().reached(Stage::Greeted);
        assert_eq!(who_gives_way(&places, &mut held, peer(4)), 2);
        held[3].as_ref().unwrap().reached(Stage::Proven);
        assert_eq!(who_gives_way(&places, &mut held, peer(5)), 1);
        held[4].as_ref().unwrap().reached(Stage::Proven);
        held[0].as_ref().unwrap().reached(Stage::Greeted);
        assert_eq!(
            who_gives_way(&places, &mut held, peer(6)),
            3,
            "an answer is not lost, and who has just asked stays"
        );
    }

    #[test]
    fn an_address_that_holds_many_gives_way_before_others() {
        let places = Places::new(2 * FEW + 1);
        let mut peers = vec![1];
        peers.extend([2; 2 * FEW]);
        let mut held = full(&places, &peers);
        for n in 0..FEW {
            assert_eq!(who_gives_way(&places, &mut held, peer(3)), n + 1);
        }
        assert_eq!(who_gives_way(&places, &mut held, peer(4)), 0, "few are as good as one");
    }
}
