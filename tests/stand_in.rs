//! The stand-in for what runs Jobs, in a sandbox under virtual time.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::time::Duration;

use chrono::TimeZone;
use cronjob_controller::clock::Clock;
use cronjob_controller::sandbox::resources::{Resource, find};
use cronjob_controller::sandbox::runner::{Outcome, RunnerOptions};
use cronjob_controller::sandbox::{Options, Sandbox};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

/// A sandbox on 2026-03-08T12:00:00Z with its stand-in running.
struct World {
    sandbox: Sandbox,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl World {
    fn new(options: Options, runner: RunnerOptions) -> Self {
        let noon = chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap();
        let sandbox = Sandbox::new(Clock::starting_at(noon), 7, options);
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (running, token) = (sandbox.clone(), shutdown.clone());
        tasks.spawn(async move { running.run_jobs(runner, 7, token).await });
        Self { sandbox, shutdown, tasks }
    }

    async fn create(&self, path: &str, object: &Value) {
        let request = http::Request::post(path).body(Full::<bytes::Bytes>::from(object.to_string())).unwrap();
        let answer = self.sandbox.service().call(request).await.unwrap();
        assert_eq!(answer.status(), 201);
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn get(&self, resource: &'static Resource, name: &str) -> Value {
        self.sandbox.get(resource, "default", name).unwrap()
    }
}

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

fn jobs() -> &'static Resource {
    find("batch", "v1", "jobs").unwrap()
}

fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1"}]}}}
    })
}

fn last_condition(job: &Value) -> &str {
    job.pointer("/status/conditions/1/type").and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_job_ends_after_its_time_and_not_before() {
    let options = RunnerOptions { duration: Duration::from_secs(6 * 3600), ..RunnerOptions::default() };
    let world = World::new(Options::default(), options);
    world.create(JOBS, &job("a")).await;
    tokio::time::sleep(Duration::from_secs(6 * 3600)).await;
    assert_eq!(world.get(jobs(), "a")["status"]["active"], 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let done = world.get(jobs(), "a");
    assert_eq!(
        (last_condition(&done), &done["status"]["completionTime"]),
        ("Complete", &json!("2026-03-08T18:00:01Z"))
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_jobs_end_the_same_way_in_every_run() {
    let options = RunnerOptions {
        spread: Duration::from_secs(3600),
        failure_percent: 30,
        pods: true,
        ..RunnerOptions::default()
    };
    let run = async || {
        let world = World::new(Options::default(), options);
        for index in 0..300 {
            world.create(JOBS, &job(&format!("j{index}"))).await;
        }
        tokio::time::sleep(Duration::from_secs(4000)).await;
        let ends: Vec<String> =
            (0..300).map(|index| last_condition(&world.get(jobs(), &format!("j{index}"))).to_owned()).collect();
        let revision = world.sandbox.with_store(|store| store.revision());
        world.end().await;
        (ends, revision)
    };
    let (ends, revision) = run().await;
    let failed = ends.iter().filter(|end| *end == "Failed").count();
    assert_eq!(ends.iter().filter(|end| *end == "Complete").count() + failed, 300);
    assert!((60..120).contains(&failed), "{failed} of 300 failed");
    assert_eq!(run().await, (ends, revision));
}

#[tokio::test(start_paused = true)]
async fn a_stand_in_that_the_log_has_left_behind_catches_up() {
    // The log keeps ten changes; forty Jobs appear before the stand-in gets its turn.
    let world = World::new(Options { log_limit: 10, ..Options::default() }, RunnerOptions::default());
    for index in 0..40 {
        world.create(JOBS, &job(&format!("j{index}"))).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    for index in 0..40 {
        assert_eq!(last_condition(&world.get(jobs(), &format!("j{index}"))), "Complete", "j{index}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_hanging_job_hangs_until_it_is_deleted_with_its_pod() {
    let options = RunnerOptions { outcome: Outcome::Hang, pods: true, ..RunnerOptions::default() };
    let world = World::new(Options::default(), options);
    world.create(JOBS, &job("a")).await;
    tokio::time::sleep(Duration::from_secs(100_000)).await;
    assert_eq!(world.get(jobs(), "a")["status"]["active"], 1);
    let pods = find("", "v1", "pods").unwrap();
    let count = || world.sandbox.with_store(|store| store.collection(pods).unwrap().len());
    assert_eq!(count(), 1);
    let request =
        http::Request::delete(format!("{JOBS}/a?propagationPolicy=Background")).body(Full::<bytes::Bytes>::default());
    assert_eq!(world.sandbox.service().call(request.unwrap()).await.unwrap().status(), 200);
    while world.sandbox.gc_step() > 0 {}
    assert_eq!(count(), 0);
    world.end().await;
}
