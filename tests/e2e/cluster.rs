//! What a scenario may ask of the cluster it plays on. Everything else it does as a user does: by requests.

use std::time::Duration;

use cronjob_controller::clock::Clock;
use futures::future::BoxFuture;
use http::{Method, Request};
use kube::client::Body;
use serde_json::Value;

use crate::api::Api;

/// How a Job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    Fail,
}

/// A cluster with the controllers under test in it.
pub(crate) trait Cluster: Send + Sync {
    /// A user who may do everything.
    fn client(&self) -> kube::Client;

    /// The cluster's time.
    fn clock(&self) -> &Clock;

    /// How long something may take that waits for no due instant.
    fn patience(&self) -> Duration;

    /// Lets a running Job end.
    fn end_job<'a>(
        &'a self,
        api: &'static Api,
        namespace: &'a str,
        job: &'a str,
        ending: Ending,
    ) -> BoxFuture<'a, anyhow::Result<()>>;

    /// Stores `object`, which exists already, as it is: as a server of another release, with other rules, has left it.
    fn store_unvalidated<'a>(&'a self, api: &'static Api, object: &'a Value) -> BoxFuture<'a, anyhow::Result<()>>;

    /// From now on namespaces that are being deleted are emptied; until then they stay as they are.
    fn empty_namespaces(&self);

    /// Whether Pod templates of Volcano's kinds lose fields that the server does not know.
    fn prunes_pod_templates(&self) -> bool;
}

/// Sends one request as the user of `client`; the object that is answered, or the Status of the refusal.
pub(crate) async fn request(client: &kube::Client, method: Method, path: &str, body: &Value) -> Result<Value, Value> {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
    let request = Request::builder().method(method).uri(path).header("content-type", content).body(Body::from(bytes));
    let unanswered = |error: &dyn std::fmt::Display| Value::String(format!("{path}: {error}"));
    let response = client.send(request.unwrap()).await.map_err(|error| unanswered(&error))?;
    let ok = response.status().is_success();
    let bytes = response.into_body().collect_bytes().await.map_err(|error| unanswered(&error))?;
    let answer = serde_json::from_slice(&bytes).map_err(|error| unanswered(&error))?;
    if ok { Ok(answer) } else { Err(answer) }
}
