//! What users reported of runs that started twice or too early: a process that dies between the Job and its record, a record that
//! cannot be written or is seen late, replicas that change, and everything shown once more.

use std::time::Duration;

use cronjob_controller::sandbox::call::{Subresource, Verb};
use cronjob_controller::sandbox::faults::{Action, Fault, Hold, Release};
use cronjob_controller::sandbox::resources::Resource;
use cronjob_controller::schedule::Zone;
use serde_json::{Value, json};

use crate::replicas::Replicas;
use crate::world::{World, at, cronjob, cronjobs, jobs, run_of, volcano_cronjob, volcano_cronjobs, volcano_jobs};

/// The CronJobs `k` and `v`: resource, its Jobs' resource, name.
fn both() -> [(&'static Resource, &'static Resource, &'static str); 2] {
    [(cronjobs(), jobs(), "k"), (volcano_cronjobs(), volcano_jobs(), "v")]
}

/// A CronJob whose Jobs take so long on the stand-in.
fn lasting(mut object: Value, duration: &str) -> Value {
    object["spec"]["jobTemplate"]["metadata"] =
        json!({"annotations": {"sandbox.cronjob-controller.dev/duration": duration}});
    object
}

/// On writes of the status of CronJobs, of an API.
fn on_status(resource: &Resource, fault: Fault) -> Fault {
    fault.on(Verb::Patch).subresource(Subresource::Status).resource(resource.group, "cronjobs")
}

fn created(world: &World) -> (u64, u64) {
    (world.created("batch"), world.created("batch.volcano.sh"))
}

#[tokio::test(start_paused = true)]
async fn a_process_killed_between_the_job_and_its_record_leaves_one_run_and_a_record_in_the_end() {
    for policy in ["Allow", "Forbid"] {
        for back in ["2026-03-01T10:01:20Z", "2026-03-01T10:04:20Z"] {
            let mut world = World::new("2026-03-01T10:00:30Z");
            world.create(&cronjob("k", "* * * * *", json!({"concurrencyPolicy": policy}))).await;
            world.create(&volcano_cronjob("v", "* * * * *", json!({"concurrencyPolicy": policy}))).await;
            let unwritten = Fault::new(Action::Delay(Duration::from_secs(3_600)));
            world.sandbox.faults().install(on_status(cronjobs(), unwritten.clone()));
            world.sandbox.faults().install(on_status(volcano_cronjobs(), unwritten));
            world.start();
            world.pass_until("2026-03-01T10:01:02Z").await;
            world.kill().await;
            world.sandbox.heal();
            assert_eq!(created(&world), (1, 1));
            world.pass_until(back).await;
            for (resource, _, name) in both() {
                assert!(world.status(resource, "default", name)["lastScheduleTime"].is_null());
            }
            world.start();
            world.pass(Duration::from_secs(5)).await;
            let soon = back == "2026-03-01T10:01:20Z";
            let catches_up = !soon && policy == "Allow";
            for (resource, jobs, name) in both() {
                let mut due = vec!["2026-03-01T10:01:00Z"];
                due.extend(catches_up.then_some("2026-03-01T10:04:00Z"));
                let runs: Vec<_> = due.iter().map(|due| run_of(name, due)).collect();
                assert_eq!(world.job_names(jobs, name).await, runs, "{policy}, back at {back}");
                let status = world.status(resource, "default", name);
                let active = status["active"].as_array().unwrap().iter().map(|active| active["name"].clone());
                assert_eq!(active.collect::<Vec<_>>(), runs, "{policy}, back at {back}");
                assert_eq!(status["lastScheduleTime"], due[due.len() - 1], "{policy}, back at {back}");
            }
            for name in world.job_names(jobs(), "k").await {
                world.finish("default", &name, "Complete").await;
            }
            let next = match (soon, catches_up) {
                (true, _) => "2026-03-01T10:02:00Z",
                (_, true) => "2026-03-01T10:05:00Z",
                // What Forbid held back follows the run that held it back.
                _ => "2026-03-01T10:04:00Z",
            };
            let wait = world.clock.until(at(next)) + Duration::from_secs(1);
            world.pass(wait).await;
            assert_eq!(world.job_names(jobs(), "k").await.pop(), Some(run_of("k", next)), "{policy}, back at {back}");
            world.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_fails_while_the_run_ends_delays_no_further_run() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let spec = json!({"concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 1});
    world.create(&lasting(cronjob("k", "* * * * *", spec.clone()), "4s")).await;
    world.create(&lasting(volcano_cronjob("v", "* * * * *", spec), "4s")).await;
    world.run_jobs();
    world.start();
    world.pass_until("2026-03-01T10:00:50Z").await;
    for (resource, _, _) in both() {
        world.sandbox.faults().install(on_status(resource, Fault::refuse(500, None)));
    }
    world.pass_until("2026-03-01T10:01:10Z").await;
    for (resource, _, name) in both() {
        assert!(world.status(resource, "default", name)["lastScheduleTime"].is_null());
    }
    world.sandbox.heal();
    world.pass_until("2026-03-01T10:01:40Z").await;
    for (resource, jobs, name) in both() {
        let status = world.status(resource, "default", name);
        assert_eq!(status["lastScheduleTime"], "2026-03-01T10:01:00Z", "{name}");
        assert!(status["active"].is_null() && !status["lastSuccessfulTime"].is_null(), "{name}: {status}");
        assert_eq!(world.job_names(jobs, name).await, [run_of(name, "2026-03-01T10:01:00Z")]);
    }
    world.pass_until("2026-03-01T10:02:01Z").await;
    assert_eq!(created(&world), (2, 2));
    world.pass_until("2026-03-01T10:02:30Z").await;
    for (_, jobs, name) in both() {
        assert_eq!(world.job_names(jobs, name).await, [run_of(name, "2026-03-01T10:02:00Z")], "history keeps one");
        assert_eq!(world.times_said(name, "SuccessfulCreate"), 2);
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_recorded_does_not_start_again_however_often_everything_is_shown_anew() {
    // Through the night in which Berlin's clocks go back.
    let mut world = World::new("2026-10-24T00:00:10Z");
    let mut objects = Vec::new();
    for (number, (schedule, zone)) in
        [("0 6 * * *", None), ("0 2 * * *", Some("Europe/Berlin")), ("*/30 * * * *", None), ("@every 5h", None)]
            .into_iter()
            .enumerate()
    {
        objects.push(cronjob(&format!("k{number}"), schedule, json!({"timeZone": zone})));
        objects.push(volcano_cronjob(&format!("v{number}"), schedule, json!({"timeZone": zone})));
    }
    for object in &objects {
        world.create(object).await;
    }
    world.start();
    world.pass_until("2026-10-25T06:02:00Z").await;
    let before = created(&world);
    // 06:00 twice, 02:00 in Berlin twice, 30 hours of halves, six times five hours.
    assert_eq!(before, (2 + 2 + 60 + 6, 2 + 2 + 60 + 6));
    for zone in ["UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo"] {
        world.options.local_zone = Zone::load(zone, Zone::UTC).unwrap();
        world.kill().await;
        world.start();
        world.pass(Duration::from_secs(30)).await;
        // Every object comes again, by a list in the place of a watch that has expired.
        world.sandbox.faults().install(Fault::new(Action::ExpireWatch).on(Verb::Watch).times(4));
        world.sandbox.cut_watches();
        world.pass(Duration::from_secs(60)).await;
        world.stop().await;
        world.start();
        world.pass(Duration::from_secs(30)).await;
        assert_eq!(created(&world), before, "as a process in {zone}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_cut_off_for_twenty_seconds_among_three_replicas_costs_no_second_run() {
    for cut in ["2026-03-01T10:02:50Z", "2026-03-01T10:02:59.950Z", "2026-03-01T10:03:00.105Z", "2026-03-01T10:03:05Z"]
    {
        let mut replicas = Replicas::new("2026-03-01T10:00:30Z").await;
        replicas.world.create(&lasting(cronjob("k", "* * * * *", json!({})), "5s")).await;
        replicas.world.run_jobs();
        // Slow enough that a cut falls in the middle of a creation.
        let slow = Fault::new(Action::DelayAnswer(Duration::from_millis(20))).on(Verb::Create);
        replicas.world.sandbox.faults().install(slow);
        let team = [replicas.start(), replicas.start(), replicas.start()];
        replicas.pass_until(cut).await;
        let leader = team.iter().find(|replica| replica.leadership.is_ours()).unwrap();
        leader.partition(true);
        replicas.world.pass(Duration::from_secs(20)).await;
        assert!(!leader.leadership.is_ours(), "{cut}");
        leader.partition(false);
        replicas.pass_until("2026-03-01T10:10:30Z").await;
        for minute in 1..=10 {
            let name = run_of("k", &format!("2026-03-01T10:{minute:02}:00Z"));
            assert_eq!(replicas.started(&name), 1, "{name}, cut at {cut}");
        }
        replicas.check_writes();
        for replica in team {
            replica.stop().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_resync_that_still_shows_the_old_record_starts_nothing_again() {
    let mut world = World::new("2026-03-01T08:59:30Z");
    // Nothing is kept, so that the name of the run is free again while the cache does not show its record.
    let spec = json!({"successfulJobsHistoryLimit": 0});
    world.create(&lasting(cronjob("k", "0 9 * * *", spec.clone()), "1s")).await;
    world.create(&lasting(volcano_cronjob("v", "0 9 * * *", spec), "1s")).await;
    world.run_jobs();
    world.start();
    world.pass_until("2026-03-01T08:59:59Z").await;
    for (resource, _, _) in both() {
        world.sandbox.hold_cache(resource, Hold { until: Release::After(Duration::from_secs(11)), lists: true });
    }
    world.pass_until("2026-03-01T09:00:05Z").await;
    assert_eq!(created(&world), (1, 1));
    assert!(world.list(jobs()).await.is_empty() && world.list(volcano_jobs()).await.is_empty(), "names are free");
    // A resync: the watches expire, and the lists that follow are old.
    world.sandbox.faults().install(Fault::new(Action::ExpireWatch).on(Verb::Watch).times(4));
    world.sandbox.cut_watches();
    world.pass_until("2026-03-01T09:01:00Z").await;
    assert_eq!(created(&world), (1, 1));
    for (resource, _, name) in both() {
        assert_eq!(world.status(resource, "default", name)["lastScheduleTime"], "2026-03-01T09:00:00Z");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_runs_whose_own_echo_comes_before_their_record_start_once_each() {
    let mut world = World::new("2026-03-01T00:00:30Z");
    for (name, policy) in [("allow", "Allow"), ("forbid", "Forbid")] {
        world.create(&lasting(cronjob(name, "* * * * *", json!({"concurrencyPolicy": policy})), "10s")).await;
    }
    world.run_jobs();
    // A Job is seen a millisecond after it was made, its record half a second after it was written.
    let echo = Fault::stale_cache(Release::After(Duration::from_millis(1)));
    world.sandbox.faults().install(echo.on(Verb::Create).resource("batch", "jobs"));
    world
        .sandbox
        .faults()
        .install(on_status(cronjobs(), Fault::stale_cache(Release::After(Duration::from_millis(500)))));
    world.start();
    world.pass_until("2026-03-01T16:40:30Z").await;
    assert_eq!(world.created("batch"), 2_000);
    for name in ["allow", "forbid"] {
        let mut runs: Vec<_> = world.said(name).into_iter().filter(|said| said.reason == "SuccessfulCreate").collect();
        runs.sort_by(|a, b| a.message.cmp(&b.message));
        runs.dedup_by(|a, b| a.message == b.message);
        assert_eq!(runs.len(), 1_000, "{name}");
        assert_eq!(world.times_said(name, "JobAlreadyActive"), 0);
    }
    world.end().await;
}

/// Names of the Jobs that have not ended.
async fn unfinished(world: &World) -> Vec<String> {
    let running = |job: &Value| {
        let conditions = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
        !conditions.iter().any(|condition| condition["type"] == "Complete" && condition["status"] == "True")
    };
    let all = world.list(jobs()).await;
    all.iter().filter(|job| running(job)).map(|job| job["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn leaders_that_change_every_forty_five_seconds_never_run_two_where_overlaps_are_forbidden() {
    let mut replicas = Replicas::new("2026-03-01T10:00:30Z").await;
    replicas.world.create(&lasting(cronjob("k", "* * * * *", json!({"concurrencyPolicy": "Forbid"})), "90s")).await;
    replicas.world.run_jobs();
    let mut team = vec![replicas.start(), replicas.start()];
    let end = at("2026-03-01T10:20:30Z");
    let (mut elections, mut ticks) = (0, 0);
    while replicas.world.clock.wall() < end {
        replicas.world.pass(Duration::from_millis(250)).await;
        let running = unfinished(&replicas.world).await;
        assert!(running.len() <= 1, "at {}: {running:?}", replicas.world.clock.wall());
        ticks += 1;
        let leading = team.iter().position(|replica| replica.leadership.is_ours());
        if ticks % 180 == 0
            && let Some(leading) = leading
        {
            let leader = team.remove(leading);
            // In order and by death, in turn.
            if elections % 2 == 0 {
                leader.kill().await
            } else {
                leader.stop().await
            }
            elections += 1;
            team.push(replicas.start());
        }
    }
    assert_eq!(elections, 26);
    let started = replicas.ever_started();
    // Each takes 91 s, and the next one follows it at once.
    assert!(started.len() >= 12, "{started:?}");
    assert!(started.iter().all(|name| replicas.started(name) == 1));
    replicas.check_writes();
    for replica in team {
        replica.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_replaced_after_its_node_was_lost_stays_one_job() {
    let mut world = World::new("2026-03-01T08:59:30Z");
    world.create(&cronjob("k", "0 9 * * *", json!({}))).await;
    world.start();
    world.pass_until("2026-03-01T09:00:10Z").await;
    let name = run_of("k", "2026-03-01T09:00:00Z");
    // As the Job's controller tells it: one runs; its node is gone; another runs in its place two minutes later, and ends.
    for (active, failed) in [(1, 0), (0, 1), (1, 1), (0, 1)] {
        let status = json!({"status": {"active": active, "ready": active, "failed": failed}});
        let path = format!("/apis/batch/v1/namespaces/default/jobs/{name}/status");
        world.request(http::Method::PATCH, &path, &status).await.unwrap();
        world.pass(Duration::from_secs(120)).await;
        let active = world.status(cronjobs(), "default", "k")["active"].clone();
        assert_eq!((active.as_array().map(Vec::len), &active[0]["name"]), (Some(1), &json!(name)));
    }
    world.finish("default", &name, "Complete").await;
    world.pass_until("2026-03-02T08:59:00Z").await;
    assert_eq!(world.created("batch"), 1);
    world.end().await;
}
