//! What users reported of runs that meet an earlier one: it hangs, was deleted, was made by hand, or is about to end.

use std::time::Duration;

use cronjob_controller::sandbox::faults::{Hold, Release};
use http::Method;
use serde_json::{Value, json};

use crate::world::{World, at, cronjob, cronjobs, jobs};

/// Name of the Job of `k` for a due instant.
fn run(due: &str) -> String {
    format!("k-{}", at(due).timestamp() / 60)
}

async fn active(world: &World) -> usize {
    world.status(cronjobs(), "default", "k")["active"].as_array().map_or(0, Vec::len)
}

/// Deletes a Job as a user does.
async fn delete(world: &World, name: &str, propagation: &str) {
    let path = format!("/apis/batch/v1/namespaces/default/jobs/{name}");
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation});
    world.request(Method::DELETE, &path, &options).await.unwrap();
}

/// A CronJob `k` that forbids overlaps, with its run of 10:01 under way at 10:01:30.
async fn forbid_with_one_run() -> World {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({"concurrencyPolicy": "Forbid"}))).await;
    world.start();
    world.pass_until("2026-03-01T10:01:30Z").await;
    assert_eq!(world.job_names(jobs(), "k").await, [run("2026-03-01T10:01:00Z")]);
    world
}

#[tokio::test(start_paused = true)]
async fn a_running_job_that_was_deleted_by_hand_blocks_nothing_however_its_end_was_seen() {
    for how in ["Background", "Orphan", "while the controller was down", "missed by the watch"] {
        let mut world = forbid_with_one_run().await;
        let first = run("2026-03-01T10:01:00Z");
        match how {
            "while the controller was down" => {
                world.kill().await;
                delete(&world, &first, "Background").await;
                world.start();
            }
            "missed by the watch" => {
                world.sandbox.hold_cache(jobs(), Hold { until: Release::Told, lists: false });
                delete(&world, &first, "Background").await;
                world.pass(Duration::from_secs(5)).await;
                world.sandbox.cut_watches();
                world.sandbox.compact(world.sandbox.with_store(|store| store.revision()));
                world.sandbox.heal();
            }
            propagation => delete(&world, &first, propagation).await,
        }
        world.pass_until("2026-03-01T10:01:50Z").await;
        assert_eq!(active(&world).await, 0, "{how}");
        assert_eq!(world.times_said("k", "MissingJob"), 1, "{how}");
        world.pass_until("2026-03-01T10:02:30Z").await;
        assert_eq!(world.job_names(jobs(), "k").await, [run("2026-03-01T10:02:00Z")], "{how}");
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn forbid_holds_one_job_that_never_runs_and_each_skipped_run_is_said_once() {
    let world = forbid_with_one_run().await;
    world.pass_until("2026-03-01T10:10:30Z").await;
    assert_eq!(world.job_names(jobs(), "k").await.len(), 1);
    assert_eq!(world.times_said("k", "JobAlreadyActive"), 9);
    let skipped = r#"cron_runs_total{controller="kubernetes-cronjob",result="skipped_forbid"}"#;
    assert_eq!(world.metric(skipped), 9.0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_change_from_allow_to_forbid_nothing_starts_before_all_that_run_have_ended() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.start();
    world.pass_until("2026-03-01T10:05:30Z").await;
    let running = world.job_names(jobs(), "k").await;
    assert_eq!((running.len(), active(&world).await), (5, 5));
    world.patch(cronjobs(), "default", "k", &json!({"spec": {"concurrencyPolicy": "Forbid"}})).await;
    for (ended, name) in (1..).zip(&running) {
        world.pass(Duration::from_secs(60)).await;
        assert_eq!(world.times_said("k", "SuccessfulCreate"), 5, "{ended} have ended");
        world.finish("default", name, "Complete").await;
    }
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.job_names(jobs(), "k").await.last(), Some(&run("2026-03-01T10:10:00Z")));
    assert_eq!(world.times_said("k", "SuccessfulCreate"), 6);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_held_up_starts_at_once_where_its_deadline_allows_and_else_not() {
    for (deadline, starts_at_once) in [(Value::Null, true), (json!(3600), true), (json!(60), false)] {
        let mut world = World::new("2026-03-01T08:59:30Z");
        let spec = json!({"concurrencyPolicy": "Forbid", "startingDeadlineSeconds": deadline});
        world.create(&cronjob("k", "0 * * * *", spec)).await;
        world.start();
        world.pass_until("2026-03-01T10:37:00Z").await;
        let first = run("2026-03-01T09:00:00Z");
        assert_eq!(world.job_names(jobs(), "k").await, std::slice::from_ref(&first), "{deadline}");
        world.finish("default", &first, "Complete").await;
        world.pass_until("2026-03-01T10:59:00Z").await;
        let held_up = run("2026-03-01T10:00:00Z");
        let both = [first, held_up.clone()];
        assert_eq!(world.job_names(jobs(), "k").await, both[..1 + usize::from(starts_at_once)], "{deadline}");
        let created: Vec<_> = world.said("k").into_iter().filter(|said| said.reason == "SuccessfulCreate").collect();
        if starts_at_once {
            assert!(created[1].at < at("2026-03-01T10:37:01Z"), "{deadline}: {created:?}");
            world.finish("default", &held_up, "Complete").await;
        }
        world.pass_until("2026-03-01T11:00:30Z").await;
        assert_eq!(world.job_names(jobs(), "k").await.last(), Some(&run("2026-03-01T11:00:00Z")), "{deadline}");
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_made_by_hand_is_in_nobodys_way_is_not_replaced_and_is_told_of_once() {
    for policy in ["Replace", "Forbid"] {
        let mut world = World::new("2026-03-01T10:00:30Z");
        world.create(&cronjob("k", "* * * * *", json!({"concurrencyPolicy": policy}))).await;
        world.start();
        let uid = world.sandbox.get(cronjobs(), "default", "k").unwrap()["metadata"]["uid"].clone();
        let template = cronjob("k", "", json!({}))["spec"]["jobTemplate"]["spec"].clone();
        let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "k", "uid": uid, "controller": true}]);
        let metadata = json!({
            "namespace": "default", "name": "k-by-hand", "ownerReferences": owner,
            "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
        });
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template});
        world.create(&job).await;
        for _minute in 0..10 {
            world.pass(Duration::from_secs(60)).await;
            if policy == "Forbid" {
                let newest = world.job_names(jobs(), "k").await.into_iter().rfind(|name| name != "k-by-hand");
                world.finish("default", &newest.unwrap(), "Complete").await;
            }
        }
        assert!(world.sandbox.get(jobs(), "default", "k-by-hand").is_some(), "{policy}");
        assert_eq!(world.times_said("k", "UnexpectedJob"), 1, "{policy}");
        assert_eq!(world.times_said("k", "SuccessfulCreate"), 10, "{policy}");
        assert_eq!(world.times_said("k", "JobAlreadyActive"), 0, "{policy}");
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_about_to_fail_blocks_visibly_until_it_has_failed_and_then_no_moment_longer() {
    let world = forbid_with_one_run().await;
    let first = run("2026-03-01T10:01:00Z");
    let now = "2026-03-01T10:01:00Z";
    let about_to_fail = json!({"type": "FailureTarget", "status": "True", "lastTransitionTime": now});
    let status = json!({"status": {
        "startTime": now, "active": 1, "terminating": 1, "ready": 0, "conditions": [about_to_fail],
    }});
    let path = format!("/apis/batch/v1/namespaces/default/jobs/{first}/status");
    world.request(Method::PATCH, &path, &status).await.unwrap();
    world.pass_until("2026-03-01T11:01:30Z").await;
    assert_eq!(world.job_names(jobs(), "k").await, std::slice::from_ref(&first));
    assert_eq!(world.times_said("k", "JobAlreadyActive"), 60);
    let failed = json!({"type": "Failed", "status": "True", "lastTransitionTime": now});
    let over = json!({"status": {"active": 0, "terminating": 0, "conditions": [about_to_fail, failed]}});
    world.request(Method::PATCH, &path, &over).await.unwrap();
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.job_names(jobs(), "k").await, [first, run("2026-03-01T11:01:00Z")]);
    assert_eq!(world.status(cronjobs(), "default", "k")["lastSuccessfulTime"], Value::Null);
    world.end().await;
}
