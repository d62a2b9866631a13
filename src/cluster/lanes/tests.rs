use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use chrono::TimeZone;

use super::*;
use crate::cluster::limit::Concurrency;

fn lanes(limit: usize) -> Arc<Lanes> {
    Lanes::new(Limit::fixed(limit), LaneMetrics::default())
}

fn urgency(lane: Lane, tenant: &str) -> Urgency {
    Urgency { lane, due: None, tenant: tenant.into() }
}

fn due(lane: Lane, second: i64) -> Urgency {
    Urgency { due: chrono::Utc.timestamp_opt(second, 0).single(), ..urgency(lane, "ns") }
}

/// Polls once with a waker that does nothing.
fn poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    match std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Holds all slots of a fresh `limit`, queues `waiters` in order, frees one slot at a time and returns the order of service.
async fn order_of_service(waiters: &[Urgency]) -> Vec<usize> {
    let lanes = lanes(1);
    let holder = lanes.enter(&urgency(Lane::Event, "holder")).await;
    let mut waiting: Vec<_> = waiters.iter().map(|u| Some(Box::pin(lanes.enter(u)))).collect();
    for future in waiting.iter_mut().flatten() {
        assert!(poll(future).is_none());
    }
    drop(holder);
    let mut served = Vec::new();
    while served.len() < waiters.len() {
        for (i, place) in waiting.iter_mut().enumerate() {
            if let Some(slot) = place.as_mut().and_then(poll) {
                *place = None;
                served.push(i);
                drop(slot);
            }
        }
    }
    served
}

#[tokio::test]
async fn a_more_urgent_lane_goes_first_and_equals_go_in_order_of_arrival() {
    let lanes = [Lane::Event, Lane::Read, Lane::Create, Lane::Delete, Lane::Status, Lane::Create];
    let waiters: Vec<_> = lanes.iter().map(|lane| urgency(*lane, "ns")).collect();
    assert_eq!(order_of_service(&waiters).await, [2, 5, 4, 3, 1, 0]);
}

#[tokio::test]
async fn inside_a_lane_the_earlier_due_instant_goes_first_and_none_goes_last() {
    let waiters = [urgency(Lane::Create, "ns"), due(Lane::Create, 60), due(Lane::Create, 0), due(Lane::Status, 0)];
    assert_eq!(order_of_service(&waiters).await, [2, 1, 0, 3]);
}

#[tokio::test]
async fn no_more_than_the_limit_are_in_flight() {
    let lanes = lanes(2);
    let first = lanes.enter(&urgency(Lane::Create, "a")).await;
    let _second = lanes.enter(&urgency(Lane::Create, "b")).await;
    let urgency = urgency(Lane::Create, "c");
    let mut third = pin!(lanes.enter(&urgency));
    assert!(poll(&mut third).is_none());
    drop(first);
    assert!(poll(&mut third).is_some());
}

#[tokio::test]
async fn the_last_eighth_is_kept_for_creations_of_tenants_with_nothing_in_flight() {
    let lanes = lanes(16);
    let herd = urgency(Lane::Create, "herd");
    let mut slots = Vec::new();
    for _ in 0..14 {
        slots.push(lanes.enter(&herd).await);
    }
    let mut fifteenth = Box::pin(lanes.enter(&herd));
    assert!(poll(&mut fifteenth).is_none());
    let status = urgency(Lane::Status, "lone");
    assert!(poll(&mut Box::pin(lanes.enter(&status))).is_none());
    // Behind the whole herd in order of arrival, and served at once.
    let lone = urgency(Lane::Create, "lone");
    let first = poll(&mut Box::pin(lanes.enter(&lone)));
    assert!(first.is_some());
    assert!(poll(&mut Box::pin(lanes.enter(&lone))).is_none(), "it has one in flight already");
    drop(slots.pop());
    drop(first);
    assert!(poll(&mut fifteenth).is_some());
}

