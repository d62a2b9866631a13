//! What a sync did, in the words of the vectors, and how two such accounts are compared.

use cronjob_controller::model::Happening;
use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Event {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Event {
    pub(crate) fn of(happening: &Happening) -> Self {
        Self {
            kind: happening.event_type.as_str().to_owned(),
            reason: happening.reason.to_owned(),
            message: happening.message.clone(),
        }
    }
}

/// `expect` of a sync vector, and equally what we did.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Account {
    pub(crate) created: Vec<Value>,
    pub(crate) deleted: Vec<String>,
    pub(crate) calls: Vec<String>,
    pub(crate) events: Vec<Event>,
    pub(crate) status_updated: bool,
    pub(crate) status: Value,
    pub(crate) update_resource_version: Option<String>,
    pub(crate) requeue_after_ms: Option<i64>,
    pub(crate) error: bool,
    pub(crate) error_text: Option<String>,
    #[serde(default)]
    pub(crate) panic: Option<String>,
    pub(crate) skew_seconds: Option<i64>,
}

impl Account {
    /// The fields in which two accounts differ.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |field: &str, ours: String, theirs: String| {
            if ours != theirs {
                found.push(format!("{field}: {ours}\n      not {theirs}"));
            }
        };
        let all = |values: &[Value]| format!("{:?}", values.iter().map(bare).collect::<Vec<_>>());
        compare("calls", format!("{:?}", self.calls), format!("{:?}", other.calls));
        compare("created", all(&self.created), all(&other.created));
        compare("deleted", format!("{:?}", self.deleted), format!("{:?}", other.deleted));
        compare("events", format!("{:?}", self.events), format!("{:?}", other.events));
        compare("statusUpdated", self.status_updated.to_string(), other.status_updated.to_string());
        compare("status", bare(&self.status).to_string(), bare(&other.status).to_string());
        let version = |account: &Self| format!("{:?}", account.update_resource_version);
        compare("updateResourceVersion", version(self), version(other));
        compare("requeueAfterMs", format!("{:?}", self.requeue_after_ms), format!("{:?}", other.requeue_after_ms));
        compare("error", self.error.to_string(), other.error.to_string());
        compare("errorText", format!("{:?}", self.error_text), format!("{:?}", other.error_text));
        compare("skewSeconds", format!("{:?}", self.skew_seconds), format!("{:?}", other.skew_seconds));
        found
    }
}

/// A value without what Go prints though it is empty: nulls, empty maps and empty lists.
pub(crate) fn bare(value: &Value) -> Value {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            let kept = map.iter().map(|(key, value)| (key.clone(), bare(value))).filter(|(_, value)| !empty(value));
            Value::Object(kept.collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(bare).collect()),
        other => other.clone(),
    }
}
