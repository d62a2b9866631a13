//! The rules for `metadata` that hold for every kind, and the one rule of Events that a controller can break.

use serde_json::Value;

use super::{Causes, Operation, at, text};
use crate::sandbox::resources::Resource;

/// Upstream's limit on the sum of all annotation keys and values.
const MAX_ANNOTATIONS: usize = 256 * 1024;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Name, labels, annotations, and what of them never changes.
pub(super) fn validate(resource: &Resource, object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let name = at(object, &["metadata", "name"]);
    match name.as_str().unwrap_or_default() {
        "" => causes.required("metadata.name", "name or generateName is required"),
        // Namespaces are DNS labels; every other kind served here is named by a DNS subdomain.
        text if resource.plural == "namespaces" => {
            dns_label(text).iter().for_each(|why| causes.invalid("metadata.name", name, why));
        }
        text => dns_subdomain(text).iter().for_each(|why| causes.invalid("metadata.name", name, why)),
    }
    validate_labels(at(object, &["metadata"]), "metadata", causes);
    let mut size = 0;
    for (key, value) in entries(at(object, &["metadata"]), "annotations") {
        size += key.len() + value.as_str().unwrap_or_default().len();
        // Upstream lets annotation keys be upper case by testing the lower-cased key.
        qualified_name(&key.to_lowercase())
            .iter()
            .for_each(|why| causes.invalid("metadata.annotations", &Value::from(key), why));
    }
    if size > MAX_ANNOTATIONS {
        causes.too_long("metadata.annotations", MAX_ANNOTATIONS);
    }
    if let Some(old) = old {
        immutable(object, old, causes);
    }
}

/// Keys and values of the labels of a `metadata` that stands at `field`.
pub(super) fn validate_labels(metadata: &Value, field: &str, causes: &mut Causes) {
    let field = format!("{field}.labels");
    for (key, value) in entries(metadata, "labels") {
        qualified_name(key).iter().for_each(|why| causes.invalid(&field, &Value::from(key), why));
        let text = value.as_str().unwrap_or_default();
        label_value(text).iter().for_each(|why| causes.invalid(&field, value, why));
    }
}

/// Name and uid of a stored object never change; an empty uid in the new object means "whatever it is".
fn immutable(object: &Value, old: &Value, causes: &mut Causes) {
    for field in ["name", "uid"] {
        let (new, old) = (at(object, &["metadata", field]), at(old, &["metadata", field]));
        if !new.is_null() && new != "" && new != old {
            causes.invalid(format!("metadata.{field}"), new, "field is immutable");
        }
    }
}

/// An Event lives in the namespace of the object it is about (core: `involvedObject`, events.k8s.io: `regarding`).
pub(super) fn validate_event(object: &Value, causes: &mut Causes) {
    let namespace = text(object, &["metadata", "namespace"]);
    for field in ["involvedObject", "regarding"] {
        if at(object, &[field]).is_null() {
            continue;
        }
        let about = at(object, &[field, "namespace"]);
        let expected = match about.as_str().unwrap_or_default() {
            "" => "default",
            about => about,
        };
        if namespace != expected {
            let about = Value::from(about.as_str().unwrap_or_default());
            causes.invalid("involvedObject.namespace", &about, "does not match event.namespace");
        }
    }
}

/// The warning of batch/v1 kinds whose name ends up in Pod names; only on create.
pub(super) fn warn_pod_name(operation: Operation, name: &str, warnings: &mut Vec<String>) {
    let why = dns_label(name);
    if operation == Operation::Create && !why.is_empty() {
        let quoted: Vec<&str> = why.iter().map(String::as_str).collect();
        warnings.push(format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [{}]",
            quoted.join(" ")
        ));
    }
}

fn entries<'a>(metadata: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    at(metadata, &[field]).as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

fn edges_alphanumeric(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    edge(text.bytes().next()) && edge(text.bytes().last())
}

fn lower_label(text: &str) -> bool {
    edges_alphanumeric(text) && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// What keeps `text` from being a DNS-1123 label; empty if nothing.
pub(super) fn dns_label(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 63 {
        why.push("must be no more than 63 bytes".to_owned());
    }
    if !lower_label(text) {
        why.push(LABEL.to_owned());
    }
    why
}

/// What keeps `text` from being a DNS-1123 subdomain; empty if nothing.
pub(super) fn dns_subdomain(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 253 {
        why.push("must be no more than 253 bytes".to_owned());
    }
    if !text.split('.').all(lower_label) {
        why.push(SUBDOMAIN.to_owned());
    }
    why
}

/// What keeps `text` from being a label or annotation key (`[prefix/]name`); empty if nothing.
pub(super) fn qualified_name(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let rule = NAME_PART.trim_start_matches("name part ");
            return vec![format!(
                "a qualified name {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            why.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            why.extend(dns_subdomain(prefix).into_iter().map(|text| format!("prefix part {text}")));
            name
        }
    };
    if name.is_empty() {
        why.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        why.push("name part must be no more than 63 bytes".to_owned());
    }
    if !label_characters(name) {
        why.push(NAME_PART.to_owned());
    }
    why
}

/// What keeps `text` from being a label value; empty if nothing.
fn label_value(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 63 {
        why.push("must be no more than 63 bytes".to_owned());
    }
    if !text.is_empty() && !label_characters(text) {
        why.push(LABEL_VALUE.to_owned());
    }
    why
}

fn label_characters(text: &str) -> bool {
    edges_alphanumeric(text) && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}
