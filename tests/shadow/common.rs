//! The shadow under test, and a stand-in for the controller in charge.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use chrono::{SecondsFormat, TimeDelta};
use cronjob_controller::cluster::{ApiClientOptions, Clients};
use cronjob_controller::controllers::shadow::{Difference, Record, Report, Shadow, Summary};
use cronjob_controller::controllers::{Options, Registration, Setup};
use cronjob_controller::model::WallTime;
use cronjob_controller::sandbox::body::SandboxBody;
use cronjob_controller::sandbox::resources::Resource;
use cronjob_controller::sandbox::service::{Disconnected, SandboxService};
use cronjob_controller::telemetry::{Exposition, Health, Registry};
use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::world::{World, at, cronjobs, jobs, volcano_cronjobs, volcano_jobs};

/// Keeps every report.
#[derive(Default)]
pub(crate) struct Kept {
    records: Mutex<Vec<Record>>,
    summary: Mutex<Option<Summary>>,
}

impl Report for Kept {
    fn on_record(&self, record: &Record) {
        self.records.lock().unwrap().push(record.clone());
    }

    fn on_summary(&self, summary: &Summary) {
        *self.summary.lock().unwrap() = Some(summary.clone());
    }
}

/// A way to the server that notes which methods pass.
#[derive(Clone)]
struct Noted {
    inner: SandboxService,
    methods: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Service<Request<Body>> for Noted {
    type Response = Response<SandboxBody>;
    type Error = Disconnected;
    type Future = <SandboxService as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        *self.methods.lock().unwrap().entry(request.method().to_string()).or_default() += 1;
        self.inner.call(request)
    }
}

/// The shadow of both controllers, running.
pub(crate) struct Watcher {
    kept: Arc<Kept>,
    methods: Arc<Mutex<BTreeMap<String, usize>>>,
    pub(crate) registry: Registry,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Watcher {
    /// Starts it and lets its caches sync.
    pub(crate) async fn start(world: &World) -> Self {
        let (kept, methods, registry): (Arc<Kept>, Arc<Mutex<BTreeMap<_, _>>>, _) = Default::default();
        let service = Noted { inner: world.sandbox.service(), methods: methods.clone() };
        let client = kube::Client::new(service, "default");
        let registry: Registry = registry;
        let setup = Setup {
            clients: Clients {
                requests: client.clone(),
                watches: client.clone(),
                leases: client,
                host: "sandbox".into(),
            },
            client_options: ApiClientOptions::default(),
            clock: world.clock.clone(),
            seed: 5,
            registry: registry.clone(),
            health: Health::default(),
            observer: None,
            election: None,
        };
        let controllers = Registration::by_default();
        let shadow = Shadow::new(setup, Options::default(), &controllers, kept.clone());
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(shadow.run(stop.clone()));
        world.pass(Duration::from_secs(1)).await;
        Self { kept, methods, registry, stop, tasks }
    }

    /// The records so far.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.kept.records.lock().unwrap().clone()
    }

    /// The records so far, each as its instant, difference and rule.
    pub(crate) fn found(&self) -> Vec<(String, Difference, Option<&'static str>)> {
        self.records().into_iter().map(|record| (record.due, record.difference, record.rule)).collect()
    }

    /// The records that differ.
    pub(crate) fn differing(&self) -> Vec<Record> {
        self.records().into_iter().filter(|record| record.difference != Difference::None).collect()
    }

    /// How many requests it has sent.
    pub(crate) fn requests(&self) -> usize {
        self.methods.lock().unwrap().values().sum()
    }

    /// The metrics as Prometheus reads them.
    pub(crate) fn metrics(&self) -> String {
        self.registry.encode(Exposition::PrometheusText).unwrap()
    }

    /// Ends it; its summary. Nothing but GETs may have left it.
    pub(crate) async fn end(self) -> Summary {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        let methods = self.methods.lock().unwrap().clone();
        assert_eq!(methods.keys().collect::<Vec<_>>(), ["GET"], "{methods:?}");
        self.kept.summary.lock().unwrap().clone().unwrap()
    }
}

/// Does by hand what a controller in charge does.
pub(crate) struct Peer<'w> {
    pub(crate) world: &'w World,
    pub(crate) volcano: bool,
}

