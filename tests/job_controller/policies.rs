//! What a failure means, and when a Pod is replaced.

use serde_json::{Value, json};

use crate::world::*;

fn on_exit_code(action: &str, code: i64) -> Value {
    json!({"podFailurePolicy": {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [code]}}]}})
}

fn with(mut spec: Value, more: Value) -> Value {
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

#[tokio::test(start_paused = true)]
async fn a_rule_fails_the_job_at_once() {
    let world = World::new();
    let job = world.create("fj", with(json!({"parallelism": 2, "completions": 4}), on_exit_code("FailJob", 42))).await;
    world.settle().await;
    let pod = world.active("fj").await.remove(0);
    world.fail(&pod, 42).await;
    world.pass(10).await;
    let message = format!(
        "Container c for pod default/{} failed with exit code 42 matching FailJob rule at index 0",
        name_of(&pod)
    );
    assert_eq!(world.why("fj", "Failed"), ("PodFailurePolicy".into(), message));
    assert!(world.events(&job).await.contains(&"PodFailurePolicy".to_owned()));
    assert_eq!(world.metric("job_controller_pod_failures_handled_by_failure_policy_total{action=\"FailJob\"}"), 1.0);
    world.end().await;
}

/// I6: the verdict outlives the Pod that caused it, and the process.
#[tokio::test(start_paused = true)]
async fn a_verdict_outlives_the_pod_and_the_process() {
    let mut world = World::new();
    let held = json!({"metadata": {"finalizers": ["acme.io/held"]}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"}]}});
    let spec = with(json!({"parallelism": 2, "completions": 2, "template": held}), on_exit_code("FailJob", 42));
    world.create("fj", spec).await;
    world.settle().await;
    let pods = world.active("fj").await;
    world.fail(&pods[0], 42).await;
    world.settle().await;
    assert_eq!(world.conditions("fj"), ["FailureTarget"]);
    let told = world.why("fj", "FailureTarget");
    world.kill().await;
    for pod in &pods {
        world.patch_pod(pod, json!({"metadata": {"finalizers": null}})).await;
    }
    world.delete_pod(&pods[0]).await;
    world.start();
    world.settle().await;
    assert_eq!(world.why("fj", "Failed"), told);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_disruption_is_ignored_and_the_pod_replaced() {
    let world = World::new();
    let rules = json!([{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]);
    world.create("ig", json!({"backoffLimit": 0, "podFailurePolicy": {"rules": rules}})).await;
    world.settle().await;
    let pod = world.active("ig").await.remove(0);
    let disrupted = json!([{"type": "DisruptionTarget", "status": "True"}]);
    world.set_status(&pod, json!({"phase": "Failed", "conditions": disrupted})).await;
    world.pass(30).await;
    assert_eq!((world.numbers("ig"), world.active("ig").await.len()), ([1, 0, 0, 0], 1));
    world.succeed(&world.active("ig").await[0]).await;
    world.settle().await;
    assert_eq!(world.conditions("ig"), ["SuccessCriteriaMet", "Complete"]);
    world.check_finalizers().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_rule_fails_an_index_at_once() {
    let world = World::new();
    let spec = json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 5});
    world.create("fi", with(spec, on_exit_code("FailIndex", 42))).await;
    world.settle().await;
    world.fail(&world.of_index("fi", 0).await, 42).await;
    world.succeed(&world.of_index("fi", 1).await).await;
    world.settle().await;
    assert_eq!(
        (world.status("fi")["failedIndexes"].clone(), world.conditions("fi")),
        (json!("0"), vec!["FailureTarget".into(), "Failed".into()])
    );
    world.end().await;
}

/// I15: when a Pod that is being deleted is replaced.
#[tokio::test(start_paused = true)]
async fn a_pod_that_goes_is_replaced_at_once_or_when_it_ended() {
    for (policy, while_going, after) in
        [("TerminatingOrFailed", [2, 0, 2, 2], [2, 0, 2, 0]), ("Failed", [0, 0, 0, 2], [2, 0, 2, 0])]
    {
        let world = World::new();
        let held = json!({"metadata": {"finalizers": ["acme.io/held"]}, "spec": {"restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i"}]}});
        let spec = json!({"parallelism": 2, "completions": 2, "podReplacementPolicy": policy, "template": held});
        world.create("rep", spec).await;
        world.settle().await;
        let pods = world.active("rep").await;
        for pod in &pods {
            world.run(pod).await;
            world.delete_pod(pod).await;
        }
        world.pass(30).await;
        assert_eq!(world.numbers("rep"), while_going, "{policy}");
        for pod in &pods {
            world.fail(pod, 1).await;
        }
        world.pass(60).await;
        assert_eq!(world.numbers("rep"), after, "{policy}");
        let reason = if policy == "Failed" { "recreate_failed" } else { "recreate_terminating_or_failed" };
        let series = |reason: &str| {
            format!("job_controller_job_pods_creation_total{{reason=\"{reason}\",status=\"succeeded\"}}")
        };
        assert_eq!([world.metric(&series("new")), world.metric(&series(reason))], [2.0, 2.0], "{policy}");
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_job_at_its_second_also_one_set_later() {
    let world = World::new();
    world.create("dl", json!({"activeDeadlineSeconds": 60})).await;
    world.create("later", json!({})).await;
    world.pass(30).await;
    world.patch("later", json!({"spec": {"activeDeadlineSeconds": 60}})).await;
    world.pass(29).await;
    assert_eq!((world.conditions("dl").len(), world.conditions("later").len()), (0, 0));
    world.pass(3).await;
    for job in ["dl", "later"] {
        let expected = ("DeadlineExceeded".to_owned(), "Job was active longer than specified deadline".to_owned());
        assert_eq!(world.why(job, "FailureTarget"), expected);
    }
    world.end().await;
}
