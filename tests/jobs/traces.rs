//! The accounting by its exact trace: every status write in order, how many finalizers were taken off, and what the metrics of ended
//! Pods gain.

use std::sync::Arc;

use cronjob_controller::jobs::accounting::MAX_UNCOUNTED;
use cronjob_controller::model::{
    BatchJob, BatchJobStatus, ConditionStatus, Pod, PodPhase, PodReplacement, PodTemplate, SuccessRule, UncountedPods,
};

use crate::objects::{
    at, failed, indexed, job, of_index, pod, running, started, succeeded, terminating, uncounted, untracked,
    with_condition,
};
use crate::server::failure;
use crate::world::{Run, World};

/// A Job that wants no more Pods, so that only the accounting acts.
fn paused(completions: i32) -> BatchJob {
    let mut job = started(job(0, Some(completions)));
    job.spec.backoff_limit = i32::MAX;
    job
}

/// Uncounted uids and counters of a write.
fn counts(status: &BatchJobStatus) -> (Vec<&str>, Vec<&str>, i32, i32) {
    let lists = status.uncounted.as_ref().unwrap();
    (
        lists.succeeded.iter().map(|uid| uid.as_str()).collect(),
        lists.failed.iter().map(|uid| uid.as_str()).collect(),
        status.succeeded,
        status.failed,
    )
}

fn trace(run: &Run) -> Vec<(Vec<&str>, Vec<&str>, i32, i32)> {
    run.writes.iter().map(counts).collect()
}

fn metrics(run: &Run) -> (i32, i32) {
    (run.outcome.tally.pods_succeeded, run.outcome.tally.pods_failed)
}

#[test]
fn u1_ends_of_all_sorts_take_two_writes() {
    let pods = vec![
        succeeded("a"),
        failed("b"),
        succeeded("c"),
        failed("d"),
        terminating(running("e")),
        terminating(untracked(running("f"))),
        untracked(succeeded("g")),
    ];
    let run = World::new(paused(9), pods).step();
    assert_eq!(trace(&run), [(vec!["a", "c"], vec!["b", "d", "e"], 0, 0), (vec![], vec![], 2, 3)]);
    assert_eq!((run.number("untrack"), metrics(&run)), (5, (2, 3)));
    assert_eq!((run.calls[0].as_str(), run.calls[6].as_str(), run.calls.len()), ("put", "put", 7));
}

#[test]
fn u2_what_stands_in_the_lists_already_settles_with_or_without_its_finalizer() {
    let job = uncounted(paused(9), &["a", "c"], &["b", "d", "gone"]);
    let pods = vec![succeeded("a"), failed("b"), untracked(succeeded("c")), untracked(failed("d")), succeeded("e")];
    let run = World::new(job, pods).step();
    assert_eq!(trace(&run), [(vec!["a", "e"], vec!["b"], 1, 2), (vec![], vec![], 3, 3)]);
    assert_eq!((run.number("untrack"), metrics(&run)), (3, (3, 3)));
}

#[test]
fn u3_a_finalizer_that_was_taken_off_and_still_shows_is_none() {
    let mut world = World::new(paused(9), vec![succeeded("a"), failed("b")]);
    world.step();
    let (job, pods) = (world.server.history.last().unwrap().clone(), world.caches.pods.clone());
    world.caches.job = job;
    assert!(pods.pods.values().all(|pod| pod.tracked), "the cache of Pods has seen nothing yet");
    let run = world.step();
    assert_eq!(run.calls, [""; 0]);
    // Their uids settle, should another write have left them there.
    world.server.edit(|job| {
        job.status.uncounted = Some(UncountedPods { succeeded: vec!["a".into()], failed: vec![] });
        job.status.succeeded = 0;
    });
    world.server.counted.clear();
    world.caches.job = world.server.history.last().unwrap().clone();
    let run = world.step();
    assert_eq!((trace(&run), run.number("untrack")), (vec![(vec![], vec![], 1, 1)], 0));
}

#[test]
fn u4_without_the_first_write_no_finalizer_goes() {
    let mut world = World::new(paused(9), vec![succeeded("a"), failed("b")]);
    world.failing = vec![("put".into(), failure(500, "InternalError"))];
    let run = world.step();
    assert_eq!(run.calls, ["put"]);
    assert_eq!(run.error(), Some("tracking status: adding uncounted pods to status: it is InternalError"));
    assert_eq!(metrics(&run), (0, 0));
    world.failing = vec![("put".into(), failure(409, "Conflict"))];
    assert!(world.step().outcome.error.unwrap().conflict);
}

