//! One test per rule, named after it; the rules against what is forged or dated wrongly are in `guard_tests.rs`. What the peers do instead stands in `docs/parity.md`.

use std::sync::Arc;

use chrono::TimeDelta;

use super::call::{Call, Next, Retry, RunResult};
use super::fixtures::{Scene, at, child_of, cronjob, failure, finished, reference, run};
use super::step::{Settings, Step};
use super::watch::on_name_freed;
use crate::model::{ApiFailure, CronJob, CronJobStatus, Finish, Flavor, Job, ObjectKey, Policy};
use crate::schedule::{MissedCount, Zone};

pub(super) const BOTH: [Flavor; 2] = [Flavor::Kubernetes, Flavor::Volcano];
const K: Flavor = Flavor::Kubernetes;
const V: Flavor = Flavor::Volcano;

/// The call that creates the run of a due instant.
pub(super) fn creation(minute: i64) -> String {
    format!("createJob ns/{}", run(K, minute).key.name)
}

pub(super) fn creates(calls: &[String]) -> Vec<&String> {
    calls.iter().filter(|call| call.starts_with("createJob")).collect()
}

#[test]
fn exact_newest() {
    for flavor in BOTH {
        // Last run 00:01, then 00:00 and 00:01 of the next day; the peers expect 00:02 and find nothing.
        let mut scene = Scene::new(flavor, 14 * 60 + 3);
        scene.cronjob.spec.schedule = "0,1 0 * * *".into();
        scene.cronjob.status.last_schedule_time = Some(at(-10 * 60 + 1));
        let ran = scene.step();
        assert_eq!(ran.calls[0], creation(14 * 60 + 1));
        assert_eq!(ran.outcome.missed, Some(MissedCount::Exactly(1)));
    }
}

#[test]
fn get_in_namespace() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, 0);
        scene.server = Some(vec![run(flavor, 0)]);
        let ran = scene.step();
        let name = run(flavor, 0).key.name;
        assert_eq!(ran.calls, [creation(0), format!("getJob ns/{name}"), "updateStatus ns/cj".into()]);
        assert_eq!(ran.outcome.error, None);
        assert_eq!(ran.written.unwrap().last_schedule_time, Some(at(0)));
    }
}

#[test]
fn foreign_requeues() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, 0);
        scene.server = Some(vec![Job { controller: None, ..run(flavor, 0) }]);
        let ran = scene.step();
        assert_eq!(ran.reasons(), ["ForeignJob"]);
        assert_eq!(ran.outcome.requeue.unwrap().as_secs(), 3600);
        assert_eq!(scene.step().reasons(), [""; 0], "said once for the instant");

        let mut in_active = Scene::new(flavor, 0);
        let job = run(flavor, 0);
        let mut other_name = reference(&job);
        other_name.name = "other".into();
        in_active.cronjob.status.active = vec![other_name];
        in_active.jobs = vec![job];
        assert_eq!(in_active.step().outcome.requeue.unwrap().as_secs(), 3600);
    }
}

#[test]
fn freed_name_wakes() {
    for flavor in BOTH {
        let run = run(flavor, 0);
        let wakes = |job: &Job, uid: Option<&'static str>| {
            !on_name_freed(job, &|key| uid.filter(|_| *key == cronjob().key).map(Into::into)).operations.is_empty()
        };
        assert!(wakes(&run, Some("recreated")), "its owner was an earlier one");
        assert!(wakes(&Job { controller: None, ..run.clone() }, Some("cj-uid")));
        assert!(!wakes(&run, Some("cj-uid")), "its own wakes it by its owner reference");
        assert!(!wakes(&run, None));
        let elsewhere = ObjectKey::new("ns", "else-1");
        assert!(!wakes(&Job { key: elsewhere, ..run }, Some("recreated")));
    }
}

#[test]
fn owner_by_uid() {
    for flavor in BOTH {
        for wrong in ["uid", "kind", "group"] {
            let mut job = finished(Finish::Complete, child_of(flavor, "other", 0));
            let mut owner = job.controller.clone().unwrap();
            match wrong {
                "uid" => owner.uid = "earlier".into(),
                "kind" => owner.kind = "Workflow".into(),
                _ => owner.api_version = "example.com/v1".into(),
            }
            job.controller = Some(owner);
            let mut scene = Scene::new(flavor, -10);
            scene.cronjob.spec.successful_limit = Some(0);
            scene.jobs = vec![job];
            assert_eq!(scene.step().calls, [""; 0], "{flavor:?} {wrong}");
        }
    }
}

