//! A world for tests of the Job controller: the sandbox's API server and the production controllers on one paused runtime. Nodes are
//! played by the test itself, by statuses of Pods, or by the sandbox's stand-in for them.

use std::time::Duration;

use cronjob_controller::clock::Clock;
use cronjob_controller::cluster::{ApiClientOptions, Clients};
use cronjob_controller::controllers::{Counts, Manager, Options, REGISTRY, Registration, Serves, Setup};
use cronjob_controller::jobs::Mandate;
use cronjob_controller::sandbox::resources::{Resource, find};
use cronjob_controller::sandbox::runner::RunnerOptions;
use cronjob_controller::sandbox::{self, Sandbox};
use cronjob_controller::telemetry::{Exposition, Health, Registry};
use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) const OURS: &str = "acme.io/ours";
pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
pub(crate) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) fn jobs() -> &'static Resource {
    find("batch", "v1", "jobs").unwrap()
}

pub(crate) fn pods() -> &'static Resource {
    find("", "v1", "pods").unwrap()
}

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// The server, which outlives controllers, and the controllers that run now.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) clock: Clock,
    /// For controllers that are started from now on.
    pub(crate) options: Options,
    pub(crate) registry: Registry,
    background: CancellationToken,
    tasks: TaskTracker,
    running: Option<Running>,
}

struct Running {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    counter: Box<dyn Fn() -> Vec<Counts> + Send + Sync>,
}

