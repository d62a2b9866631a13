//! A stand-in for every kubelet: Pods run as soon as they are there, and end when an annotation says so. Nothing is executed.
//!
//! The annotation is the sandbox's, so that a template means the same on both: `complete` and `fail` end the Pod, without it, or
//! with anything else, it runs on. It may be there from the start or be set later.

use std::time::Duration;

use futures::TryStreamExt;
use http::Request;
use kube::Client;
use kube::client::Body;
use kube::core::WatchEvent;
use serde_json::{Value, json};

/// Annotation of a Pod.
pub(crate) const OUTCOME: &str = "sandbox.cronjob-controller.dev/outcome";

const PODS: &str = "/api/v1/pods";

/// Runs Pods until it is dropped.
pub(crate) async fn run(client: Client) {
    loop {
        if let Err(error) = follow(&client).await {
            eprintln!("the stand-in kubelet looks anew: {error}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Tends all Pods there are and those that come, until the watch ends.
async fn follow(client: &Client) -> kube::Result<()> {
    let list: Value = client.request(Request::get(PODS).body(Vec::new()).unwrap()).await?;
    for pod in list["items"].as_array().into_iter().flatten() {
        tend(client, pod).await?;
    }
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let watch = Request::get(format!("{PODS}?watch=true&resourceVersion={version}"));
    let mut events = std::pin::pin!(client.request_events::<Value>(watch.body(Vec::new()).unwrap()).await?);
    while let Some(event) = events.try_next().await? {
        if let WatchEvent::Added(pod) | WatchEvent::Modified(pod) = event {
            tend(client, &pod).await?;
        }
    }
    Ok(())
}

/// One step of a Pod. That it is gone or has changed meanwhile is no error: its next event follows.
async fn tend(client: &Client, pod: &Value) -> kube::Result<()> {
    let metadata = &pod["metadata"];
    let phase = match (pod["status"]["phase"].as_str(), metadata["annotations"][OUTCOME].as_str()) {
        _ if !metadata["deletionTimestamp"].is_null() => return Ok(()),
        (Some("Pending"), _) => "Running",
        (Some("Running"), Some("complete")) => "Succeeded",
        (Some("Running"), Some("fail")) => "Failed",
        _ => return Ok(()),
    };
    let name = |field: &str| metadata[field].as_str().unwrap_or_default();
    let path = format!("/api/v1/namespaces/{}/pods/{}/status", name("namespace"), name("name"));
    let request = Request::patch(path).header("content-type", "application/merge-patch+json");
    let body = json!({"status": {"phase": phase}}).to_string();
    client.send(request.body(Body::from(body.into_bytes())).unwrap()).await.map(drop)
}
