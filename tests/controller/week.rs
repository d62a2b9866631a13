//! The samples of `config/samples` over a week of virtual time, across the night in which New York's clocks go forward. Due
//! instants and overlaps are computed here from scratch, without `schedule/` and without `reconcile/`.

use std::path::Path;

use chrono::{NaiveDate, NaiveTime, TimeDelta, TimeZone};
use cronjob_controller::cli::manifests;
use cronjob_controller::model::WallTime;

use crate::world::{World, at, cronjobs, jobs, volcano_cronjobs, volcano_jobs};

const START: &str = "2026-03-02T00:00:00Z";
const END: &str = "2026-03-09T00:00:00Z";

/// From a Job's creation until the stand-in runs it.
const START_AFTER: TimeDelta = TimeDelta::seconds(1);
/// From a due instant until its Job is created.
const DELTA: TimeDelta = TimeDelta::milliseconds(100);

/// Every `period` on the clock (counted from the epoch), within the week.
fn on_the_clock(period: TimeDelta) -> Vec<WallTime> {
    let (start, end, period) = (at(START).timestamp(), at(END).timestamp(), period.num_seconds());
    let first = start - start % period + period;
    (0..).map(|n| first + n * period).take_while(|due| *due < end).map(instant).collect()
}

/// Every `period` after the start.
fn after_the_start(period: TimeDelta) -> Vec<WallTime> {
    (1..).map(|n| at(START) + period * n).take_while(|due| *due < at(END)).collect()
}

/// At `time` of each local day, except where that time does not exist.
fn daily(zone: chrono_tz::Tz, time: NaiveTime) -> Vec<WallTime> {
    let first = NaiveDate::from_ymd_opt(2026, 3, 1).unwrap();
    let days = first.iter_days().take(10);
    let exists = |day: NaiveDate| zone.from_local_datetime(&day.and_time(time)).single();
    let instants = days.filter_map(exists).map(|local| local.to_utc());
    instants.filter(|due| *due > at(START) && *due < at(END)).collect()
}

/// Of the due instants, those that start when no run may overlap another and each takes `takes`: a run that ends makes up for
/// the newest one that it held up.
fn one_at_a_time(due: &[WallTime], takes: TimeDelta) -> Vec<WallTime> {
    let mut starts: Vec<WallTime> = Vec::new();
    let mut free_at = at(START);
    loop {
        let last = starts.last().copied();
        let held_up = due.iter().rfind(|due| **due + DELTA <= free_at && Some(**due) > last);
        let next = held_up.or_else(|| due.iter().find(|due| **due + DELTA > free_at && Some(**due) > last));
        let Some(next) = next.copied() else { return starts };
        let created = (next + DELTA).max(free_at);
        if created >= at(END) {
            return starts;
        }
        starts.push(next);
        free_at = created + START_AFTER + takes;
    }
}

fn instant(timestamp: i64) -> WallTime {
    chrono::Utc.timestamp_opt(timestamp, 0).unwrap()
}

/// The due instants of the Jobs that were created for a CronJob, by their names, in order of creation.
fn started(world: &World, name: &str) -> Vec<WallTime> {
    let created = world.said(name).into_iter().filter(|said| said.reason == "SuccessfulCreate");
    let minute = |message: &str| -> i64 {
        let job = message.strip_prefix("Created job ").unwrap().split(' ').next().unwrap();
        job.strip_prefix(&format!("{name}-")).unwrap().parse().unwrap()
    };
    created.map(|said| instant(minute(&said.message) * 60)).collect()
}

/// The minutes in which instants fall, as names of Jobs show them.
fn minutes(due: Vec<WallTime>) -> Vec<WallTime> {
    due.into_iter().map(|due| instant(due.timestamp() / 60 * 60)).collect()
}

#[tokio::test(start_paused = true)]
async fn each_sample_starts_what_its_schedule_and_policy_say_for_a_week() {
    let mut world = World::new(START);
    let mut refused = Vec::new();
    for manifest in manifests::read(Path::new("config/samples")).unwrap() {
        if world.try_create(&manifest.object).await.is_err() {
            refused.push(manifest.object["metadata"]["name"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(refused, ["invalid-minute"]);
    world.run_jobs();
    world.start();
    world.pass_until(END).await;

    let quarters = on_the_clock(TimeDelta::minutes(15));
    let hours = on_the_clock(TimeDelta::hours(1));
    let half_past_two = NaiveTime::from_hms_opt(2, 30, 0).unwrap();
    let newsletter = daily(chrono_tz::America::New_York, half_past_two);
    assert_eq!(newsletter.len(), 6, "2026-03-08 has no half past two in New York");
    for (name, due) in [
        ("allow-metrics", on_the_clock(TimeDelta::minutes(10))),
        ("replace-report", on_the_clock(TimeDelta::minutes(20))),
        ("failing-probe", after_the_start(TimeDelta::minutes(7))),
        ("forbid-backup", one_at_a_time(&quarters, TimeDelta::minutes(20))),
        ("gpu-training", one_at_a_time(&hours, TimeDelta::minutes(75))),
        ("daily-etl", daily(chrono_tz::Asia::Shanghai, half_past_two)),
        ("zone-newsletter", newsletter),
        ("suspended-cleanup", Vec::new()),
    ] {
        let started = started(&world, name);
        let due = minutes(due);
        let differs = started.iter().zip(&due).position(|(started, due)| started != due);
        assert_eq!(started.len(), due.len(), "{name}, first difference at {differs:?}");
        assert_eq!(started, due, "{name}");
    }

    // History: the newest three successes and one failure, or what the sample says instead; and what runs.
    assert_eq!(world.job_names(jobs(), "failing-probe").await.len(), 2);
    assert_eq!(world.job_names(jobs(), "allow-metrics").await.len(), 3 + 1);
    assert_eq!(world.job_names(jobs(), "replace-report").await.len(), 1);
    assert_eq!(world.job_names(jobs(), "forbid-backup").await.len(), 3 + 1);
    assert_eq!(world.job_names(volcano_jobs(), "gpu-training").await.len(), 5 + 1);
    assert_eq!(world.job_names(volcano_jobs(), "daily-etl").await.len(), 3);
    let status = world.status(volcano_cronjobs(), "data", "daily-etl");
    assert_eq!(status["lastScheduleTime"], "2026-03-08T18:30:00Z");
    let status = world.status(cronjobs(), "shop", "zone-newsletter");
    assert_eq!(status["lastScheduleTime"], "2026-03-07T07:30:00Z", "the 8th is skipped");
    world.end().await;
}
