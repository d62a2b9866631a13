//! The rules for `metadata` that hold for every kind.

use serde_json::Value;

use super::{Causes, Operation, at, text};
use crate::sandbox::resources::Resource;

/// Upstream's limit on the sum of all annotation keys and values.
const MAX_ANNOTATIONS: usize = 256 * 1024;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Kinds whose own rules for a change begin with all of the metadata.
const WHOLE_ON_UPDATE: [&str; 3] = ["jobs", "pods", "configmaps"];

/// Finalizers that need no domain before them.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Name, labels, annotations, owners, finalizers, and what of them never changes.
pub(super) fn validate(resource: &Resource, object: &Value, old: Option<&Value>, causes: &mut Causes) {
    match old {
        None => validate_whole(resource, object, causes),
        // The real server asks several times: for every kind, and then for this one, where some ask for all once more.
        Some(old) => {
            validate_whole(resource, object, causes);
            validate_change(object, old, causes);
            if WHOLE_ON_UPDATE.contains(&resource.plural) && !resource.custom {
                validate_whole(resource, object, causes);
            }
            validate_change(object, old, causes);
        }
    }
}

fn validate_whole(resource: &Resource, object: &Value, causes: &mut Causes) {
    let metadata = at(object, &["metadata"]);
    let name = at(metadata, &["name"]);
    match name.as_str().unwrap_or_default() {
        "" => causes.required("metadata.name", "name or generateName is required"),
        // Namespaces are DNS labels; every other kind served here is named by a DNS subdomain.
        text if resource.plural == "namespaces" => {
            dns_label(text).iter().for_each(|why| causes.invalid("metadata.name", name, why));
        }
        text => dns_subdomain(text).iter().for_each(|why| causes.invalid("metadata.name", name, why)),
    }
    validate_changeable(metadata, causes);
    validate_finalizers(resource, at(metadata, &["finalizers"]), causes);
}

fn validate_change(object: &Value, old: &Value, causes: &mut Causes) {
    immutable(object, old, causes);
    validate_changeable(at(object, &["metadata"]), causes);
}

/// Labels, annotations and owners.
fn validate_changeable(metadata: &Value, causes: &mut Causes) {
    validate_labels(metadata, "metadata.labels", causes);
    let mut size = 0;
    for (key, value) in entries(metadata, "annotations") {
        size += key.len() + value.as_str().unwrap_or_default().len();
        // Upstream lets annotation keys be upper case by testing the lower-cased key.
        qualified_name(&key.to_lowercase())
            .iter()
            .for_each(|why| causes.invalid("metadata.annotations", &Value::from(key), why));
    }
    if size > MAX_ANNOTATIONS {
        causes.too_long("metadata.annotations", MAX_ANNOTATIONS);
    }
    validate_owners(at(metadata, &["ownerReferences"]), causes);
}

/// Each owner is named in full, none is an Event, and at most one is the controller.
fn validate_owners(references: &Value, causes: &mut Causes) {
    let field = "metadata.ownerReferences";
    let mut controller: Option<&Value> = None;
    for reference in references.as_array().into_iter().flatten() {
        let version = at(reference, &["apiVersion"]).as_str().unwrap_or_default();
        if version.is_empty() || version.split('/').count() > 2 || version.ends_with('/') {
            causes.invalid(format!("{field}.apiVersion"), &version.into(), "version must not be empty");
        }
        for name in ["kind", "name", "uid"] {
            if text(reference, &[name]).is_empty() {
                causes.invalid(format!("{field}.{name}"), &"".into(), "must not be empty");
            }
        }
        if (version, text(reference, &["kind"])) == ("v1", "Event") {
            causes.invalid_text(field, &reference_text(reference), "/v1, Kind=Event is disallowed from being an owner");
        }
        if at(reference, &["controller"]) != &Value::Bool(true) {
            continue;
        }
        if let Some(first) = controller {
            let called = |reference| format!("{}/{}", text(reference, &["kind"]), text(reference, &["name"]));
            let why = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                called(first),
                called(reference)
            );
            let all: Vec<String> = references.as_array().into_iter().flatten().map(reference_text).collect();
            causes.invalid_text(field, &format!("[{}]", all.join(",")), &why);
        }
        controller = Some(reference);
    }
}

/// An owner reference as the server prints it: in the order of its fields there.
fn reference_text(reference: &Value) -> String {
    let mut members = Vec::new();
    for name in ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"] {
        let value = at(reference, &[name]);
        if !value.is_null() {
            members.push(format!("\"{name}\":{value}"));
        }
    }
    format!("{{{}}}", members.join(","))
}

fn validate_finalizers(resource: &Resource, finalizers: &Value, causes: &mut Causes) {
    let all = || finalizers.as_array().into_iter().flatten();
    for finalizer in all() {
        let text = finalizer.as_str().unwrap_or_default();
        qualified_name(text).iter().for_each(|why| causes.invalid("metadata.finalizers", finalizer, why));
    }
    for (index, finalizer) in all().enumerate().filter(|_| !resource.custom) {
        let text = finalizer.as_str().unwrap_or_default();
        if !text.contains('/') && !STANDARD_FINALIZERS.contains(&text) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.invalid(format!("metadata.finalizers[{index}]"), finalizer, why);
        }
    }
}

/// Keys and values of the labels in `metadata`; `field` is how the labels are called.
pub(super) fn validate_labels(metadata: &Value, field: &str, causes: &mut Causes) {
    for (key, value) in entries(metadata, "labels") {
        qualified_name(key).iter().for_each(|why| causes.invalid(field, &Value::from(key), why));
        let text = value.as_str().unwrap_or_default();
        label_value(text).iter().for_each(|why| causes.invalid(field, value, why));
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
        why.push("must be no more than 63 characters".to_owned());
    }
    if !lower_label(text) {
        let only_dots = text.split('.').all(lower_label);
        why.push(if only_dots { "must not contain dots".to_owned() } else { LABEL.to_owned() });
    }
    why
}

/// What keeps `text` from being a DNS-1123 subdomain; empty if nothing.
pub(super) fn dns_subdomain(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 253 {
        why.push("must be no more than 253 characters".to_owned());
    }
    if !text.split('.').all(lower_label) {
        why.push(SUBDOMAIN.to_owned());
    }
    why
}

/// What keeps `text` from being a label or annotation key (`[prefix/]name`); empty if nothing.
pub(in crate::sandbox) fn qualified_name(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let rule = NAME_PART.trim_start_matches("name part ");
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
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
pub(in crate::sandbox) fn label_value(text: &str) -> Vec<String> {
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
