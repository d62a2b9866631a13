//! A world for tests: the sandbox's API server and the production controllers on one paused runtime.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronjob_controller::clock::Clock;
use cronjob_controller::cluster::{ApiClientOptions, Clients};
use cronjob_controller::controllers::{Counts, Manager, Observer, Options, Registration, Setup};
use cronjob_controller::latest::Latest;
use cronjob_controller::model::{Happening, ObjectKey, WallTime};
use cronjob_controller::sandbox::body::SandboxBody;
use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::resources::{Resource, find};
use cronjob_controller::sandbox::runner::RunnerOptions;
use cronjob_controller::sandbox::service::{Disconnected, SandboxService};
use cronjob_controller::sandbox::{self, Sandbox};
use cronjob_controller::telemetry::{Exposition, Health, Registry, health_router};
use futures::future::BoxFuture;
use futures::stream::unfold;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceExt};

/// An instant from its RFC 3339 text.
pub(crate) fn at(text: &str) -> WallTime {
    text.parse::<DateTime<Utc>>().unwrap()
}

/// Name of the Job of the CronJob `name` for the due instant `due`.
pub(crate) fn run_of(name: &str, due: &str) -> String {
    format!("{name}-{}", at(due).timestamp() / 60)
}

pub(crate) fn cronjobs() -> &'static Resource {
    find("batch", "v1", "cronjobs").unwrap()
}

pub(crate) fn jobs() -> &'static Resource {
    find("batch", "v1", "jobs").unwrap()
}

pub(crate) fn volcano_cronjobs() -> &'static Resource {
    find("batch.volcano.sh", "v1alpha1", "cronjobs").unwrap()
}

pub(crate) fn volcano_jobs() -> &'static Resource {
    find("batch.volcano.sh", "v1alpha1", "jobs").unwrap()
}

/// One thing that a controller said.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) at: WallTime,
    pub(crate) about: ObjectKey,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<Said>>>);

impl Observer for Ear {
    fn on_happening(&self, _controller: &'static str, about: &ObjectKey, at: WallTime, happening: &Happening) {
        let said = Said { at, about: about.clone(), reason: happening.reason, message: happening.message.clone() };
        self.0.lock().unwrap().push(said);
    }
}

/// The server, which outlives controllers, and the controllers that run now.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) clock: Clock,
    /// For controllers that are started from now on.
    pub(crate) options: Options,
    ear: Ear,
    background: CancellationToken,
    tasks: TaskTracker,
    running: Option<Running>,
}

/// What of the way to the server has fallen silent, without a word: no answer, no end of the connection. What was under way then is
/// lost for good, also when the way is whole again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silent {
    Nothing,
    /// Lists and watches of batch/v1 Jobs.
    JobWatches,
    Everything,
    /// Nothing; but whoever asks for lists and watches of batch/v1 Jobs dies of it.
    DeadlyJobWatches,
}

impl Silent {
    fn covers(self, of_jobs: bool) -> bool {
        self == Self::Everything || self == Self::JobWatches && of_jobs
    }
}

/// The way of one process to the server. Shut, it lets nothing through any more, in neither direction: to the server that process
/// is dead, in the middle of whatever it did.
#[derive(Clone)]
struct Line {
    inner: SandboxService,
    silent: Latest<Silent>,
    shut: CancellationToken,
}

impl Service<Request<Body>> for Line {
    type Response = Response<SandboxBody>;
    type Error = Disconnected;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Line { mut inner, silent, shut } = self.clone();
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let of_jobs = request.method() == Method::GET && request.uri().path() == "/apis/batch/v1/jobs";
        Box::pin(async move {
            let deadly = of_jobs && silent.get() == Silent::DeadlyJobWatches;
            assert!(!deadly, "a watch of Jobs, to be died of");
            let answer = tokio::select! {
                biased;
                () = shut.cancelled() => None,
                () = falls_silent(&silent, of_jobs) => None,
                answer = inner.call(request) => Some(answer),
            };
            let Some(answer) = answer.filter(|_| !shut.is_cancelled()) else { return std::future::pending().await };
            let answer = answer?;
            Ok(if is_watch { answer.map(|body| until_silent(body, silent, of_jobs)) } else { answer })
        })
    }
}

/// Returns when what a request goes through is silent.
async fn falls_silent(silent: &Latest<Silent>, of_jobs: bool) {
    silent.wait_for(|silent| silent.covers(of_jobs)).await;
}

/// The body up to the moment of silence; then nothing, not even its end.
fn until_silent(body: SandboxBody, silent: Latest<Silent>, of_jobs: bool) -> SandboxBody {
    SandboxBody::watch(unfold((body, silent), move |(mut body, silent)| async move {
        let frame = tokio::select! {
            biased;
            () = falls_silent(&silent, of_jobs) => std::future::pending().await,
            frame = body.frame() => frame?,
        };
        let Ok(frame) = frame;
        Some((frame.into_data().unwrap_or_default(), (body, silent)))
    }))
}

