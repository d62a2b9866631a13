//! Events, in their stored form: what holds for those of core/v1, and what more for those of events.k8s.io/v1.

use serde_json::Value;

use super::{Causes, at, metadata, text};

/// Longest `reportingInstance`, `action` and `reason`, in bytes.
const MAX_WORD: usize = 128;
/// Longest `message`, in bytes.
const MAX_MESSAGE: usize = 1024;

/// What never changes of an event of events.k8s.io/v1, in the order in which the server looks; it looks at the reason twice.
const FIXED: [&str; 14] = [
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "reportingController",
    "reportingInstance",
    "action",
    "related",
];

/// Fields that are there even if they say nothing: times as `null`, texts empty.
pub(super) fn default(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    for time in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        fields.entry(time).or_insert(Value::Null);
    }
    for name in ["reportingComponent", "reportingInstance"] {
        fields.entry(name).or_insert_with(|| "".into());
    }
    fields.entry("source").or_insert_with(|| serde_json::json!({}));
}

/// The rules for an event of either view.
pub(super) fn validate(object: &Value, causes: &mut Causes) {
    let namespace = text(object, &["metadata", "namespace"]);
    if at(object, &["eventTime"]).is_null() {
        // It lives in the namespace of what it is about; what has none is told of in `default`.
        let about = text(object, &["involvedObject", "namespace"]);
        if namespace != if about.is_empty() { "default" } else { about } {
            causes.invalid("involvedObject.namespace", &about.into(), "does not match event.namespace");
        }
        return;
    }
    let controller = at(object, &["reportingComponent"]);
    match controller.as_str().unwrap_or_default() {
        "" => causes.required("reportingController", ""),
        text => {
            metadata::qualified_name(text)
                .iter()
                .for_each(|why| causes.invalid("reportingController", controller, why));
        }
    }
    for word in ["reportingInstance", "action", "reason"] {
        match text(object, &[word]).len() {
            0 => causes.required(word, ""),
            length if length > MAX_WORD => causes.invalid(word, &"".into(), "can have at most 128 characters"),
            _ => {}
        }
    }
    if text(object, &["message"]).len() > MAX_MESSAGE {
        causes.invalid("message", &"".into(), "can have at most 1024 characters");
    }
}

/// The rules for an event of events.k8s.io/v1.
pub(super) fn validate_new(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    validate(object, causes);
    let series = at(object, &["series"]);
    if !series.is_null() && at(series, &["count"]).as_i64().unwrap_or_default() < 2 {
        causes.invalid("series.count", &"".into(), "should be at least 2");
    }
    let Some(old) = old else {
        if at(object, &["eventTime"]).is_null() {
            causes.required("eventTime", "");
        }
        let kind = text(object, &["type"]);
        if !matches!(kind, "Normal" | "Warning") {
            causes.invalid("type", &"".into(), &format!("has invalid value: {kind}"));
        }
        return;
    };
    for field in FIXED {
        let stored = if field == "reportingController" { "reportingComponent" } else { field };
        let new = at(object, &[stored]);
        if new != at(old, &[stored]) {
            causes.invalid(field, new, "field is immutable");
        }
    }
}
