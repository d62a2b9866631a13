//! Beside our own production controllers, which decide as the shadow does: nothing may differ.

use std::time::Duration;

use cronjob_controller::controllers::shadow::Difference;
use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::faults::Fault;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::common::{Watcher, pass_until};
use crate::world::{World, cronjob, cronjobs, jobs, volcano_cronjob, volcano_cronjobs};

const START: &str = "2026-03-01T10:00:10Z";

/// A CronJob of either API with every policy, limit, deadline and state that the dice give, whose Jobs end in their own time.
fn any_cronjob(dice: &mut StdRng, number: usize) -> Value {
    let mut pick = |choices: &[Value]| choices[dice.random_range(0..choices.len())].clone();
    let schedule = pick(
        &["* * * * *", "*/2 * * * *", "*/3 * * * *", "@every 45s", "@every 90s", "1-59/4 * * * *"].map(Value::from),
    );
    let mut spec = json!({
        "concurrencyPolicy": pick(&["Allow", "Forbid", "Replace"].map(Value::from)),
        "successfulJobsHistoryLimit": pick(&[0, 1, 3].map(Value::from)),
        "failedJobsHistoryLimit": pick(&[0, 1].map(Value::from)),
        "suspend": pick(&[json!(false), json!(false), json!(false), json!(true)]),
    });
    if let Some(deadline_s) = pick(&[Value::Null, Value::Null, json!(0), json!(20), json!(200)]).as_i64() {
        spec["startingDeadlineSeconds"] = json!(deadline_s);
    }
    let annotations = json!({
        "sandbox.cronjob-controller.dev/duration": pick(&["2s", "50s", "70s", "200s"].map(Value::from)),
        "sandbox.cronjob-controller.dev/outcome": pick(&["complete", "complete", "fail"].map(Value::from)),
    });
    let (name, schedule) = (format!("cj-{number}"), schedule.as_str().unwrap().to_owned());
    let volcano = number % 3 == 2;
    let mut object = if volcano { volcano_cronjob(&name, &schedule, spec) } else { cronjob(&name, &schedule, spec) };
    object["spec"]["jobTemplate"]["metadata"] = json!({"annotations": annotations});
    object
}

