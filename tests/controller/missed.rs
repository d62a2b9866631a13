//! What users reported of runs that came late or never: after a time without a controller, after a suspension, with a short
//! deadline, behind a run that hangs, and when the status could not be written.

use std::time::Duration;

use cronjob_controller::sandbox::call::{Subresource, Verb};
use cronjob_controller::sandbox::faults::{Fault, Hold, Release};
use cronjob_controller::sandbox::resources::Resource;
use serde_json::{Value, json};

use crate::world::{World, at, cronjob, cronjobs, jobs, run_of, volcano_cronjob, volcano_cronjobs, volcano_jobs};

/// A CronJob of each API, `k` and `v`, of one schedule and spec.
async fn create_both(world: &World, schedule: &str, spec: Value) {
    world.create(&cronjob("k", schedule, spec.clone())).await;
    world.create(&volcano_cronjob("v", schedule, spec)).await;
}

/// The CronJobs of [`create_both`]: resource, its Jobs' resource, name.
fn both() -> [(&'static Resource, &'static Resource, &'static str); 2] {
    [(cronjobs(), jobs(), "k"), (volcano_cronjobs(), volcano_jobs(), "v")]
}

/// Events on the server with this reason about the CronJob `name`.
async fn events(world: &World, name: &str, reason: &str) -> Vec<Value> {
    let list = world.request(http::Method::GET, "/api/v1/events", &Value::Null).await.unwrap();
    let all = list["items"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|event| event["involvedObject"]["name"] == name && event["reason"] == reason).collect()
}

/// A change that makes the controllers look at both CronJobs once more.
async fn touch(world: &World) {
    for (resource, _, name) in both() {
        let instant = world.clock.wall().to_rfc3339();
        let mark = json!({"metadata": {"annotations": {"example.com/touched": instant}}});
        world.patch(resource, "default", name, &mark).await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_night_without_a_controller_the_newest_run_starts_and_service_goes_on() {
    let mut world = World::new("2026-03-01T18:00:30Z");
    create_both(&world, "* * * * *", json!({})).await;
    for (resource, _, name) in both() {
        world.record(resource, name, "2026-03-01T18:00:00Z").await;
    }
    world.pass_until("2026-03-02T06:00:30Z").await;
    world.start();
    world.pass(Duration::from_secs(5)).await;
    for (_, jobs, name) in both() {
        assert_eq!(world.job_names(jobs, name).await, [run_of(name, "2026-03-02T06:00:00Z")]);
    }
    world.pass_until("2026-03-02T06:03:30Z").await;
    for (_, jobs, name) in both() {
        let due = ["06:00", "06:01", "06:02", "06:03"].map(|time| run_of(name, &format!("2026-03-02T{time}:00Z")));
        assert_eq!(world.job_names(jobs, name).await, due);
        assert_eq!(world.times_said(name, "TooManyMissedTimes"), 1);
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn after_days_of_suspension_one_run_is_made_up_for_if_its_deadline_allows_it() {
    // Two minutes after ten o'clock.
    for (deadline, made_up) in [(json!(null), true), (json!(119), false), (json!(121), true)] {
        let mut world = World::new("2026-03-01T10:00:30Z");
        create_both(&world, "*/5 * * * *", json!({"suspend": true, "startingDeadlineSeconds": deadline})).await;
        world.start();
        world.pass_until("2026-03-04T10:02:00Z").await;
        assert_eq!((world.created("batch"), world.created("batch.volcano.sh")), (0, 0));
        for (resource, _, name) in both() {
            world.patch(resource, "default", name, &json!({"spec": {"suspend": false}})).await;
        }
        world.pass(Duration::from_secs(1)).await;
        for (_, jobs, name) in both() {
            let ten = Some(run_of(name, "2026-03-04T10:00:00Z")).filter(|_| made_up);
            assert_eq!(world.job_names(jobs, name).await, Vec::from_iter(ten.clone()), "{deadline}");
            assert_eq!(world.times_said(name, "MissSchedule"), usize::from(!made_up), "{deadline}");
        }
        world.pass_until("2026-03-04T10:05:30Z").await;
        for (_, jobs, name) in both() {
            let last = world.job_names(jobs, name).await.pop();
            assert_eq!(last, Some(run_of(name, "2026-03-04T10:05:00Z")), "{deadline}");
        }
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn deadlines_of_seconds_and_of_zero_lose_no_run_of_an_idle_controller() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let deadlines = [0, 1, 2, 5, 9];
    for seconds in deadlines {
        let spec = json!({"startingDeadlineSeconds": seconds});
        world.create(&cronjob(&format!("k{seconds}"), "* * * * *", spec.clone())).await;
        world.create(&volcano_cronjob(&format!("v{seconds}"), "* * * * *", spec)).await;
    }
    world.start();
    world.pass_until("2026-03-01T10:05:30Z").await;
    for seconds in deadlines {
        for (jobs, name) in [(jobs(), format!("k{seconds}")), (volcano_jobs(), format!("v{seconds}"))] {
            assert_eq!(world.job_names(jobs, &name).await.len(), 5, "{name}");
            assert_eq!(world.times_said(&name, "MissSchedule"), 0, "{name}");
        }
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_lost_while_no_controller_was_there_is_told_of_once_and_counted() {
    let hourly = ("0 * * * *", "09:59:50", "10:01:00", "10:00:00", 1.0);
    let minutely = ("* * * * *", "10:00:50", "10:02:45", "10:02:00", 2.0);
    for (schedule, down, up, lost, count) in [hourly, minutely] {
        let mut world =
            World::new(if schedule == "0 * * * *" { "2026-03-01T09:30:10Z" } else { "2026-03-01T10:00:30Z" });
        create_both(&world, schedule, json!({"startingDeadlineSeconds": 30})).await;
        world.start();
        world.pass_until(&format!("2026-03-01T{down}Z")).await;
        world.kill().await;
        world.pass_until(&format!("2026-03-01T{up}Z")).await;
        world.start();
        world.pass(Duration::from_secs(2)).await;
        touch(&world).await;
        world.pass(Duration::from_secs(2)).await;
        for (controller, name) in [("kubernetes-cronjob", "k"), ("volcano-cronjob", "v")] {
            let missed = format!(r#"cron_missed_runs_total{{controller="{controller}"}}"#);
            assert_eq!(world.metric(&missed), count, "{name} {schedule}");
        }
        // The next process does not say it again, either.
        world.stop().await;
        world.start();
        world.pass(Duration::from_secs(5)).await;
        let message = format!("Missed scheduled time to start a job: Sun, 01 Mar 2026 {lost} +0000");
        for (_, jobs, name) in both() {
            let told = events(&world, name, "MissSchedule").await;
            assert_eq!(told.len(), 1, "{name} {schedule}: {told:#?}");
            assert_eq!((&told[0]["message"], &told[0]["type"]), (&json!(message), &json!("Warning")));
            assert!(world.job_names(jobs, name).await.is_empty());
        }
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn conflicts_of_the_status_cost_neither_the_run_nor_the_next_wake_up() {
    for stale in [false, true] {
        let mut world = World::new("2026-03-01T23:58:30Z");
        create_both(&world, "0 0 * * *", json!({})).await;
        world.start();
        world.pass_until("2026-03-01T23:59:50Z").await;
        for (resource, _, _) in both() {
            // The status write of the run, and that of whatever comes next.
            let conflict = Fault::refuse(409, None).on(Verb::Patch).subresource(Subresource::Status).times(2);
            world.sandbox.faults().install(conflict.resource(resource.group, "cronjobs"));
            if stale {
                world
                    .sandbox
                    .hold_cache(resource, Hold { until: Release::After(Duration::from_secs(15)), lists: true });
            }
        }
        // Unseen by the controllers if their caches are stale: the first conflict is a true one.
        touch(&world).await;
        world.pass_until("2026-03-02T00:00:01Z").await;
        for (_, jobs, name) in both() {
            assert_eq!(world.job_names(jobs, name).await, [run_of(name, "2026-03-02T00:00:00Z")], "stale: {stale}");
        }
        world.pass_until("2026-03-02T00:00:10Z").await;
        for (resource, _, name) in both() {
            let status = world.status(resource, "default", name);
            assert_eq!(status["lastScheduleTime"], "2026-03-02T00:00:00Z", "{name}, stale: {stale}");
            assert_eq!(status["active"].as_array().map(Vec::len), Some(1), "{name}, stale: {stale}");
        }
        world.pass_until("2026-03-02T00:00:30Z").await;
        for counts in world.counts() {
            assert_eq!(counts.engine.queues.delayed, 1, "a wake-up for tomorrow: {counts}");
        }
        world.pass_until("2026-03-03T00:00:01Z").await;
        for (_, jobs, name) in both() {
            let due = ["2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"].map(|due| run_of(name, due));
            assert_eq!(world.job_names(jobs, name).await, due, "stale: {stale}");
        }
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_never_gets_a_pod_blocks_forbid_visibly_and_only_as_long_as_it_stands() {
    for end in ["Complete", "Failed", "deleted"] {
        let mut world = World::new("2026-03-01T10:00:30Z");
        world.create(&cronjob("k", "* * * * *", json!({"concurrencyPolicy": "Forbid"}))).await;
        world.start();
        world.pass_until("2026-03-01T10:01:30Z").await;
        let first = run_of("k", "2026-03-01T10:01:00Z");
        let stuck = world.sandbox.get(jobs(), "default", &first);
        world.pass_until("2026-03-01T10:04:30Z").await;
        assert_eq!(world.sandbox.get(jobs(), "default", &first), stuck, "left alone");
        let skips: Vec<_> = world.said("k").into_iter().filter(|said| said.reason == "JobAlreadyActive").collect();
        let minutes: Vec<_> = skips.iter().map(|said| said.at.format("%H:%M").to_string()).collect();
        assert_eq!(minutes, ["10:02", "10:03", "10:04"]);
        let skipped = r#"cron_runs_total{controller="kubernetes-cronjob",result="skipped_forbid"}"#;
        assert_eq!(world.metric(skipped), 3.0);
        match end {
            "deleted" => world.delete(jobs(), "default", &first).await,
            condition => world.finish("default", &first, condition).await,
        }
        world.pass(Duration::from_secs(1)).await;
        let newest = run_of("k", "2026-03-01T10:04:00Z");
        assert_eq!(world.job_names(jobs(), "k").await.pop(), Some(newest.clone()), "{end}");
        let active = world.status(cronjobs(), "default", "k")["active"].clone();
        assert_eq!((active.as_array().map(Vec::len), &active[0]["name"]), (Some(1), &json!(newest)), "{end}");
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn hours_behind_a_run_that_hangs_end_with_it_and_were_counted_all_along() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({"concurrencyPolicy": "Forbid"}))).await;
    world.start();
    world.pass_until("2026-03-01T13:01:30Z").await;
    let first = run_of("k", "2026-03-01T10:01:00Z");
    assert_eq!(world.job_names(jobs(), "k").await, std::slice::from_ref(&first));
    // What tells how long nothing has started: each skip, and the time of the last start.
    let skipped = r#"cron_runs_total{controller="kubernetes-cronjob",result="skipped_forbid"}"#;
    assert_eq!(world.metric(skipped), 180.0);
    assert_eq!(world.times_said("k", "JobAlreadyActive"), 180);
    assert_eq!(world.status(cronjobs(), "default", "k")["lastScheduleTime"], "2026-03-01T10:01:00Z");
    world.finish("default", &first, "Complete").await;
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.job_names(jobs(), "k").await, [first, run_of("k", "2026-03-01T13:01:00Z")]);
    let started = world.said("k").into_iter().rfind(|said| said.reason == "SuccessfulCreate").unwrap();
    assert!(started.at < at("2026-03-01T13:01:31Z"), "{}", started.at);
    world.end().await;
}