#[test]
fn u5_while_no_finalizer_goes_uids_stay() {
    let mut world = World::new(paused(9), vec![succeeded("a"), failed("b")]);
    world.failing = vec![("untrack".into(), failure(500, "InternalError"))];
    let run = world.step();
    assert_eq!(trace(&run), [(vec!["a"], vec!["b"], 0, 0)]);
    assert_eq!(
        (run.number("untrack"), metrics(&run), run.error()),
        (2, (0, 0), Some("tracking status: it is InternalError"))
    );
    world.failing.clear();
    world.sync();
    assert_eq!(trace(&world.step()), [(vec![], vec![], 1, 1)]);
}

#[test]
fn u6_leftovers_settle_though_new_finalizers_stay() {
    let job = uncounted(paused(9), &["gone"], &["b"]);
    let mut world = World::new(job, vec![untracked(failed("b")), succeeded("c"), failed("d"), failed("e")]);
    world.failing = vec![("untrack d".into(), failure(500, "InternalError"))];
    let run = world.step();
    assert_eq!(
        trace(&run),
        [(vec!["c"], vec!["d", "e"], 1, 1), (vec![], vec!["d"], 2, 2)],
        "the partial result is written"
    );
    assert!(run.error().is_some());
}

#[test]
fn u7_one_step_takes_five_hundred_and_does_not_end_the_job() {
    let many: Vec<Pod> = (0..MAX_UNCOUNTED + 1).map(|at| succeeded(&format!("p{at:03}"))).collect();
    let mut world = World::new(paused(501), many);
    let run = world.step();
    assert_eq!((run.number("untrack"), run.last().succeeded), (500, 500));
    assert_eq!(run.conditions(), ["SuccessCriteriaMet=True"]);
    world.sync();
    let run = world.step();
    assert_eq!((run.number("untrack"), run.last().succeeded), (1, 501));
    assert_eq!(run.conditions(), ["SuccessCriteriaMet=True", "Complete=True"]);

    let left: Vec<String> = (0..499).map(|at| format!("f{at:03}")).collect();
    let names: Vec<&str> = left.iter().map(String::as_str).collect();
    let mut pods: Vec<Pod> = names.iter().map(|name| failed(name)).collect();
    pods.extend(["x", "y", "z"].map(succeeded));
    let mut world = World::new(uncounted(paused(9), &[], &names), pods);
    world.failing = vec![("untrack f".into(), failure(500, "InternalError"))];
    let run = world.step();
    assert_eq!(run.writes[0].uncounted.as_ref().unwrap().succeeded.len(), 1, "they use up the room");
}

#[test]
fn u8_a_pod_keeps_its_first_verdict_in_both_directions() {
    let job = uncounted(paused(9), &["b"], &["a"]);
    let run = World::new(job, vec![succeeded("a"), failed("b")]).step();
    assert_eq!(trace(&run), [(vec![], vec![], 1, 1)]);
    assert_eq!((run.number("untrack"), metrics(&run)), (2, (1, 1)));
}

#[test]
fn u9_running_pods_fail_with_the_job_but_not_with_success_or_deletion() {
    let mut failing = started(job(2, Some(5)));
    failing.spec.backoff_limit = 0;
    let run = World::new(failing, vec![failed("a"), running("b"), pod("c")]).step();
    assert_eq!(trace(&run), [(vec![], vec!["a", "b", "c"], 0, 0), (vec![], vec![], 0, 3)]);
    assert_eq!((run.number("delete"), run.number("untrack")), (2, 3));

    let mut early = started(indexed(3, 3));
    early.spec.success_policy = Some(vec![SuccessRule { succeeded_indexes: None, succeeded_count: Some(1) }]);
    let pods = vec![of_index(0, succeeded("a")), of_index(1, running("b"))];
    let run = World::new(early, pods).step();
    assert_eq!((run.last().succeeded, run.last().failed, run.number("untrack")), (1, 0, 2));

    let mut deleted = started(job(2, Some(5)));
    deleted.deletion_time = Some(at(0));
    let run = World::new(deleted, vec![running("a"), succeeded("b")]).step();
    assert_eq!((run.number("untrack"), run.number("delete"), run.last().succeeded, run.last().failed), (2, 0, 1, 0));
}

