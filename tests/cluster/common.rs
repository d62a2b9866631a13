//! A sandbox with CronJobs, and a reflector or client over it, under paused time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::TimeZone;
use cronjob_controller::api::decode_cronjob;
use cronjob_controller::clock::Clock;
use cronjob_controller::cluster::reflector::ReflectorHealth;
use cronjob_controller::cluster::{
    ApiClient, ApiClientOptions, Change, Lane, Reflector, ReflectorMetrics, ReflectorOptions, RequestMetrics, Store,
    Urgency,
};
use cronjob_controller::model::{ApiFailure, CronJob, Flavor};
use cronjob_controller::sandbox::{Options, Sandbox};
use http::Request;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) const CRONJOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";

pub(crate) fn clock() -> Clock {
    Clock::starting_at(chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap())
}

/// A server, and a client of it that no fault touches unless one is installed.
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) sandbox: Sandbox,
    pub(crate) client: ApiClient,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let clock = clock();
        let sandbox = Sandbox::new(clock.clone(), seed, Options::default());
        let metrics = RequestMetrics::default();
        let client = ApiClient::new(sandbox.client(), clock.clone(), ApiClientOptions::default(), metrics);
        Self { clock, sandbox, client }
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, ApiFailure> {
        let form = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", form).body(body).unwrap();
        let urgency = Urgency { lane: Lane::Create, due: None, tenant: "default".into() };
        let answer = self.client.send(urgency, request).await?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    pub(crate) async fn create(&self, name: &str) {
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
        let job = json!({"spec": {"template": {"spec": pod}}});
        let object = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": "* * * * *", "jobTemplate": job}});
        self.send("POST", CRONJOBS, &object).await.unwrap();
    }

    pub(crate) async fn suspend(&self, name: &str, suspend: bool) {
        let patch = json!({"spec": {"suspend": suspend}});
        self.send("PATCH", &format!("{CRONJOBS}/{name}"), &patch).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.send("DELETE", &format!("{CRONJOBS}/{name}"), &Value::Null).await.unwrap();
    }

    /// Names and versions as the server has them, in order.
    pub(crate) async fn truth(&self) -> Vec<(String, String)> {
        let list = self.send("GET", CRONJOBS, &Value::Null).await.unwrap();
        let text = |item: &Value, field: &str| item["metadata"][field].as_str().unwrap().to_owned();
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| (text(item, "name"), text(item, "resourceVersion"))).collect()
    }

    /// Forgets all changes so far, so that no watch can resume from before.
    pub(crate) fn compact(&self) {
        let revision = self.sandbox.with_store(|store| store.revision());
        self.sandbox.compact(revision);
    }
}

/// A running reflector, and what it said.
pub(crate) struct Watcher {
    pub(crate) store: Store<CronJob>,
    pub(crate) health: ReflectorHealth,
    heard: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Watcher {
    pub(crate) fn start(world: &World, change_options: impl FnOnce(&mut ReflectorOptions)) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let said = heard.clone();
        let sink = move |change: Change<CronJob>| said.lock().unwrap().push(words(&change));
        let mut options = ReflectorOptions::new("/apis/batch/v1/cronjobs", "cronjobs.batch", 7);
        change_options(&mut options);
        let reflector = Reflector::new(
            world.sandbox.client(),
            world.clock.clone(),
            options,
            |raw| decode_cronjob(Flavor::Kubernetes, raw.get()),
            sink,
            &ReflectorMetrics::default(),
        );
        let (store, health) = (reflector.store(), reflector.health());
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(reflector.run(stop.clone()));
        Self { store, health, heard, stop, tasks }
    }

    /// What was said since the last call, after a moment of quiet.
    pub(crate) async fn heard(&self) -> Vec<String> {
        moment().await;
        std::mem::take(&mut *self.heard.lock().unwrap())
    }

    /// Names and versions in the cache, in order.
    pub(crate) fn cached(&self) -> Vec<(String, String)> {
        self.store.list().iter().map(|c| (c.key.name.to_string(), c.resource_version.to_string())).collect()
    }

    pub(crate) async fn finish(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn words(change: &Change<CronJob>) -> String {
    match change {
        Change::Applied { old: None, new, .. } => format!("add {}", new.key.name),
        Change::Applied { new, .. } => format!("update {}", new.key.name),
        Change::Deleted { last } => format!("delete {}", last.key.name),
        Change::Unreadable { key, .. } => format!("unreadable {}", key.name),
        Change::Synced => "synced".into(),
        Change::Relisted => "relisted".into(),
    }
}

/// Lets everything happen that needs no time.
pub(crate) async fn moment() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Longer than any first pause of a reflector.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_secs(2)).await;
}
