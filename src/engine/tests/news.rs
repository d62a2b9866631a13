//! Messages: the latest wins, none is lost, whatever it races with.

use std::collections::BTreeMap;

use super::*;

#[tokio::test(start_paused = true)]
async fn the_latest_news_wins_and_many_make_one_step() {
    let world = World::new();
    (1..=10).for_each(|generation| world.send("a", News::Generation(generation)));
    world.supervisor.open();
    world.run();
    pass(10).await;
    assert_eq!(world.seen().iter().map(|seen| seen.generation).collect::<Vec<_>>(), [Some(10)]);
}

#[tokio::test(start_paused = true)]
async fn news_during_a_step_leads_to_another_step_that_sees_it() {
    let world = World::opened();
    let told = Arc::new(Notify::new());
    world.script([Script::Wait(told.clone(), Next::done(None))]);
    world.send("a", News::Generation(1));
    pass(10).await;
    world.send("a", News::Generation(2));
    world.send("a", News::Generation(3));
    pass(10).await;
    assert_eq!(world.seen().len(), 1, "one step at a time");
    told.notify_one();
    pass(10).await;
    assert_eq!(world.seen().iter().map(|seen| seen.generation).collect::<Vec<_>>(), [Some(1), Some(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_wish_is_granted() {
    let world = World::opened();
    world.send("a", News::Generation(1));
    pass(10).await;
    world.send("a", News::Wants(Wake::After(Duration::from_secs(5))));
    world.send("a", News::Wants(Wake::Nothing));
    pass(60_000).await;
    assert_eq!(world.step_times_s(), [0, 5]);
}

#[tokio::test(start_paused = true)]
async fn news_that_wants_nothing_about_what_does_not_exist_leaves_no_trace() {
    let world = World::opened();
    world.send("ghost", News::Wants(Wake::Nothing));
    assert_eq!(world.supervisor.debug_counts(), Counts::default());
    pass(10).await;
    assert_eq!(world.seen(), []);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_panics_is_survived_and_the_actor_looks_again() {
    let world = World::opened();
    world.send("a", News::Generation(1));
    pass(10).await;
    world.send("a", News::Poison);
    world.send("b", News::Generation(1));
    pass(10).await;
    assert_eq!(world.seen().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn when_the_object_goes_every_trace_goes() {
    let world = World::opened();
    for name in ["a", "b", "c"] {
        world.script([Script::Return(Next::failed(Retry::Backoff, World::at_s(3600)))]);
        world.send(name, News::Generation(1));
        pass(1).await;
    }
    let counts = world.supervisor.debug_counts();
    assert_eq!((counts.cells, counts.queues.delayed, counts.queues.limiter_records), (3, 3, 3));
    ["a", "b", "c"].into_iter().for_each(|name| world.send(name, News::Deleted));
    pass(1).await;
    assert_eq!(world.supervisor.debug_counts(), Counts::default());
    pass(7_200_000).await;
    assert_eq!(world.seen().len(), 6, "nobody was left to wake");
}

#[tokio::test(start_paused = true)]
async fn news_that_races_with_the_removal_keeps_the_actor() {
    for (news, generation) in [(News::Generation(2), Some(2)), (News::Wants(Wake::Nothing), None)] {
        let world = World::opened();
        let told = Arc::new(Notify::new());
        world.script([Script::Wait(told.clone(), Next::gone())]);
        world.send("a", News::Deleted);
        pass(10).await;
        world.send("a", news);
        told.notify_one();
        pass(10).await;
        assert_eq!(world.seen().iter().map(|seen| seen.generation).collect::<Vec<_>>(), [None, generation]);
        assert_eq!(world.supervisor.debug_counts().cells, usize::from(generation.is_some()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_created_again_under_the_same_name_gets_a_fresh_actor() {
    let world = World::opened();
    world.send("a", News::Generation(1));
    pass(10).await;
    world.send("a", News::Deleted);
    pass(10).await;
    world.send("a", News::Generation(1));
    pass(10).await;
    let seen: Vec<_> = world.seen().iter().map(|seen| (seen.generation, seen.steps)).collect();
    assert_eq!(seen, [(Some(1), 1), (None, 2), (Some(1), 1)]);
}

/// Real threads, real time: senders, workers and removals race; in the end every actor has seen its last news.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_news_is_lost_among_racing_senders_and_removals() {
    let world = Arc::new(World::opened());
    let senders = TaskTracker::new();
    for sender in 0..4 {
        let world = world.clone();
        senders.spawn(async move {
            for round in 1..=2_000_u32 {
                let name = format!("{sender}-{}", round % 37);
                world.send(&name, if round % 5 == 0 { News::Deleted } else { News::Generation(round) });
                if round % 16 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            for n in 0..37 {
                world.send(&format!("{sender}-{n}"), News::Generation(9_999));
            }
        });
    }
    senders.close();
    senders.wait().await;
    let busy = |counts: Counts| counts.queues != Default::default();
    while busy(world.supervisor.debug_counts()) {
        tokio::task::yield_now().await;
    }
    let last: BTreeMap<_, _> = world.seen().into_iter().map(|seen| (seen.key, seen.generation)).collect();
    assert_eq!(last.len(), 4 * 37);
    assert!(last.values().all(|generation| *generation == Some(9_999)));
    last.into_keys().for_each(|key| world.supervisor.send(key, News::Deleted));
    while world.supervisor.debug_counts() != Counts::default() {
        tokio::task::yield_now().await;
    }
    world.stop.cancel();
}
