//! What users reported of edits: a schedule that lies before the edit, intervals that drift, a schedule that becomes denser.

use std::time::Duration;

use serde_json::json;

use crate::world::{World, cronjob, cronjobs, jobs, run_of, volcano_cronjob, volcano_cronjobs, volcano_jobs};

#[tokio::test(start_paused = true)]
async fn a_schedule_edited_to_a_time_that_has_passed_waits_for_its_next_one() {
    // From, to, last run, the moment of the edit, the next run.
    let daily = ("33 16 * * *", "34 16 * * *", "2026-03-04T16:33:00Z", "2026-03-04T16:34:08Z", "2026-03-05T16:34:00Z");
    let weekly = ("30 11 * * 5", "0 11 * * 5", "2026-02-27T11:30:00Z", "2026-03-05T23:49:00Z", "2026-03-06T11:00:00Z");
    for (from, to, last, edit, next) in [daily, weekly] {
        let mut world = World::new("2026-02-27T11:00:30Z");
        world.create(&cronjob("k", from, json!({}))).await;
        world.create(&volcano_cronjob("v", from, json!({}))).await;
        world.pass_until(last).await;
        world.record(cronjobs(), "k", last).await;
        world.record(volcano_cronjobs(), "v", last).await;
        world.start();
        world.pass_until(edit).await;
        assert_eq!((world.created("batch"), world.created("batch.volcano.sh")), (0, 0));
        let edits = [json!({"spec": {"schedule": to}}), json!({"metadata": {"labels": {"looked": "again"}}})];
        for edit in &edits {
            world.patch(cronjobs(), "default", "k", edit).await;
            world.patch(volcano_cronjobs(), "default", "v", edit).await;
            world.pass(Duration::from_secs(5)).await;
        }
        assert_eq!((world.created("batch"), world.created("batch.volcano.sh")), (0, 0), "at the edit to {to}");
        world.pass_until(next).await;
        assert_eq!((world.created("batch"), world.created("batch.volcano.sh")), (0, 0), "before {next}");
        world.pass(Duration::from_secs(1)).await;
        assert_eq!(world.job_names(jobs(), "k").await, [run_of("k", next)]);
        assert_eq!(world.job_names(volcano_jobs(), "v").await, [run_of("v", next)]);
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_interval_keeps_its_phase_through_restarts_and_edits() {
    let mut world = World::new("2026-03-01T00:00:00Z");
    world.create(&cronjob("k", "@every 6h", json!({}))).await;
    world.create(&volcano_cronjob("v", "@every 6h", json!({}))).await;
    world.start();
    for hour in 5..=19 {
        world.pass_until(&format!("2026-03-01T{hour:02}:00:30Z")).await;
        if hour % 2 == 0 {
            world.kill().await;
        } else {
            world.stop().await;
        }
        world.start();
        world.pass(Duration::from_secs(600)).await;
        let edit = json!({"spec": {"failedJobsHistoryLimit": hour}});
        world.patch(cronjobs(), "default", "k", &edit).await;
        world.patch(volcano_cronjobs(), "default", "v", &edit).await;
    }
    for (resource, jobs, name) in [(cronjobs(), jobs(), "k"), (volcano_cronjobs(), volcano_jobs(), "v")] {
        let due = ["06", "12", "18"].map(|hour| run_of(name, &format!("2026-03-01T{hour}:00:00Z")));
        assert_eq!(world.job_names(jobs, name).await, due);
        assert_eq!(world.status(resource, "default", name)["lastScheduleTime"], "2026-03-01T18:00:00Z");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_made_a_thousand_times_denser_begins_at_its_next_minute_and_catches_up_nothing() {
    let mut world = World::new("2026-02-20T12:00:30Z");
    world.create(&cronjob("k", "0 0 1 * *", json!({}))).await;
    world.create(&volcano_cronjob("v", "0 0 1 * *", json!({}))).await;
    world.start();
    world.pass_until("2026-03-20T12:34:20Z").await;
    let edit = json!({"spec": {"schedule": "* * * * *"}});
    world.patch(cronjobs(), "default", "k", &edit).await;
    world.patch(volcano_cronjobs(), "default", "v", &edit).await;
    world.pass_until("2026-03-20T12:36:30Z").await;
    for (jobs, name) in [(jobs(), "k"), (volcano_jobs(), "v")] {
        let due = ["2026-03-01T00:00:00Z", "2026-03-20T12:35:00Z", "2026-03-20T12:36:00Z"];
        assert_eq!(world.job_names(jobs, name).await, due.map(|due| run_of(name, due)));
        let reasons: Vec<_> = world.said(name).iter().map(|said| said.reason).collect();
        assert_eq!(reasons, ["SuccessfulCreate"; 3]);
    }
    world.end().await;
}