#[test]
fn consistent_live_copy() {
    for flavor in BOTH {
        let job = child_of(flavor, "running", -20);
        let mut scene = Scene::new(flavor, 0);
        scene.jobs = vec![job.clone()];
        let mut live = CronJob { resource_version: "33".into(), ..cronjob() };
        live.status.active = vec![reference(&job)];
        scene.live = Some(live.clone());
        let ran = scene.step();
        assert_eq!(ran.calls, ["getCronJob ns/cj".into(), creation(0), "updateStatus ns/cj".into()]);
        assert_eq!(ran.version.as_deref(), Some("33"));
        assert_eq!(ran.written.unwrap().active.len(), 2);
        // What the live copy says counts for the decision as well.
        live.spec.suspend = true;
        scene.live = Some(live);
        scene.memory = super::Memory::default();
        assert_eq!(scene.step().calls, ["getCronJob ns/cj"]);
        // What the step took out of the list before it saw the live copy stays out.
        let done = finished(Finish::Complete, child_of(flavor, "done", -30));
        let mut scene = Scene::new(flavor, -10);
        scene.jobs = vec![done.clone(), job.clone()];
        scene.cronjob.status.active = vec![reference(&done)];
        let mut live = CronJob { resource_version: "33".into(), ..cronjob() };
        live.status.active = vec![reference(&done), reference(&job)];
        scene.live = Some(live);
        assert_eq!(scene.step().written.unwrap().active, [reference(&job)]);
    }
}

#[test]
fn snapshot_iteration() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, -10);
        let gone: Vec<Job> = ["a", "b", "c"].map(|name| child_of(flavor, name, -20)).into();
        scene.cronjob.status.active = gone.iter().map(reference).collect();
        let ran = scene.step();
        assert_eq!(ran.outcome.happenings.len(), 3);
        assert_eq!(ran.written, Some(CronJobStatus::default()));
    }
}

#[test]
fn no_parser_panic() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, 0);
        scene.cronjob.spec.schedule = "TZ=UTC".into();
        let ran = scene.step();
        assert_eq!(ran.reasons(), ["UnsupportedSchedule", "UnparseableSchedule"]);
        assert_eq!(ran.outcome.error.is_some(), flavor == V);
    }
}

#[test]
fn status_always_written() {
    for flavor in BOTH {
        let done = finished(Finish::Failed, child_of(flavor, "done", -20));
        let mut scene = Scene::new(flavor, 0);
        scene.cronjob.status.active = vec![reference(&done)];
        scene.jobs = vec![done];
        let create: &'static str = creation(0).leak();
        scene.failing = vec![(create, failure("Forbidden"))];
        let ran = scene.step();
        assert_eq!(ran.calls, [creation(0), "updateStatus ns/cj".into()]);
        assert_eq!(ran.written, Some(CronJobStatus::default()));
        assert_eq!(&*ran.outcome.error.unwrap().text, "it is Forbidden");

        scene.memory = super::Memory::default();
        scene.failing = vec![("updateStatus ns/cj", failure("Conflict"))];
        let error = scene.step().outcome.error.unwrap();
        assert_eq!((&*error.text, error.retry), ("it is Conflict", Retry::Conflict));
    }
}

#[test]
fn same_name_other_uid() {
    let mut scene = Scene::new(K, -10);
    let mut stale = reference(&child_of(K, "job", -20));
    stale.uid = "earlier".into();
    scene.cronjob.status.active = vec![stale];
    scene.server = Some(vec![child_of(K, "job", -15)]);
    let ran = scene.step();
    assert_eq!(ran.calls, ["getJob ns/job", "updateStatus ns/cj"]);
    assert_eq!(ran.reasons(), ["MissingJob"]);
    assert_eq!(ran.written, Some(CronJobStatus::default()));
}

