//! Tests of the rules, named after them, that guard against objects that are forged, senseless or dated by a wrong clock.

use chrono::TimeDelta;

use super::fixtures::{Scene, at, child_of, failure, finished, reference, run};
use super::rule_tests::{BOTH, creates, creation};
use crate::model::{Finish, Flavor, Job, ObjectKey, ObjectReference, Policy};

#[test]
fn own_run_readopted_only_at_an_instant_that_has_come() {
    for flavor in BOTH {
        let centuries = 176 * 365 * 24 * 60;
        for minute in [centuries, 181] {
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
            // A leader whose clock was four hours ahead started a run; its status write was lost.
            let mut scene = Scene::new(flavor, 35);
            scene.cronjob.status.last_schedule_time = Some(at(0));
            scene.cronjob.spec.successful_limit = Some(0);
            scene.jobs = vec![Job { finish, ..run(flavor, 300) }];
            let ran = scene.step();
            assert!(!ran.calls.iter().any(|call| call.starts_with("deleteJob")), "it holds its name: {:?}", ran.calls);
            scene.now = at(300);
            let ran = scene.step();
            assert_eq!((creates(&ran.calls).len(), ran.written.unwrap().last_schedule_time), (0, Some(at(300))));
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

#[test]
fn nameless_entry_dropped() {
    for flavor in BOTH {
        for policy in [Policy::Allow, Policy::Forbid, Policy::Replace] {
            let mut scene = Scene::new(flavor, 0);
            scene.cronjob.spec.policy = policy;
            let running = child_of(flavor, "x", -20);
            let named = ObjectReference { name: "x".into(), ..ObjectReference::default() };
            let of_a_child = ObjectReference { uid: running.uid.clone(), ..ObjectReference::default() };
            scene.cronjob.status.active = vec![ObjectReference::default(), named, of_a_child];
            let ran = scene.step();
            assert_eq!(ran.calls, [creation(0), "updateStatus ns/cj".into()], "{policy:?}");
            let dropped = if flavor == Flavor::Kubernetes { "MissingJob" } else { "StaleReference" };
            assert_eq!(ran.reasons().iter().filter(|reason| **reason == dropped).count(), 3);
            assert_eq!(ran.written.unwrap().active.len(), 1, "the new one");

            // It does not come back with a live copy, and the entry of a child that stands beside it stays.
            let mut scene = Scene::new(flavor, -10);
            scene.jobs = vec![running.clone()];
            let mut live = scene.cronjob.clone();
            live.status.active = vec![ObjectReference::default(), reference(&running)];
            scene.live = Some(live);
            let status = scene.step().written.unwrap();
            assert_eq!(status.active, [reference(&running)]);
        }
    }
}

#[test]
fn only_own_deleted() {
    for flavor in BOTH {
        let of_others = Job { controller: None, ..child_of(flavor, "victim", -20) };
        let elsewhere = Job { key: ObjectKey::new("data", "victim"), ..child_of(flavor, "victim", -20) };
        for victim in [of_others, elsewhere] {
            let mut scene = Scene::new(flavor, 0);
            scene.cronjob.spec.policy = Policy::Replace;
            scene.cronjob.status.active = vec![reference(&victim)];
            scene.jobs = vec![victim.clone()];
            let ran = scene.step();
            let key = &victim.key;
            assert!(ran.calls.iter().all(|call| !call.starts_with("deleteJob")), "{:?}", ran.calls);
            assert_eq!(creates(&ran.calls).len(), 1);
            let said = format!("Active job {key} is not of this CronJob, and not replaced");
            assert!(ran.outcome.happenings.iter().any(|happening| happening.message == said));
            assert_eq!(ran.written.unwrap().active.len(), 1, "the new one");
        }
    }
}

#[test]
fn only_own_deleted_and_another_under_its_name_means_that_it_is_gone() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, 1);
        scene.cronjob.status.last_schedule_time = Some(at(0));
        scene.cronjob.spec.successful_limit = Some(0);
        scene.jobs = vec![finished(Finish::Complete, run(flavor, 0))];
        let deletion: &'static str = format!("deleteJob ns/{}", run(flavor, 0).key.name).leak();
        let mut other = failure("Conflict");
        other.message = "the UID in the precondition (a) does not match the UID in record (b).".into();
        scene.failing = vec![(deletion, other)];
        let outcome = scene.step().outcome;
        assert_eq!((outcome.error, outcome.left_over, outcome.happenings.len()), (None, None, 0));
    }
}

#[test]
fn minute_taken() {
    for flavor in BOTH {
        for schedule in ["@every 1s", "@every 1ns", "@every 0s", "@every -5s", "@every 7s"] {
            let mut scene = Scene::new(flavor, 0);
            scene.cronjob.spec.schedule = schedule.into();
            scene.cronjob.status.last_schedule_time = Some(at(-1));
            scene.now = at(0) + TimeDelta::milliseconds(3100);
            let ran = scene.step();
            assert_eq!(ran.reasons(), ["MinuteTaken", "SuccessfulCreate"], "{schedule}");
            let status = ran.written.unwrap();
            let due = ran.outcome.next_due.unwrap();
            assert!(due >= at(1) && due < at(1) + TimeDelta::seconds(7), "{schedule}: {due}");
            // The run has ended; the rest of its minute passes without a request.
            scene.cronjob.status = status;
            scene.cronjob.status.active.clear();
            for second in [4, 8, 30, 59] {
                scene.now = at(0) + TimeDelta::seconds(second);
                let ran = scene.step();
                assert_eq!((ran.calls.len(), ran.reasons().len()), (0, 0), "{schedule}");
                assert_eq!(ran.outcome.next_due, Some(due), "the grid stays");
            }
            scene.now = due;
            assert_eq!(creates(&scene.step().calls).len(), 1);
        }
        let mut minutely = Scene::new(flavor, 0);
        minutely.cronjob.spec.schedule = "@every 60s".into();
        assert!(!minutely.step().reasons().contains(&"MinuteTaken"));
    }
}