struct Running {
    line: CancellationToken,
    silent: Latest<Silent>,
    registry: Registry,
    health: Health,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    counter: Box<dyn Fn() -> Vec<Counts> + Send + Sync>,
}

impl World {
    /// A server whose clock starts at `start`; no controllers yet.
    pub(crate) fn new(start: &str) -> Self {
        Self::tidied_every(start, Duration::from_secs(5))
    }

    /// The same; garbage is collected and namespaces are emptied in steps of this length.
    pub(crate) fn tidied_every(start: &str, gc_every: Duration) -> Self {
        let clock = Clock::starting_at(at(start));
        let sandbox = Sandbox::new(clock.clone(), 7, sandbox::Options { gc_every, ..Default::default() });
        let (background, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (server, cancel) = (sandbox.clone(), background.clone());
        tasks.spawn(async move { server.run_background(cancel).await });
        let options = Options::default();
        Self { sandbox, clock, options, ear: Ear::default(), background, tasks, running: None }
    }

    /// Starts the stand-in that runs the Jobs, steered by the annotations of each.
    pub(crate) fn run_jobs(&self) {
        let (server, cancel) = (self.sandbox.clone(), self.background.clone());
        self.tasks.spawn(async move { server.run_jobs(RunnerOptions::default(), 5, cancel).await });
    }

    /// Starts the controllers.
    pub(crate) fn start(&mut self) {
        let (line, silent) = (CancellationToken::new(), Latest::new(Silent::Nothing));
        let (registry, health) = (Registry::new(), Health::default());
        let way = Line { inner: self.sandbox.service(), silent: silent.clone(), shut: line.clone() };
        let client = kube::Client::new(way, "default");
        let setup = Setup {
            clients: Clients {
                requests: client.clone(),
                watches: client.clone(),
                leases: client,
                host: "sandbox".into(),
            },
            client_options: ApiClientOptions::default(),
            clock: self.clock.clone(),
            seed: 11,
            registry: registry.clone(),
            health: health.clone(),
            observer: Some(Arc::new(self.ear.clone())),
            election: None,
        };
        let controllers = Registration::by_default();
        let manager = Manager::new(setup, self.options.clone(), &controllers);
        let counter = Box::new(manager.counter());
        let stop = CancellationToken::new();
        let task = self.tasks.spawn(manager.run(stop.clone()));
        self.running = Some(Running { line, silent, registry, health, stop, task, counter });
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
            running.line.cancel();
            running.task.abort();
            let _killed = running.task.await;
        }
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Lets time pass until the wall clock shows `until`.
    pub(crate) async fn pass_until(&self, until: &str) {
        tokio::time::sleep(self.clock.until(at(until))).await;
    }

    /// What each controller holds in memory.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        self.running.as_ref().map(|running| (running.counter)()).unwrap_or_default()
    }

    /// From now on this much of the controllers' way to the server is silent.
    pub(crate) fn silence(&self, silent: Silent) {
        self.running.as_ref().unwrap().silent.set(silent);
    }