#[test]
fn unreadable_job_stays() {
    for (policy, last) in [(Policy::Allow, "createJob"), (Policy::Forbid, "getJob ns/job")] {
        let mut scene = Scene::new(K, 60);
        scene.cronjob.spec.policy = policy;
        scene.cronjob.status.active = vec![reference(&child_of(K, "job", -20))];
        scene.failing = vec![("getJob ns/job", ApiFailure::unreadable("Job ns/job: field status".to_owned()))];
        let ran = scene.step();
        assert!(ran.calls.iter().any(|call| call.starts_with(last)), "{:?}", ran.calls);
        assert_eq!(ran.calls.iter().any(|call| call.starts_with("createJob")), policy == Policy::Allow);
        assert_eq!(
            (ran.reasons()[0], &*ran.outcome.happenings[0].message),
            ("UnreadableObject", "Job ns/job: field status")
        );
        assert_eq!(ran.outcome.error, None);
        assert!(ran.written.is_none_or(|status| &*status.active[0].name == "job"));
    }
}

#[test]
fn own_run_readopted() {
    for flavor in BOTH {
        // The Job of 10:00 exists; that it was started was never recorded. It is 11:00 now.
        let mut scene = Scene::new(flavor, 60);
        scene.cronjob.spec.policy = Policy::Forbid;
        scene.jobs = vec![run(flavor, 0)];
        let ran = scene.step();
        assert_eq!(ran.calls, ["getCronJob ns/cj", "updateStatus ns/cj"]);
        let status = ran.written.unwrap();
        assert_eq!((&*status.active[0].name, status.last_schedule_time), (&*run(flavor, 0).key.name, Some(at(0))));
        let skipped = if flavor == K { "JobAlreadyActive" } else { "ForbidConcurrent" };
        assert_eq!(ran.outcome.happenings.iter().map(|h| h.reason).collect::<Vec<_>>(), [skipped]);

        // A Job made by hand has a name of its own, or no annotation.
        for manual in [Job { scheduled_time: None, ..run(flavor, 0) }, child_of(flavor, "by-hand", 0)] {
            let mut scene = Scene::new(flavor, 60);
            scene.cronjob.spec.policy = Policy::Forbid;
            scene.jobs = vec![manual];
            assert_eq!(creates(&scene.step().calls).len(), 1);
        }
    }
}

#[test]
fn own_run_readopted_after_a_lost_answer() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, 0);
        scene.cronjob.spec.policy = Policy::Forbid;
        let lost = ApiFailure { code: 0, message: "connection reset".into(), ..ApiFailure::default() };
        scene.failing = vec![(creation(0).leak(), lost)];
        assert_eq!(scene.step().reasons(), ["FailedCreate"]);

        // An hour later the cache does not show the Job yet, but the server has it.
        scene.now = at(60);
        scene.failing.clear();
        scene.server = Some(vec![run(flavor, 0)]);
        let ran = scene.step();
        assert_eq!(ran.calls, [format!("getJob ns/{}", run(flavor, 0).key.name), "updateStatus ns/cj".into()]);
        assert_eq!(ran.written.unwrap().active.len(), 1);
    }
}

#[test]
fn own_run_recorded() {
    for flavor in BOTH {
        // The Job of 10:00 was created, its status never written, and it has finished; no history is kept.
        let mut scene = Scene::new(flavor, 1);
        scene.cronjob.spec.successful_limit = Some(0);
        scene.jobs = vec![finished(Finish::Complete, run(flavor, 0))];
        let ran = scene.step();
        assert_eq!(ran.calls, ["updateStatus ns/cj"]);
        scene.cronjob.status = ran.written.unwrap();
        assert_eq!(scene.cronjob.status.last_schedule_time, Some(at(0)));
        assert_eq!(scene.step().calls[0], format!("deleteJob ns/{}", run(flavor, 0).key.name));
    }
}

#[test]
fn a_success_is_deleted_before_it_is_written_as_in_the_peers() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, 1);
        scene.cronjob.status.last_schedule_time = Some(at(0));
        scene.cronjob.spec.successful_limit = Some(0);
        scene.jobs = vec![finished(Finish::Complete, run(flavor, 0))];
        let ran = scene.step();
        assert_eq!(ran.calls, [format!("deleteJob ns/{}", run(flavor, 0).key.name), "updateStatus ns/cj".into()]);
        assert_eq!(ran.written.unwrap().last_successful_time, Some(at(0)));
        // The process died between the two: the Job is gone, and nobody knows of its success any more.
        scene.jobs.clear();
        scene.memory = super::Memory::default();
        assert!(scene.step().written.is_none());
    }
}

