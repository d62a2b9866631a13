//! What the controllers owe to others on the same server: their fields, their kinds that come and go, objects nobody can read.

use std::time::Duration;

use cronjob_controller::sandbox::faults::Fault;
use serde_json::json;

use crate::world::{World, at, cronjob, cronjobs, jobs, volcano_cronjob, volcano_jobs};

#[tokio::test(start_paused = true)]
async fn labels_annotations_and_finalizers_of_others_survive_every_status_write() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let mut object = cronjob("k", "* * * * *", json!({"successfulJobsHistoryLimit": 1}));
    let marks = json!({"example.com/mark": "kept"});
    object["metadata"]["labels"] = marks.clone();
    object["metadata"]["annotations"] = marks.clone();
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create(&object).await;
    world.start();
    for minute in 0..4 {
        world.pass(Duration::from_secs(60)).await;
        let name = world.job_names(jobs(), "k").await.pop().unwrap();
        world.finish("default", &name, if minute == 2 { "Failed" } else { "Complete" }).await;
    }
    world.pass(Duration::from_secs(5)).await;
    let stored = world.sandbox.get(cronjobs(), "default", "k").unwrap();
    assert_eq!(stored["status"]["lastScheduleTime"], "2026-03-01T10:04:00Z");
    assert_eq!(stored["metadata"]["labels"], marks);
    assert_eq!(stored["metadata"]["annotations"], marks);
    assert_eq!(stored["metadata"]["finalizers"], json!(["example.com/hold"]));
    assert_eq!(stored["spec"]["schedule"], "* * * * *");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn template_fields_that_nobody_here_knows_reach_the_job() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let mut object = volcano_cronjob("v", "* * * * *", json!({}));
    object["spec"]["jobTemplate"]["spec"]["plugins"] = json!({"ssh": ["--x"], "svc": []});
    object["spec"]["jobTemplate"]["metadata"] = json!({"labels": {"team": "ml"}, "annotations": {"note": "n"}});
    world.create(&object).await;
    world.start();
    world.pass(Duration::from_secs(60)).await;
    let job = world.list(volcano_jobs()).await.remove(0);
    assert_eq!(job["spec"]["plugins"], json!({"ssh": ["--x"], "svc": []}));
    assert_eq!(job["metadata"]["labels"], json!({"team": "ml"}));
    assert_eq!(
        job["metadata"]["annotations"],
        json!({"note": "n", "volcano.sh/cronjob-scheduled-timestamp": "2026-03-01T10:01:00Z"})
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_volcanos_kinds_the_other_controller_runs_and_they_are_found_when_they_appear() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.create(&volcano_cronjob("v", "* * * * *", json!({}))).await;
    for plural in ["cronjobs", "jobs"] {
        world.sandbox.faults().install(Fault::refuse(404, None).resource("batch.volcano.sh", plural));
    }
    world.start();
    world.pass_until("2026-03-01T10:03:30Z").await;
    assert_eq!(world.job_names(jobs(), "k").await.len(), 3);
    assert!(world.said("v").is_empty());
    world.sandbox.heal();
    world.pass_until("2026-03-01T10:05:30Z").await;
    // Found within half a minute: the newest one missed by then (10:04) is made up for, 10:05 comes on time.
    let minute = at("2026-03-01T10:04:00Z").timestamp() / 60;
    let expected = [format!("v-{minute}"), format!("v-{}", minute + 1)];
    assert_eq!(world.job_names(volcano_jobs(), "v").await, expected);
    assert_eq!(world.job_names(jobs(), "k").await.len(), 5);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_for_minutes_costs_no_newest_run_and_no_second_one() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.start();
    world.pass_until("2026-03-01T10:01:30Z").await;
    world.sandbox.faults().install(Fault::refuse(503, None));
    world.sandbox.cut_watches();
    world.pass_until("2026-03-01T10:06:10Z").await;
    world.sandbox.heal();
    world.pass_until("2026-03-01T10:06:45Z").await;
    // 10:01 before, and of those missed in between the newest alone.
    assert_eq!(world.job_names(jobs(), "k").await.len(), 2);
    world.pass_until("2026-03-01T10:08:30Z").await;
    assert_eq!(world.job_names(jobs(), "k").await.len(), 4);
    world.end().await;
}
