//! What users reported of zones: none given, one inside the schedule, and texts that look like one.

use std::time::Duration;

use cronjob_controller::schedule::Zone;
use serde_json::{Value, json};

use crate::world::{World, cronjob, cronjobs, jobs, run_of, volcano_cronjob, volcano_cronjobs, volcano_jobs};

/// Creates a CronJob and lets it hold another schedule and zone, as a server without today's rules would have.
async fn create_old(world: &World, mut object: Value, schedule: &str, zone: Value) {
    world.create(&object).await;
    let resource = if object["apiVersion"] == "batch/v1" { cronjobs() } else { volcano_cronjobs() };
    object = world.sandbox.get(resource, "default", object["metadata"]["name"].as_str().unwrap()).unwrap();
    object["spec"]["schedule"] = json!(schedule);
    if !zone.is_null() {
        object["spec"]["timeZone"] = zone;
    }
    assert!(world.sandbox.store_unvalidated(resource, &object));
}

#[tokio::test(start_paused = true)]
async fn a_schedule_without_a_zone_means_utc_unless_the_process_was_given_another() {
    let denver = Zone::load("America/Denver", Zone::UTC).unwrap();
    for (zone, due) in [(None, "2026-03-01T06:00:00Z"), (Some(denver), "2026-03-01T13:00:00Z")] {
        let mut world = World::new("2026-03-01T00:00:30Z");
        world.options.local_zone = zone.unwrap_or(world.options.local_zone);
        world.create(&cronjob("k", "0 6 * * *", json!({}))).await;
        world.create(&volcano_cronjob("v", "0 6 * * *", json!({}))).await;
        // Whoever says a zone means it wherever the process runs.
        world.create(&cronjob("own", "0 6 * * *", json!({"timeZone": "Asia/Tokyo"}))).await;
        world.start();
        world.pass_until("2026-03-01T22:00:00Z").await;
        assert_eq!(world.job_names(jobs(), "k").await, [run_of("k", due)]);
        assert_eq!(world.job_names(volcano_jobs(), "v").await, [run_of("v", due)]);
        assert_eq!(world.job_names(jobs(), "own").await, [run_of("own", "2026-03-01T21:00:00Z")]);
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_schedule_with_its_own_zone_keeps_running_there_and_can_be_edited_elsewhere() {
    const OLD: &str = "CRON_TZ=Europe/Berlin 0 6 * * *";
    let mut world = World::new("2026-03-01T06:00:30Z");
    for (name, zone) in [("alone", Value::Null), ("beside", json!("America/New_York"))] {
        create_old(&world, cronjob(&format!("k-{name}"), "0 0 1 1 *", json!({})), OLD, zone.clone()).await;
        create_old(&world, volcano_cronjob(&format!("v-{name}"), "0 0 1 1 *", json!({})), OLD, zone).await;
    }
    world.start();
    world.pass(Duration::from_secs(5)).await;
    let label = json!({"metadata": {"labels": {"team": "night"}}});
    world.patch(cronjobs(), "default", "k-alone", &label).await;
    world.pass_until("2026-03-02T12:00:00Z").await;
    for name in ["alone", "beside"] {
        for (jobs, api) in [(jobs(), "k"), (volcano_jobs(), "v")] {
            let name = format!("{api}-{name}");
            assert_eq!(world.job_names(jobs, &name).await, [run_of(&name, "2026-03-02T05:00:00Z")]);
            assert!(world.times_said(&name, "UnsupportedSchedule") > 0, "{name}");
        }
    }
    for new in [cronjob("new", OLD, json!({})), volcano_cronjob("new", OLD, json!({}))] {
        let refused = world.try_create(&new).await.unwrap_err();
        assert!(refused["message"].as_str().unwrap().contains("TZ"), "{refused}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_begins_as_a_zone_and_is_none_is_told_of_and_hurts_nobody_else() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let texts = ["TZ=", "TZ=0", "CRON_TZ=UTC", "TZ=TZ=TZ=", "TZ=Zone\t0 2 * * *"];
    for (number, text) in texts.iter().enumerate() {
        create_old(&world, cronjob(&format!("k{number}"), "0 0 1 1 *", json!({})), text, Value::Null).await;
        create_old(&world, volcano_cronjob(&format!("v{number}"), "0 0 1 1 *", json!({})), text, Value::Null).await;
    }
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.create(&volcano_cronjob("v", "* * * * *", json!({}))).await;
    world.start();
    world.pass_until("2026-03-01T10:03:30Z").await;
    for number in 0..texts.len() {
        for name in [format!("k{number}"), format!("v{number}")] {
            assert!(world.times_said(&name, "UnparseableSchedule") > 0, "{name}: {:?}", world.said(&name));
        }
    }
    assert_eq!(world.metric(r#"cron_invalid{controller="kubernetes-cronjob",reason="schedule"}"#), 5.0);
    assert_eq!(world.metric(r#"engine_steps_total{name="kubernetes-cronjob",result="panicked"}"#), 0.0);
    assert_eq!((world.created("batch"), world.created("batch.volcano.sh")), (3, 3));
    world.end().await;
}
