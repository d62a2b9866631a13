//! What users reported of very many Jobs: others' that cost us, and our own that nobody ends.

use std::time::Duration;

use cronjob_controller::sandbox::call::Verb;
use serde_json::{Value, json};

use crate::world::{World, at, cronjob, cronjobs, jobs};

/// Jobs in the cluster that belong to none of the CronJobs.
const STRANGERS: usize = 260_000;

#[tokio::test(start_paused = true)]
async fn a_quarter_of_a_million_foreign_jobs_cost_one_list_and_no_step() {
    // The garbage collector of the server stays away: it would take half of them.
    let mut world = World::tidied_every("2026-03-01T10:00:30Z", Duration::from_secs(1_000_000));
    let template = cronjob("k", "", json!({}))["spec"]["jobTemplate"]["spec"].clone();
    let mut stranger = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": template});
    for number in 0..STRANGERS {
        // By others, half of them under a CronJob that is long gone.
        let owner = json!([{
            "apiVersion": "batch/v1", "kind": "CronJob", "name": "gone", "uid": "uid-of-gone", "controller": true,
        }]);
        stranger["metadata"] = json!({
            "namespace": format!("team-{}", number % 100), "name": format!("job-{number}"), "uid": format!("uid-{number}"),
            "ownerReferences": if number % 2 == 0 { owner } else { Value::Null },
        });
        world.sandbox.store_unvalidated(jobs(), &stranger);
    }
    for number in 0..10 {
        world.create(&cronjob(&format!("k{number}"), "* * * * *", json!({}))).await;
    }
    world.sandbox.requests().reset();
    world.start();
    world.pass_until("2026-03-01T10:10:30Z").await;
    assert_eq!(world.counts()[0].jobs, STRANGERS + 100);
    // The list comes as the beginning of the watch, and nothing is asked for again.
    let asked = |verb: Verb| world.sandbox.requests().of(verb, "batch", "jobs");
    assert_eq!((asked(Verb::List), asked(Verb::Get), asked(Verb::Create)), (0, 0, 100));
    assert!(asked(Verb::Watch) <= 2, "{} watches", asked(Verb::Watch));
    // At the start one step, for each run three: it is due, its Job is seen, its status is seen.
    let steps = world.metric(r#"engine_steps_total{name="kubernetes-cronjob",result="done"}"#);
    assert!(steps <= 310.0, "{steps} steps");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_day_of_jobs_that_never_end_starts_them_all_and_leaves_an_object_that_can_be_written() {
    let mut world = World::new("2026-03-01T00:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({"concurrencyPolicy": "Allow"}))).await;
    world.start();
    for _hour in 0..24 {
        world.pass(Duration::from_secs(3_600)).await;
        // Every version has all that are active; the server need not keep them.
        world.sandbox.compact(world.sandbox.with_store(|store| store.revision()));
    }
    assert_eq!(world.job_names(jobs(), "k").await.len(), 1440);
    let object = world.sandbox.get(cronjobs(), "default", "k").unwrap();
    let active = object["status"]["active"].as_array().unwrap();
    assert_eq!(active.len(), 1440);
    // etcd takes 1.5 MB.
    let bytes = object.to_string().len();
    assert!(bytes < 400_000, "{bytes} bytes");
    println!("{bytes} bytes with {} active Jobs", active.len());
    assert_eq!(world.metric(r#"cron_crowded{controller="kubernetes-cronjob"}"#), 1.0);
    // An edit goes through, and it can still be brought back in order.
    world.patch(cronjobs(), "default", "k", &json!({"spec": {"concurrencyPolicy": "Replace"}})).await;
    world.pass(Duration::from_secs(120)).await;
    let newest = format!("k-{}", at("2026-03-02T00:02:00Z").timestamp() / 60);
    assert_eq!(world.job_names(jobs(), "k").await, [newest]);
    assert_eq!(world.metric(r#"cron_crowded{controller="kubernetes-cronjob"}"#), 0.0);
    world.end().await;
}
