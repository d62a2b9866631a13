//! Opening, shards, metrics, shutdown.

use prometheus_client::registry::Registry;

use super::super::supervisor::shard_of;
use super::*;
use crate::workqueue;

#[tokio::test(start_paused = true)]
async fn nothing_steps_before_the_supervisor_is_opened() {
    let world = World::new();
    world.run();
    world.send("a", News::Generation(1));
    pass(3_600_000).await;
    assert_eq!(world.seen(), []);
    world.supervisor.open();
    pass(10).await;
    assert_eq!(world.step_times_s(), [3600]);
}

#[tokio::test(start_paused = true)]
async fn what_falls_due_goes_before_what_was_listed_before_the_opening() {
    let clock = Clock::starting_at(noon());
    let options = Options { shards: 1, concurrent_steps: 1, ..Options::new(clock.clone()) };
    let supervisor = Supervisor::new(Probe::default(), options);
    for n in 0..100 {
        supervisor.send(key(&n.to_string()), News::Generation(1));
    }
    supervisor.send(key("due"), News::Wants(Wake::After(Duration::from_millis(5))));
    pass(6).await;
    supervisor.open();
    supervisor.send(key("fresh"), News::Generation(1));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    tasks.spawn({
        let (supervisor, stop) = (supervisor.clone(), stop.clone());
        async move { supervisor.run(stop, BUDGET).await }
    });
    pass(10).await;
    let seen: Vec<_> = supervisor.kind().seen.lock().unwrap().iter().map(|seen| seen.key.name.to_string()).collect();
    assert_eq!(seen[..4], ["due", "fresh", "0", "1"]);
    assert_eq!(seen.len(), 102);
}

#[tokio::test(start_paused = true)]
async fn a_step_with_nothing_urgent_left_lets_another_begin_and_still_has_its_key() {
    let told = Arc::new(Notify::new());
    for (gives_way, begun) in [(false, 2), (true, 5)] {
        let options = Options { shards: 1, concurrent_steps: 2, ..Options::new(Clock::starting_at(noon())) };
        let world = World { supervisor: Supervisor::new(Probe::default(), options), ..World::new() };
        world.supervisor.open();
        world.run();
        let wait = |told| {
            if gives_way { Script::GiveWay(told, Next::done(None)) } else { Script::Wait(told, Next::done(None)) }
        };
        world.script((0..5).map(|_| wait(told.clone())));
        for name in ["a", "b", "c", "d", "e", "a"] {
            world.send(name, News::Generation(1));
            pass(1).await;
        }
        assert_eq!(world.seen().len(), begun, "gives way: {gives_way}");
        for _ in 0..5 {
            told.notify_waiters();
            pass(10).await;
        }
        assert_eq!(world.seen().len(), 6, "the news about the first came while it was under way");
        world.stop.cancel();
        pass(10).await;
    }
}

#[test]
fn the_shard_of_a_key_is_a_pure_function_of_it() {
    let shards = |names: [&str; 6]| names.map(|name| shard_of(&ObjectKey::new("team-a", name), 8));
    assert_eq!(shards(["etl", "train", "train-2", "backup", "report", ""]), GOLDEN);
    assert_eq!(shard_of(&ObjectKey::new("team-b", "etl"), 8), GOLDEN_OTHER_NAMESPACE);
    assert_eq!(shard_of(&key("a"), 1), 0);
    assert_eq!(shard_of(&key("a"), 0), 0);
}

/// On 64-bit machines.
const GOLDEN: [usize; 6] = [6, 4, 4, 5, 5, 0];
const GOLDEN_OTHER_NAMESPACE: usize = 6;

#[test]
fn keys_spread_evenly_over_shards() {
    let mut per_shard = [0; 8];
    for n in 0..20_000 {
        per_shard[shard_of(&ObjectKey::new(format!("team-{}", n % 50), format!("cron-{n}")), 8)] += 1;
    }
    assert!(per_shard.iter().all(|keys| (2_250..2_750).contains(keys)), "{per_shard:?}");
}

#[tokio::test(start_paused = true)]
async fn shutdown_lets_steps_in_flight_finish_and_takes_no_new_work() {
    let world = World::new();
    world.supervisor.open();
    let run = world.run();
    let told = Arc::new(Notify::new());
    world.script([Script::Wait(told.clone(), Next::done(None))]);
    world.send("a", News::Generation(1));
    pass(10).await;
    world.stop.cancel();
    pass(10).await;
    world.send("b", News::Generation(1));
    pass(10_000).await;
    assert!(!run.is_finished());
    told.notify_one();
    assert_eq!(run.await.unwrap(), 0);
    assert_eq!(world.seen().len(), 1);
    assert_eq!((world.clock.wall() - noon()).num_seconds(), 10, "as soon as the step had finished");
}

#[tokio::test(start_paused = true)]
async fn shutdown_cuts_off_what_does_not_finish_within_the_budget() {
    let world = World::new();
    world.supervisor.open();
    let run = world.run();
    world.script([Script::Wait(Arc::default(), Next::done(None)), Script::Wait(Arc::default(), Next::done(None))]);
    world.send("a", News::Generation(1));
    world.send("b", News::Generation(1));
    world.send("c", News::Generation(1));
    pass(10).await;
    world.stop.cancel();
    assert_eq!(run.await.unwrap(), 2);
    let counts = world.supervisor.debug_counts();
    assert_eq!((counts.cells, counts.queues), (3, workqueue::Counts::default()));
    let waited = world.clock.wall() - noon();
    assert_eq!(waited.num_seconds(), i64::try_from(BUDGET.as_secs()).unwrap());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_ends_its_tasks() {
    let world = World::new();
    world.supervisor.open();
    world.script([Script::Wait(Arc::default(), Next::done(None))]);
    world.send("a", News::Generation(1));
    let cut = tokio::time::timeout(Duration::from_secs(1), world.supervisor.run(world.stop.clone(), BUDGET)).await;
    assert!(cut.is_err());
    pass(10).await;
    assert_eq!(world.supervisor.debug_counts().queues.in_flight, 0);
    assert!(!world.stop.is_cancelled(), "the caller's token is not ours to cancel");
}

#[tokio::test(start_paused = true)]
async fn the_metrics_tell_how_many_actors_there_are_and_how_their_steps_went() {
    let mut registry = Registry::default();
    let options = Options {
        queue_metrics: Some((workqueue::Metrics::register(&mut registry), "cronjob".to_owned())),
        metrics: Some(Metrics::register(&mut registry).supervisor("cronjob")),
        ..Options::new(Clock::starting_at(noon()))
    };
    let supervisor = Supervisor::new(Probe::default(), options);
    let script = [Script::Panic, Script::Return(Next::failed(Retry::Conflict, None))];
    supervisor.kind().script.lock().unwrap().extend(script);
    supervisor.open();
    supervisor.send(key("a"), News::Generation(1));
    supervisor.send(key("b"), News::Generation(1));
    let _ = tokio::time::timeout(Duration::from_secs(5), supervisor.run(CancellationToken::new(), BUDGET)).await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "engine_actors{name=\"cronjob\"} 2",
        "engine_steps_total{name=\"cronjob\",result=\"panicked\"} 1",
        "engine_steps_total{name=\"cronjob\",result=\"conflict\"} 1",
        "engine_steps_total{name=\"cronjob\",result=\"done\"} 2",
        "workqueue_adds_total{name=\"cronjob\"} 4",
        "workqueue_depth{name=\"cronjob\"} 0",
    ] {
        assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
    }
}
