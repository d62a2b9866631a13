//! The cells of one row, per kind.

use serde_json::{Value, json};

use super::age::{human_duration, parse, since};
use crate::model::WallTime;

pub(super) const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

pub(super) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn name(object: &Value) -> &str {
    text(object, "/metadata/name").unwrap_or_default()
}

pub(super) fn age(object: &Value, now: WallTime) -> String {
    since(text(object, "/metadata/creationTimestamp"), now).unwrap_or_else(|| UNKNOWN.to_owned())
}

pub(super) fn cronjob(object: &Value, now: WallTime) -> Vec<Value> {
    let suspend = match object.pointer("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = since(text(object, "/status/lastScheduleTime"), now);
    let (containers, images) = containers(object, "/spec/jobTemplate/spec/template/spec/containers");
    vec![
        name(object).into(),
        text(object, "/spec/schedule").unwrap_or_default().into(),
        text(object, "/spec/timeZone").unwrap_or(NONE).into(),
        suspend.into(),
        list(object, "/status/active").len().into(),
        last.unwrap_or_else(|| NONE.to_owned()).into(),
        age(object, now).into(),
        containers.into(),
        images.into(),
        selector(object, "/spec/jobTemplate/spec/selector").into(),
    ]
}

pub(super) fn job(object: &Value, now: WallTime) -> Vec<Value> {
    let succeeded = number(object, "/status/succeeded").unwrap_or_default();
    let parallelism = number(object, "/spec/parallelism").unwrap_or_default();
    let completions = match number(object, "/spec/completions") {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let (containers, images) = containers(object, "/spec/template/spec/containers");
    vec![
        name(object).into(),
        job_status(object).into(),
        completions.into(),
        job_duration(object, now).into(),
        age(object, now).into(),
        containers.into(),
        images.into(),
        selector(object, "/spec/selector").into(),
    ]
}

fn job_status(object: &Value) -> &'static str {
    let holds = |kind| {
        list(object, "/status/conditions")
            .iter()
            .any(|condition| text(condition, "/type") == Some(kind) && text(condition, "/status") == Some("True"))
    };
    let deleting = text(object, "/metadata/deletionTimestamp").is_some();
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if deleting => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn job_duration(object: &Value, now: WallTime) -> String {
    let Some(start) = parse(text(object, "/status/startTime")) else { return String::new() };
    let end = parse(text(object, "/status/completionTime")).unwrap_or(now);
    human_duration(end.signed_duration_since(start))
}

/// Names and images of the containers, each joined by commas.
fn containers(object: &Value, pointer: &str) -> (String, String) {
    let containers = list(object, pointer);
    let join = |field: &str| -> String {
        containers.iter().map(|c| text(c, field).unwrap_or_default()).collect::<Vec<_>>().join(",")
    };
    (join("/name"), join("/image"))
}

fn selector(object: &Value, pointer: &str) -> String {
    let labels = object.pointer(pointer).and_then(|selector| selector.get("matchLabels")).and_then(Value::as_object);
    let pairs: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

/// An Event in either view: core/v1 or events.k8s.io/v1.
pub(super) fn event(object: &Value, now: WallTime) -> Vec<Value> {
    let either = |core: &str, events: &str| text(object, core).or_else(|| text(object, events));
    let seen = |core: &str, events: &str| since(either(core, events), now);
    let first = seen("/firstTimestamp", "/deprecatedFirstTimestamp").or_else(|| since(text(object, "/eventTime"), now));
    let last = since(text(object, "/series/lastObservedTime"), now)
        .or_else(|| seen("/lastTimestamp", "/deprecatedLastTimestamp"))
        .or_else(|| first.clone());
    let count = number(object, "/series/count")
        .or_else(|| number(object, "/count"))
        .or_else(|| number(object, "/deprecatedCount"))
        .filter(|count| *count > 0);
    let kind = either("/involvedObject/kind", "/regarding/kind").unwrap_or_default().to_lowercase();
    let target = match either("/involvedObject/name", "/regarding/name") {
        Some(name) => format!("{kind}/{name}"),
        None => kind,
    };
    let component =
        either("/source/component", "/deprecatedSource/component").or_else(|| text(object, "/reportingController"));
    vec![
        last.unwrap_or_else(|| UNKNOWN.to_owned()).into(),
        text(object, "/type").unwrap_or_default().into(),
        text(object, "/reason").unwrap_or_default().into(),
        target.into(),
        either("/involvedObject/fieldPath", "/regarding/fieldPath").unwrap_or_default().into(),
        component.unwrap_or_default().into(),
        either("/message", "/note").unwrap_or_default().trim().into(),
        first.unwrap_or_else(|| UNKNOWN.to_owned()).into(),
        count.unwrap_or(1).into(),
        name(object).into(),
    ]
}

pub(super) fn namespace(object: &Value, now: WallTime) -> Vec<Value> {
    vec![name(object).into(), text(object, "/status/phase").unwrap_or_default().into(), age(object, now).into()]
}

pub(super) fn lease(object: &Value, now: WallTime) -> Vec<Value> {
    vec![name(object).into(), text(object, "/spec/holderIdentity").unwrap_or_default().into(), age(object, now).into()]
}

pub(super) fn config_map(object: &Value, now: WallTime) -> Vec<Value> {
    let size = |field: &str| object.get(field).and_then(Value::as_object).map_or(0, serde_json::Map::len);
    vec![name(object).into(), (size("data") + size("binaryData")).into(), age(object, now).into()]
}

pub(super) fn service_account(object: &Value, now: WallTime) -> Vec<Value> {
    vec![name(object).into(), list(object, "/secrets").len().into(), age(object, now).into()]
}

/// Printer columns of a custom kind: what is missing stays empty.
pub(super) fn volcano_job(object: &Value, now: WallTime) -> Vec<Value> {
    let count = |pointer| number(object, pointer).map_or(Value::Null, Value::from);
    vec![
        name(object).into(),
        text(object, "/status/state/phase").unwrap_or_default().into(),
        count("/status/minAvailable"),
        count("/status/running"),
        age(object, now).into(),
        json!(text(object, "/spec/queue")),
    ]
}

pub(super) fn other(object: &Value, now: WallTime) -> Vec<Value> {
    vec![name(object).into(), age(object, now).into()]
}
