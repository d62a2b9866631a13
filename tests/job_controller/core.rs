//! Pods are created, counted and given up; whatever dies in between, each is counted once.

use serde_json::{Value, json};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_job_runs_its_pod_and_completes() {
    let world = World::new();
    let job = world.create("one", json!({})).await;
    world.settle().await;
    let pods = world.active("one").await;
    assert_eq!((pods.len(), world.numbers("one")), (1, [1, 0, 0, 0]));
    assert!(is_tracked(&pods[0]) && name_of(&pods[0]).starts_with("one-"));
    assert_eq!(pods[0]["metadata"]["ownerReferences"][0]["uid"], job["metadata"]["uid"]);
    world.run(&pods[0]).await;
    world.settle().await;
    assert_eq!(world.status("one")["ready"], 1);
    world.succeed(&pods[0]).await;
    world.settle().await;
    assert_eq!(
        (world.numbers("one"), world.conditions("one")),
        ([0, 1, 0, 0], vec!["SuccessCriteriaMet".into(), "Complete".into()])
    );
    assert!(world.status("one")["completionTime"].is_string());
    world.check_finalizers().await;
    let mut reasons = world.events(&job).await;
    reasons.sort();
    assert_eq!(reasons, ["Completed", "SuccessfulCreate"]);
    let of = "completion_mode=\"NonIndexed\",result=\"succeeded\"";
    assert_eq!(world.metric(&format!("job_controller_job_pods_finished_total{{{of}}}")), 1.0);
    let finished = format!("job_controller_jobs_finished_total{{{of},reason=\"CompletionsReached\"}}");
    assert_eq!(world.metric(&finished), 1.0);
    world.end().await;
}

/// I1.
#[tokio::test(start_paused = true)]
async fn a_controller_that_restarts_between_all_steps_counts_each_pod_once() {
    let mut world = World::new();
    world.create("one", json!({"backoffLimit": 1})).await;
    world.settle().await;
    world.restart().await;
    world.settle().await;
    let pods = world.active("one").await;
    assert_eq!(pods.len(), 1);
    world.kill().await;
    world.fail(&pods[0], 1).await;
    world.start();
    world.pass(30).await;
    assert_eq!(world.numbers("one"), [1, 0, 1, 0]);
    world.restart().await;
    world.settle().await;
    let pods = world.active("one").await;
    world.kill().await;
    world.succeed(&pods[0]).await;
    world.start();
    world.settle().await;
    assert_eq!((world.numbers("one"), world.conditions("one").len()), ([0, 1, 1, 0], 2));
    world.restart().await;
    world.settle().await;
    assert_eq!(world.numbers("one"), [0, 1, 1, 0]);
    world.check_finalizers().await;
    world.end().await;
}

/// I2.
#[tokio::test(start_paused = true)]
async fn a_work_queue_replaces_failures_until_the_first_success() {
    let world = World::new();
    world.create("queue", json!({"parallelism": 2})).await;
    world.settle().await;
    world.fail(&world.active("queue").await[0], 1).await;
    world.pass(30).await;
    assert_eq!(world.numbers("queue"), [2, 0, 1, 0]);
    world.succeed(&world.active("queue").await[0]).await;
    world.settle().await;
    assert_eq!(world.numbers("queue"), [1, 1, 1, 0]);
    world.fail(&world.active("queue").await[0], 1).await;
    world.pass(30).await;
    assert_eq!((world.numbers("queue"), world.conditions("queue").len()), ([0, 1, 2, 0], 2));
    world.check_finalizers().await;
    world.end().await;
}

/// I3, and more than may be created or recorded in one step.
#[tokio::test(start_paused = true)]
async fn more_pods_than_one_step_may_take_converge() {
    let world = World::new();
    world.create("many", json!({"parallelism": 700, "completions": 700, "backoffLimit": 100})).await;
    world.pass(20).await;
    let pods = world.active("many").await;
    assert_eq!(pods.len(), 700);
    for (at, pod) in pods.iter().enumerate() {
        if at < 2 { world.fail(pod, 1).await } else { world.succeed(pod).await }
    }
    world.pass(60).await;
    assert_eq!(world.numbers("many"), [2, 698, 2, 0]);
    for pod in world.active("many").await {
        world.succeed(&pod).await;
    }
    world.pass(30).await;
    assert_eq!((world.numbers("many"), world.conditions("many").len()), ([0, 700, 2, 0], 2));
    world.check_finalizers().await;
    world.end().await;
}

/// I4.
#[tokio::test(start_paused = true)]
async fn pods_that_are_too_many_are_no_failures() {
    let world = World::new();
    world.create("wide", json!({"parallelism": 5, "completions": 10, "backoffLimit": 2})).await;
    world.settle().await;
    world.patch("wide", json!({"spec": {"parallelism": 2}})).await;
    world.settle().await;
    assert_eq!((world.active("wide").await.len(), world.numbers("wide")), (2, [2, 0, 0, 0]));
    world.patch("wide", json!({"spec": {"parallelism": 4}})).await;
    world.settle().await;
    assert_eq!(world.numbers("wide"), [4, 0, 0, 0]);
    world.check_finalizers().await;
    world.end().await;
}