#[test]
fn history_in_portions() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, 0);
        scene.cronjob.status.last_schedule_time = Some(at(-1));
        scene.cronjob.spec.successful_limit = Some(0);
        let job = |n: i64| {
            let mut job = finished(Finish::Complete, run(flavor, -n));
            job.uid = format!("uid-{n}").into();
            job
        };
        scene.jobs = (1..=120).map(job).collect();
        let ran = scene.step();
        let deletions = ran.calls.iter().filter(|call| call.starts_with("deleteJob")).count();
        assert_eq!(deletions, 50);
        assert_eq!(creates(&ran.calls).len(), 1, "what is due starts in the same step");
    }
}

#[test]
fn history_retried() {
    for flavor in BOTH {
        for (code, again) in [(0, true), (429, true), (503, true), (403, false)] {
            let mut scene = Scene::new(flavor, 1);
            scene.cronjob.status.last_schedule_time = Some(at(0));
            scene.cronjob.spec.successful_limit = Some(0);
            scene.jobs = vec![finished(Finish::Complete, run(flavor, 0))];
            let deletion: &'static str = format!("deleteJob ns/{}", run(flavor, 0).key.name).leak();
            scene.failing = vec![(deletion, ApiFailure { code, ..ApiFailure::default() })];
            let outcome = scene.step().outcome;
            assert_eq!((outcome.error, outcome.left_over.is_some()), (None, again), "{code}");
        }
    }
}

#[test]
fn deadline_zero() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, 0);
        scene.cronjob.spec.starting_deadline_s = Some(0);
        assert_eq!(scene.step().calls[0], creation(0));
        scene.now = at(0) + TimeDelta::seconds(1);
        scene.memory = super::Memory::default();
        assert_eq!(creates(&scene.step().calls).len(), 0, "the window is open at its start");
    }
}

#[test]
fn deadline_saturates() {
    for flavor in BOTH {
        for (seconds, starts) in [(9_223_372_037, 1), (i64::MAX, 1), (-9_223_372_037, 0), (i64::MIN, 0)] {
            let mut scene = Scene::new(flavor, 0);
            scene.cronjob.spec.starting_deadline_s = Some(seconds);
            assert_eq!(creates(&scene.step().calls).len(), starts, "{seconds}");
        }
    }
}

#[test]
fn every_keeps_anchor() {
    for flavor in BOTH {
        // On the grid of 09:45 with a step of 50 minutes lie 10:35, 11:25 and 12:15.
        let mut scene = Scene::new(flavor, 145);
        scene.cronjob.spec.schedule = "@every 50m".into();
        scene.cronjob.spec.starting_deadline_s = Some(660);
        scene.cronjob.status.last_schedule_time = Some(at(-15));
        let ran = scene.step();
        assert_eq!(ran.calls[0], creation(135), "12:15 is ten minutes ago");
        assert_eq!(ran.outcome.next_due, Some(at(185)));
        scene.now = at(147);
        scene.memory = super::Memory::default();
        assert_eq!(scene.step().reasons(), ["MissSchedule"]);
    }
}

#[test]
fn miss_speaks() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, 61);
        scene.cronjob.spec.starting_deadline_s = Some(30);
        let ran = scene.step();
        let happening = &ran.outcome.happenings[0];
        assert_eq!(happening.message, "Missed scheduled time to start a job: Fri, 01 Mar 2024 11:00:00 +0000");
        assert_eq!(happening.due_minutes, Some(at(60).timestamp() / 60));
        assert_eq!(ran.outcome.results, [RunResult::MissedDeadline]);
        assert_eq!(ran.outcome.missed, Some(MissedCount::Exactly(2)));
        let again = scene.step().outcome;
        assert_eq!((again.happenings.len(), again.results.len(), again.missed), (0, 0, None));
    }
}

#[test]
fn bad_schedule_speaks() {
    let mut scene = Scene::new(V, 0);
    scene.cronjob.spec.schedule = "x".into();
    let ran = scene.step();
    let message = r#"unparseable schedule: "x" : expected exactly 5 fields, found 1: [x]"#;
    assert_eq!(ran.outcome.happenings[0].message, message);
    assert_eq!(ran.outcome.error.unwrap().retry, Retry::NextEdit);
}

