//! The way of one firing, end to end: from a CronJob on the server to its Jobs and its status.

use std::time::Duration;

use serde_json::json;

use crate::world::{World, at, cronjob, cronjobs, jobs, volcano_cronjob, volcano_cronjobs, volcano_jobs};

#[tokio::test(start_paused = true)]
async fn a_cronjob_of_each_api_starts_a_job_at_each_due_instant() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.create(&volcano_cronjob("v", "*/2 * * * *", json!({}))).await;
    world.start();
    world.pass_until("2026-03-01T10:05:30Z").await;
    let minute = at("2026-03-01T10:01:00Z").timestamp() / 60;
    let expected = |name: &str, minutes: &[i64]| -> Vec<String> {
        minutes.iter().map(|more| format!("{name}-{}", minute + more)).collect()
    };
    assert_eq!(world.job_names(jobs(), "k").await, expected("k", &[0, 1, 2, 3, 4]));
    assert_eq!(world.job_names(volcano_jobs(), "v").await, expected("v", &[1, 3]));
    let status = world.status(cronjobs(), "default", "k");
    assert_eq!(status["lastScheduleTime"], "2026-03-01T10:05:00Z");
    assert_eq!(status["active"].as_array().unwrap().len(), 5);
    let status = world.status(volcano_cronjobs(), "default", "v");
    assert_eq!(status["lastScheduleTime"], "2026-03-01T10:04:00Z");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_starts_a_tenth_of_a_second_after_its_instant() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.start();
    world.pass_until("2026-03-01T10:01:30Z").await;
    let started: Vec<_> = world.said("k").iter().map(|said| (said.reason, said.at)).collect();
    assert_eq!(started.len(), 1, "{started:?}");
    assert_eq!(started[0].0, "SuccessfulCreate");
    let late = started[0].1 - at("2026-03-01T10:01:00Z");
    assert!(late >= chrono::TimeDelta::milliseconds(100) && late < chrono::TimeDelta::milliseconds(110), "{late}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn finished_jobs_leave_active_and_history_keeps_its_limits() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({"successfulJobsHistoryLimit": 2}))).await;
    world.start();
    for _ in 0..5 {
        world.pass(Duration::from_secs(60)).await;
        for job in world.list(jobs()).await {
            if job["status"]["completionTime"].is_null() {
                world.finish("default", job["metadata"]["name"].as_str().unwrap(), "Complete").await;
            }
        }
    }
    world.pass(Duration::from_secs(5)).await;
    assert_eq!(world.job_names(jobs(), "k").await.len(), 2);
    let status = world.status(cronjobs(), "default", "k");
    assert_eq!(status["active"], json!(null), "{status}");
    assert_eq!(status["lastSuccessfulTime"], "2026-03-01T10:05:30Z");
    assert_eq!(world.times_said("k", "SuccessfulDelete"), 3);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn forbid_skips_while_one_runs_and_makes_up_when_it_ends() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({"concurrencyPolicy": "Forbid"}))).await;
    world.start();
    world.pass_until("2026-03-01T10:04:30Z").await;
    let first = world.job_names(jobs(), "k").await;
    assert_eq!(first.len(), 1);
    assert_eq!(world.times_said("k", "JobAlreadyActive"), 3, "{:#?}", world.said("k"));
    world.finish("default", &first[0], "Complete").await;
    world.pass(Duration::from_secs(1)).await;
    let newest = format!("k-{}", at("2026-03-01T10:04:00Z").timestamp() / 60);
    assert_eq!(world.job_names(jobs(), "k").await, [first[0].clone(), newest]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn replace_deletes_the_running_job_first() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({"concurrencyPolicy": "Replace"}))).await;
    world.start();
    world.pass_until("2026-03-01T10:03:30Z").await;
    let newest = format!("k-{}", at("2026-03-01T10:03:00Z").timestamp() / 60);
    assert_eq!(world.job_names(jobs(), "k").await, std::slice::from_ref(&newest));
    let active = world.status(cronjobs(), "default", "k")["active"].clone();
    assert_eq!(active.as_array().map(Vec::len), Some(1));
    assert_eq!(active[0]["name"], newest);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_resumed_cronjob_makes_up_for_the_newest_missed_run_only() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "*/5 * * * *", json!({"suspend": true}))).await;
    world.start();
    world.pass_until("2026-03-04T10:02:00Z").await;
    assert!(world.job_names(jobs(), "k").await.is_empty());
    world.patch(cronjobs(), "default", "k", &json!({"spec": {"suspend": false}})).await;
    world.pass(Duration::from_secs(1)).await;
    let made_up = format!("k-{}", at("2026-03-04T10:00:00Z").timestamp() / 60);
    assert_eq!(world.job_names(jobs(), "k").await, [made_up]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_edited_schedule_starts_nothing_that_lies_before_the_edit() {
    let mut world = World::new("2026-03-01T16:30:00Z");
    world.create(&cronjob("k", "33 16 * * *", json!({}))).await;
    world.start();
    world.pass_until("2026-03-01T16:34:08Z").await;
    let first = world.job_names(jobs(), "k").await;
    assert_eq!(first.len(), 1);
    world.patch(cronjobs(), "default", "k", &json!({"spec": {"schedule": "34 16 * * *"}})).await;
    world.pass_until("2026-03-02T16:33:00Z").await;
    assert_eq!(world.job_names(jobs(), "k").await, first);
    world.pass_until("2026-03-02T16:35:00Z").await;
    assert_eq!(world.job_names(jobs(), "k").await.len(), 2);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_killed_controller_neither_repeats_nor_loses_a_run() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    for _ in 0..4 {
        world.start();
        world.pass(Duration::from_secs(60)).await;
        world.kill().await;
    }
    assert_eq!(world.job_names(jobs(), "k").await.len(), 4);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn deleting_everything_leaves_nothing_in_memory() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.create(&volcano_cronjob("v", "* * * * *", json!({}))).await;
    world.start();
    world.pass_until("2026-03-01T10:03:30Z").await;
    world.delete(cronjobs(), "default", "k").await;
    world.delete(volcano_cronjobs(), "default", "v").await;
    world.pass(Duration::from_secs(30)).await;
    for counts in world.counts() {
        assert_eq!(counts, Default::default(), "{counts}");
    }
    world.end().await;
}
