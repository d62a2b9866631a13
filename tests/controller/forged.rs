//! Jobs and statuses that somebody forged so that they look like this controller's own: no run is held back by them without a word, and
//! nobody else's Job is touched.

use std::time::Duration;

use serde_json::{Value, json};

use crate::hostile::{Kind, kinds};
use crate::world::{World, at, run_of};

const MINUTES: usize = 5;

/// A world with the CronJob `victim`, minutely, where nothing has started yet.
async fn world(kind: &Kind, spec: Value) -> World {
    let world = World::new("2026-03-01T10:00:30Z");
    world.create(&(kind.make)("victim", "* * * * *", spec)).await;
    world
}

async fn pass(world: &World) {
    world.pass(Duration::from_secs(60 * MINUTES as u64 + 15)).await;
}

/// A Job of `victim`, as whoever may create Jobs can make it look, for a run of that instant.
async fn forge(world: &World, kind: &Kind, due: &str) -> Value {
    let cronjob = world.sandbox.get(kind.cronjobs, "default", "victim").unwrap();
    let api = cronjob["apiVersion"].clone();
    let prefix = if api == "batch/v1" { "batch.kubernetes.io" } else { "volcano.sh" };
    let owner = json!({"apiVersion": api, "kind": "CronJob", "name": "victim", "uid": cronjob["metadata"]["uid"], "controller": true});
    let job = json!({"apiVersion": api, "kind": "Job", "metadata": {"namespace": "default", "name": run_of("victim", due),
            "annotations": {format!("{prefix}/cronjob-scheduled-timestamp"): due}, "ownerReferences": [owner]},
        "spec": cronjob["spec"]["jobTemplate"]["spec"]});
    world.create(&job).await;
    job
}

#[tokio::test(start_paused = true)]
async fn a_job_of_the_year_2200_holds_back_no_run() {
    for kind in kinds() {
        for finished in [false, true] {
            let mut world = world(&kind, json!({})).await;
            let job = forge(&world, &kind, "2200-01-01T00:00:00Z").await;
            let name = job["metadata"]["name"].as_str().unwrap();
            assert_eq!(name, "victim-120968640");
            if finished {
                let mut stored = world.sandbox.get(kind.jobs, "default", name).unwrap();
                stored["status"] = json!({"startTime": "2026-03-01T10:00:00Z", "completionTime": "2026-03-01T10:00:10Z",
                    "conditions": [{"type": "Complete", "status": "True"}], "state": {"phase": "Completed"}});
                assert!(world.sandbox.store_unvalidated(kind.jobs, &stored));
            }
            world.start();
            pass(&world).await;
            let told = format!("{:?} {finished}: {:?}", kind.flavor, world.said("victim"));
            assert_eq!(world.times_said("victim", "SuccessfulCreate"), MINUTES, "{told}");
            let last = world.status(kind.cronjobs, "default", "victim")["lastScheduleTime"].clone();
            assert!(at(last.as_str().unwrap()) <= world.clock.wall(), "{last}");
            let unexpected = world.times_said("victim", "UnexpectedJob") + world.times_said("victim", "OrphanedJob");
            assert_eq!(unexpected, usize::from(!finished), "{told}");
            world.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_active_entry_that_names_nothing_is_dropped_without_a_request() {
    for kind in kinds() {
        for policy in ["Allow", "Forbid", "Replace"] {
            let mut world = world(&kind, json!({"concurrencyPolicy": policy})).await;
            let mut stored = world.sandbox.get(kind.cronjobs, "default", "victim").unwrap();
            stored["status"] = json!({"active": [{}, {"namespace": "default"}, {"name": "x"}, {"uid": "y"}]});
            assert!(world.sandbox.store_unvalidated(kind.cronjobs, &stored));
            world.start();
            pass(&world).await;
            let told = format!("{:?} {policy}: {:?}", kind.flavor, world.said("victim"));
            let skipped = policy == "Forbid";
            let started = world.times_said("victim", "SuccessfulCreate");
            assert_eq!(started, if skipped { 1 } else { MINUTES }, "its own first run goes on: {told}");
            let dropped = world.times_said("victim", "MissingJob") + world.times_said("victim", "StaleReference");
            assert_eq!(dropped, 4, "{told}");
            let active = world.status(kind.cronjobs, "default", "victim")["active"].clone();
            assert!(active.as_array().unwrap().iter().all(|entry| entry["name"].is_string()), "{active}");
            world.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn replace_deletes_no_job_of_somebody_else_that_the_status_names() {
    for kind in kinds() {
        let mut world = world(&kind, json!({"concurrencyPolicy": "Replace"})).await;
        world.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "data"}})).await;
        let mut strangers = Vec::new();
        for namespace in ["default", "data"] {
            let mut job = forge(&world, &kind, "2026-03-01T09:00:00Z").await;
            let name = job["metadata"]["name"].as_str().unwrap().to_owned();
            world.delete(kind.jobs, "default", &name).await;
            job["metadata"] = json!({"namespace": namespace, "name": "stranger"});
            world.create(&job).await;
            let uid = world.sandbox.get(kind.jobs, namespace, "stranger").unwrap()["metadata"]["uid"].clone();
            strangers.push(json!({"namespace": namespace, "name": "stranger", "uid": uid}));
        }
        let mut stored = world.sandbox.get(kind.cronjobs, "default", "victim").unwrap();
        stored["status"] = json!({"active": strangers});
        assert!(world.sandbox.store_unvalidated(kind.cronjobs, &stored));
        world.start();
        pass(&world).await;
        let told = format!("{:?}: {:?}", kind.flavor, world.said("victim"));
        assert_eq!(world.times_said("victim", "SuccessfulCreate"), MINUTES, "{told}");
        for namespace in ["default", "data"] {
            assert!(world.sandbox.get(kind.jobs, namespace, "stranger").is_some(), "{told}");
        }
        let dropped = world.times_said("victim", "MissingJob") + world.times_said("victim", "StaleReference");
        assert_eq!(dropped, 2, "{told}");
        let active = world.status(kind.cronjobs, "default", "victim")["active"].as_array().unwrap().len();
        assert_eq!(active, 1, "each run replaced the one before it");
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_schedule_of_seconds_costs_few_requests_and_starts_once_a_minute() {
    for kind in kinds() {
        for schedule in ["@every 1s", "@every 1ns", "@every 0s", "@every -5s"] {
            let mut world = World::new("2026-03-01T10:00:30Z");
            world.create(&(kind.make)("victim", schedule, json!({}))).await;
            world.run_jobs();
            world.start();
            world.pass(Duration::from_secs(5)).await;
            world.sandbox.requests().reset();
            pass(&world).await;
            let told = format!("{:?} {schedule}: {:#?}", kind.flavor, world.sandbox.requests().snapshot());
            let started = world.times_said("victim", "SuccessfulCreate");
            assert!((MINUTES + 1..=MINUTES + 2).contains(&started), "{started} {told}");
            assert_eq!(world.times_said("victim", "MinuteTaken"), 1, "{told}");
            let of_cronjobs =
                world.sandbox.requests().sum(|key| key.resource == "cronjobs" || key.resource == "events");
            assert!(of_cronjobs <= 10 * MINUTES as u64, "{of_cronjobs} {told}");
            world.end().await;
        }
    }
}
