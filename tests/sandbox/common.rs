//! What the scripts share: a sandbox at a fixed instant, and requests written as a line.

use chrono::TimeZone;
use cronjob_controller::clock::Clock;
use cronjob_controller::sandbox::{Options, Sandbox};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::Service;

/// A sandbox on 2026-03-08T12:00:00Z with seed 7.
pub(crate) fn sandbox() -> Sandbox {
    sandbox_with(7, Options::default())
}

pub(crate) fn sandbox_with(seed: u64, options: Options) -> Sandbox {
    let noon = chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap();
    Sandbox::new(Clock::starting_at(noon), seed, options)
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn revision(&self) -> u64 {
        self.text("/metadata/resourceVersion").parse().unwrap()
    }
}

/// Sends one request; `None` is a broken connection.
pub(crate) async fn try_send(sandbox: &Sandbox, request: Request<Full<bytes::Bytes>>) -> Option<Reply> {
    let response: Response<_> = sandbox.service().call(request).await.ok()?;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Some(Reply { code: parts.status.as_u16(), headers: parts.headers, body })
}

pub(crate) fn request(method: &str, path: &str, content_type: &str, body: &str) -> Request<Full<bytes::Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(Full::from(body.to_owned()))
        .unwrap()
}

pub(crate) async fn get(sandbox: &Sandbox, path: &str) -> Reply {
    try_send(sandbox, request("GET", path, "application/json", "")).await.unwrap()
}

pub(crate) async fn post(sandbox: &Sandbox, path: &str, object: &Value) -> Reply {
    try_send(sandbox, request("POST", path, "application/json", &object.to_string())).await.unwrap()
}

pub(crate) async fn put(sandbox: &Sandbox, path: &str, object: &Value) -> Reply {
    try_send(sandbox, request("PUT", path, "application/json", &object.to_string())).await.unwrap()
}

/// A merge patch.
pub(crate) async fn merge(sandbox: &Sandbox, path: &str, patch: &Value) -> Reply {
    let request = request("PATCH", path, "application/merge-patch+json", &patch.to_string());
    try_send(sandbox, request).await.unwrap()
}

pub(crate) async fn delete(sandbox: &Sandbox, path: &str, options: &Value) -> Reply {
    let body = if options.is_null() { String::new() } else { options.to_string() };
    try_send(sandbox, request("DELETE", path, "application/json", &body)).await.unwrap()
}

pub(crate) const CRONJOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";
pub(crate) const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
pub(crate) const VOLCANO: &str = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/cronjobs";
pub(crate) const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn pod_spec() -> Value {
    json!({ "restartPolicy": "Never", "containers": [{ "name": "c", "image": "busybox" }] })
}

pub(crate) fn job(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "template": { "spec": pod_spec() } } })
}

pub(crate) fn cronjob(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": { "schedule": "*/5 * * * *", "jobTemplate": { "spec": { "template": { "spec": pod_spec() } } } },
    })
}

pub(crate) fn volcano_cronjob(name: &str) -> Value {
    json!({
        "kind": "CronJob", "apiVersion": "batch.volcano.sh/v1alpha1", "metadata": { "name": name },
        "spec": { "schedule": "*/5 * * * *", "jobTemplate": { "spec": {
            "tasks": [{ "name": "t", "replicas": 1, "template": { "spec": pod_spec() } }],
        } } },
    })
}

pub(crate) fn configmap(name: &str, data: &str) -> Value {
    json!({ "metadata": { "name": name }, "data": { "k": data } })
}

/// Monotonic time, which tokio pauses.
pub(crate) fn mono() -> tokio::time::Instant {
    Clock::system().mono()
}
