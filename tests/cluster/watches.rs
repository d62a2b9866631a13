//! Reflectors over the sandbox, with what goes wrong with watches.

use std::time::Duration;

use cronjob_controller::cluster::reflector::Phase;
use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::faults::{Action, Fault, Release};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use super::common::{Watcher, World, moment, pause};

/// A fault of watches over all namespaces: the reflector's, not ours.
fn watch_fault(action: Action) -> Fault {
    Fault::new(action).on(Verb::Watch).resource("batch", "cronjobs").namespace("")
}

/// How often the server was asked for a list or a watch.
fn asked(world: &World, verb: Verb) -> u64 {
    world.sandbox.requests().of(verb, "batch", "cronjobs")
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_and_the_watch_behind_it_are_one_request() {
    let world = World::new(1);
    for name in ["a", "b"] {
        world.create(name).await;
    }
    let watcher = Watcher::start(&world, |_| {});
    assert_eq!(watcher.heard().await, ["add a", "add b", "synced"]);
    world.create("c").await;
    world.suspend("a", true).await;
    world.delete("b").await;
    assert_eq!(watcher.heard().await, ["add c", "update a", "delete b"]);
    assert_eq!(watcher.cached(), world.truth().await);
    assert_eq!(asked(&world, Verb::Watch), 1);
    watcher.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_paged_list_shows_every_object_once() {
    let world = World::new(1);
    for name in ["a", "b", "c", "d", "e"] {
        world.create(name).await;
    }
    let watcher = Watcher::start(&world, |options| {
        options.streamed_lists = false;
        options.page_size = 2;
    });
    assert_eq!(watcher.heard().await, ["add a", "add b", "add c", "add d", "add e", "synced"]);
    assert_eq!(asked(&world, Verb::List), 3);
    watcher.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_happens_while_a_watch_is_cut_is_heard_afterwards_in_order() {
    let world = World::new(1);
    world.create("a").await;
    let watcher = Watcher::start(&world, |_| {});
    watcher.heard().await;
    let fault = world.sandbox.faults().install(Fault::refuse(503, None).on(Verb::Watch));
    world.sandbox.cut_watches();
    moment().await;
    world.create("b").await;
    world.suspend("a", true).await;
    world.delete("b").await;
    assert!(watcher.heard().await.is_empty());
    world.sandbox.faults().remove(fault);
    pause().await;
    assert_eq!(watcher.heard().await, ["add b", "update a", "delete b"]);
    watcher.finish().await;
}

#[tokio::test(start_paused = true)]
async fn after_410_what_vanished_is_heard_and_a_pair_that_came_and_went_is_not() {
    let world = World::new(1);
    for name in ["kept", "lost", "reborn"] {
        world.create(name).await;
    }
    let watcher = Watcher::start(&world, |_| {});
    watcher.heard().await;
    let fault = world.sandbox.faults().install(Fault::refuse(503, None).on(Verb::Watch));
    world.sandbox.cut_watches();
    moment().await;
    world.create("pair").await;
    world.delete("pair").await;
    world.delete("lost").await;
    world.delete("reborn").await;
    world.create("reborn").await;
    world.compact();
    world.sandbox.faults().remove(fault);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(watcher.heard().await, ["delete reborn", "add reborn", "delete lost", "relisted"]);
    assert_eq!(watcher.cached(), world.truth().await);
    watcher.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_answers_410_after_each_list_is_tried_less_and_less() {
    let world = World::new(1);
    world.sandbox.faults().install(watch_fault(Action::ExpireWatch));
    let watcher = Watcher::start(&world, |options| options.streamed_lists = false);
    sleep(Duration::from_secs(300)).await;
    let lists = asked(&world, Verb::List);
    assert!((5..=20).contains(&lists), "{lists} lists in five minutes");
    watcher.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_stalled_watch_is_found_out_and_nothing_is_missed() {
    let world = World::new(1);
    let watcher = Watcher::start(&world, |options| options.streamed_lists = false);
    watcher.heard().await;
    world.sandbox.faults().install(watch_fault(Action::StallWatch).times(1));
    world.sandbox.cut_watches();
    moment().await;
    world.create("a").await;
    assert!(watcher.heard().await.is_empty());
    sleep(Duration::from_secs(640)).await;
    assert_eq!(watcher.heard().await, ["add a", "relisted"]);
    watcher.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_day_costs_watches_and_no_list() {
    let world = World::new(1);
    world.create("a").await;
    let watcher = Watcher::start(&world, |_| {});
    sleep(Duration::from_secs(86_400)).await;
    assert_eq!(watcher.heard().await, ["add a", "synced"]);
    let watches = asked(&world, Verb::Watch);
    assert!((144..=288).contains(&watches), "{watches} watches in a day of 5 to 10 minutes each");
    assert_eq!(asked(&world, Verb::List), 0);
    watcher.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_held_cache_delays_and_loses_nothing() {
    let world = World::new(1);
    world.create("a").await;
    let watcher = Watcher::start(&world, |_| {});
    watcher.heard().await;
    let fault = Fault::stale_cache(Release::After(Duration::from_secs(20))).on(Verb::Patch).times(1);
    world.sandbox.faults().install(fault);
    world.suspend("a", true).await;
    assert!(watcher.heard().await.is_empty());
    sleep(Duration::from_secs(21)).await;
    assert_eq!(watcher.heard().await, ["update a"]);
    watcher.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_server_does_not_know_is_reported_absent() {
    let world = World::new(1);
    let watcher = Watcher::start(&world, |options| options.path = "/apis/nobody.example/v1/things".into());
    moment().await;
    assert_eq!(watcher.health.report().phase, Phase::Absent);
    assert!(!watcher.store.has_synced());
    watcher.finish().await;
}

/// One random change of the world.
async fn change(world: &World, rng: &mut StdRng) {
    let name = format!("c{}", rng.random_range(0..6));
    let exists = world.truth().await.iter().any(|(n, _)| *n == name);
    match rng.random_range(0..3) {
        0 if exists => world.delete(&name).await,
        _ if exists => world.suspend(&name, rng.random()).await,
        _ => world.create(&name).await,
    }
}

/// One random fault.
fn fault(rng: &mut StdRng) -> Fault {
    match rng.random_range(0..5) {
        0 => watch_fault(Action::CutWatch(Duration::from_millis(rng.random_range(0..3000)))).times(2),
        1 => watch_fault(Action::ExpireWatch).times(1),
        2 => watch_fault(Action::StallWatch).times(1),
        3 => Fault::refuse(503, None).on(Verb::Watch).on(Verb::List).namespace("").times(3),
        _ => Fault::new(Action::LostAnswer).on(Verb::Watch).on(Verb::List).namespace("").times(2),
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_to_the_watches_the_cache_ends_up_as_the_server() {
    for seed in 0..30 {
        let world = World::new(seed);
        let mut rng = StdRng::seed_from_u64(seed);
        let watcher = Watcher::start(&world, |options| {
            options.streamed_lists = seed % 2 == 0;
            options.page_size = 2;
        });
        for _ in 0..40 {
            change(&world, &mut rng).await;
            match rng.random_range(0..8) {
                0 => {
                    world.sandbox.faults().install(fault(&mut rng));
                }
                1 => world.sandbox.cut_watches(),
                2 => world.compact(),
                _ => {}
            }
            sleep(Duration::from_millis(rng.random_range(0..4000))).await;
        }
        world.sandbox.heal();
        sleep(Duration::from_secs(1500)).await;
        assert_eq!(watcher.cached(), world.truth().await, "seed {seed}");
        assert!(watcher.store.has_synced());
        watcher.finish().await;
    }
}
