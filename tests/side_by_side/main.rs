//! The same CronJobs and the same edits, at the same time, on two fresh control planes: one with the CronJob controller of the
//! real kube-controller-manager, one with the binary under test. Both have the real garbage collector; nothing runs Jobs, the
//! script ends them.
//!
//! Compared are the Jobs that came, went and are left, the events and the status of each CronJob, without uids and versions and
//! with minutes counted from the start. A difference passes only if [`cases`] expects it under a deviation rule of
//! `docs/parity.md`, and an expected difference must appear. Takes some five minutes, for the schedules are real.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a script that cannot go on has failed")]

mod cases;
mod edits;
mod plane;
mod record;
mod verdict;

#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use chrono::{DurationRound, TimeDelta, Timelike};
use cronjob_controller::clock::Clock;

use plane::Plane;
use verdict::Verdict;

const TEST: &str = "side_by_side";
/// When the script ends, in seconds from the start of its first minute: in the middle of the fifth.
const END_S: u64 = 275;
/// The script begins in this part of a minute.
const BEGIN_S: std::ops::RangeInclusive<u32> = 5..=12;

#[tokio::test(flavor = "multi_thread")]
async fn differences_to_the_real_controller_are_those_of_the_rules() {
    let Some(mut theirs) = Plane::start(TEST).await else { return };
    let Some(mut ours) = Plane::start(TEST).await else { return };
    let Some(()) = theirs.run_their_controller(TEST) else { return };
    let Some(()) = ours.run_our_controller(TEST) else { return };
    let cases = cases::all();
    let clock = Clock::system();
    while !BEGIN_S.contains(&clock.wall().second()) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let start = clock.wall().duration_trunc(TimeDelta::minutes(1)).unwrap();
    tokio::join!(theirs.begin(start), ours.begin(start));
    for (at_s, case, edit) in cases::timeline(&cases) {
        wait_until(&clock, start, at_s).await;
        tokio::join!(theirs.apply(case, edit), ours.apply(case, edit));
    }
    wait_until(&clock, start, END_S).await;
    let mut verdict = Verdict::default();
    for case in &cases {
        let (theirs, ours) = tokio::join!(theirs.record(case.name), ours.record(case.name));
        verdict.judge(case, &theirs, &ours);
    }
    println!("{}", verdict.summary());
    let faults = verdict.faults();
    assert!(faults.is_empty(), "{}\n\nlog of ours:\n{}", faults.join("\n"), ours.log_tail());
}

async fn wait_until(clock: &Clock, start: chrono::DateTime<chrono::Utc>, at_s: u64) {
    let at = start + TimeDelta::seconds(i64::try_from(at_s).unwrap());
    if let Ok(left) = (at - clock.wall()).to_std() {
        tokio::time::sleep(left).await;
    }
}
