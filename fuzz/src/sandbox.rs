//! Requests to the sandbox, through its service and without sockets.
//!
//! Input: requests, one after the other, parted by a line `%%`. Each is a line `METHOD TARGET`, header lines, an empty line, a body.

use bytes::Bytes;
use chrono::DateTime;
use cronjob_controller::api::{decode_cronjob, decode_job};
use cronjob_controller::clock::Clock;
use cronjob_controller::model::Flavor;
use cronjob_controller::sandbox::resources::RESOURCES;
use cronjob_controller::sandbox::store::{Store, key_of};
use cronjob_controller::sandbox::{Options, Sandbox};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::ServiceExt;

/// Most requests of one input.
const MOST: usize = 12;
/// 2026-03-08T12:00:00Z, in UTC seconds.
const NOON_S: i64 = 1_772_971_200;

/// Runs one input.
pub fn run(input: &[u8]) {
    super::on_paused_time(async {
        let clock = Clock::starting_at(DateTime::from_timestamp(NOON_S, 0).unwrap_or_default());
        let sandbox = Sandbox::new(clock, 7, Options { log_limit: 64, ..Options::default() });
        for text in split(input, b"\n%%\n").take(MOST) {
            if let Some(request) = request(text) {
                send(&sandbox, request).await;
            }
        }
        for _until_nothing_is_left in 0..8 {
            sandbox.gc_step();
            sandbox.namespace_step();
        }
        sandbox.with_store(judge_store);
    });
}

fn split<'a>(text: &'a [u8], at: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.windows(at.len()).position(|window| window == at);
        rest = end.and_then(|end| text.get(end + at.len()..));
        Some(end.and_then(|end| text.get(..end)).unwrap_or(text))
    })
}

/// `None`: no HTTP client could send this.
fn request(text: &[u8]) -> Option<Request<Full<Bytes>>> {
    let end = text.windows(2).position(|pair| pair == b"\n\n").unwrap_or(text.len());
    let (head, body) = text.split_at(end);
    let body = body.get(2..).unwrap_or_default().to_vec();
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    let mut builder = Request::builder().method(method).uri(target);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(colon);
        builder = builder.header(name, value.get(1..).unwrap_or_default().trim_ascii());
    }
    builder.body(Full::from(body)).ok()
}

/// Sends it and judges the answer. A watch is followed until it ends by itself or an hour has passed.
async fn send(sandbox: &Sandbox, request: Request<Full<Bytes>>) {
    let told = format!("{} {}", request.method(), request.uri());
    let Ok(answer) = sandbox.service().oneshot(request).await else { panic!("{told}: no answer") };
    let (parts, body) = answer.into_parts();
    let hour = std::time::Duration::from_secs(3600);
    let Ok(body) = tokio::time::timeout(hour, body.collect()).await else { return };
    let Ok(body) = body;
    let body = body.to_bytes();
    let code = parts.status.as_u16();
    // The real server answers 500 to some of what is wrong; what panics here ends the run by itself.
    if code >= 400 && parts.headers.get("content-type").is_some_and(|kind| kind == "application/json") {
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        assert_eq!((&status["kind"], &status["code"]), (&"Status".into(), &code.into()), "{told}: {status}");
        assert_eq!(status["status"], "Failure", "{told}: {status}");
    } else if code >= 400 {
        assert_eq!((code, &*body), (404, &b"404 page not found\n"[..]), "{told}");
    }
}

/// What holds of a store, whatever was asked of it.
fn judge_store(store: &Store) {
    let mut uids = std::collections::BTreeSet::new();
    for resource in RESOURCES.iter().filter(|resource| resource.group != "events.k8s.io") {
        let Some(collection) = store.collection(resource) else { panic!("no collection of {}", resource.plural) };
        for object in collection.range("", None) {
            let value = object.value();
            let metadata = &value["metadata"];
            let text = |field: &str| metadata[field].as_str().unwrap_or_default();
            assert_eq!(*object.key, *key_of(text("namespace"), text("name")), "{value}");
            assert_eq!(value["kind"], resource.kind, "{value}");
            assert_eq!(value["apiVersion"], resource.api_version(), "{value}");
            assert_eq!(text("resourceVersion"), object.revision.to_string(), "{value}");
            assert!(object.revision <= store.revision(), "{value}");
            assert_eq!(text("namespace").is_empty(), !resource.namespaced, "{value}");
            assert!(!text("uid").is_empty() && uids.insert(text("uid").to_owned()), "{value}");
            assert!(text("creationTimestamp").starts_with("2026-03-08T"), "{value}");
            assert!(!object.deleting || object.finalizers || !resource.namespaced || graceful(&value), "{value}");
            judge_decoding(resource.kind, resource.custom, &value.to_string());
        }
    }
}

/// Only Pods linger without a finalizer.
fn graceful(object: &Value) -> bool {
    object["kind"] == "Pod"
}

/// What this server lets in, the controllers can read.
fn judge_decoding(kind: &str, custom: bool, text: &str) {
    let flavor = if custom { Flavor::Volcano } else { Flavor::Kubernetes };
    let unreadable = match kind {
        "CronJob" => decode_cronjob(flavor, text).err(),
        "Job" => decode_job(flavor, text).err(),
        _ => None,
    };
    assert!(unreadable.is_none(), "{unreadable:?} in {text}");
}
