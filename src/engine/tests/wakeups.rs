//! No wake-up is lost, whatever a step returns; and none runs hot.

use std::task::Poll;

use futures::FutureExt;
use futures::future::poll_fn;

use super::*;

const NONE: Option<WallTime> = None;

#[tokio::test(start_paused = true)]
async fn after_success_the_actor_steps_again_when_it_is_due_and_not_before() {
    let world = World::opened();
    world.script([Script::Return(Next::done(World::at_s(3600)))]);
    world.send("a", News::Generation(1));
    pass(3_599_000).await;
    assert_eq!(world.step_times_s(), [0]);
    pass(1_100).await;
    let seen = world.seen();
    assert_eq!(seen.len(), 2);
    let late = seen[1].at - World::at_s(3600).unwrap();
    assert!(late >= TimeDelta::zero() && late <= TimeDelta::milliseconds(1), "{late}");
}

#[tokio::test(start_paused = true)]
async fn after_nothing_only_news_wakes_the_actor() {
    let world = World::opened();
    world.send("a", News::Generation(1));
    pass(3_600_000).await;
    assert_eq!(world.step_times_s(), [0]);
    assert_eq!(world.supervisor.debug_counts().queues, Default::default());
    world.send("a", News::Generation(2));
    pass(10).await;
    assert_eq!(world.seen()[1].generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn an_error_is_retried_with_growing_waits_and_success_forgets_it() {
    let world = World::opened();
    world.script(std::iter::repeat_n(Script::Return(Next::failed(Retry::Backoff, NONE)), 4));
    world.script([Script::Return(Next::failed(Retry::Conflict, NONE))]);
    world.send("a", News::Generation(1));
    pass(10_000).await;
    let failures: Vec<_> = world.seen().iter().map(|seen| seen.failures).collect();
    assert_eq!(failures, [0, 1, 2, 3, 4, 5]);
    let gaps: Vec<_> = world.seen().windows(2).map(|pair| (pair[1].at - pair[0].at).num_milliseconds()).collect();
    for (gap, longest) in gaps.iter().zip([5, 10, 20, 40, 80]) {
        assert!((longest / 2..=longest + 1).contains(gap), "{gaps:?}");
    }
    assert_eq!(world.supervisor.debug_counts().queues.limiter_records, 0);
}

#[tokio::test(start_paused = true)]
async fn a_success_with_a_due_instant_forgets_the_failures_before_it() {
    let world = World::opened();
    world.script(std::iter::repeat_n(Script::Return(Next::failed(Retry::Backoff, NONE)), 3));
    world.script([Script::Return(Next::done(World::at_s(60)))]);
    world.script([Script::Return(Next::failed(Retry::Backoff, NONE))]);
    world.send("a", News::Generation(1));
    pass(61_000).await;
    let failures: Vec<_> = world.seen().iter().map(|seen| seen.failures).collect();
    assert_eq!(failures, [0, 1, 2, 3, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn after_every_kind_of_failure_the_due_instant_known_before_still_stands() {
    let failures = [
        Script::Return(Next::failed(Retry::AtNextDue, NONE)),
        Script::Return(Next::failed(Retry::Backoff, NONE)),
        Script::Return(Next::failed(Retry::Conflict, NONE)),
        Script::Return(Next::failed(Retry::After(Duration::from_secs(20)), NONE)),
        Script::Return(Next::failed(Retry::After(Duration::from_secs(7200)), NONE)),
        Script::Panic,
    ];
    for failure in failures {
        let world = World::opened();
        world.script([Script::Return(Next::done(World::at_s(60))), failure]);
        // Whatever wakes the actor before it is due also fails, and names no instant.
        world.script([Script::Return(Next::failed(Retry::AtNextDue, NONE))]);
        world.send("a", News::Generation(1));
        pass(10).await;
        world.send("a", News::Generation(2));
        pass(59_000).await;
        assert!(world.step_times_s().iter().all(|second| *second < 60));
        pass(1_000).await;
        assert!(world.step_times_s().contains(&60), "{:?}", world.step_times_s());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_may_name_a_new_due_instant() {
    let world = World::opened();
    world.script([Script::Return(Next::failed(Retry::AtNextDue, World::at_s(120)))]);
    world.send("a", News::Generation(1));
    pass(200_000).await;
    assert_eq!(world.step_times_s(), [0, 120]);
}

#[tokio::test(start_paused = true)]
async fn without_any_due_instant_the_next_attempt_waits_for_news() {
    let world = World::opened();
    world.script([Script::Return(Next::failed(Retry::AtNextDue, NONE))]);
    world.send("a", News::Generation(1));
    pass(3_600_000).await;
    assert_eq!(world.step_times_s(), [0]);
    world.send("a", News::Generation(2));
    pass(10).await;
    assert_eq!(world.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_server_s_wait_is_kept() {
    let world = World::opened();
    world.script([Script::Return(Next::failed(Retry::After(Duration::from_secs(7)), NONE))]);
    world.send("a", News::Generation(1));
    pass(60_000).await;
    assert_eq!(world.step_times_s(), [0, 7]);
}

#[tokio::test(start_paused = true)]
async fn what_is_due_at_once_again_and_again_does_not_run_hot() {
    let past = World::at_s(-60);
    let hot = [
        Next::done(past),
        Next::failed(Retry::After(Duration::ZERO), NONE),
        Next::failed(Retry::AtNextDue, past),
        Next::failed(Retry::Backoff, past),
    ];
    for next in hot {
        let world = World::opened();
        world.script(std::iter::repeat_n(Script::Return(next), 1_000));
        world.send("a", News::Generation(1));
        pass(60_000).await;
        let steps = world.seen().len();
        assert!((10..30).contains(&steps), "{next:?}: {steps} steps in a minute");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_its_key_a_back_off_and_a_fresh_state_and_nobody_else_anything() {
    let world = World::opened();
    world.send("a", News::Generation(1));
    pass(10).await;
    world.script([Script::Panic, Script::Panic]);
    world.send("a", News::Generation(2));
    world.send("b", News::Generation(1));
    pass(1_000).await;
    let steps_of = |name| world.seen().into_iter().filter(|seen| seen.key == key(name)).collect::<Vec<_>>();
    let (a, b) = (steps_of("a"), steps_of("b"));
    assert_eq!(a.len() + b.len(), 5, "both went on after two panics");
    assert!([&a, &b].iter().all(|steps| steps.last().is_some_and(|last| last.steps == 1)), "opened anew: {a:?} {b:?}");
    assert_eq!(a.last().unwrap().generation, Some(2), "the mailbox survives");
    assert_eq!(world.supervisor.debug_counts().queues, Default::default());
}

#[tokio::test(start_paused = true)]
async fn a_step_cancelled_at_any_await_leaves_its_actor_whole_and_awake() {
    const AWAITS: u32 = 5;
    for polls in 0..=AWAITS {
        let world = World::new();
        world.send("a", News::Generation(1));
        world.script([Script::Yield(AWAITS, Next::done(NONE))]);
        let engine = &world.supervisor.engine;
        let queue = engine.queue_of(&key("a"));
        let guard = queue.get().await.unwrap();
        let mut visit = Box::pin(engine.visit(queue, &guard, world.place(), &world.stop));
        for _ in 0..polls {
            assert!(poll_fn(|cx| Poll::Ready(visit.poll_unpin(cx).is_pending())).await);
        }
        drop(visit);
        drop(guard);
        // Never polled, the visit did not begin; the workers' guard is dropped by the same cancellation only after a poll.
        let began = polls > 0;
        assert_eq!(queue.counts().delayed, usize::from(began), "after {polls} polls");
        if began {
            world.supervisor.open();
            world.run();
            pass(1_000).await;
            let last = world.seen().last().cloned().unwrap();
            assert_eq!((last.generation, last.steps, last.failures), (Some(1), 2, 1), "state kept, one failure");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_step_does_not_lose_the_due_instant() {
    let world = World::new();
    let engine = &world.supervisor.engine;
    let queue = engine.queue_of(&key("a"));
    world.script([Script::Return(Next::done(World::at_s(60))), Script::Yield(1, Next::done(NONE))]);
    for _ in 0..2 {
        world.send("a", News::Generation(1));
        let guard = queue.get().await.unwrap();
        engine.visit(queue, &guard, world.place(), &world.stop).now_or_never();
    }
    world.script([Script::Return(Next::failed(Retry::AtNextDue, NONE))]);
    world.supervisor.open();
    world.run();
    pass(61_000).await;
    assert_eq!(world.step_times_s(), [0, 0, 0, 60]);
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_stepped_forward_wakes_within_a_second_what_became_due() {
    let world = World::opened();
    world
        .script([World::at_s(7200), World::at_s(3600), World::at_s(90_000)].map(|due| Script::Return(Next::done(due))));
    for name in ["later", "sooner", "tomorrow"] {
        world.send(name, News::Generation(1));
        pass(10).await;
    }
    world.clock.step(TimeDelta::hours(3));
    pass(1_000).await;
    let woken: Vec<_> = world.seen().split_off(3).into_iter().map(|seen| seen.key).collect();
    assert_eq!(woken.len(), 2, "{woken:?}");
    assert!(!woken.contains(&key("tomorrow")));
    let left = world.clock.until(World::at_s(90_000).unwrap());
    pass(u64::try_from(left.as_millis()).unwrap() + 2).await;
    assert_eq!(world.seen().last().unwrap().key, key("tomorrow"), "on time by the new clock");
    assert_eq!(world.step_times_s().last(), Some(&90_000));
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_stepped_forward_makes_whoever_has_unseen_news_decide_again() {
    let world = World::opened();
    world.script([Script::Return(Next::done(World::at_s(90_000)))]);
    world.send("edited", News::Generation(1));
    pass(10).await;
    // Due in an hour by the news, which no step has seen.
    world.send("edited", News::Wants(Wake::After(Duration::from_secs(3600))));
    world.clock.step(TimeDelta::hours(1));
    pass(1_000).await;
    assert_eq!(world.seen().len(), 2, "not an hour late by the new clock");
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_stepped_back_makes_everybody_decide_again_within_a_second() {
    let world = World::opened();
    world.script([World::at_s(3600), NONE].map(|due| Script::Return(Next::done(due))));
    for name in ["timed", "idle"] {
        world.send(name, News::Generation(1));
        pass(10).await;
    }
    // Decides anew, as it must: the right next start is a day earlier than the one it had in mind.
    world.clock.step(TimeDelta::days(-1));
    pass(1_000).await;
    let mut woken: Vec<_> = world.seen().split_off(2).into_iter().map(|seen| seen.key.name.to_string()).collect();
    woken.sort();
    assert_eq!(woken, ["idle", "timed"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_undoes_one_from_before_it_ran_is_noticed() {
    let world = World::new();
    // Before it runs, as a stand-by's.
    world.clock.step(TimeDelta::minutes(-10));
    world.run();
    world.supervisor.open();
    pass(10).await;
    world.script([Script::Return(Next::done(World::at_s(3600)))]);
    world.send("a", News::Generation(1));
    pass(10).await;
    world.clock.step(TimeDelta::minutes(10));
    pass(3_600_000).await;
    assert_eq!(world.step_times_s().last(), Some(&3600), "on time by the right clock");
}

#[tokio::test(start_paused = true)]
async fn small_corrections_of_the_clock_are_let_be_until_they_add_up() {
    let world = World::opened();
    world.script([Script::Return(Next::done(World::at_s(3600)))]);
    world.send("a", News::Generation(1));
    pass(3_000_000).await;
    for _ in 0..3 {
        world.clock.step(TimeDelta::milliseconds(30));
        pass(1_000).await;
    }
    pass(597_000 - 59).await;
    assert_eq!(world.step_times_s(), [0, 3600], "armed anew after the second 30 ms");
}
