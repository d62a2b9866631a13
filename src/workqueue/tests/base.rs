//! Adding, handing out, finishing, waiting, shutting down, turns.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use futures::future::join_all;
use tokio::time::advance;

use super::*;

async fn shut_down(queue: &Queue<u32>, with_drain: bool) {
    if with_drain {
        queue.shut_down_with_drain().await;
    } else {
        queue.shut_down();
    }
}

#[tokio::test(start_paused = true)]
async fn s01_producers_and_consumers_meet_and_nothing_comes_after_shutdown() {
    for with_drain in [false, true] {
        let queue = queue::<u32>();
        let seen = Cell::new(0);
        let producers = join_all((0..50).map(|id| {
            let queue = &queue;
            async move {
                for _ in 0..50 {
                    queue.add(id);
                    tokio::time::sleep(ms(1)).await;
                }
            }
        }));
        let consumers = join_all((0..10).map(|_| async {
            while let Some(guard) = queue.get().await {
                assert_ne!(*guard, 999, "added after shutdown");
                seen.set(seen.get() + 1);
                tokio::time::sleep(ms(3)).await;
            }
        }));
        let end = async {
            producers.await;
            shut_down(&queue, with_drain).await;
            queue.add(999);
        };
        tokio::join!(consumers, end);
        assert!(seen.get() >= 50);
        assert_eq!(queue.counts(), Counts::default());
    }
}

#[tokio::test(start_paused = true)]
async fn s02_keys_added_again_by_their_consumers_all_come_again() {
    for with_drain in [false, true] {
        let queue = queue::<u32>();
        (0..50).for_each(|id| queue.add(id));
        let first = Cell::new(0);
        let again = Cell::new(0);
        let seen = RefCell::new(BTreeSet::new());
        let consumers = join_all((0..10).map(|_| async {
            while let Some(guard) = queue.get().await {
                if seen.borrow_mut().insert(*guard) {
                    first.set(first.get() + 1);
                    queue.add(*guard);
                } else {
                    again.set(again.get() + 1);
                }
                tokio::time::sleep(ms(1)).await;
            }
        }));
        let end = async {
            tokio::time::sleep(ms(100)).await;
            shut_down(&queue, with_drain).await;
        };
        tokio::join!(consumers, end);
        assert_eq!((first.get(), again.get(), queue.counts()), (50, 50, Counts::default()));
    }
}