impl World {
    /// A server, and our Job controller in the place of the built-in one.
    pub(crate) fn new() -> Self {
        let clock = Clock::starting_at("2026-03-02T10:00:00Z".parse().unwrap());
        let options = sandbox::Options { gc_every: Duration::from_secs(1), ..Default::default() };
        let sandbox = Sandbox::new(clock.clone(), 7, options);
        let (background, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (server, cancel) = (sandbox.clone(), background.clone());
        tasks.spawn(async move { server.run_background(cancel).await });
        let options = Options { mandate: Mandate::all(OURS), ..Options::default() };
        let mut world = Self { sandbox, clock, options, registry: Registry::new(), background, tasks, running: None };
        world.start();
        world
    }

    /// The same, with nodes that run Pods.
    pub(crate) fn with_nodes() -> Self {
        let world = Self::new();
        let (server, cancel) = (world.sandbox.clone(), world.background.clone());
        let options = RunnerOptions { job_controller: true, ..RunnerOptions::default() };
        world.tasks.spawn(async move { server.run_jobs(options, 5, cancel).await });
        world
    }

    /// Starts the controllers of Jobs and of their end.
    pub(crate) fn start(&mut self) {
        let about_jobs = |it: &&Registration| matches!(it.serves, Serves::Jobs | Serves::ExpiredJobs);
        self.start_these(&REGISTRY.iter().filter(about_jobs).collect::<Vec<_>>());
    }

    pub(crate) fn start_these(&mut self, controllers: &[&Registration]) {
        self.registry = Registry::new();
        let client = self.sandbox.client();
        let clients =
            Clients { requests: client.clone(), watches: client.clone(), leases: client, host: "sandbox".into() };
        let setup = Setup {
            clients,
            client_options: ApiClientOptions::default(),
            clock: self.clock.clone(),
            seed: 11,
            registry: self.registry.clone(),
            health: Health::default(),
            observer: None,
            election: None,
        };
        let manager = Manager::new(setup, self.options.clone(), controllers);
        let counter = Box::new(manager.counter());
        let stop = CancellationToken::new();
        let task = self.tasks.spawn(manager.run(stop.clone()));
        self.running = Some(Running { stop, task, counter });
    }

    /// Ends the controllers gracefully.
    pub(crate) async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop.cancel();
            running.task.await.unwrap();
        }
    }

    /// Kills the controllers in the middle of whatever they do.
    pub(crate) async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.task.abort();
            let _killed = running.task.await;
        }
    }

    /// Kills the controllers and starts others.
    pub(crate) async fn restart(&mut self) {
        self.kill().await;
        self.start();
    }

    /// Ends everything.
    pub(crate) async fn end(mut self) {
        self.stop().await;
        self.background.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, count: u64) {
        tokio::time::sleep(seconds(count)).await;
    }

    /// Long enough for what is batched, not for a back-off of Pods.
    pub(crate) async fn settle(&self) {
        self.pass(5).await;
    }

    pub(crate) fn counts(&self) -> Vec<Counts> {
        self.running.as_ref().map(|running| (running.counter)()).unwrap_or_default()
    }

    /// A metric of the controllers that run now or ran last, by its name and labels as in the text form; 0 where there is none.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.registry.encode(Exposition::PrometheusText).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Sends one request as a user would; the body of the answer, or the Status it was refused with.
    pub(crate) async fn request(&self, method: Method, path: &str, body: &Value) -> Result<Value, Value> {
        let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        let request = Request::builder().method(method).uri(path).header("content-type", content).body(bytes).unwrap();
        let response = kube::Client::new(self.sandbox.service_without_faults("user"), "default")
            .send(request.map(Body::from))
            .await
            .unwrap();
        let ok = response.status().is_success();
        let bytes = response.into_body().collect_bytes().await.unwrap();
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        if ok { Ok(value) } else { Err(value) }
    }

    /// Creates a Job; `spec` is laid over a minimal one.
    pub(crate) async fn create(&self, name: &str, spec: Value) -> Value {
        self.try_create(&job(name, spec)).await.unwrap_or_else(|status| panic!("{status:#}"))
    }

    pub(crate) async fn try_create(&self, job: &Value) -> Result<Value, Value> {
        self.request(Method::POST, JOBS, job).await
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        self.try_patch(name, patch).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    pub(crate) async fn try_patch(&self, name: &str, patch: Value) -> Result<Value, Value> {
        self.request(Method::PATCH, &format!("{JOBS}/{name}"), &patch).await
    }

    pub(crate) async fn delete(&self, name: &str, propagation: &str) {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation});
        let path = format!("{JOBS}/{name}");
        self.request(Method::DELETE, &path, &options).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    /// The Job as the server has it; null if it is gone.
    pub(crate) fn job(&self, name: &str) -> Value {
        self.sandbox.get(jobs(), "default", name).unwrap_or_default()
    }

    pub(crate) fn status(&self, name: &str) -> Value {
        self.job(name)["status"].clone()
    }

    /// active, succeeded, failed, terminating.
    pub(crate) fn numbers(&self, name: &str) -> [i64; 4] {
        let status = self.status(name);
        ["active", "succeeded", "failed", "terminating"].map(|field| status[field].as_i64().unwrap_or(0))
    }

    /// Types of the conditions that are True, in their order.
    pub(crate) fn conditions(&self, name: &str) -> Vec<String> {
        let status = self.status(name);
        let all = status["conditions"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|it| it["status"] == "True").map(|it| it["type"].as_str().unwrap().to_owned()).collect()
    }

    /// Reason and message of a condition.
    pub(crate) fn why(&self, name: &str, condition: &str) -> (String, String) {
        let status = self.status(name);
        let found = status["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == condition);
        let found = found.unwrap_or_else(|| panic!("no {condition} in {status:#}"));
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    }

    /// All Pods, in order of names.
    pub(crate) async fn all_pods(&self) -> Vec<Value> {
        let mut list = self.request(Method::GET, PODS, &Value::Null).await.unwrap();
        list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Pods that a Job controls.
    pub(crate) async fn pods_of(&self, job: &str) -> Vec<Value> {
        let mut all = self.all_pods().await;
        all.retain(|pod| pod["metadata"]["ownerReferences"][0]["name"] == job);
        all
    }

    /// Those that neither ended nor are being deleted.
    pub(crate) async fn active(&self, job: &str) -> Vec<Value> {
        let mut pods = self.pods_of(job).await;
        pods.retain(|pod| !has_ended(pod) && pod["metadata"]["deletionTimestamp"].is_null());
        pods
    }

    /// The indexes of those, in order.
    pub(crate) async fn active_indexes(&self, job: &str) -> Vec<i64> {
        let mut indexes: Vec<i64> = self.active(job).await.iter().map(index_of).collect();
        indexes.sort_unstable();
        indexes
    }

    /// The one active Pod of an index.
    pub(crate) async fn of_index(&self, job: &str, index: i64) -> Value {
        let mut pods = self.active(job).await;
        pods.retain(|pod| index_of(pod) == index);
        assert_eq!(pods.len(), 1, "Pods of index {index}: {pods:#?}");
        pods.remove(0)
    }

    /// Creates a Pod as it is.
    pub(crate) async fn create_pod(&self, pod: &Value) -> Value {
        self.request(Method::POST, PODS, pod).await.unwrap_or_else(|status| panic!("{status:#}"))
    }

    pub(crate) async fn patch_pod(&self, pod: &Value, patch: Value) {
        let path = format!("{PODS}/{}", name_of(pod));
        self.request(Method::PATCH, &path, &patch).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    pub(crate) async fn delete_pod(&self, pod: &Value) {
        let path = format!("{PODS}/{}", name_of(pod));
        self.request(Method::DELETE, &path, &Value::Null).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    /// Writes the status of a Pod as its node would.
    pub(crate) async fn set_status(&self, pod: &Value, status: Value) {
        let path = format!("{PODS}/{}/status", name_of(pod));
        let patch = json!({ "status": status });
        self.request(Method::PATCH, &path, &patch).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    pub(crate) async fn run(&self, pod: &Value) {
        let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": self.now()}]);
        self.set_status(pod, json!({"phase": "Running", "conditions": ready})).await;
    }

    pub(crate) async fn succeed(&self, pod: &Value) {
        self.end_pod(pod, "Succeeded", 0).await;
    }

    pub(crate) async fn fail(&self, pod: &Value, exit_code: i64) {
        self.end_pod(pod, "Failed", exit_code).await;
    }

    async fn end_pod(&self, pod: &Value, phase: &str, exit_code: i64) {
        let terminated = json!({"exitCode": exit_code, "startedAt": self.now(), "finishedAt": self.now()});
        let container = json!({"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": terminated}});
        self.set_status(pod, json!({"phase": phase, "conditions": null, "containerStatuses": [container]})).await;
    }

    fn now(&self) -> String {
        self.clock.wall().to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
    }

    /// Reasons of the Events about a Job of this uid, in the order of their names.
    pub(crate) async fn events(&self, job: &Value) -> Vec<String> {
        let list = self.request(Method::GET, "/api/v1/namespaces/default/events", &Value::Null).await.unwrap();
        let about = |event: &&Value| event["involvedObject"]["uid"] == job["metadata"]["uid"];
        let events = list["items"].as_array().unwrap().iter().filter(about);
        let mut all: Vec<(String, String)> = events
            .map(|event| {
                [&event["metadata"]["creationTimestamp"], &event["reason"]].map(|it| it.as_str().unwrap().to_owned())
            })
            .map(|[at, reason]| (at, reason))
            .collect();
        all.sort();
        all.into_iter().map(|(_, reason)| reason).collect()
    }

    /// What must hold whenever everything has settled: who ended keeps no finalizer, who runs has it, and as many Pods left the
    /// tracking as entered it.
    pub(crate) async fn check_finalizers(&self) {
        for pod in self.all_pods().await {
            let ours = pod["metadata"]["ownerReferences"][0]["kind"] == "Job";
            assert!(!has_ended(&pod) || !is_tracked(&pod), "ended with the finalizer: {pod:#}");
            let going = !pod["metadata"]["deletionTimestamp"].is_null();
            assert!(!ours || has_ended(&pod) || going || is_tracked(&pod), "runs without the finalizer: {pod:#}");
        }
        let [added, deleted] = ["add", "delete"].map(|event| {
            self.metric(&format!("job_controller_terminated_pods_tracking_finalizer_total{{event=\"{event}\"}}"))
        });
        assert_eq!(added, deleted);
    }
}

pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

pub(crate) fn has_ended(pod: &Value) -> bool {
    pod["status"]["phase"] == "Succeeded" || pod["status"]["phase"] == "Failed"
}

pub(crate) fn is_tracked(pod: &Value) -> bool {
    pod["metadata"]["finalizers"].as_array().is_some_and(|all| all.contains(&json!(TRACKING)))
}

pub(crate) fn index_of(pod: &Value) -> i64 {
    pod["metadata"]["annotations"][INDEX].as_str().and_then(|text| text.parse().ok()).unwrap_or(-1)
}

/// A Job of batch/v1 in `default`; `spec` is laid over a minimal one.
pub(crate) fn job(name: &str, spec: Value) -> Value {
    let containers = json!([{"name": "c", "image": "registry.example.com/c:1"}]);
    let template = json!({"spec": {"restartPolicy": "Never", "containers": containers}});
    let mut base = json!({ "template": template });
    for (field, value) in spec.as_object().unwrap() {
        base[field] = value.clone();
    }
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "default", "name": name}, "spec": base})
}

/// The same with annotations that tell the nodes how its Pods go.
pub(crate) fn annotated(name: &str, outcome: &str, spec: Value) -> Value {
    let mut job = job(name, spec);
    job["metadata"]["annotations"] = json!({"sandbox.cronjob-controller.dev/outcome": outcome});
    job
}