#[test]
fn u10_the_end_waits_for_terminating_pods_though_all_is_counted() {
    for (base, name) in [
        (with_condition(paused(9), "FailureTarget", ConditionStatus::True, "BackoffLimitExceeded"), "Failed"),
        (with_condition(paused(9), "SuccessCriteriaMet", ConditionStatus::True, "SuccessPolicy"), "Complete"),
    ] {
        let mut job = base;
        job.spec.pod_replacement = PodReplacement::Failed;
        let mut world = World::new(job, vec![terminating(untracked(running("a")))]);
        let run = world.step();
        assert_eq!((run.last().is_true(name), run.last().terminating), (false, Some(1)));
        world.server.end(&"a".into(), PodPhase::Failed);
        world.sync();
        let run = world.step();
        assert!(run.last().is_true(name));
        assert_eq!(&*run.last().condition(name).unwrap().message, "told before");
    }
}

#[test]
fn u11_an_index_counts_once_and_only_if_the_job_has_it() {
    let mut job = started(indexed(0, 5));
    job.spec.backoff_limit = i32::MAX;
    job.status.completed_indexes = "2,6-9".into();
    job.status.succeeded = 5;
    let pods = vec![
        of_index(1, succeeded("a")),
        of_index(1, succeeded("b")),
        of_index(2, succeeded("c")),
        of_index(5, succeeded("d")),
        succeeded("e"),
        of_index(7, failed("f")),
        of_index(3, failed("g")),
    ];
    let run = World::new(job.clone(), pods).step();
    let texts: Vec<(&str, i32, i32)> =
        run.writes.iter().map(|write| (&*write.completed_indexes, write.succeeded, write.failed)).collect();
    assert_eq!(texts, [("1,2", 2, 0), ("1,2", 2, 1)]);
    assert_eq!(run.number("untrack"), 7);
    let run = World::new(job, vec![]).step();
    assert_eq!((run.writes.len(), &*run.last().completed_indexes), (1, "2"), "cut off without news");
}

#[test]
fn u12_the_last_failed_pod_of_an_index_waits_for_its_replacement() {
    let mut job = started(indexed(1, 2));
    job.spec.backoff_limit = i32::MAX;
    job.spec.backoff_limit_per_index = Some(1);
    let first = |pods| World::new(job.clone(), pods).step();
    // Within its back-off: held back, not counted.
    let lately = Pod { containers: vec![], creation_time: Some(at(-1)), ..of_index(0, failed("a")) };
    let run = first(vec![lately.clone()]);
    assert_eq!((run.number("untrack"), run.number("create"), run.last().failed), (0, 0, 0));
    assert_eq!(run.last().failed_indexes.as_deref(), Some(""));
    // Replaced: counted.
    let replacement = Pod { failure_count: Some("1".into()), ..of_index(0, running("b")) };
    let run = first(vec![lately, replacement]);
    assert_eq!((run.number("untrack"), run.last().failed), (1, 1));
    // Beyond its limit: the index fails, and it is counted.
    let beyond = Pod { failure_count: Some("1".into()), ..of_index(0, failed("c")) };
    let run = first(vec![beyond, of_index(1, running("d"))]);
    assert_eq!((run.number("untrack"), run.last().failed, run.last().failed_indexes.as_deref()), (1, 1, Some("0")));
    assert_eq!(run.outcome.tally.indexes_failed, 1);
}

#[test]
fn six_hundred_indexes_are_written_at_once_and_untracked_in_portions() {
    let mut job = started(indexed(600, 600));
    job.spec.template = Arc::new(PodTemplate::default());
    let pods: Vec<Pod> = (0..600).map(|index| of_index(index, succeeded(&format!("p{index:03}")))).collect();
    let run = World::new(job, pods).step();
    assert_eq!((&*run.writes[0].completed_indexes, run.number("untrack")), ("0-599", 500));
    assert_eq!(run.conditions(), ["SuccessCriteriaMet=True"]);
}

#[test]
fn a_plain_success_takes_two_writes_and_ends_in_one_step() {
    let run = World::new(started(job(1, Some(1))), vec![succeeded("a")]).step();
    assert_eq!(trace(&run), [(vec!["a"], vec![], 0, 0), (vec![], vec![], 1, 0)]);
    assert!(run.writes[0].is_true("SuccessCriteriaMet") && !run.writes[0].is_true("Complete"));
    assert_eq!((run.last().completion_time, run.last().is_true("Complete")), (Some(at(0)), true));
    assert_eq!(run.reasons(), ["Completed"]);
    assert_eq!(run.outcome.tally.finished, Some((true, "CompletionsReached".into())));
}
