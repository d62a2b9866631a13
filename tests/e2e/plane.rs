//! The real control plane, in real time: etcd, kube-apiserver and kube-controller-manager (its cronjob controller off), a stand-in
//! kubelet, and the binary under test as it stands in `deploy/install.yaml`: its flags, its service account, its rights.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use base64::Engine;
use cronjob_controller::clock::Clock;
use futures::future::BoxFuture;
use http::{Method, Request};
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::api::Api;
use crate::cluster::{Cluster, Ending, request};
use crate::sandbox::volcano_status;
use crate::support::controlplane::{ControlPlane, Options};
use crate::support::kubelet::{self, OUTCOME};
use crate::support::web;

/// Of kube-controller-manager: what makes Jobs real. Its namespace controller comes later.
const OTHERS: &str = "job-controller,garbage-collector-controller,resourcequota-controller,serviceaccount-controller";
/// Many scenarios share one: its own limits would show as delays.
const OTHERS_FLAGS: &[&str] = &["--kube-api-qps=500", "--kube-api-burst=1000"];

const INSTALL: &str = "deploy/install.yaml";

pub(crate) struct Plane {
    plane: Mutex<ControlPlane>,
    client: kube::Client,
    clock: Clock,
    patience_ms: AtomicU64,
    /// The Deployment in [`INSTALL`].
    deployment: Value,
    etcd: String,
}

impl Plane {
    /// A server with `flags`, Volcano's definitions and [`INSTALL`] applied; no controllers yet. `None` after `test` has named
    /// itself as skipped.
    pub(crate) async fn start(test: &str, flags: &[&str]) -> Option<Self> {
        let options = Options { apiserver: flags.iter().map(|&flag| flag.to_owned()).collect() };
        let plane = ControlPlane::start(test, options).await?;
        plane.kubectl_ok(&["apply", "-f", &file("config/crd")]);
        plane.kubectl_ok(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
        plane.kubectl_ok(&["apply", "-f", &file(INSTALL)]);
        let client = plane.client().await;
        let deployment = documents().into_iter().find(|document| document["kind"] == "Deployment").unwrap();
        let (clock, patience_ms, etcd) = (Clock::system(), AtomicU64::new(60_000), plane.etcd.clone());
        Some(Self { plane: Mutex::new(plane), client, clock, patience_ms, deployment, etcd })
    }

    /// From now on things that wait for no due instant must come about within `patience`.
    pub(crate) fn set_patience(&self, patience: Duration) {
        self.patience_ms.store(patience.as_millis().try_into().unwrap(), Ordering::Relaxed);
    }

    /// Starts kube-controller-manager without its namespace controller. `None` after `test` has named itself as skipped.
    pub(crate) fn start_others(&self, test: &str) -> Option<()> {
        self.plane.lock().unwrap().start_controller_manager(test, OTHERS, OTHERS_FLAGS)
    }

    pub(crate) fn start_kubelet(&self) -> tokio::task::JoinHandle<()> {
        tokio_util::task::TaskTracker::new().spawn(kubelet::run(self.client.clone()))
    }

    /// Starts the binary under test with `flags` more; answers its process id.
    pub(crate) fn start_controllers(&self, flags: &[&str]) -> u32 {
        let mut plane = self.plane.lock().unwrap();
        let pod = &self.deployment["spec"]["template"]["spec"];
        let namespace = text(&self.deployment["metadata"]["namespace"]);
        let account = text(&pod["serviceAccountName"]);
        let kubeconfig = plane.service_account_kubeconfig("controllers", &namespace, &account);
        let container = &pod["containers"][0];
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
        // What the kubelet would fill in from the Pod.
        for variable in container["env"].as_array().into_iter().flatten() {
            let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
                Some("metadata.namespace") => namespace.clone(),
                Some(_) => "e2e".to_owned(),
                None => text(&variable["value"]),
            };
            command.env(text(&variable["name"]), value);
        }
        let ports = ["--metrics-bind-address", "--health-probe-bind-address"];
        let args = container["args"].as_array().unwrap().iter().map(text);
        command.args(args.filter(|arg| !ports.iter().any(|port| arg.starts_with(port))));
        command
            .args(ports.map(|port| format!("{port}=127.0.0.1:0")))
            .arg(format!("--kubeconfig={}", kubeconfig.display()));
        // In a cluster the Pod tells.
        command.arg(format!("--leader-elect-resource-namespace={namespace}")).args(flags);
        plane.spawn("controllers", &mut command)
    }

