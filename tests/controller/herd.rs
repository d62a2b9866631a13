//! Thousands of CronJobs due at once: start-up, one herd second, what goes first in it, and the deletion of all, after which nothing may
//! remain.

use std::time::Duration;

use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::faults::{Action, Fault};
use http::Method;
use serde_json::{Value, json};

use crate::world::{World, at, cronjob, cronjobs, jobs};

const CRONJOBS: usize = 20_000;
const NAMESPACES: usize = 50;

fn namespace(of: usize) -> String {
    format!("tenant-{:02}", of % NAMESPACES)
}

async fn create_all(world: &World) {
    for number in 0..NAMESPACES {
        let name = namespace(number);
        world.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
    }
    for number in 0..CRONJOBS {
        let mut object = cronjob(&format!("herd-{number}"), "0 12 * * *", json!({}));
        object["metadata"]["namespace"] = json!(namespace(number));
        world.create(&object).await;
    }
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_start_in_their_second_and_leave_nothing_behind() {
    let mut world = World::new("2026-03-01T11:58:00Z");
    create_all(&world).await;
    world.start();
    world.pass(Duration::from_secs(10)).await;
    let counts = world.counts()[0];
    assert_eq!((counts.cronjobs, counts.engine.cells), (CRONJOBS, CRONJOBS), "{counts}");
    assert_eq!((counts.jobs, counts.engine.queues.delayed), (0, CRONJOBS), "{counts}");

    // Answers take no virtual time, so all of them are there as soon as the instant and the peers' delta have passed.
    world.pass_until("2026-03-01T12:00:01Z").await;
    let started = world.list(jobs()).await;
    assert_eq!(started.len(), CRONJOBS);
    let suffix = format!("-{}", at("2026-03-01T12:00:00Z").timestamp() / 60);
    assert!(started.iter().all(|job| job["metadata"]["name"].as_str().unwrap().ends_with(&suffix)));
    world.pass(Duration::from_secs(60)).await;
    let all = world.list(cronjobs()).await;
    assert!(all.iter().all(|object| object["status"]["lastScheduleTime"] == "2026-03-01T12:00:00Z"));

    for number in 0..NAMESPACES {
        let path = format!("/apis/batch/v1/namespaces/{}/cronjobs", namespace(number));
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        let _deleted: Value = world.request(Method::DELETE, &path, &options).await.unwrap();
    }
    world.pass(Duration::from_secs(120)).await;
    assert!(world.list(jobs()).await.is_empty());
    for counts in world.counts() {
        assert_eq!(counts, Default::default(), "{counts}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn all_runs_of_a_herd_start_before_their_records_are_written_and_each_is_told() {
    const DUE: usize = 3_000;
    /// Requests in flight at most, some of which are records while the last runs start.
    const IN_FLIGHT: usize = 128;
    let mut world = World::new("2026-03-01T11:58:00Z");
    for number in 0..DUE {
        world.create(&cronjob(&format!("herd-{number}"), "0 12 * * *", json!({}))).await;
    }
    world.start();
    world.pass(Duration::from_secs(10)).await;
    for verb in [Verb::Create, Verb::Patch] {
        world.sandbox.faults().install(Fault::new(Action::DelayAnswer(Duration::from_millis(20))).on(verb));
    }
    world.pass_until("2026-03-01T12:01:00Z").await;
    // The server numbers all writes in order.
    let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    let started: Vec<_> = world.list(jobs()).await.iter().map(version).collect();
    let recorded: Vec<_> = world.list(cronjobs()).await.iter().map(version).collect();
    assert_eq!(started.len(), DUE);
    let last = started.into_iter().max().unwrap();
    let early = recorded.iter().filter(|version| **version < last).count();
    assert!(early <= IN_FLIGHT, "{early} records were written before the last run started");
    for number in 0..DUE {
        assert_eq!(world.times_said(&format!("herd-{number}"), "SuccessfulCreate"), 1, "{number}");
    }
    world.end().await;
}