    /// A metric of the running controllers, by its name and labels as in the text form.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.running.as_ref().unwrap().registry.encode(Exposition::PrometheusText).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().unwrap()
    }

    /// Whether a probe (`livez`, `readyz`) of the running controllers succeeds.
    pub(crate) async fn probe(&self, probe: &str) -> bool {
        let router = health_router(self.running.as_ref().unwrap().health.clone());
        let request = Request::get(format!("/{probe}")).body(axum::body::Body::empty()).unwrap();
        router.oneshot(request).await.unwrap().status().is_success()
    }

    /// How many Jobs the server has ever taken for an API.
    pub(crate) fn created(&self, group: &str) -> u64 {
        let is_creation = |verb: Verb, resource: &str, code: u16| {
            verb == Verb::Create && resource == "jobs" && (code == 201 || code == 0)
        };
        self.sandbox.requests().sum(|key| key.group == group && is_creation(key.verb, key.resource, key.code))
    }

    /// Everything said so far about the CronJob `name`.
    pub(crate) fn said(&self, name: &str) -> Vec<Said> {
        self.ear.0.lock().unwrap().iter().filter(|said| &*said.about.name == name).cloned().collect()
    }

    /// How often `reason` was said of the CronJob `name`.
    pub(crate) fn times_said(&self, name: &str, reason: &str) -> usize {
        self.said(name).iter().filter(|said| said.reason == reason).count()
    }

    /// Sends one request as a user would; the body of the answer, or the Status it was refused with.
    pub(crate) async fn request(&self, method: Method, path: &str, body: &Value) -> Result<Value, Value> {
        let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        let request = Request::builder().method(method).uri(path).header("content-type", content).body(bytes).unwrap();
        let response = self.sandbox.client().send(request.map(Body::from)).await.unwrap();
        let ok = response.status().is_success();
        let bytes = response.into_body().collect_bytes().await.unwrap();
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        if ok { Ok(value) } else { Err(value) }
    }

    pub(crate) async fn create(&self, object: &Value) {
        self.try_create(object).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    pub(crate) async fn try_create(&self, object: &Value) -> Result<Value, Value> {
        self.request(Method::POST, &collection_of(object), object).await
    }

    pub(crate) async fn patch(&self, resource: &Resource, namespace: &str, name: &str, patch: &Value) {
        let path = format!("{}/{name}", path_of(resource, namespace));
        self.request(Method::PATCH, &path, patch).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    pub(crate) async fn delete(&self, resource: &Resource, namespace: &str, name: &str) {
        let path = format!("{}/{name}", path_of(resource, namespace));
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        self.request(Method::DELETE, &path, &options).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    /// Writes into the status of a CronJob that its run of `due` was started.
    pub(crate) async fn record(&self, resource: &Resource, name: &str, due: &str) {
        let path = format!("{}/{name}/status", path_of(resource, "default"));
        let status = json!({"status": {"lastScheduleTime": due}});
        self.request(Method::PATCH, &path, &status).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    /// Marks a Job as finished, as its controller would.
    pub(crate) async fn finish(&self, namespace: &str, name: &str, condition: &str) {
        let now = self.clock.wall().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let complete = condition == "Complete";
        let leads_there = if complete { "SuccessCriteriaMet" } else { "FailureTarget" };
        let holds = |condition: &str| json!({"type": condition, "status": "True", "lastTransitionTime": now});
        let status = json!({"status": {
            "startTime": now, "completionTime": if complete { json!(now) } else { Value::Null },
            "conditions": [holds(leads_there), holds(condition)],
        }});
        let path = format!("{}/{name}/status", path_of(jobs(), namespace));
        self.request(Method::PATCH, &path, &status).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    /// All objects of a kind, in order of names.
    pub(crate) async fn list(&self, resource: &Resource) -> Vec<Value> {
        let path = format!("/apis/{}/{}", resource.api_version(), resource.plural);
        let mut list = self.request(Method::GET, &path, &Value::Null).await.unwrap();
        list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Names of the Jobs that stand now and belong to the CronJob `owner`.
    pub(crate) async fn job_names(&self, resource: &Resource, owner: &str) -> Vec<String> {
        let all = self.list(resource).await;
        let own = all.iter().filter(|job| job["metadata"]["ownerReferences"][0]["name"] == owner);
        own.map(|job| job["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn status(&self, resource: &Resource, namespace: &str, name: &str) -> Value {
        self.sandbox.get(resource, namespace, name).map(|object| object["status"].clone()).unwrap_or_default()
    }

    /// Ends everything.
    pub(crate) async fn end(mut self) {
        self.stop().await;
        self.background.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn path_of(resource: &Resource, namespace: &str) -> String {
    format!("/apis/{}/namespaces/{namespace}/{}", resource.api_version(), resource.plural)
}

/// Where an object is POSTed.
fn collection_of(object: &Value) -> String {
    let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
    let api_version = object["apiVersion"].as_str().unwrap();
    match api_version {
        "v1" => format!("/api/v1/{plural}"),
        _ => {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
            format!("/apis/{api_version}/namespaces/{namespace}/{plural}")
        }
    }
}

/// A CronJob of batch/v1 in `default`; `spec` is laid over a minimal one.
pub(crate) fn cronjob(name: &str, schedule: &str, spec: Value) -> Value {
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example.com/c:1"}],
    }}}});
    with_spec("batch/v1", name, json!({"schedule": schedule, "jobTemplate": template}), spec)
}

/// A CronJob of batch.volcano.sh/v1alpha1 in `default`.
pub(crate) fn volcano_cronjob(name: &str, schedule: &str, spec: Value) -> Value {
    let pod =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example.com/c:1"}]}});
    let template = json!({"spec": {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": pod}]}});
    with_spec("batch.volcano.sh/v1alpha1", name, json!({"schedule": schedule, "jobTemplate": template}), spec)
}

fn with_spec(api_version: &str, name: &str, mut base: Value, over: Value) -> Value {
    for (field, value) in over.as_object().cloned().unwrap_or_default() {
        base[field] = value;
    }
    json!({"apiVersion": api_version, "kind": "CronJob", "metadata": {"namespace": "default", "name": name}, "spec": base})
}
