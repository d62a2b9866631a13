//! With nodes that run Pods, as `sandbox --job-controller` has them: Jobs from their creation to their end.

use serde_json::json;

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn jobs_run_to_their_end_on_nodes() {
    let world = World::with_nodes();
    world.try_create(&annotated("good", "complete", json!({"parallelism": 3, "completions": 5}))).await.unwrap();
    world.try_create(&annotated("bad", "fail", json!({"backoffLimit": 2}))).await.unwrap();
    world.pass(300).await;
    assert_eq!(
        (world.conditions("good"), world.numbers("good")),
        (vec!["SuccessCriteriaMet".into(), "Complete".into()], [0, 5, 0, 0])
    );
    assert_eq!(
        (world.conditions("bad"), world.numbers("bad")),
        (vec!["FailureTarget".into(), "Failed".into()], [0, 0, 3, 0])
    );
    world.check_finalizers().await;
    world.end().await;
}

/// Conformance: restarts in place do not end a Job while its limit is not reached.
#[tokio::test(start_paused = true)]
async fn containers_that_restart_in_place_count_towards_the_limit() {
    let world = World::with_nodes();
    let restarting = json!({"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "i"}]}});
    world.try_create(&annotated("rip", "fail", json!({"backoffLimit": 2, "template": restarting}))).await.unwrap();
    world.pass(600).await;
    assert_eq!(world.why("rip", "Failed").0, "BackoffLimitExceeded");
    assert_eq!(world.active("rip").await.len(), 0);
    world.check_finalizers().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_fails_are_stopped_before_it_ends() {
    let world = World::with_nodes();
    let spec = json!({"parallelism": 3, "completions": 3, "activeDeadlineSeconds": 40});
    world.try_create(&annotated("hang", "hang", spec)).await.unwrap();
    world.pass(45).await;
    assert_eq!((world.conditions("hang"), world.numbers("hang")), (vec!["FailureTarget".into()], [0, 0, 3, 3]));
    world.pass(60).await;
    assert_eq!(
        (world.conditions("hang"), world.numbers("hang")),
        (vec!["FailureTarget".into(), "Failed".into()], [0, 0, 3, 0])
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn deleted_jobs_take_their_running_pods_along() {
    let world = World::with_nodes();
    for name in ["a", "b"] {
        world.try_create(&annotated(name, "hang", json!({"parallelism": 2}))).await.unwrap();
    }
    world.pass(20).await;
    world.delete("a", "Foreground").await;
    world.delete("b", "Background").await;
    world.pass(120).await;
    assert_eq!(world.all_pods().await.len(), 0);
    let counts = world.counts();
    assert_eq!((counts[0].engine.cells, counts[0].jobs, counts[0].pods, counts[0].owners), (0, 0, 0, 0));
    world.end().await;
}
