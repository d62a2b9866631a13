//! Pods with the nodes that are played: they run by the seed, go with grace, and Jobs take them along.

use std::time::Duration;

use cronjob_controller::sandbox::Sandbox;
use cronjob_controller::sandbox::runner::{Outcome, RunnerOptions};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::common::*;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A sandbox with its nodes, for Jobs that a controller looks after.
struct World {
    sandbox: Sandbox,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl World {
    fn new(options: RunnerOptions) -> Self {
        let (sandbox, shutdown, tasks) = (sandbox(), CancellationToken::new(), TaskTracker::new());
        let (running, token) = (sandbox.clone(), shutdown.clone());
        tasks.spawn(async move { running.run_jobs(options, 7, token).await });
        Self { sandbox, shutdown, tasks }
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn pod(&self, name: &str) -> Reply {
        get(&self.sandbox, &format!("{PODS}/{name}")).await
    }
}

fn options(outcome: Outcome) -> RunnerOptions {
    RunnerOptions { outcome, job_controller: true, ..RunnerOptions::default() }
}

fn pod(name: &str, owner: Option<&Reply>) -> Value {
    let mut pod = json!({ "metadata": { "name": name }, "spec": pod_spec() });
    if let Some(owner) = owner {
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": owner.text("/apiVersion"), "kind": owner.text("/kind"), "name": owner.text("/metadata/name"),
            "uid": owner.text("/metadata/uid"), "controller": true, "blockOwnerDeletion": true,
        }]);
    }
    pod
}

fn seconds(count: u64) -> tokio::time::Sleep {
    tokio::time::sleep(Duration::from_secs(count))
}