    /// Waits until both controllers work, or `patience` is over.
    pub(crate) async fn until_at_work(&self, patience: Duration) {
        let until = self.clock.mono() + patience;
        while self.log().matches("work begins").count() < 2 && self.clock.mono() < until {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Makes an account in `namespace` that may read metrics, by the role of the manifest; its token.
    pub(crate) fn metrics_readers_token(&self, namespace: &str) -> String {
        let plane = self.plane.lock().unwrap();
        plane.kubectl_ok(&["create", "serviceaccount", "reader", "-n", namespace]);
        let (role, account) = ("--clusterrole=cronjob-controller-metrics-reader", format!("{namespace}:reader"));
        plane.kubectl_ok(&["create", "clusterrolebinding", namespace, role, &format!("--serviceaccount={account}")]);
        plane.kubectl_ok(&["create", "token", "reader", "-n", namespace]).trim().to_owned()
    }

    /// Asks the binary under test for its metrics; the code of the answer.
    pub(crate) async fn read_metrics(&self, token: &str) -> Option<u16> {
        let log = self.log();
        let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let port = lines.find(|line| line["message"] == "listening" && line["flag"] == "metrics-bind-address")?;
        let port = port["address"].as_str()?.rsplit(':').next()?.parse().ok()?;
        let (code, _body) = web::get_secure(port, "/metrics", Some(token)).await.ok()?;
        Some(code)
    }

    /// Kills the binary under test: no release of its Lease, no last writes.
    pub(crate) fn kill(controllers: u32) -> anyhow::Result<()> {
        let status = Command::new("kill").args(["-KILL", &controllers.to_string()]).status()?;
        anyhow::ensure!(status.success(), "kill {controllers}: {status}");
        Ok(())
    }

    /// What the controllers have logged since they were started last.
    pub(crate) fn log(&self) -> String {
        self.plane
            .lock()
            .map(|plane| std::fs::read_to_string(plane.log("controllers")).unwrap_or_default())
            .unwrap_or_default()
    }
}

impl Drop for Plane {
    /// What the controllers have to say about a failure.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the controllers' log:\n{}", self.log());
        }
    }
}

impl Cluster for Plane {
    fn client(&self) -> kube::Client {
        self.client.clone()
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(self.patience_ms.load(Ordering::Relaxed))
    }

    fn end_job<'a>(
        &'a self,
        api: &'static Api,
        namespace: &'a str,
        job: &'a str,
        ending: Ending,
    ) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            if api.volcano {
                let path = format!("{}/{job}/status", api.jobs(namespace));
                return patch(&self.client, &path, &volcano_status(&self.clock, ending)).await;
            }
            let outcome = if ending == Ending::Complete { "complete" } else { "fail" };
            let selector = format!("labelSelector=batch.kubernetes.io/job-name%3D{job}");
            let pods = format!("/api/v1/namespaces/{namespace}/pods");
            let until = self.clock.mono() + self.patience();
            loop {
                let list = request(&self.client, Method::GET, &format!("{pods}?{selector}"), &Value::Null).await;
                let list = list.map_err(|status| anyhow::anyhow!("pods of {job}: {status}"))?;
                let found = list["items"].as_array().cloned().unwrap_or_default();
                for pod in &found {
                    let path = format!("{pods}/{}", text(&pod["metadata"]["name"]));
                    patch(&self.client, &path, &json!({"metadata": {"annotations": {OUTCOME: outcome}}})).await?;
                }
                if !found.is_empty() {
                    return Ok(());
                }
                anyhow::ensure!(self.clock.mono() < until, "{namespace}/{job} gets no Pods");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        })
    }

    fn store_unvalidated<'a>(&'a self, api: &'static Api, object: &'a Value) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let group = if api.volcano { "batch.volcano.sh/" } else { "" };
            let metadata = &object["metadata"];
            let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
            let mut stored = object.clone();
            stored["metadata"].as_object_mut().context("an object")?.remove("resourceVersion");
            let base64 = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
            let key = format!("/registry/{group}cronjobs/{namespace}/{name}");
            let body = json!({"key": base64(key), "value": base64(stored.to_string())}).to_string();
            let client = legacy::Client::builder(TokioExecutor::new()).build_http::<Full<bytes::Bytes>>();
            let request = Request::post(format!("{}/v3/kv/put", self.etcd)).header("content-type", "application/json");
            let answer = client.request(request.body(Full::from(body))?).await?;
            anyhow::ensure!(answer.status().is_success(), "etcd: {}", answer.status());
            Ok(())
        })
    }

    fn empty_namespaces(&self) {
        let mut plane = self.plane.lock().unwrap();
        plane.start_controller_manager("e2e", "namespace-controller", OTHERS_FLAGS).expect("it was there before");
    }

    fn prunes_pod_templates(&self) -> bool {
        false
    }
}

async fn patch(client: &kube::Client, path: &str, patch: &Value) -> anyhow::Result<()> {
    let answer = request(client, Method::PATCH, path, patch).await;
    answer.map(drop).map_err(|status| anyhow::anyhow!("{path}: {status}"))
}

/// The documents of [`INSTALL`].
pub(crate) fn documents() -> Vec<Value> {
    serde_saphyr::from_multiple(&std::fs::read_to_string(file(INSTALL)).unwrap()).unwrap()
}

fn file(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).display().to_string()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
