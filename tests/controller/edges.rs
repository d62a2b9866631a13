//! What users reported at the edges of the API: names, texts that no schedule is, namespaces that end, a status that is refused.

use std::time::Duration;

use cronjob_controller::api::decode_cronjob;
use cronjob_controller::model::Flavor;
use cronjob_controller::sandbox::call::{Subresource, Verb};
use cronjob_controller::sandbox::faults::{Fault, Hold, Release};
use http::Method;
use serde_json::{Value, json};

use crate::world::{World, at, cronjob, cronjobs, jobs, volcano_cronjob, volcano_cronjobs, volcano_jobs};

/// Stores a CronJob as a server without today's rules did.
fn store(world: &World, mut object: Value) {
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    object["metadata"]["uid"] = json!(format!("uid-of-{name}"));
    object["metadata"]["creationTimestamp"] = json!("2026-03-01T09:00:10Z");
    object["status"] = json!({"lastScheduleTime": "2026-03-01T10:00:00Z"});
    assert!(!world.sandbox.store_unvalidated(cronjobs(), &object));
}

#[tokio::test(start_paused = true)]
async fn stored_names_that_are_too_long_are_told_of_and_never_cut() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let names = [52, 53, 63].map(|length| "n".repeat(length));
    for name in &names {
        store(&world, cronjob(name, "* * * * *", json!({})));
    }
    store(&world, cronjob("with.dots", "* * * * *", json!({})));
    world.start();
    world.pass_until("2026-03-01T10:03:30Z").await;
    let minute = at("2026-03-01T10:01:00Z").timestamp() / 60;
    let runs = |name: &str| -> Vec<String> { (0..3).map(|more| format!("{name}-{}", minute + more)).collect() };
    // A Job's name may have 63 characters; the suffix has 9.
    for name in ["with.dots", &names[0], &names[1]] {
        assert_eq!(world.job_names(jobs(), name).await, runs(name));
    }
    assert_eq!(world.list(jobs()).await.len(), 9);
    let said = world.said(&names[2]);
    assert!(said.len() >= 3, "{said:?}");
    for said in said {
        assert_eq!(said.reason, "FailedCreate");
        assert!(said.message.contains("must be no more than 63"), "{}", said.message);
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_no_schedule_is_told_of_on_its_object_and_hurts_no_other() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let long = "* ".repeat(5_000);
    let texts = ["", &long, "\0 * * * *", "* * * * \u{1f570}", "TZ=", "TZ=0", "CRON_TZ=UTC", "\u{feff}* * * * *"];
    for (number, text) in texts.iter().enumerate() {
        store(&world, cronjob(&format!("bad-{number}"), text, json!({})));
    }
    let mut missing = cronjob("bad-missing", "", json!({}));
    missing["spec"].as_object_mut().unwrap().remove("schedule");
    store(&world, missing);
    let mut number = cronjob("bad-number", "", json!({}));
    number["spec"]["schedule"] = json!(5);
    store(&world, number);
    world.create(&cronjob("good", "* * * * *", json!({}))).await;
    world.start();
    world.pass_until("2026-03-01T10:03:30Z").await;
    for (number, text) in texts.iter().enumerate() {
        assert_eq!(world.times_said(&format!("bad-{number}"), "UnparseableSchedule"), 1, "{text:?}");
    }
    assert_eq!(world.times_said("bad-missing", "UnparseableSchedule"), 1);
    assert_eq!(world.times_said("bad-number", "UnreadableObject"), 1);
    assert_eq!(world.job_names(jobs(), "good").await.len(), 3);
    assert_eq!(world.list(jobs()).await.len(), 3);
    assert_eq!(world.metric(r#"engine_steps_total{name="kubernetes-cronjob",result="panicked"}"#), 0.0);
    world.end().await;
}

#[test]
fn half_a_character_in_an_escape_is_an_error_that_names_the_field() {
    let text = r#"{"metadata": {"namespace": "n", "name": "c"}, "spec": {"schedule": "* * * * \ud800"}}"#;
    let error = decode_cronjob(Flavor::Kubernetes, text).unwrap_err();
    assert_eq!((error.object.as_str(), error.field.as_str()), ("?/?", "spec.schedule"));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_never_ends_costs_one_try_for_each_run_and_no_warnings() {
    const CRONJOBS: u64 = 100;
    const MINUTES: u64 = 30;
    // What empties namespaces is stuck; the steps are taken by hand below.
    let mut world = World::tidied_every("2026-03-01T10:00:30Z", Duration::from_secs(1_000_000));
    world.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ending"}})).await;
    for number in 0..CRONJOBS {
        let mut object = cronjob(&format!("c{number}"), "* * * * *", json!({}));
        object["metadata"]["namespace"] = json!("ending");
        world.create(&object).await;
    }
    world.start();
    world.pass(Duration::from_secs(10)).await;
    world.request(Method::DELETE, "/api/v1/namespaces/ending", &Value::Null).await.unwrap();
    world.sandbox.requests().reset();
    world.pass(Duration::from_secs(60 * MINUTES)).await;
    assert_eq!(world.sandbox.requests().of(Verb::Create, "batch", "jobs"), CRONJOBS * MINUTES);
    assert_eq!(world.sandbox.requests().of(Verb::Create, "", "events"), 0);
    assert!((0..CRONJOBS).all(|number| world.said(&format!("c{number}")).is_empty()));
    for _step in 0..5 {
        world.sandbox.namespace_step();
        world.sandbox.gc_step();
        world.pass(Duration::from_secs(5)).await;
    }
    assert!(world.list(cronjobs()).await.is_empty());
    for counts in world.counts() {
        assert_eq!(counts, Default::default(), "{counts}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_refused_status_is_written_seconds_later_and_costs_no_run() {
    for code in [409, 500] {
        let mut world = World::new("2026-03-01T10:00:30Z");
        world.create(&cronjob("k", "* * * * *", json!({}))).await;
        world.create(&volcano_cronjob("v", "* * * * *", json!({}))).await;
        world.start();
        let refuse = Fault::refuse(code, None).on(Verb::Patch).subresource(Subresource::Status).times(1);
        for group in ["batch", "batch.volcano.sh"] {
            world.sandbox.faults().install(refuse.clone().resource(group, "cronjobs"));
        }
        // No event comes to its help: nobody hears of the new Jobs.
        world.pass_until("2026-03-01T10:00:50Z").await;
        for resource in [jobs(), volcano_jobs()] {
            world.sandbox.hold_cache(resource, Hold { until: Release::Told, lists: true });
        }
        world.pass_until("2026-03-01T10:01:05Z").await;
        assert_eq!(world.sandbox.faults().hits(), 2, "{code}");
        for (resource, name) in [(cronjobs(), "k"), (volcano_cronjobs(), "v")] {
            let status = world.status(resource, "default", name);
            assert_eq!(status["lastScheduleTime"], "2026-03-01T10:01:00Z", "{code}");
            assert_eq!(status["active"].as_array().unwrap().len(), 1, "{code}");
        }
        world.sandbox.heal();
        world.pass_until("2026-03-01T10:02:01Z").await;
        for name in ["k", "v"] {
            let created = world.said(name).into_iter().filter(|said| said.reason == "SuccessfulCreate");
            let seconds: Vec<_> = created.map(|said| said.at.format("%H:%M:%S").to_string()).collect();
            assert_eq!(seconds, ["10:01:00", "10:02:00"], "{code}");
        }
        world.end().await;
    }
}
