//! What users reported of many CronJobs, and of many Jobs beside one: runs that come ever later, or never.

use std::time::Duration;

use chrono::TimeDelta;
use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::faults::{Action, Fault};
use serde_json::{Value, json};

use crate::world::{World, at, cronjob, cronjobs, jobs, run_of};

/// From the due instant in a Job's name to the moment at which its creation was told.
fn lags(world: &World, name: &str) -> Vec<TimeDelta> {
    let created = world.said(name).into_iter().filter(|said| said.reason == "SuccessfulCreate");
    let lag = |said: crate::world::Said| {
        let job = said.message.strip_prefix("Created job ").unwrap().split(' ').next().unwrap().to_owned();
        let minutes: i64 = job.rsplit('-').next().unwrap().parse().unwrap();
        said.at - (at("1970-01-01T00:00:00Z") + TimeDelta::minutes(minutes))
    };
    created.map(lag).collect()
}

/// Answers of the server take this long, whatever is asked.
fn answers_after(world: &World, time: Duration) {
    for verb in [Verb::Create, Verb::Patch, Verb::Delete, Verb::Get] {
        world.sandbox.faults().install(Fault::new(Action::DelayAnswer(time)).on(verb));
    }
}

#[tokio::test(start_paused = true)]
async fn three_hundred_due_at_once_all_start_within_ten_seconds_or_tell_that_they_did_not() {
    for refusing in [false, true] {
        let mut world = World::new("2026-03-01T23:59:30Z");
        for number in 0..300 {
            let spec = json!({"startingDeadlineSeconds": 10});
            world.create(&cronjob(&format!("k{number}"), "1 0 * * *", spec)).await;
        }
        answers_after(&world, Duration::from_millis(200));
        world.start();
        world.pass_until("2026-03-02T00:00:50Z").await;
        if refusing {
            world.sandbox.faults().install(Fault::refuse(503, None).on(Verb::Create).resource("batch", "jobs"));
        }
        world.pass_until("2026-03-02T00:01:12Z").await;
        let expected = if refusing { 0 } else { 300 };
        assert_eq!(world.list(jobs()).await.len(), expected);
        world.sandbox.heal();
        world.pass_until("2026-03-02T00:03:00Z").await;
        assert_eq!(world.list(jobs()).await.len(), expected);
        let missed = world.metric(r#"cron_missed_runs_total{controller="kubernetes-cronjob"}"#);
        assert_eq!(missed, 300.0 - expected as f64);
        for number in 0..300 {
            let name = format!("k{number}");
            assert_eq!(world.times_said(&name, "MissSchedule"), usize::from(refusing), "{name}");
            assert_eq!(world.times_said(&name, "FailedCreate") > 0, refusing, "{name}");
        }
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_minutely_cronjobs_keep_pace_for_half_an_hour() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    for number in 0..1_000 {
        let mut object = cronjob(&format!("t-{number}"), "*/1 * * * *", json!({}));
        object["spec"]["jobTemplate"]["metadata"] =
            json!({"annotations": {"sandbox.cronjob-controller.dev/duration": "10s"}});
        world.create(&object).await;
    }
    answers_after(&world, Duration::from_millis(10));
    world.run_jobs();
    world.start();
    world.pass_until("2026-03-01T10:30:45Z").await;
    assert_eq!(world.created("batch"), 30_000);
    let mut by_run = vec![Vec::new(); 30];
    for number in 0..1_000 {
        let lags = lags(&world, &format!("t-{number}"));
        assert_eq!(lags.len(), 30, "t-{number}");
        lags.into_iter().zip(&mut by_run).for_each(|(lag, run)| run.push(lag));
    }
    let p99 = by_run.iter_mut().map(|run| {
        run.sort();
        run[989]
    });
    let p99: Vec<TimeDelta> = p99.collect();
    let (least, most) = (p99.iter().min().unwrap(), p99.iter().max().unwrap());
    println!("99 of 100 started within {least} to {most}");
    assert!(*most < TimeDelta::seconds(2), "{most}");
    assert!(*most - *least < TimeDelta::milliseconds(500), "flat: {least} to {most}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_cronjob_beside_twenty_thousand_runs_on_time_from_its_first_minute() {
    let mut world = World::new("2026-03-01T09:59:30Z");
    for number in 0..20_000 {
        world.create(&cronjob(&format!("k{number}"), &format!("{} * * * *", number % 60), json!({}))).await;
    }
    answers_after(&world, Duration::from_millis(10));
    world.start();
    world.pass_until("2026-03-01T10:00:30Z").await;
    world.create(&cronjob("new", "* * * * *", json!({}))).await;
    world.pass_until("2026-03-01T11:00:30Z").await;
    let lags = lags(&world, "new");
    assert_eq!(lags.len(), 60);
    let most = lags.iter().max().unwrap();
    assert!(*most < TimeDelta::seconds(1), "{most}");
    // The full hour is one of them twice over.
    assert_eq!(world.created("batch"), 60 + 20_000 + 334);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn more_jobs_than_a_page_holds_and_a_list_that_expires_half_way_delay_nobody() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let template = cronjob("k", "", json!({}))["spec"]["jobTemplate"]["spec"].clone();
    let done = json!({"type": "Complete", "status": "True", "lastTransitionTime": "2026-02-28T10:00:00Z"});
    for number in 0..1_200 {
        let namespace = format!("team-{}", number % 7);
        let metadata = json!({"namespace": namespace, "name": format!("j{number}"), "uid": format!("uid-{number}")});
        let status = json!({"conditions": [done], "completionTime": "2026-02-28T10:00:00Z"});
        let job =
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template, "status": status});
        world.sandbox.store_unvalidated(jobs(), &job);
    }
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    // No list as a stream, and the second page of the first list by pages is too old.
    let of_jobs = |fault: Fault, verb: Verb| fault.on(verb).resource("batch", "jobs");
    world.sandbox.faults().install(of_jobs(Fault::refuse(400, None), Verb::Watch).times(1));
    world.sandbox.faults().install(of_jobs(Fault::refuse(410, None), Verb::List).skip(1).times(1));
    world.sandbox.requests().reset();
    world.start();
    world.pass_until("2026-03-01T10:00:50Z").await;
    assert_eq!(world.sandbox.requests().of(Verb::List, "batch", "jobs"), 2 + 3);
    assert_eq!(world.counts()[0].jobs, 1_200);
    world.pass_until("2026-03-01T10:03:50Z").await;
    // The same while it works.
    world.sandbox.faults().install(of_jobs(Fault::new(Action::ExpireWatch), Verb::Watch).times(1));
    world.sandbox.faults().install(of_jobs(Fault::refuse(410, None), Verb::List).skip(1).times(1));
    world.sandbox.cut_watches();
    world.pass_until("2026-03-01T10:06:30Z").await;
    assert_eq!(world.sandbox.requests().of(Verb::List, "batch", "jobs"), 2 * (2 + 3));
    let due: Vec<_> = (1..=6).map(|minute| run_of("k", &format!("2026-03-01T10:0{minute}:00Z"))).collect();
    assert_eq!(world.job_names(jobs(), "k").await, due);
    assert!(lags(&world, "k").iter().all(|lag| *lag < TimeDelta::seconds(1)));
    let status: Value = world.status(cronjobs(), "default", "k");
    assert_eq!(status["active"].as_array().map(Vec::len), Some(6));
    world.end().await;
}
