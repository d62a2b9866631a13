//! Keys that wait for an instant, and the waits between attempts.

use tokio::time::advance;

use super::*;

#[tokio::test(start_paused = true)]
async fn s13_a_delayed_key_comes_once_and_not_before() {
    let queue = queue();
    queue.add_after("a", ms(50));
    advance(ms(49)).await;
    assert_eq!(queue.len(), 0);
    advance(ms(11)).await;
    assert_eq!(drain(&queue), ["a"]);
    advance(Duration::from_secs(10)).await;
    assert_eq!(queue.counts(), Counts::default());
}

#[tokio::test(start_paused = true)]
async fn s14_of_two_delays_the_earlier_wins_and_the_later_is_dropped() {
    for (delays, step) in [([50, 70], 60), ([50, 30], 40)] {
        let queue = queue();
        delays.iter().for_each(|delay| queue.add_after("a", ms(*delay)));
        advance(ms(step)).await;
        assert_eq!(drain(&queue), ["a"]);
        advance(ms(20)).await;
        assert_eq!(queue.counts(), Counts::default());
    }
}

#[tokio::test(start_paused = true)]
async fn s15_delays_come_in_the_order_of_their_deadlines() {
    let queue = queue();
    queue.add_after("a", Duration::from_secs(1));
    queue.add_after("b", ms(50));
    advance(ms(60)).await;
    assert_eq!(drain(&queue), ["b"]);
    queue.add_after("c", Duration::from_secs(2));
    advance(Duration::from_secs(1)).await;
    assert_eq!(drain(&queue), ["a"]);
    advance(Duration::from_secs(2)).await;
    assert_eq!(drain(&queue), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn s16_after_a_jump_the_order_is_still_that_of_the_deadlines() {
    let queue = queue();
    [1000, 500, 250].into_iter().for_each(|delay| queue.add_after(delay, ms(delay)));
    advance(Duration::from_secs(2)).await;
    queue.add(0);
    assert_eq!(drain(&queue), [250, 500, 1000, 0]);
}

#[tokio::test(start_paused = true)]
async fn s17_an_immediate_add_neither_cancels_nor_postpones_a_delay() {
    let queue = queue();
    queue.add_after("a", Duration::from_secs(10));
    queue.add("a");
    assert_eq!(drain(&queue), ["a"]);
    advance(ms(9_999)).await;
    assert_eq!(queue.len(), 0);
    advance(ms(1)).await;
    assert_eq!(drain(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn s17_there_is_no_longest_delay() {
    const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);
    let queue = queue();
    queue.add_after("never", Duration::MAX);
    queue.add_after("leap day", 8 * YEAR);
    let start = Clock::system().mono();
    assert_eq!(*queue.get().await.unwrap(), "leap day");
    let waited = Clock::system().mono() - start;
    assert!(waited >= 8 * YEAR && waited < 8 * YEAR + ms(2), "{waited:?}");
    assert_eq!(queue.counts().delayed, 1);
}

#[tokio::test(start_paused = true)]
async fn s17_no_delay_is_an_immediate_add() {
    let queue = queue();
    queue.add_after("a", Duration::ZERO);
    assert_eq!(drain(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn s17_ten_thousand_equal_deadlines_come_first_come_first_served() {
    let queue = queue();
    (0..10_000).for_each(|key| queue.add_after(key, Duration::from_secs(60)));
    advance(Duration::from_secs(60)).await;
    assert_eq!(drain(&queue), (0..10_000).collect::<Vec<_>>());
    assert_eq!(queue.counts(), Counts::default());
}

#[tokio::test(start_paused = true)]
async fn s17_shutdown_drops_what_is_delayed() {
    let queue = queue();
    queue.add_after("a", ms(50));
    queue.shut_down();
    queue.add_after("b", ms(50));
    queue.add_rate_limited("c");
    advance(Duration::from_secs(10)).await;
    assert_eq!(queue.counts(), Counts::default());
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn cancel_drops_delay_and_failures_and_nothing_else() {
    let queue = queue();
    queue.add_rate_limited("a");
    queue.add_after("b", ms(50));
    queue.add("a");
    queue.cancel(&"a");
    assert_eq!(queue.num_requeues(&"a"), 0);
    assert_eq!(queue.counts(), Counts { queued: 1, delayed: 1, ..Counts::default() });
    advance(Duration::from_secs(10)).await;
    assert_eq!(drain(&queue), ["a", "b"]);
}

// Rate limits.

#[tokio::test(start_paused = true)]
async fn s23_failures_space_the_attempts_of_a_key() {
    let limiter = Box::new(ItemExponential::new(ms(1), Duration::from_secs(1)));
    let queue = Queue::new(Options { limiter, ..Options::new(Clock::system()) });
    queue.add_rate_limited("one");
    assert_eq!(queue.len(), 0);
    advance(ms(1)).await;
    assert_eq!(drain(&queue), ["one"]);
    queue.add_rate_limited("one");
    advance(ms(1)).await;
    assert_eq!(queue.len(), 0);
    advance(ms(1)).await;
    assert_eq!(drain(&queue), ["one"]);
    assert_eq!((queue.num_requeues(&"one"), queue.num_requeues(&"two")), (2, 0));
    queue.add_rate_limited("two");
    advance(ms(1)).await;
    assert_eq!(drain(&queue), ["two"]);
    queue.forget(&"one");
    assert_eq!(queue.num_requeues(&"one"), 0);
    queue.add_rate_limited("one");
    advance(ms(1)).await;
    assert_eq!(drain(&queue), ["one"]);
}
