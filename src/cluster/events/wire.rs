//! The core/v1 Event as it is written: names, paths and bodies.

use chrono::SecondsFormat;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use serde_json::json;

use crate::model::{EventType, ObjectReference, WallTime};

/// The server refuses longer messages in events.k8s.io and stores both APIs alike.
const MAX_MESSAGE_BYTES: usize = 1024;
/// Longest name of an object.
const MAX_NAME_BYTES: usize = 253;
/// Namespace of events about objects that live in none.
const NO_NAMESPACE: &str = "default";

/// One Event, ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// `metadata.name`.
    pub(crate) name: String,
    /// `source.component` and `reportingComponent`.
    pub(crate) component: &'static str,
    /// `involvedObject`.
    pub(crate) about: ObjectReference,
    /// `type`.
    pub(crate) event_type: EventType,
    /// `reason`.
    pub(crate) reason: &'static str,
    /// `message`, not longer than the server takes.
    pub(crate) message: String,
    /// `count`.
    pub(crate) count: u32,
    /// `firstTimestamp`.
    pub(crate) first: WallTime,
    /// `lastTimestamp`.
    pub(crate) last: WallTime,
}

impl Event {
    /// `metadata.namespace`.
    pub(crate) fn namespace(&self) -> &str {
        if self.about.namespace.is_empty() { NO_NAMESPACE } else { &self.about.namespace }
    }

    /// The request that makes the event.
    pub(crate) fn post(&self) -> Result<Request<Vec<u8>>, http::Error> {
        let about = &self.about;
        let mut object = json!({
            "apiVersion": about.api_version,
            "kind": about.kind,
            "name": about.name,
            "uid": about.uid.as_str(),
        });
        let optional = [
            ("namespace", &about.namespace),
            ("resourceVersion", &about.resource_version),
            ("fieldPath", &about.field_path),
        ];
        for (field, text) in optional.into_iter().filter(|(_, text)| !text.is_empty()) {
            object[field] = json!(text);
        }
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": self.name, "namespace": self.namespace() },
            "involvedObject": object,
            "type": self.event_type.as_str(),
            "reason": self.reason,
            "message": self.message,
            "count": self.count,
            "firstTimestamp": rfc3339(self.first),
            "lastTimestamp": rfc3339(self.last),
            "source": { "component": self.component },
            "reportingComponent": self.component,
            "reportingInstance": "",
        });
        let uri = format!("/api/v1/namespaces/{}/events", self.namespace());
        request(Method::POST, uri, "application/json", &body)
    }

    /// The request that says that it happened again.
    pub(crate) fn patch(&self) -> Result<Request<Vec<u8>>, http::Error> {
        let body = json!({ "count": self.count, "lastTimestamp": rfc3339(self.last), "message": self.message });
        let uri = format!("/api/v1/namespaces/{}/events/{}", self.namespace(), self.name);
        request(Method::PATCH, uri, "application/merge-patch+json", &body)
    }
}

fn request(
    method: Method,
    uri: String,
    form: &'static str,
    body: &serde_json::Value,
) -> Result<Request<Vec<u8>>, http::Error> {
    Request::builder().method(method).uri(uri).header(CONTENT_TYPE, form).body(body.to_string().into_bytes())
}

fn rfc3339(at: WallTime) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Name of an event that is said once per due instant: `<object>.<reason>.<unix minutes>`, in lower case as names must be.
pub(crate) fn name_of_instant(object: &str, reason: &str, minutes: i64) -> String {
    name(object, &format!("{}.{}", reason.to_ascii_lowercase(), minutes.unsigned_abs()))
}

/// Name of any other event: `<object>.<hex nanoseconds>`, as client-go's.
pub(crate) fn name_of_moment(object: &str, nanoseconds: i64) -> String {
    name(object, &format!("{nanoseconds:x}"))
}

/// A valid name (a DNS subdomain) for any object name.
fn name(object: &str, suffix: &str) -> String {
    let longest = MAX_NAME_BYTES.saturating_sub(suffix.len() + 1);
    let sound = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
    let stem: String = object.chars().map(sound).take(longest).collect();
    match stem.trim_matches(['-', '.']) {
        "" => format!("event.{suffix}"),
        stem => format!("{stem}.{suffix}"),
    }
}

/// Cuts a message to what the server takes, at the end of a character.
pub(crate) fn cut(mut message: String) -> String {
    let longest = MAX_MESSAGE_BYTES.min(message.len());
    let end = (0..=longest).rev().find(|at| message.is_char_boundary(*at));
    message.truncate(end.unwrap_or_default());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_carry_the_instant_or_the_moment() {
        assert_eq!(name_of_instant("train", "JobAlreadyActive", 28_948_950), "train.jobalreadyactive.28948950");
        assert_eq!(name_of_moment("train", 0x18ab), "train.18ab");
        assert_eq!(name_of_moment("My_Object:", 1), "my-object.1");
        assert_eq!(name_of_moment("::", 1), "event.1");
        assert_eq!(name_of_instant(&"x".repeat(300), "R", 7).len(), 253);
    }

    #[test]
    fn a_message_is_cut_at_a_character() {
        let text = format!("{}é and more", "x".repeat(1023));
        assert_eq!(cut(text), "x".repeat(1023));
        assert_eq!(cut("short".into()), "short");
    }
}
