//! Each deviation from the peer, by its name.

use std::sync::Arc;

use cronjob_controller::jobs::names::MANAGED_BY_US;
use cronjob_controller::jobs::{
    Answer, JobCache, MAX_PODS_PER_STEP, Mandate, Memory, Next, Operation, Orphan, Step, on_job_added, orphan,
    sweep_result,
};
use cronjob_controller::model::{
    ApiFailure, BatchJob, ConditionStatus, ContainerStatus, Labels, ObjectKey, PodCondition, Termination,
};

use crate::objects::{at, failed, indexed, job, of_index, running, started, succeeded, uncounted, with_condition};
use crate::server::failure;
use crate::world::World;

struct NoJobs;

impl JobCache for NoJobs {
    fn get(&self, _: &ObjectKey) -> Option<Arc<BatchJob>> {
        None
    }
    fn selecting(&self, _: &str, _: &Labels) -> Vec<ObjectKey> {
        Vec::new()
    }
}

#[test]
fn active_in_back_off() {
    let mut just_failed = failed("a");
    just_failed.containers = vec![ContainerStatus {
        terminated: Some(Termination { exit_code: 1, finished_at: Some(at(-1)) }),
        ..ContainerStatus::default()
    }];
    let mut ready = running("b");
    ready.conditions = vec![PodCondition {
        condition_type: "Ready".into(),
        status: ConditionStatus::True,
        last_transition_time: None,
    }];
    let run = World::new(started(job(2, Some(5))), vec![just_failed, ready]).step();
    assert_eq!((run.number("create"), run.last().active, run.last().ready), (0, 1, Some(1)));
}

#[test]
fn expectations_by_uid() {
    let mut world = World::new(job(1, Some(1)), vec![]);
    assert_eq!(world.step().number("create"), 1);
    world.server.pods.clear();
    world.server.edit(|job| (job.uid, job.status) = ("recreated".into(), Default::default()));
    world.caches.job = world.server.history.last().unwrap().clone();
    assert_eq!(world.step().number("create"), 1, "the Pod of the Job before is not waited for");
}

#[test]
fn first_verdict_holds() {
    let mut paused = started(job(0, Some(9)));
    paused.spec.backoff_limit = i32::MAX;
    let run = World::new(uncounted(paused, &["b"], &["a"]), vec![succeeded("a"), failed("b")]).step();
    assert_eq!((run.last().succeeded, run.last().failed), (1, 1));
}

#[test]
fn completed_wins() {
    let mut both = started(indexed(2, 2));
    both.spec.backoff_limit_per_index = Some(0);
    let pods = vec![of_index(0, failed("a")), of_index(0, succeeded("b")), of_index(1, running("c"))];
    let run = World::new(both, pods).step();
    assert_eq!((&*run.last().completed_indexes, run.last().failed_indexes.as_deref()), ("0", Some("")));
}

#[test]
fn condition_set_by_type() {
    let mut strict = with_condition(started(job(1, Some(1))), "FailureTarget", ConditionStatus::False, "Mine");
    strict.spec.backoff_limit = 0;
    let run = World::new(strict, vec![failed("a")]).step();
    assert_eq!(run.conditions(), ["FailureTarget=True", "Failed=True"]);
}

#[test]
fn completion_waits_for_expectations() {
    let mut world = World::new(started(job(2, Some(2))), vec![succeeded("a")]);
    assert_eq!(world.step().number("create"), 1);
    world.server.edit(|job| job.spec.completions = Some(1));
    world.caches.job = world.server.history.last().unwrap().clone();
    world.step();
    assert!(!world.server.job.status.is_true("SuccessCriteriaMet"), "a Pod that was created is not visible yet");
    world.sync();
    world.step();
    world.sync();
    world.step();
    assert!(world.server.job.status.is_true("Complete"));
}

