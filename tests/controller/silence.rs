//! What users reported of connections that die without a word: nothing comes any more, and nothing says so.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;

use crate::world::{Silent, World, at, cronjob, jobs};

/// Creations of `name` since `since`, in seconds after it.
fn started_after(world: &World, name: &str, since: &str) -> Vec<TimeDelta> {
    let created = world.said(name).into_iter().filter(|said| said.reason == "SuccessfulCreate");
    created.map(|said| said.at - at(since)).filter(|after| *after > TimeDelta::zero()).collect()
}

/// An `allow` and a `forbid`, every minute, whose Jobs take ten seconds; half an hour later.
async fn two_at_work() -> World {
    let mut world = World::new("2026-03-01T09:30:30Z");
    for (name, policy) in [("allow", "Allow"), ("forbid", "Forbid")] {
        let mut object = cronjob(name, "* * * * *", json!({"concurrencyPolicy": policy}));
        object["spec"]["jobTemplate"]["metadata"] =
            json!({"annotations": {"sandbox.cronjob-controller.dev/duration": "10s"}});
        world.create(&object).await;
    }
    world.run_jobs();
    world.start();
    world.pass_until("2026-03-01T10:00:30Z").await;
    for name in ["allow", "forbid"] {
        assert_eq!(started_after(&world, name, "2026-03-01T09:30:30Z").len(), 30);
    }
    world
}

#[tokio::test(start_paused = true)]
async fn while_the_watch_of_jobs_is_silent_what_is_safe_goes_on_and_a_minute_after_all_does() {
    let world = two_at_work().await;
    world.silence(Silent::JobWatches);
    world.pass_until("2026-03-01T10:15:30Z").await;
    // Without overlaps to be feared, every minute; and no second run beside one whose end nobody has seen.
    assert_eq!(started_after(&world, "allow", "2026-03-01T10:00:30Z").len(), 15);
    assert_eq!(started_after(&world, "forbid", "2026-03-01T10:00:30Z").len(), 1);
    assert!(world.probe("livez").await, "a restart would not help");
    world.silence(Silent::Nothing);
    world.pass_until("2026-03-01T10:30:30Z").await;
    assert_eq!(started_after(&world, "allow", "2026-03-01T10:15:30Z").len(), 15);
    let caught_up = started_after(&world, "forbid", "2026-03-01T10:15:30Z");
    assert!(caught_up[0] < TimeDelta::seconds(60), "{caught_up:?}");
    assert!(caught_up.len() >= 15, "{caught_up:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn when_everything_was_silent_all_is_caught_up_within_a_minute() {
    let world = two_at_work().await;
    world.silence(Silent::Everything);
    world.pass_until("2026-03-01T10:15:30Z").await;
    assert!(world.probe("livez").await, "a restart would not help");
    assert!(started_after(&world, "allow", "2026-03-01T10:00:30Z").is_empty());
    world.create(&cronjob("unheard-of", "* * * * *", json!({}))).await;
    world.silence(Silent::Nothing);
    world.pass(Duration::from_secs(60)).await;
    for name in ["allow", "forbid", "unheard-of"] {
        // The newest one that was missed, and from then on each; and what was never seen before.
        assert!(!started_after(&world, name, "2026-03-01T10:15:30Z").is_empty(), "{name}");
    }
    world.pass_until("2026-03-01T10:30:30Z").await;
    for name in ["allow", "forbid"] {
        let newest: Vec<_> =
            (27..=30).map(|minute| at(&format!("2026-03-01T10:{minute}:00Z")).timestamp() / 60).collect();
        let kept = world.job_names(jobs(), name).await;
        let newest: Vec<_> = newest.iter().map(|minute| format!("{name}-{minute}")).collect();
        assert_eq!(kept[kept.len() - 3..], newest[1..], "{name}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_whose_watch_of_jobs_is_dead_for_good_asks_for_a_restart() {
    let world = two_at_work().await;
    world.silence(Silent::DeadlyJobWatches);
    world.sandbox.cut_watches();
    world.pass_until("2026-03-01T10:15:00Z").await;
    assert!(world.probe("livez").await);
    world.pass_until("2026-03-01T10:16:00Z").await;
    assert!(!world.probe("livez").await);
    world.end().await;
}