#[tokio::test(start_paused = true)]
async fn s03_len_counts_each_waiting_key_once() {
    let queue = queue();
    queue.add("a");
    assert_eq!(queue.len(), 1);
    queue.add("b");
    assert_eq!(queue.len(), 2);
    queue.add("a");
    assert_eq!(queue.len(), 2);
    assert!(!queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn s04_a_key_added_while_in_flight_comes_again_after_done() {
    let queue = queue();
    queue.add("a");
    let guard = poll(&queue).unwrap();
    queue.add("a");
    assert_eq!(queue.len(), 0);
    drop(guard);
    assert_eq!(drain(&queue), ["a"]);
    assert_eq!(queue.counts(), Counts::default());
}

#[tokio::test(start_paused = true)]
async fn s05_two_adds_are_one_hand_out_and_the_second_may_make_it_more_urgent() {
    let queue = queue();
    queue.add_in("a", Class::Listed);
    queue.add_in("b", Class::Listed);
    queue.add_in("c", Class::Due);
    queue.add_in("b", Class::Due);
    queue.add_in("c", Class::Listed);
    assert_eq!(drain(&queue), ["c", "b", "a"], "b goes behind what is due already; c is never made less urgent");
}

#[tokio::test(start_paused = true)]
async fn s06_adds_while_in_flight_collapse_and_a_second_consumer_blocks_until_done() {
    let queue = queue();
    queue.add("a");
    let first = queue.get().await.unwrap();
    queue.add("a");
    queue.add("a");
    let mut second = Box::pin(queue.get());
    assert!(second.as_mut().now_or_never().is_none());
    drop(first);
    assert_eq!(*second.await.unwrap(), "a");
    assert_eq!(drain(&queue), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_key_in_flight_comes_again_in_the_most_urgent_class_asked_for() {
    let queue = queue();
    queue.add("a");
    let guard = poll(&queue).unwrap();
    queue.add_in("a", Class::Listed);
    queue.add_in("b", Class::Listed);
    queue.add_in("a", Class::Due);
    drop(guard);
    assert_eq!(drain(&queue), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn s07_a_drain_waits_for_all_in_flight() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    let guards = [poll(&queue).unwrap(), poll(&queue).unwrap()];
    let mut drain = Box::pin(queue.shut_down_with_drain());
    for guard in guards {
        assert!(drain.as_mut().now_or_never().is_none());
        drop(guard);
    }
    assert!(drain.now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn s08_a_plain_shutdown_waits_for_nobody() {
    let queue = queue();
    queue.add("a");
    let guard = poll(&queue).unwrap();
    queue.shut_down();
    assert!(queue.get().await.is_none());
    assert_eq!(queue.counts().in_flight, 1);
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn s09_a_plain_shutdown_releases_whoever_drains() {
    let queue = queue();
    queue.add("a");
    let _guard = poll(&queue).unwrap();
    let mut drain = Box::pin(queue.shut_down_with_drain());
    assert!(drain.as_mut().now_or_never().is_none());
    queue.shut_down();
    assert!(drain.now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn s10_a_drain_hands_out_once_more_what_became_dirty_in_flight() {
    let queue = queue();
    queue.add("a");
    let guard = poll(&queue).unwrap();
    queue.add("a");
    let mut drain = Box::pin(queue.shut_down_with_drain());
    assert!(drain.as_mut().now_or_never().is_none());
    drop(guard);
    assert!(drain.as_mut().now_or_never().is_none(), "the key still waits");
    drop(queue.get().await.unwrap());
    assert!(drain.now_or_never().is_some());
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn s11_nothing_keeps_a_finished_key_alive() {
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Key(std::sync::Arc<()>);
    let queue = queue();
    let key = Key(std::sync::Arc::default());
    let alive = std::sync::Arc::downgrade(&key.0);
    queue.add_rate_limited(key.clone());
    queue.add_after(key.clone(), Duration::from_secs(60));
    queue.add(key.clone());
    drop(poll(&queue));
    queue.cancel(&key);
    drop(key);
    assert_eq!(alive.strong_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn s12_a_drain_waits_for_what_is_queued_though_nothing_is_in_flight() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    queue.add_after("later", Duration::from_secs(3600));
    let mut drain = Box::pin(queue.shut_down_with_drain());
    for _ in 0..2 {
        assert!(drain.as_mut().now_or_never().is_none());
        drop(queue.get().await.unwrap());
    }
    assert!(drain.now_or_never().is_some(), "never for the delayed");
}

#[tokio::test(start_paused = true)]
async fn s12_a_panic_and_a_cancelled_task_are_done_with_their_key() {
    let queue = queue();
    queue.add("a");
    let panicking = std::panic::AssertUnwindSafe(async {
        let _guard = queue.get().await.unwrap();
        panic!("on purpose");
    });
    assert!(panicking.catch_unwind().await.is_err());
    queue.add("a");
    let mut cancelled = Box::pin(async {
        let _guard = queue.get().await.unwrap();
        std::future::pending::<()>().await;
    });
    assert!(cancelled.as_mut().now_or_never().is_none());
    assert_eq!(queue.counts().in_flight, 1);
    drop(cancelled);
    assert_eq!(queue.counts(), Counts::default());
}

// Waiting.

#[tokio::test(start_paused = true)]
async fn a_getter_dropped_after_it_was_woken_passes_the_wake_up_on() {
    let queue = queue();
    let mut first = Box::pin(queue.get());
    let mut second = Box::pin(queue.get());
    assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
    queue.add("a");
    drop(first);
    assert_eq!(*second.await.unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_timekeeper_passes_the_timer_on() {
    let queue = queue();
    queue.add_after("a", Duration::from_secs(3600));
    let mut first = Box::pin(queue.get());
    let mut second = Box::pin(queue.get());
    assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
    drop(first);
    assert_eq!(*second.await.unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn an_earlier_delay_shortens_the_sleep_of_a_waiting_getter() {
    let queue = queue();
    let clock = Clock::system();
    let start = clock.mono();
    queue.add_after("late", Duration::from_secs(3600));
    let wait = async { queue.get().await.map(|guard| *guard) };
    let add = async {
        tokio::task::yield_now().await;
        queue.add_after("soon", ms(20));
    };
    assert_eq!(tokio::join!(wait, add).0, Some("soon"));
    assert!(clock.mono() - start < Duration::from_secs(1));
}

/// Real threads, real time: 128 getters, each key must be handed out; a lost wake-up would hang the test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_up_is_lost_among_128_getters() {
    let queue = queue::<u32>();
    let tasks = tokio_util::task::TaskTracker::new();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    for _ in 0..128 {
        let (queue, done) = (queue.clone(), done.clone());
        tasks.spawn(async move {
            while let Some(_guard) = queue.get().await {
                done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        });
    }
    tasks.close();
    for key in 0..20_000 {
        match key % 3 {
            0 => queue.add(key),
            1 => queue.add_after(key, Duration::from_micros(u64::from(key % 997))),
            _ => queue.add_in(key, Class::Listed),
        }
        if key % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    while queue.counts() != Counts::default() {
        tokio::task::yield_now().await;
    }
    queue.shut_down();
    tasks.wait().await;
    assert_eq!(done.load(std::sync::atomic::Ordering::Relaxed), 20_000);
}

// Turns.

#[tokio::test(start_paused = true)]
async fn tenants_take_turns_and_the_due_go_before_the_listed() {
    let queue = Queue::new(Options { tenant_of: |key: &(u64, u32)| key.0, ..Options::new(Clock::system()) });
    (0..10_000).for_each(|n| queue.add_in((1, n), Class::Listed));
    queue.add_in((2, 0), Class::Listed);
    queue.add_after((3, 0), ms(5));
    advance(ms(5)).await;
    let first: Vec<_> = (0..4).map(|_| *poll(&queue).unwrap()).collect();
    assert_eq!(first, [(3, 0), (1, 0), (2, 0), (1, 1)]);
}
