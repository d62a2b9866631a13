//! What users reported of the nights in which clocks change, and of schedules read in the wrong zone. Due instants stand here as
//! the peers' own parser gave them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{World, at, cronjob, jobs};

const NEW_YORK: &str = "America/New_York";

/// A CronJob of a zone whose Jobs all stay.
fn in_zone(name: &str, schedule: &str, zone: &str) -> Value {
    cronjob(name, schedule, json!({"timeZone": zone}))
}

/// Names of the Jobs of these due instants.
fn of(name: &str, due: &[&str]) -> Vec<String> {
    due.iter().map(|due| format!("{name}-{}", at(due).timestamp() / 60)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_time_inside_the_spring_gap_is_skipped_that_day_and_comes_the_next() {
    let mut world = World::new("2026-03-07T06:00:00Z");
    world.create(&in_zone("gap", "30 2 * * *", NEW_YORK)).await;
    world.create(&in_zone("pacific", "0 2 * * *", "US/Pacific")).await;
    world.start();
    world.pass_until("2026-03-10T00:00:00Z").await;
    assert_eq!(world.job_names(jobs(), "gap").await, of("gap", &["2026-03-07T07:30:00Z", "2026-03-09T06:30:00Z"]));
    let pacific = of("pacific", &["2026-03-07T10:00:00Z", "2026-03-09T09:00:00Z"]);
    assert_eq!(world.job_names(jobs(), "pacific").await, pacific);
    assert_eq!(world.times_said("gap", "MissSchedule") + world.times_said("gap", "InvalidSchedule"), 0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_time_inside_the_autumn_overlap_comes_twice_and_a_step_of_half_hours_never_pauses() {
    let mut world = World::new("2026-11-01T03:45:00Z");
    world.create(&in_zone("twice", "30 1 * * *", NEW_YORK)).await;
    world.create(&in_zone("steps", "*/30 * * * *", NEW_YORK)).await;
    world.start();
    world.pass_until("2026-11-01T10:01:00Z").await;
    let twice = of("twice", &["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]);
    assert_eq!(world.job_names(jobs(), "twice").await, twice);
    let first = at("2026-11-01T04:00:00Z").timestamp() / 60;
    let each: Vec<_> = (0..13).map(|half_hour| format!("steps-{}", first + 30 * half_hour)).collect();
    assert_eq!(world.job_names(jobs(), "steps").await, each);
    world.pass_until("2026-11-02T06:31:00Z").await;
    let third = of("twice", &["2026-11-02T06:30:00Z"]);
    assert_eq!(world.job_names(jobs(), "twice").await[2..], third);
    world.end().await;
}

/// CronJobs that meet the gap, a third of each kind.
const AT_THE_GAP: usize = 501;

#[tokio::test(start_paused = true)]
async fn the_way_through_the_gap_second_by_second_starts_each_run_once_and_steps_no_more_than_for_that() {
    let mut world = World::new("2026-03-08T06:59:45Z");
    let schedules = ["0 2 * * *", "*/5 * * * *", "30 2 * * *"];
    for number in 0..AT_THE_GAP {
        world.create(&in_zone(&format!("c{number}"), schedules[number % 3], NEW_YORK)).await;
    }
    world.start();
    world.pass_until("2026-03-08T06:59:50Z").await;
    let steps = || {
        let series = |result: &str| format!("engine_steps_total{{name=\"kubernetes-cronjob\",result=\"{result}\"}}");
        ["done", "failed", "conflict", "panicked"].map(|result| world.metric(&series(result)) as usize)
    };
    let before = steps();
    for _second in 0..80 {
        world.pass(Duration::from_secs(1)).await;
    }
    // 01:59:50 and 80 seconds more: three o'clock has come, two o'clock has not been, and the first of the fives is due.
    let started = world.list(jobs()).await.len();
    assert_eq!(started, AT_THE_GAP / 3);
    let after = steps();
    // Of each that ran: the start, the sight of the new Job, the sight of the new status. The others have nothing to do.
    assert!(after[0] - before[0] <= 3 * started, "{} steps", after[0] - before[0]);
    assert_eq!(after[1..], before[1..]);
    world.pass_until("2026-03-08T08:01:00Z").await;
    // To four o'clock the fives are due thirteen times; the two others skip this day.
    assert_eq!(world.list(jobs()).await.len(), 13 * AT_THE_GAP / 3);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_missed_is_worked_out_in_the_zone_of_the_schedule_at_every_relist_and_start() {
    let mut world = World::new("2026-03-01T04:30:00Z");
    // An hour ahead of UTC, whatever its name says.
    let spec = json!({"timeZone": "Etc/GMT-1", "startingDeadlineSeconds": 7200});
    world.create(&cronjob("k", "35 5 * * *", spec)).await;
    world.start();
    world.pass_until("2026-03-01T05:39:00Z").await;
    let only = of("k", &["2026-03-01T04:35:00Z"]);
    assert_eq!(world.job_names(jobs(), "k").await, only);
    // The Job is gone by then, so its name would be free.
    world.delete(jobs(), "default", &only[0]).await;
    for _again in 0..3 {
        world.sandbox.compact(world.sandbox.with_store(|store| store.revision()));
        world.sandbox.cut_watches();
        world.pass(Duration::from_secs(60)).await;
        world.kill().await;
        world.start();
        world.pass(Duration::from_secs(60)).await;
    }
    assert_eq!(world.times_said("k", "SuccessfulCreate"), 1);
    world.pass_until("2026-03-02T04:36:00Z").await;
    assert_eq!(world.job_names(jobs(), "k").await, of("k", &["2026-03-02T04:35:00Z"]));
    world.end().await;
}
