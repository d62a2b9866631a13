//! Tests of the rules, named after them, that guard against objects that are forged, senseless or dated by a wrong clock.

use super::fixtures::{Scene, at, failure, run};
use super::rule_tests::{BOTH, creates, creation};
use crate::model::{Finish, Flavor, Job};

#[test]
fn own_run_readopted_only_at_an_instant_that_has_come() {
    for flavor in BOTH {
        // Made up: for the year 2200, and for an hour before the CronJob was there.
        let centuries = 176 * 365 * 24 * 60;
        for minute in [centuries, 30, -60] {
            for finish in [None, Some(Finish::Complete)] {
                let mut scene = Scene::new(flavor, 0);
                scene.jobs = vec![Job { finish, succeeded: finish.is_some(), ..run(flavor, minute) }];
                let ran = scene.step();
                assert_eq!(creates(&ran.calls), [&creation(0)]);
                let status = ran.written.as_ref().unwrap();
                assert_eq!((status.last_schedule_time, status.active.len()), (Some(at(0)), 1));
                let unexpected = if flavor == Flavor::Kubernetes { "UnexpectedJob" } else { "OrphanedJob" };
                assert_eq!(ran.reasons().contains(&unexpected), finish.is_none(), "{:?}", ran.reasons());
            }
        }
    }
}

#[test]
fn own_run_readopted_when_the_instant_of_a_leader_ahead_comes() {
    for flavor in BOTH {
        for finish in [None, Some(Finish::Complete)] {
            // A leader whose clock was half an hour ahead started the run of 11:00; its status write was lost.
            let mut scene = Scene::new(flavor, 35);
            scene.cronjob.status.last_schedule_time = Some(at(0));
            scene.cronjob.spec.successful_limit = Some(0);
            scene.jobs = vec![Job { finish, ..run(flavor, 60) }];
            let ran = scene.step();
            let made = ran.calls.iter().any(|call| call.starts_with("createJob") || call.starts_with("deleteJob"));
            assert!(!made, "it holds its name until then: {:?}", ran.calls);
            scene.now = at(60);
            let ran = scene.step();
            assert_eq!((creates(&ran.calls).len(), ran.written.unwrap().last_schedule_time), (0, Some(at(60))));
        }
    }
}

#[test]
fn own_run_readopted_though_the_clock_went_back_since_it_was_started() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, 60);
        scene.failing = vec![("updateStatus ns/cj", failure("InternalError"))];
        assert_eq!(creates(&scene.step().calls).len(), 1);
        scene.now = at(10);
        scene.failing.clear();
        let status = scene.step().written.unwrap();
        assert_eq!((status.last_schedule_time, status.active.len()), (Some(at(60)), 1));
    }
}

#[test]
fn ahead_speaks() {
    for flavor in BOTH {
        for (minutes, said) in [(1, 0), (2, 1), (90 * 365 * 24 * 60, 1)] {
            let mut scene = Scene::new(flavor, 0);
            scene.cronjob.status.last_schedule_time = Some(at(minutes));
            let ran = scene.step();
            assert_eq!((ran.calls.len(), ran.outcome.happenings.len()), (0, said));
            scene.cronjob.spec.suspend = true;
            assert_eq!(scene.step().reasons(), [""; 0], "that it does not run is known");
        }
        let mut scene = Scene::new(flavor, 0);
        scene.cronjob.status.last_schedule_time = Some(at(60));
        let told = &scene.step().outcome.happenings[0];
        let message =
            "Nothing starts before status.lastScheduleTime, which lies ahead of the clock: 2024-03-01T11:00:00Z";
        assert_eq!((told.reason, &*told.message), ("LastScheduleTimeAhead", message));
    }
}
