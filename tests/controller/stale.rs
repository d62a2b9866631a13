//! What the controllers do while they see less than there is: stale caches, a status that cannot be written, a wrong clock, and
//! the death of the process in the middle. Each was found by somebody who tried to make them start a run twice, or never.

use std::time::Duration;

use chrono::TimeDelta;
use cronjob_controller::sandbox::call::{Subresource, Verb};
use cronjob_controller::sandbox::faults::{Action, Fault, Hold, Release};
use serde_json::json;

use crate::world::{World, at, cronjob, cronjobs, jobs, volcano_cronjob, volcano_cronjobs, volcano_jobs};

#[tokio::test(start_paused = true)]
async fn a_cronjob_that_is_gone_unseen_starts_its_run_once_at_most() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.create(&volcano_cronjob("v", "* * * * *", json!({}))).await;
    world.start();
    world.pass(Duration::from_secs(10)).await;
    for resource in [cronjobs(), volcano_cronjobs()] {
        world.sandbox.hold_cache(resource, Hold { until: Release::Told, lists: true });
    }
    world.delete(cronjobs(), "default", "k").await;
    world.delete(volcano_cronjobs(), "default", "v").await;
    world.pass_until("2026-03-01T10:04:30Z").await;
    // The first due instant could not be known to be in vain; then the server had said so.
    assert_eq!((world.created("batch"), world.created("batch.volcano.sh")), (1, 1));
    world.sandbox.heal();
    world.pass(Duration::from_secs(60)).await;
    for counts in world.counts() {
        assert_eq!(counts, Default::default(), "{counts}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cronjob_made_anew_unseen_starts_each_run_once() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.start();
    world.pass(Duration::from_secs(10)).await;
    world.sandbox.hold_cache(cronjobs(), Hold { until: Release::Told, lists: true });
    world.delete(cronjobs(), "default", "k").await;
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.pass_until("2026-03-01T10:03:30Z").await;
    assert!(world.created("batch") <= 3, "{}", world.created("batch"));
    world.sandbox.heal();
    world.pass_until("2026-03-01T10:05:30Z").await;
    let minute = at("2026-03-01T10:05:00Z").timestamp() / 60;
    assert_eq!(world.job_names(jobs(), "k").await.pop(), Some(format!("k-{minute}")));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_job_vanishes_while_the_status_cannot_be_written_is_not_repeated() {
    for code in [403, 409, 500] {
        let mut world = World::new("2026-03-01T09:59:30Z");
        world.create(&cronjob("k", "0 * * * *", json!({"concurrencyPolicy": "Forbid"}))).await;
        world.create(&volcano_cronjob("v", "0 * * * *", json!({"concurrencyPolicy": "Forbid"}))).await;
        let refuse = Fault::refuse(code, None).on(Verb::Patch).subresource(Subresource::Status);
        for group in ["batch", "batch.volcano.sh"] {
            world.sandbox.faults().install(refuse.clone().resource(group, "cronjobs"));
        }
        world.start();
        for _minute in 0..10 {
            world.pass(Duration::from_secs(60)).await;
            for name in world.job_names(jobs(), "k").await {
                world.delete(jobs(), "default", &name).await;
            }
            for name in world.job_names(volcano_jobs(), "v").await {
                world.delete(volcano_jobs(), "default", &name).await;
            }
        }
        assert_eq!((world.created("batch"), world.created("batch.volcano.sh")), (1, 1), "{code}");
        world.sandbox.heal();
        world.pass(Duration::from_secs(60)).await;
        assert_eq!(world.status(cronjobs(), "default", "k")["lastScheduleTime"], "2026-03-01T10:00:00Z");
        assert_eq!(world.status(volcano_cronjobs(), "default", "v")["lastScheduleTime"], "2026-03-01T10:00:00Z");
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_refused_for_its_age_is_not_tried_again_on_the_same_copy() {
    let mut world = World::new("2026-03-01T09:59:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.create(&volcano_cronjob("v", "* * * * *", json!({}))).await;
    world.start();
    world.pass_until("2026-03-01T10:10:30Z").await;
    for resource in [cronjobs(), volcano_cronjobs()] {
        world.sandbox.hold_cache(resource, Hold { until: Release::Told, lists: true });
    }
    let label = json!({"metadata": {"labels": {"touched": "yes"}}});
    world.patch(cronjobs(), "default", "k", &label).await;
    world.patch(volcano_cronjobs(), "default", "v", &label).await;
    let asked = |world: &World| {
        world
            .sandbox
            .requests()
            .sum(|key| matches!(key.verb, Verb::Get | Verb::Patch) && matches!(key.resource, "jobs" | "cronjobs"))
    };
    let before = asked(&world);
    for (resource, owner) in [(jobs(), "k"), (volcano_jobs(), "v")] {
        for name in world.job_names(resource, owner).await {
            world.delete(resource, "default", &name).await;
        }
    }
    world.pass(Duration::from_secs(20)).await;
    // Of each API: a question for each of ten entries at most and a refused write, twice because news came meanwhile; the copy is
    // read; the questions again, and the write.
    assert!(asked(&world) - before <= 70, "{}", asked(&world) - before);
    for (resource, name) in [(cronjobs(), "k"), (volcano_cronjobs(), "v")] {
        assert!(world.status(resource, "default", name).get("active").is_none());
    }
    world.sandbox.heal();
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_under_a_wrong_clock_silences_nobody_once_the_clock_is_right() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "0 0 1 1 *", json!({}))).await;
    world.start();
    world.pass(Duration::from_secs(5)).await;
    world.clock.step(TimeDelta::hours(2));
    world.pass(Duration::from_secs(5)).await;
    world.patch(cronjobs(), "default", "k", &json!({"spec": {"schedule": "*/10 * * * *"}})).await;
    world.pass(Duration::from_secs(5)).await;
    world.clock.step(TimeDelta::hours(-2));
    world.pass_until("2026-03-01T11:59:00Z").await;
    assert_eq!(world.job_names(jobs(), "k").await.len(), 11);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_watch_that_falls_silent_blocks_forbid_for_two_minutes_at_most() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let mut object = cronjob("k", "* * * * *", json!({"concurrencyPolicy": "Forbid"}));
    object["spec"]["jobTemplate"]["metadata"] =
        json!({"annotations": {"sandbox.cronjob-controller.dev/duration": "10s"}});
    world.create(&object).await;
    world.run_jobs();
    world.start();
    world.pass_until("2026-03-01T10:02:30Z").await;
    world.sandbox.faults().install(Fault::new(Action::StallWatch).resource("batch", "jobs"));
    world.pass_until("2026-03-01T10:17:30Z").await;
    world.sandbox.heal();
    world.pass_until("2026-03-01T10:30:30Z").await;
    let last = at("2026-03-01T10:30:00Z").timestamp() / 60;
    let history = world.job_names(jobs(), "k").await;
    let newest: Vec<_> = (last - 2..=last).map(|minute| format!("k-{minute}")).collect();
    assert_eq!(history[history.len() - 3..], newest, "back to every minute");
    let healed = at("2026-03-01T10:17:30Z");
    let first_after = world.said("k").into_iter().find(|said| said.reason == "SuccessfulCreate" && said.at > healed);
    let waited = first_after.unwrap().at - healed;
    assert!(waited <= TimeDelta::minutes(2), "{waited}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_long_history_does_not_hold_up_what_is_due() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({"successfulJobsHistoryLimit": 500}))).await;
    world.start();
    for _ in 0..200 {
        world.pass(Duration::from_secs(60)).await;
        let name = world.job_names(jobs(), "k").await.pop().unwrap();
        world.finish("default", &name, "Complete").await;
    }
    let slow = Fault::new(Action::DelayAnswer(Duration::from_secs(1))).on(Verb::Delete).resource("batch", "jobs");
    world.sandbox.faults().install(slow);
    let limits = json!({"spec": {"successfulJobsHistoryLimit": 2, "startingDeadlineSeconds": 59}});
    world.patch(cronjobs(), "default", "k", &limits).await;
    let before = world.created("batch");
    world.pass(Duration::from_secs(600)).await;
    assert_eq!(world.created("batch") - before, 10, "one a minute");
    assert_eq!(world.times_said("k", "MissSchedule"), 0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_killed_does_nothing_any_more() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.start();
    world.pass(Duration::from_secs(5)).await;
    world.kill().await;
    world.pass(Duration::from_secs(300)).await;
    assert_eq!(world.created("batch"), 0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_came_and_went_while_the_watch_was_silent_does_not_stay_active() {
    let mut world = World::new("2026-03-01T09:59:50Z");
    world.create(&cronjob("k", "0 * * * *", json!({}))).await;
    world.create(&volcano_cronjob("v", "0 * * * *", json!({}))).await;
    world.start();
    world.pass(Duration::from_secs(5)).await;
    for group in ["batch", "batch.volcano.sh"] {
        world.sandbox.faults().install(Fault::new(Action::StallWatch).resource(group, "jobs"));
    }
    world.pass(Duration::from_secs(10)).await;
    for (resource, owner) in [(jobs(), "k"), (volcano_jobs(), "v")] {
        for name in world.job_names(resource, owner).await {
            world.delete(resource, "default", &name).await;
        }
    }
    world.sandbox.heal();
    world.pass(Duration::from_secs(180)).await;
    for (resource, name) in [(cronjobs(), "k"), (volcano_cronjobs(), "v")] {
        let status = world.status(resource, "default", name);
        assert_eq!(status["lastScheduleTime"], "2026-03-01T10:00:00Z");
        assert!(status.get("active").is_none(), "{status}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_came_and_went_before_all_jobs_were_listed_anew_does_not_stay_active() {
    let mut world = World::new("2026-03-01T09:59:50Z");
    world.create(&cronjob("k", "0 * * * *", json!({}))).await;
    world.create(&volcano_cronjob("v", "0 * * * *", json!({}))).await;
    world.start();
    world.pass(Duration::from_secs(5)).await;
    for group in ["batch", "batch.volcano.sh"] {
        world.sandbox.faults().install(Fault::new(Action::StallWatch).resource(group, "jobs"));
    }
    world.pass(Duration::from_secs(10)).await;
    for (resource, owner) in [(jobs(), "k"), (volcano_jobs(), "v")] {
        for name in world.job_names(resource, owner).await {
            world.delete(resource, "default", &name).await;
        }
    }
    // The watch cannot go on where it was, so that no event tells of the Job, and the list does not have it either.
    world.sandbox.compact(u64::MAX);
    world.sandbox.heal();
    world.pass(Duration::from_secs(180)).await;
    for (resource, name) in [(cronjobs(), "k"), (volcano_cronjobs(), "v")] {
        let status = world.status(resource, "default", name);
        assert_eq!(status["lastScheduleTime"], "2026-03-01T10:00:00Z");
        assert!(status.get("active").is_none(), "{status}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_before_the_jobs_are_listed() {
    let mut world = World::new("2026-03-01T09:59:30Z");
    world.create(&volcano_cronjob("v", "* * * * *", json!({"concurrencyPolicy": "Forbid"}))).await;
    world.start();
    world.pass_until("2026-03-01T10:00:30Z").await;
    assert_eq!(world.created("batch.volcano.sh"), 1);
    // Nobody ends that Job. The next process gets its CronJobs at once and its Jobs late: an active Job that the cache does not
    // show must not pass for one that is gone.
    world.kill().await;
    let late = Fault::new(Action::Delay(Duration::from_secs(600)));
    world.sandbox.faults().install(late.on(Verb::List).on(Verb::Watch).resource("batch.volcano.sh", "jobs"));
    world.start();
    world.pass_until("2026-03-01T10:03:30Z").await;
    assert_eq!(world.created("batch.volcano.sh"), 1);
    world.sandbox.heal();
    world.pass_until("2026-03-01T10:20:30Z").await;
    assert_eq!(world.created("batch.volcano.sh"), 1);
    assert_eq!(world.status(volcano_cronjobs(), "default", "v")["active"].as_array().map(Vec::len), Some(1));
    world.end().await;
}