#[tokio::test]
async fn a_waiter_that_gives_up_leaves_neither_place_nor_slot() {
    let lanes = lanes(1);
    let urgency = urgency(Lane::Create, "ns");
    let holder = lanes.enter(&urgency).await;
    let mut waiting = Box::pin(lanes.enter(&urgency));
    assert!(poll(&mut waiting).is_none());
    drop(waiting);
    let mut granted = Box::pin(lanes.enter(&urgency));
    assert!(poll(&mut granted).is_none());
    drop(holder);
    // The slot was sent to the waiter, who gives up before taking it.
    drop(granted);
    let state = lanes.lock();
    assert_eq!((state.in_flight, state.waiting.len(), state.tenants.len()), (0, 0, 0));
    assert_eq!(lanes.metrics.in_flight(Lane::Create).get(), 0);
    assert_eq!(lanes.metrics.queued(Lane::Create).get(), 0);
}

#[tokio::test]
async fn slots_of_one_epoch_cut_the_limit_once_and_the_excess_drains() {
    let lanes = Lanes::new(Limit::new(Concurrency { start: 4, min: 1, max: 4 }), LaneMetrics::default());
    let mut slots = Vec::new();
    for tenant in ["a", "b", "c", "d"] {
        slots.push(lanes.enter(&urgency(Lane::Create, tenant)).await);
    }
    let urgency = urgency(Lane::Create, "e");
    let mut next = Box::pin(lanes.enter(&urgency));
    assert!(poll(&mut next).is_none());
    for slot in slots.drain(..2) {
        slot.finish(Verdict::Congested);
    }
    assert_eq!(lanes.lock().limit.current(), 2);
    assert!(poll(&mut next).is_none(), "two of two are still in flight");
    slots.clear();
    assert!(poll(&mut next).is_some());
}

/// What may happen to the lanes.
#[derive(Clone, Debug)]
enum Op {
    Enter(u8, i64, u8),
    GiveUp(usize),
    Finish(usize, Verdict),
}

fn any_op() -> impl proptest::strategy::Strategy<Value = Op> {
    use proptest::prelude::*;
    let verdict = prop_oneof![Just(Verdict::Fine), Just(Verdict::Congested), Just(Verdict::Unknown)];
    prop_oneof![
        4 => (0..5_u8, 0..3_i64, 0..3_u8).prop_map(|(lane, due, tenant)| Op::Enter(lane, due, tenant)),
        1 => (0..64_usize).prop_map(Op::GiveUp),
        3 => (0..64_usize, verdict).prop_map(|(which, verdict)| Op::Finish(which, verdict)),
    ]
}

fn any_urgency(lane: u8, second: i64, tenant: u8) -> Urgency {
    let lane = [Lane::Create, Lane::Status, Lane::Delete, Lane::Read, Lane::Event][usize::from(lane)];
    Urgency { tenant: format!("t{tenant}").into(), ..due(lane, second) }
}

proptest::proptest! {
    #[test]
    fn whatever_comes_goes_or_gives_up_no_slot_is_lost_and_none_stands_idle_that_somebody_may_have(
        ops in proptest::collection::vec(any_op(), 1..200)
    ) {
        let lanes = Lanes::new(Limit::new(Concurrency { start: 8, min: 2, max: 16 }), LaneMetrics::default());
        let mut waiting = Vec::new();
        let mut held = Vec::new();
        for op in ops {
            match op {
                Op::Enter(lane, second, tenant) => {
                    let (lanes, urgency) = (lanes.clone(), any_urgency(lane, second, tenant));
                    waiting.push(Box::pin(async move { lanes.enter(&urgency).await }));
                }
                Op::GiveUp(which) if !waiting.is_empty() => drop(waiting.swap_remove(which % waiting.len())),
                Op::Finish(which, verdict) if !held.is_empty() => {
                    let slot: Slot = held.swap_remove(which % held.len());
                    slot.finish(verdict);
                }
                _ => {}
            }
            waiting.retain_mut(|place| poll(place).map(|slot| held.push(slot)).is_none());
            let state = lanes.lock();
            assert_eq!((state.in_flight, state.waiting.len()), (held.len(), waiting.len()));
            assert_eq!(state.tenants.values().sum::<usize>(), held.len());
            assert!(state.next().is_none(), "somebody could go on and was not let");
        }
        waiting.clear();
        held.clear();
        let state = lanes.lock();
        assert_eq!((state.in_flight, state.waiting.len(), state.tenants.len()), (0, 0, 0));
    }
}