#[test]
fn terminated_is_failed() {
    let mut scene = Scene::new(V, -10);
    scene.cronjob.spec.failed_limit = Some(1);
    scene.jobs =
        (1..=3).map(|minute| finished(Finish::Terminated, child_of(V, &format!("t{minute}"), -minute))).collect();
    assert_eq!(scene.step().calls, ["deleteJob ns/t3", "deleteJob ns/t2", "updateStatus ns/cj"]);
}

#[test]
fn delete_notfound_ok() {
    for flavor in BOTH {
        let mut scene = Scene::new(flavor, -10);
        scene.cronjob.spec.failed_limit = Some(0);
        scene.jobs = vec![finished(Finish::Failed, child_of(flavor, "old", -20))];
        scene.server = Some(vec![]);
        let ran = scene.step();
        assert_eq!(ran.calls[0], "deleteJob ns/old");
        assert_eq!(ran.reasons(), [""; 0]);
        assert_eq!(scene.step().calls, [""; 0], "not tried again while the cache still shows it");
    }
}

#[test]
fn stuck_walk() {
    for flavor in BOTH {
        // On that night the search from 14:05Z finds 14:05Z again.
        let mut scene = Scene::new(flavor, 0);
        scene.cronjob.spec.schedule = "50 3 * * *".into();
        scene.cronjob.spec.time_zone = Some("Pacific/Chatham".into());
        scene.cronjob.status.last_schedule_time = Some("2026-04-04T14:05:00Z".parse().unwrap());
        scene.now = "2026-04-06T00:00:00Z".parse().unwrap();
        let ran = scene.step();
        assert_eq!(creates(&ran.calls).len(), 1, "{:?}", ran.outcome);
        assert!(ran.outcome.next_due.unwrap() > scene.now);
    }
}

#[test]
fn edit_floor() {
    for flavor in BOTH {
        // At 16:34 the schedule becomes one that fired at 16:33 already.
        let mut scene = Scene::new(flavor, 395);
        scene.cronjob.spec.schedule = "33 16 * * *".into();
        scene.memory.raise_floor(at(394));
        let ran = scene.step();
        assert_eq!(creates(&ran.calls).len(), 0);
        assert_eq!(ran.outcome.next_due, Some(at(393 + 24 * 60)));
        scene.now = at(393 + 24 * 60);
        assert_eq!(scene.step().calls[0], creation(393 + 24 * 60));
    }
}

#[test]
fn never_asleep() {
    for flavor in BOTH {
        let mut suspended = Scene::new(flavor, 0);
        suspended.cronjob.spec.suspend = true;
        let mut refused = Scene::new(flavor, 0);
        refused.failing = vec![(creation(0).leak(), failure("Forbidden"))];
        let mut unwritten = Scene::new(flavor, 0);
        unwritten.failing = vec![("updateStatus ns/cj", failure("InternalError"))];
        for mut scene in [suspended, refused, unwritten] {
            let outcome = scene.step().outcome;
            assert_eq!((outcome.requeue, outcome.next_due), (None, Some(at(60))));
        }
    }
}

#[test]
fn a_step_tells_the_run_that_it_may_still_create() {
    let mut scene = Scene::new(K, 0);
    scene.cronjob.spec.successful_limit = Some(0);
    scene.jobs = vec![finished(Finish::Complete, child_of(K, "old", -20))];
    let settings = Settings { flavor: K, local_zone: Zone::UTC };
    let mut memory = super::Memory::default();
    let mut step = Step::begin(settings, Arc::new(scene.cronjob.clone()), &scene, &mut memory, scene.now);
    let Next::Call(Call::DeleteJob { .. }) = step.advance(None) else { panic!("history first") };
    assert_eq!(step.pending_run(), Some(at(0)));
    let Next::Call(Call::CreateJob { .. }) = step.advance(Some(super::Answer::Deleted(Ok(())))) else {
        panic!("then the run")
    };
    assert_eq!(step.pending_run(), Some(at(0)));
    let Next::Call(Call::PatchStatus { .. }) = step.advance(Some(super::Answer::Job(Err(failure("Forbidden"))))) else {
        panic!("then the status")
    };
    assert_eq!(step.pending_run(), None);
}