/// I7, I8.
#[tokio::test(start_paused = true)]
async fn a_job_that_fails_early_leaves_no_pod_with_a_finalizer() {
    let mut world = World::new();
    world.create("strict", json!({"parallelism": 100, "completions": 100, "backoffLimit": 0})).await;
    while world.active("strict").await.is_empty() {
        world.pass(1).await;
    }
    world.fail(&world.active("strict").await[0], 1).await;
    world.pass(2).await;
    world.restart().await;
    world.pass(60).await;
    assert_eq!(world.conditions("strict"), ["FailureTarget", "Failed"]);
    let expected = ("BackoffLimitExceeded".to_owned(), "Job has reached the specified backoff limit".to_owned());
    assert_eq!(world.why("strict", "Failed"), expected);
    assert_eq!(world.active("strict").await.len(), 0);
    assert!(!world.all_pods().await.iter().any(is_tracked));
    world.end().await;
}

/// I9: whichever way a Job is deleted.
#[tokio::test(start_paused = true)]
async fn pods_of_a_deleted_job_keep_no_finalizer() {
    for propagation in ["Orphan", "Background", "Foreground"] {
        let world = World::new();
        world.create("gone", json!({"parallelism": 3})).await;
        world.settle().await;
        for pod in world.active("gone").await {
            world.run(&pod).await;
        }
        world.delete("gone", propagation).await;
        world.pass(20).await;
        assert_eq!(world.job("gone"), Value::Null, "{propagation}");
        let left = world.all_pods().await;
        assert!(!left.iter().any(is_tracked), "{propagation}: {left:#?}");
        assert_eq!(left.len(), if propagation == "Orphan" { 3 } else { 0 }, "{propagation}");
        let counts = world.counts();
        assert_eq!((counts[0].engine.cells, counts[0].engine.queues.delayed), (0, 0), "{propagation}");
        world.end().await;
    }
}

/// I10.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_deleted_while_no_controller_runs_frees_its_pods_later() {
    let mut world = World::new();
    world.create("gone", json!({"parallelism": 3})).await;
    world.settle().await;
    world.kill().await;
    world.delete("gone", "Background").await;
    world.pass(10).await;
    assert_eq!(world.all_pods().await.iter().filter(|pod| is_tracked(pod)).count(), 3);
    world.start();
    world.pass(10).await;
    assert_eq!(world.all_pods().await.len(), 0);
    world.end().await;
}

/// I12.
#[tokio::test(start_paused = true)]
async fn a_job_of_the_same_name_begins_anew() {
    let world = World::new();
    for round in 0..3 {
        world.create("again", json!({"backoffLimit": 5})).await;
        world.settle().await;
        let pods = world.active("again").await;
        assert_eq!((pods.len(), world.numbers("again")), (1, [1, 0, 0, 0]), "{round}");
        world.fail(&pods[0], 1).await;
        world.pass(2).await;
        world.delete("again", "Background").await;
    }
    world.end().await;
}

/// I13: the second Pod after ten seconds, the third after twenty more.
#[tokio::test(start_paused = true)]
async fn pods_that_fail_are_replaced_after_growing_waits() {
    let world = World::new();
    world.create("slow", json!({"backoffLimit": 6})).await;
    world.settle().await;
    for wait in [10, 20, 40] {
        world.fail(&world.active("slow").await[0], 1).await;
        world.pass(wait - 1).await;
        assert_eq!(world.active("slow").await.len(), 0, "{wait}");
        world.pass(3).await;
        assert_eq!(world.active("slow").await.len(), 1, "{wait}");
    }
    world.end().await;
}

/// I14: a Pod that something else holds keeps the Job from ending.
#[tokio::test(start_paused = true)]
async fn a_job_ends_only_once_its_pods_are_gone() {
    let world = World::new();
    let held = json!({"metadata": {"finalizers": ["acme.io/held"]}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"}]}});
    world.create("held", json!({"parallelism": 2, "backoffLimit": 0, "template": held})).await;
    world.settle().await;
    let pods = world.active("held").await;
    world.fail(&pods[0], 1).await;
    world.settle().await;
    assert_eq!((world.conditions("held"), world.numbers("held")), (vec!["FailureTarget".into()], [0, 0, 2, 1]));
    world.patch_pod(&pods[1], json!({"metadata": {"finalizers": null}})).await;
    world.settle().await;
    assert_eq!((world.conditions("held").len(), world.numbers("held")), (2, [0, 0, 2, 0]));
    world.end().await;
}