#[tokio::test(start_paused = true)]
async fn jobs_are_left_to_their_controller_and_pods_run_as_the_jobs_annotations_say() {
    let world = World::new(options(Outcome::Complete));
    let mut job = job("a");
    job["metadata"]["annotations"] = json!({
        "sandbox.cronjob-controller.dev/duration": "100s", "sandbox.cronjob-controller.dev/outcome": "fail",
        "sandbox.cronjob-controller.dev/exit-code": "3",
    });
    let job = post(&world.sandbox, JOBS, &job).await;
    post(&world.sandbox, PODS, &pod("of-job", Some(&job))).await;
    post(&world.sandbox, PODS, &pod("of-nobody", None)).await;
    seconds(10).await;
    let running = world.pod("of-job").await;
    assert_eq!((running.text("/status/phase"), running.text("/spec/nodeName")), ("Running", "sandbox"));
    let log = get(&world.sandbox, &format!("{PODS}/of-job/log")).await;
    assert_eq!(log.body, "2026-03-08T12:00:01Z sandbox: busybox would run here\n");
    seconds(30).await;
    assert_eq!(world.pod("of-nobody").await.text("/status/phase"), "Succeeded");
    seconds(100).await;
    let failed = world.pod("of-job").await;
    assert_eq!(failed.text("/status/phase"), "Failed");
    assert_eq!(failed.body["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
    let job = get(&world.sandbox, &format!("{JOBS}/a")).await;
    assert_eq!(job.body["status"], json!({}), "nobody looks after it here");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn volcanos_jobs_run_as_before() {
    let world = World::new(options(Outcome::Complete));
    let path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";
    let task = json!({ "name": "t", "replicas": 1, "template": { "spec": pod_spec() } });
    let job = json!({
        "kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "metadata": { "name": "v" }, "spec": { "tasks": [task] },
    });
    assert_eq!(post(&world.sandbox, path, &job).await.code, 201);
    seconds(60).await;
    assert_eq!(get(&world.sandbox, &format!("{path}/v")).await.text("/status/state/phase"), "Completed");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_tracked_pod_goes_when_its_node_has_confirmed_and_its_finalizer_is_gone() {
    let world = World::new(options(Outcome::Hang));
    let mut tracked = pod("p", None);
    tracked["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
    post(&world.sandbox, PODS, &tracked).await;
    seconds(10).await;
    let marked = delete(&world.sandbox, &format!("{PODS}/p"), &Value::Null).await;
    assert_eq!(marked.text("/metadata/deletionTimestamp"), "2026-03-08T12:00:40Z");
    seconds(29).await;
    assert_eq!(world.pod("p").await.text("/status/phase"), "Running", "it takes all its grace");
    seconds(2).await;
    let ended = world.pod("p").await;
    assert_eq!(ended.text("/status/phase"), "Failed");
    assert_eq!(ended.body["metadata"]["deletionGracePeriodSeconds"], 0);
    merge(&world.sandbox, &format!("{PODS}/p"), &json!({ "metadata": { "finalizers": null } })).await;
    assert_eq!(world.pod("p").await.code, 404);
    world.end().await;
}

/// Lets the collector run until it has nothing to do.
async fn collect(world: &World) {
    seconds(0).await;
    while world.sandbox.gc_step() > 0 {}
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_goes_down_to_the_pods_and_waits_for_their_grace() {
    let world = World::new(options(Outcome::Hang));
    let owner = post(&world.sandbox, CRONJOBS, &cronjob("c")).await;
    let mut child = job("j");
    child["metadata"]["ownerReferences"] = pod("", Some(&owner))["metadata"]["ownerReferences"].clone();
    let child = post(&world.sandbox, JOBS, &child).await;
    post(&world.sandbox, PODS, &pod("p", Some(&child))).await;
    seconds(5).await;
    delete(&world.sandbox, &format!("{CRONJOBS}/c?propagationPolicy=Foreground"), &Value::Null).await;
    collect(&world).await;
    let waiting = get(&world.sandbox, &format!("{JOBS}/j")).await;
    assert_eq!(waiting.body["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(world.pod("p").await.body["metadata"]["deletionGracePeriodSeconds"], 30);
    seconds(20).await;
    collect(&world).await;
    assert_eq!(get(&world.sandbox, &format!("{CRONJOBS}/c")).await.code, 200, "the Pod still ends");
    seconds(15).await;
    collect(&world).await;
    for path in [format!("{PODS}/p"), format!("{JOBS}/j"), format!("{CRONJOBS}/c")] {
        assert_eq!(get(&world.sandbox, &path).await.code, 404, "{path}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_a_foreground_deletion_lets_go_of_what_another_keeps() {
    let world = World::new(options(Outcome::Hang));
    let (first, second) = (post(&world.sandbox, JOBS, &job("a")).await, post(&world.sandbox, JOBS, &job("b")).await);
    let mut shared = pod("p", Some(&first));
    let owners = shared["metadata"]["ownerReferences"].as_array_mut().unwrap();
    owners.push(json!({ "apiVersion": "batch/v1", "kind": "Job", "name": "b", "uid": second.text("/metadata/uid") }));
    post(&world.sandbox, PODS, &shared).await;
    delete(&world.sandbox, &format!("{JOBS}/a?propagationPolicy=Foreground"), &Value::Null).await;
    collect(&world).await;
    assert_eq!(get(&world.sandbox, &format!("{JOBS}/a")).await.code, 404);
    let kept = world.pod("p").await;
    assert_eq!((kept.code, kept.text("/metadata/ownerReferences/0/name")), (200, "b"));
    assert_eq!(kept.body["metadata"]["deletionTimestamp"], Value::Null);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_background_deletion_gives_pods_their_grace_and_orphans_keep_running() {
    let world = World::new(options(Outcome::Hang));
    for (name, policy) in [("back", "Background"), ("orphan", "Orphan")] {
        let owner = post(&world.sandbox, JOBS, &job(name)).await;
        post(&world.sandbox, PODS, &pod(name, Some(&owner))).await;
        seconds(5).await;
        delete(&world.sandbox, &format!("{JOBS}/{name}?propagationPolicy={policy}"), &Value::Null).await;
        collect(&world).await;
        assert_eq!(get(&world.sandbox, &format!("{JOBS}/{name}")).await.code, 404, "{policy}");
    }
    seconds(31).await;
    assert_eq!(world.pod("back").await.code, 404);
    let orphan = world.pod("orphan").await;
    assert_eq!((orphan.text("/status/phase"), &orphan.body["metadata"]["ownerReferences"]), ("Running", &Value::Null));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_pods_end_the_same_way_in_every_run() {
    let run = async || {
        let world = World::new(RunnerOptions {
            spread: Duration::from_secs(600),
            failure_percent: 30,
            ..options(Outcome::Complete)
        });
        for index in 0..300 {
            post(&world.sandbox, PODS, &pod(&format!("p{index}"), None)).await;
        }
        seconds(1000).await;
        let list = get(&world.sandbox, PODS).await;
        let failed = get(&world.sandbox, &format!("{PODS}?fieldSelector=status.phase=Failed")).await;
        world.end().await;
        (list.body, failed.body["items"].as_array().unwrap().len())
    };
    let (list, failed) = run().await;
    assert!((60..120).contains(&failed), "{failed} of 300 failed");
    assert!(list["items"].as_array().unwrap().iter().all(|pod| pod["status"]["phase"] != "Running"));
    assert!(run().await == (list, failed));
}