#[test]
fn no_end_without_start() {
    let mut suspended = with_condition(started(job(2, Some(2))), "Suspended", ConditionStatus::True, "JobSuspended");
    suspended.spec.suspend = true;
    (suspended.status.start_time, suspended.status.succeeded) = (None, 2);
    let mut world = World::new(suspended, vec![]);
    world.step();
    assert!(!world.server.job.finished());
    world.server.edit(|job| job.spec.suspend = false);
    world.sync();
    world.step();
    world.sync();
    world.step();
    assert!(world.server.job.status.is_true("Complete"));
}

#[test]
fn deadline_waits_for_resume() {
    let mut resumed = with_condition(started(job(1, Some(1))), "Suspended", ConditionStatus::True, "JobSuspended");
    resumed.spec.active_deadline_s = Some(10);
    let run = World::new(resumed, vec![]).step();
    assert_eq!((run.conditions(), run.last().start_time), (vec!["Suspended=False".to_owned()], Some(at(0))));
}

#[test]
fn ending_namespace_creates_nothing() {
    let mut world = World::new(started(job(3, Some(3))), vec![]);
    let refused = ApiFailure { namespace_terminating: true, ..failure(403, "Forbidden") };
    world.failing = vec![("create".into(), refused)];
    let run = world.step();
    assert_eq!((run.error(), run.reasons().len(), run.number("create")), (None, 0, 1));
    assert_eq!(world.server.job.status.active, 0);
}

#[test]
fn failed_creation_is_none() {
    let mut world = World::new(started(job(1, Some(1))), vec![]);
    world.failing = vec![("create".into(), failure(403, "Forbidden"))];
    let tally = world.step().outcome.tally;
    assert_eq!((tally.pods_created, tally.pods_not_created), (0, 1));
}

#[test]
fn deletions_in_portions() {
    let number = MAX_PODS_PER_STEP + 100;
    let mut ended = started(job(700, Some(700)));
    ended.spec.active_deadline_s = Some(1);
    let pods = (0..number).map(|number| running(&format!("p{number:03}"))).collect();
    let world = World::new(ended, pods);
    let (mandate, mut memory) = (Mandate::all(MANAGED_BY_US), Memory::trusting("job-uid".into()));
    let mut step = Step::begin(&mandate, world.caches.job.job.clone(), &world.caches, &mut memory, at(0));
    let Next::Calls(first) = step.advance() else { panic!("nothing is deleted") };
    (0..first.len()).for_each(|place| step.answer(place, Answer::Deleted(Ok(()))));
    let Next::Calls(second) = step.advance() else { panic!("the rest is not deleted") };
    assert_eq!((first.len(), second.len()), (MAX_PODS_PER_STEP, 100));
}

#[test]
fn fresh_process_asks() {
    let mut world = World::restarted(started(job(1, Some(2))), vec![succeeded("a")]);
    let run = world.step();
    assert_eq!(run.calls[..3], ["listPods", "getJob", "create"]);
    assert_eq!(World::new(started(job(1, Some(2))), vec![succeeded("a")]).step().calls[0], "create");
}

#[test]
fn orphan_asks_server() {
    let asked = Orphan::Unless { job: ObjectKey::new("ns", "job"), uid: "job-uid".into() };
    assert_eq!(orphan(&Mandate::all(MANAGED_BY_US), &failed("a"), &NoJobs), asked);
}

#[test]
fn sweep_retries() {
    let done = || Answer::Pod(Ok(Arc::new(failed("a"))));
    assert!(sweep_result([done(), Answer::Pod(Err(failure(500, "InternalError")))]).is_err());
    assert!(sweep_result([done(), Answer::Pod(Err(failure(404, "NotFound")))]).is_ok());
}

#[test]
fn finished_swept_at_start() {
    let ended = with_condition(started(job(1, Some(1))), "Complete", ConditionStatus::True, "CompletionsReached");
    let operations = on_job_added(&Mandate::all(MANAGED_BY_US), &ended).operations;
    assert!(matches!(&operations[..], [Operation::Sync(_), Operation::Sweep { uid, .. }] if *uid == ended.uid));
}