/// One edit such as users make.
async fn edit(world: &World, dice: &mut StdRng, number: usize) {
    let resource = if number % 3 == 2 { volcano_cronjobs() } else { cronjobs() };
    let spec = match dice.random_range(0..5) {
        0 => json!({"suspend": true}),
        1 => json!({"suspend": false}),
        2 => json!({"successfulJobsHistoryLimit": dice.random_range(0..3)}),
        3 => json!({"schedule": "*/2 * * * *"}),
        _ => json!({"concurrencyPolicy": "Forbid"}),
    };
    world.patch(resource, "default", &format!("cj-{number}"), &json!({"spec": spec})).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_differs_over_random_cronjobs_and_edits() {
    let (mut instants, mut started) = (0, 0);
    for seed in 0..12 {
        let mut dice = StdRng::seed_from_u64(seed);
        let mut world = World::new(START);
        for number in 0..15 {
            world.create(&any_cronjob(&mut dice, number)).await;
        }
        world.run_jobs();
        // Either may be there first.
        let before = dice.random_bool(0.5);
        if before {
            world.start();
            world.pass(Duration::from_millis(dice.random_range(0..90_000))).await;
        }
        let watcher = Watcher::start(&world).await;
        if !before {
            world.start();
        }
        for _ in 0..40 {
            world.pass(Duration::from_millis(dice.random_range(0..45_000))).await;
            let number = dice.random_range(0..15);
            edit(&world, &mut dice, number).await;
        }
        world.pass(Duration::from_secs(45)).await;
        assert_eq!(watcher.differing(), [], "seed {seed}");
        instants += watcher.records().len();
        started += watcher.records().iter().filter(|record| record.seen.job.is_some()).count();
        watcher.end().await;
        world.end().await;
    }
    assert!(instants > 1_000 && started > 500, "{instants} instants, {started} started");
}

#[tokio::test(start_paused = true)]
async fn nothing_differs_when_the_watches_break_in_between() {
    let mut world = World::new(START);
    for number in 0..6 {
        world.create(&cronjob(&format!("cj-{number}"), "* * * * *", json!({"successfulJobsHistoryLimit": 1}))).await;
    }
    world.run_jobs();
    world.start();
    let watcher = Watcher::start(&world).await;
    for minute in 0..20 {
        pass_until(&world, START, minute * 60 + 49).await;
        world.sandbox.cut_watches();
        world.pass(Duration::from_secs(30)).await;
    }
    assert_eq!(watcher.differing(), []);
    assert!(watcher.records().len() > 100);
    watcher.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn while_the_server_refuses_watches_nothing_is_judged() {
    let mut world = World::new(START);
    world.create(&cronjob("cj", "* * * * *", json!({}))).await;
    world.start();
    let watcher = Watcher::start(&world).await;
    pass_until(&world, "2026-03-01T10:01:00Z", -5).await;
    let refusal = world.sandbox.faults().install(Fault::refuse(503, None).on(Verb::Watch));
    let lists = world.sandbox.faults().install(Fault::refuse(503, None).on(Verb::List));
    world.sandbox.cut_watches();
    pass_until(&world, "2026-03-01T10:06:00Z", 0).await;
    let judged = watcher.records().len();
    assert!(judged <= 1, "{:?}", watcher.records());
    world.sandbox.faults().remove(refusal);
    world.sandbox.faults().remove(lists);
    pass_until(&world, "2026-03-01T10:20:00Z", 0).await;
    // Both were blind; the controller in charge started what it could when it saw again.
    let unexplained: Vec<_> =
        watcher.differing().into_iter().filter(|it| it.difference == Difference::Started).collect();
    assert_eq!(unexplained, []);
    watcher.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_due_at_once_are_judged_and_leave_nothing_behind() {
    let count = 20_000;
    let mut world = World::new("2026-03-01T10:58:00Z");
    let mut object = cronjob("x", "0 * * * *", json!({}));
    for number in 0..count {
        object["metadata"]["name"] = json!(format!("cj-{number}"));
        world.create(&object).await;
    }
    world.start();
    let watcher = Watcher::start(&world).await;
    let before = watcher.requests();
    pass_until(&world, "2026-03-01T11:00:00Z", 40).await;
    assert_eq!(world.list(jobs()).await.len(), count);
    assert_eq!(watcher.differing(), []);
    assert_eq!(watcher.records().len(), count);
    assert!(watcher.requests() - before < 20, "a herd costs no request of its own");
    let summary = watcher.end().await;
    assert_eq!((summary.records, summary.open), (count as u64, 0));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_only_a_write_shows_is_told_as_not_started_and_not_as_anything_else() {
    let mut world = World::new(START);
    for number in 0..5 {
        world.create(&cronjob(&format!("cj-{number}"), "* * * * *", json!({}))).await;
    }
    world.run_jobs();
    world.start();
    let watcher = Watcher::start(&world).await;
    let quota = Fault::refuse(403, None).on(Verb::Create).resource("batch", "jobs");
    let refusal = world.sandbox.faults().install(quota);
    pass_until(&world, "2026-03-01T10:03:00Z", -20).await;
    world.sandbox.faults().remove(refusal);
    pass_until(&world, "2026-03-01T10:10:00Z", 20).await;
    let differing = watcher.differing();
    let missing = |record: &&cronjob_controller::controllers::shadow::Record| {
        (record.difference, record.rule) == (Difference::NotStarted, Some("unexplained"))
    };
    assert_eq!(differing.iter().filter(missing).count(), 5, "{differing:#?}");
    let late = differing.iter().filter(|record| record.difference == Difference::Late).count();
    assert_eq!(differing.len() - late, 5, "the run of 10:02 comes when it may, and nothing echoes: {differing:#?}");
    watcher.end().await;
    world.end().await;
}
