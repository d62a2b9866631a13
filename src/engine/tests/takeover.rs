//! Standing by, taking over, being cut.

use super::*;

/// One worker, so that the order of steps is that of the queue; running, and standing by.
fn standing_by() -> World {
    let clock = Clock::starting_at(noon());
    let options = Options { shards: 1, concurrent_steps: 1, ..Options::new(clock.clone()) };
    let supervisor = Supervisor::new(Probe::default(), options);
    supervisor.stand_by();
    let world = World { clock, supervisor, stop: CancellationToken::new(), tasks: TaskTracker::new() };
    world.run();
    world
}

fn names(world: &World) -> Vec<String> {
    world.seen().iter().map(|seen| seen.key.name.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn who_stands_by_folds_messages_and_queues_nothing() {
    let world = standing_by();
    world.send("a", News::Generation(1));
    world.send("b", News::Wants(Wake::After(Duration::from_secs(1))));
    world.send("a", News::Generation(2));
    pass(3_600_000).await;
    assert!(world.supervisor.is_standing_by());
    let counts = world.supervisor.debug_counts();
    assert_eq!((counts.cells, counts.queues), (2, Default::default()));
    assert_eq!(world.supervisor.mail(&key("a")), Some(Some(2)));
    assert_eq!(world.supervisor.mail(&key("c")), None);
    assert_eq!(world.seen(), []);
}

#[tokio::test(start_paused = true)]
async fn who_stands_by_forgets_what_is_gone() {
    let world = standing_by();
    world.send("a", News::Generation(1));
    world.send("b", News::Generation(1));
    world.supervisor.send_gone(key("a"), News::Generation(2));
    world.supervisor.send_gone(key("never heard of"), News::Generation(2));
    assert_eq!(world.supervisor.debug_counts().cells, 1);
    world.supervisor.take_over();
    world.supervisor.send_gone(key("b"), News::Generation(2));
    pass(10).await;
    // Who works finds out by a step.
    assert_eq!(names(&world), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_take_over_steps_what_is_due_first_in_that_order_then_the_rest() {
    let world = standing_by();
    // Due at noon and so many seconds; 0 is never.
    for (name, due_s) in [("z", 0), ("late", 50), ("first", 10), ("a", 0), ("second", 20), ("m", 400)] {
        world.send(name, News::Generation(due_s));
    }
    pass(60_000).await;
    world.supervisor.take_over();
    pass(10).await;
    assert_eq!(names(&world), ["first", "second", "late", "m", "a", "z"]);
}

#[tokio::test(start_paused = true)]
async fn a_take_over_arms_what_comes_due_even_before_its_first_step_has_ended() {
    let world = standing_by();
    let told = Arc::new(Notify::new());
    world.script([Script::Wait(told.clone(), Next::done(None))]);
    world.send("busy", News::Generation(1));
    for name in ["b", "c", "d"] {
        world.send(name, News::Generation(0));
    }
    world.send("soon", News::Generation(61));
    pass(60_000).await;
    world.supervisor.take_over();
    pass(5_000).await;
    told.notify_one();
    pass(10).await;
    // The only worker was busy when it came due; it goes before what was merely listed.
    assert_eq!(names(&world)[..2], ["busy", "soon"]);
    assert_eq!(world.seen().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn after_a_take_over_messages_wake_as_ever() {
    let world = standing_by();
    world.supervisor.take_over();
    assert!(!world.supervisor.is_standing_by());
    world.send("a", News::Generation(1));
    pass(10).await;
    assert_eq!(world.step_times_s(), [0]);
}

#[tokio::test(start_paused = true)]
async fn a_cut_ends_steps_in_the_middle_whatever_the_budget() {
    let world = World::new();
    world.supervisor.open();
    let (cut, supervisor) = (CancellationToken::new(), world.supervisor.clone());
    let run = world.tasks.spawn({
        let (cut, stop) = (cut.clone(), world.stop.clone());
        async move { supervisor.run_until_cut(stop, BUDGET, cut).await }
    });
    world.script([Script::Wait(Arc::new(Notify::new()), Next::done(None))]);
    world.send("a", News::Generation(1));
    pass(10).await;
    cut.cancel();
    assert_eq!(run.await.unwrap(), 1);
    assert_eq!(world.clock.wall(), noon() + TimeDelta::milliseconds(10));
    assert_eq!(world.supervisor.debug_counts().queues.in_flight, 0);
}
