//! `next` allocates nothing, wherever it has to search. Alone in its binary: the heap's statistics are the process's.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::schedule::{Schedule, Zone, missed_since, next_start};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const TEXTS: [&str; 8] =
    ["* * * * *", "30 2 * * *", "0 12 13 * FRI", "0 0 29 2 *", "0 0 30 2 *", "0 12 * * 0", ", * * * *", "@every 90s"];
/// A usual zone, one with irregular midnights, one with half hours.
const ZONES: [&str; 3] = ["America/New_York", "Asia/Beirut", "Australia/Lord_Howe"];

#[test]
fn next_and_what_builds_on_it_allocate_nothing() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let schedules = TEXTS.map(|text| Schedule::parse(text).unwrap());
    let zones = ZONES.map(|zone| Zone::load(zone, Zone::UTC).unwrap());
    let year_start: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();

    let before = dhat::HeapStats::get().total_blocks;
    let mut answers = 0u32;
    for schedule in &schedules {
        for zone in zones {
            // Every eleven hours of a year: on both sides of every change.
            for step in 0..800 {
                let at = year_start + TimeDelta::hours(11 * step);
                answers += u32::from(schedule.next(at, zone).is_some());
                answers += u32::from(next_start(schedule, zone, at).is_some());
                answers += u32::from(missed_since(schedule, zone, at - TimeDelta::days(3), at).is_ok());
            }
        }
    }
    assert_eq!(dhat::HeapStats::get().total_blocks, before, "blocks allocated");
    assert!(answers > 10_000, "{answers}");
}