impl Peer<'_> {
    fn cronjobs(&self) -> &'static Resource {
        if self.volcano { volcano_cronjobs() } else { cronjobs() }
    }

    fn jobs(&self) -> &'static Resource {
        if self.volcano { volcano_jobs() } else { jobs() }
    }

    fn api_version(&self) -> &'static str {
        if self.volcano { "batch.volcano.sh/v1alpha1" } else { "batch/v1" }
    }

    /// A Job of `cronjob` for `due`; its body.
    pub(crate) fn job(&self, cronjob: &str, due: &str) -> Value {
        let minutes = at(due).timestamp() / 60;
        let owner = self.world.sandbox.get(self.cronjobs(), "default", cronjob).unwrap();
        let prefix = if self.volcano { "volcano.sh" } else { "batch.kubernetes.io" };
        json!({
            "apiVersion": self.api_version(), "kind": "Job",
            "metadata": {
                "namespace": "default", "name": format!("{cronjob}-{minutes}"),
                "annotations": {format!("{prefix}/cronjob-scheduled-timestamp"): due},
                "ownerReferences": [{
                    "apiVersion": self.api_version(), "kind": "CronJob", "name": cronjob, "uid": owner["metadata"]["uid"],
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": owner["spec"]["jobTemplate"]["spec"],
        })
    }

    /// Starts the run of `due` and records it. The name of its Job.
    pub(crate) async fn run(&self, cronjob: &str, due: &str) -> String {
        let created = self.start(cronjob, due).await;
        let name = created["metadata"]["name"].as_str().unwrap().to_owned();
        let mut active = self.active(cronjob);
        active.push(json!({"apiVersion": self.api_version(), "kind": "Job", "namespace": "default", "name": name,
            "uid": created["metadata"]["uid"]}));
        self.record(cronjob, &json!({"active": active, "lastScheduleTime": due})).await;
        name
    }

    /// Starts the run of `due` without recording it.
    pub(crate) async fn start(&self, cronjob: &str, due: &str) -> Value {
        let job = self.job(cronjob, due);
        self.world.try_create(&job).await.unwrap_or_else(|status| panic!("{status:#}"))
    }

    pub(crate) fn active(&self, cronjob: &str) -> Vec<Value> {
        let status = self.world.status(self.cronjobs(), "default", cronjob);
        status["active"].as_array().cloned().unwrap_or_default()
    }

    /// Writes into the status of `cronjob`.
    pub(crate) async fn record(&self, cronjob: &str, status: &Value) {
        let path = format!("/apis/{}/namespaces/default/cronjobs/{cronjob}/status", self.api_version());
        let patch = json!({"status": status});
        self.world.request(Method::PATCH, &path, &patch).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    /// The Job finishes, and the controller takes it out of `active`.
    pub(crate) async fn finish(&self, cronjob: &str, job: &str, how: &str) {
        self.end(job, how).await;
        let active: Vec<Value> = self.active(cronjob).into_iter().filter(|entry| entry["name"] != job).collect();
        self.record(cronjob, &json!({"active": active})).await;
    }

    /// The Job finishes: `how` is its condition, or Volcano's phase.
    pub(crate) async fn end(&self, job: &str, how: &str) {
        if !self.volcano {
            return self.world.finish("default", job, how).await;
        }
        let now = self.world.clock.wall().to_rfc3339_opts(SecondsFormat::Secs, true);
        let status = json!({"status": {"state": {"phase": how, "lastTransitionTime": now}}});
        let path = format!("/apis/{}/namespaces/default/jobs/{job}/status", self.api_version());
        self.world.request(Method::PATCH, &path, &status).await.unwrap_or_else(|status| panic!("{status:#}"));
    }

    /// Deletes a Job.
    pub(crate) async fn delete(&self, job: &str) {
        self.world.delete(self.jobs(), "default", job).await;
    }
}

/// Lets time pass until so many seconds after `due`.
pub(crate) async fn pass_until(world: &World, due: &str, after_s: i64) {
    let until: WallTime = at(due) + TimeDelta::seconds(after_s);
    tokio::time::sleep(world.clock.until(until)).await;
}
