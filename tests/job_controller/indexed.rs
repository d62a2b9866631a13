//! Jobs with indexes: names, text of the indexes, elastic ones, and indexes that fail by themselves.

use serde_json::json;

use crate::world::*;

fn indexed(completions: i64, parallelism: i64) -> serde_json::Value {
    json!({"completionMode": "Indexed", "completions": completions, "parallelism": parallelism})
}

fn with(mut spec: serde_json::Value, more: serde_json::Value) -> serde_json::Value {
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

/// I5.
#[tokio::test(start_paused = true)]
async fn each_index_has_its_pod_and_a_failed_one_is_run_again() {
    let world = World::new();
    world.create("ix", indexed(4, 3)).await;
    world.settle().await;
    assert_eq!(world.active_indexes("ix").await, [0, 1, 2]);
    let pod = world.of_index("ix", 1).await;
    assert_eq!((&pod["spec"]["hostname"], &pod["metadata"]["labels"][INDEX]), (&json!("ix-1"), &json!("1")));
    assert!(name_of(&pod).starts_with("ix-1-"));
    let variable = &pod["spec"]["containers"][0]["env"][0];
    let field = format!("metadata.labels['{INDEX}']");
    assert_eq!(
        (&variable["name"], &variable["valueFrom"]["fieldRef"]["fieldPath"]),
        (&json!("JOB_COMPLETION_INDEX"), &json!(field))
    );
    world.fail(&pod, 1).await;
    world.succeed(&world.of_index("ix", 0).await).await;
    world.pass(30).await;
    assert_eq!(
        (world.active_indexes("ix").await, world.status("ix")["completedIndexes"].clone()),
        (vec![1, 2, 3], json!("0"))
    );
    for index in [3, 2, 1] {
        world.succeed(&world.of_index("ix", index).await).await;
        world.settle().await;
    }
    assert_eq!((world.status("ix")["completedIndexes"].clone(), world.numbers("ix")), (json!("0-3"), [0, 4, 1, 0]));
    assert_eq!(world.conditions("ix"), ["SuccessCriteriaMet", "Complete"]);
    world.check_finalizers().await;
    world.end().await;
}

/// I16.
#[tokio::test(start_paused = true)]
async fn an_index_fails_by_itself_and_the_others_go_on() {
    let world = World::new();
    world.create("per", with(indexed(2, 2), json!({"backoffLimitPerIndex": 1}))).await;
    world.settle().await;
    for round in 0..2 {
        world.fail(&world.of_index("per", 0).await, 1).await;
        world.pass(if round == 0 { 30 } else { 5 }).await;
    }
    assert_eq!(
        (world.status("per")["failedIndexes"].clone(), world.active_indexes("per").await),
        (json!("0"), vec![1])
    );
    world.succeed(&world.of_index("per", 1).await).await;
    world.settle().await;
    assert_eq!(world.why("per", "Failed"), ("FailedIndexes".into(), "Job has failed indexes".into()));
    assert_eq!((world.numbers("per"), world.status("per")["completedIndexes"].clone()), ([0, 1, 2, 0], json!("1")));
    world.check_finalizers().await;
    world.end().await;
}

/// I16: the replacement carries the number of failures, also where the failed Pod was deleted.
#[tokio::test(start_paused = true)]
async fn a_replacement_knows_how_often_its_index_failed() {
    let world = World::new();
    world.create("per", with(indexed(1, 1), json!({"backoffLimitPerIndex": 3}))).await;
    world.settle().await;
    let pod = world.of_index("per", 0).await;
    world.fail(&pod, 1).await;
    world.settle().await;
    world.delete_pod(&pod).await;
    world.pass(30).await;
    let next = world.of_index("per", 0).await;
    assert_eq!(next["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"], "1");
    world.check_finalizers().await;
    world.end().await;
}

/// I16, and the conformance case of the same name.
#[tokio::test(start_paused = true)]
async fn too_many_failed_indexes_end_the_job() {
    let world = World::new();
    world.create("max", with(indexed(4, 4), json!({"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}))).await;
    world.settle().await;
    for index in [0, 1] {
        world.fail(&world.of_index("max", index).await, 1).await;
    }
    world.pass(60).await;
    let message = "Job has exceeded the specified maximal number of failed indexes";
    assert_eq!(world.why("max", "Failed"), ("MaxFailedIndexesExceeded".into(), message.into()));
    assert_eq!((world.status("max")["failedIndexes"].clone(), world.active("max").await.len()), (json!("0,1"), 0));
    world.end().await;
}

/// I17.
#[tokio::test(start_paused = true)]
async fn enough_indexes_make_a_success() {
    for (rule, needed, message) in [
        (json!({"succeededIndexes": "1"}), vec![1], "Matched rules at index 0"),
        (json!({"succeededCount": 2}), vec![0, 2], "Matched rules at index 0"),
        (json!({"succeededIndexes": "0-2", "succeededCount": 1}), vec![2], "Matched rules at index 0"),
    ] {
        let world = World::new();
        world.create("sp", with(indexed(3, 3), json!({"successPolicy": {"rules": [rule]}}))).await;
        world.settle().await;
        for index in &needed {
            world.succeed(&world.of_index("sp", *index).await).await;
        }
        world.pass(60).await;
        assert_eq!(world.why("sp", "Complete"), ("SuccessPolicy".into(), message.into()));
        assert_eq!((world.numbers("sp")[1], world.numbers("sp")[2]), (needed.len() as i64, 0));
        world.end().await;
    }
}

/// I17: a verdict that came first stands.
#[tokio::test(start_paused = true)]
async fn a_success_policy_loses_to_failed_indexes() {
    let world = World::new();
    let policies = json!({"backoffLimitPerIndex": 0, "maxFailedIndexes": 0,
        "successPolicy": {"rules": [{"succeededIndexes": "1"}]}});
    world.create("sp", with(indexed(2, 2), policies)).await;
    world.settle().await;
    world.fail(&world.of_index("sp", 0).await, 1).await;
    world.succeed(&world.of_index("sp", 1).await).await;
    world.pass(10).await;
    assert_eq!(world.conditions("sp"), ["FailureTarget", "Failed"]);
    world.end().await;
}

/// I20.
#[tokio::test(start_paused = true)]
async fn an_elastic_job_grows_and_shrinks() {
    let world = World::new();
    world.create("el", indexed(3, 3)).await;
    world.settle().await;
    world.fail(&world.of_index("el", 0).await, 1).await;
    world.succeed(&world.of_index("el", 2).await).await;
    world.pass(30).await;
    let scale = |to: i64| json!({"spec": {"completions": to, "parallelism": to}});
    world.patch("el", scale(2)).await;
    world.settle().await;
    assert_eq!((world.active_indexes("el").await, world.numbers("el")), (vec![0, 1], [2, 0, 1, 0]));
    assert_eq!(world.status("el")["completedIndexes"], json!(null));
    world.patch("el", scale(4)).await;
    world.settle().await;
    assert_eq!(world.active_indexes("el").await, [0, 1, 2, 3]);
    world.patch("el", scale(0)).await;
    world.settle().await;
    assert_eq!(world.conditions("el"), ["SuccessCriteriaMet", "Complete"]);
    world.check_finalizers().await;
    world.end().await;
}

/// I13: the waits of indexes are their own.
#[tokio::test(start_paused = true)]
async fn an_index_that_waits_holds_up_no_other() {
    let world = World::new();
    world.create("per", with(indexed(2, 2), json!({"backoffLimitPerIndex": 5}))).await;
    world.settle().await;
    world.fail(&world.of_index("per", 0).await, 1).await;
    world.pass(5).await;
    world.fail(&world.of_index("per", 1).await, 1).await;
    world.pass(8).await;
    assert_eq!(world.active_indexes("per").await, [0]);
    world.pass(6).await;
    assert_eq!(world.active_indexes("per").await, [0, 1]);
    world.end().await;
}
