//! What the server itself writes into objects: identity, times, generation, and which parts of a write count.

use serde_json::{Map, Value, json};

use super::object::{child_mut, metadata_mut};
use crate::model::WallTime;
use crate::sandbox::resources::Resource;

/// Fields of `metadata` that only the server sets; a write cannot change them.
const SERVER_FIELDS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

/// Fields of `metadata` that are not kept at all: no field management here, and the revision stands outside the tree.
const DROPPED_FIELDS: [&str; 3] = ["managedFields", "selfLink", "resourceVersion"];

/// A time as objects carry it: whole seconds, UTC.
pub(super) fn timestamp(now: WallTime) -> String {
    now.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Gives a new object its identity, and drops what a create may not set.
pub(super) fn on_create(
    resource: &Resource,
    value: &mut Value,
    namespace: &str,
    name: &str,
    uid: String,
    now: WallTime,
) {
    let metadata = metadata_mut(value);
    drop_fields(metadata, &SERVER_FIELDS);
    drop_fields(metadata, &DROPPED_FIELDS);
    metadata.insert("name".to_owned(), name.into());
    place_in(metadata, namespace);
    metadata.insert("uid".to_owned(), uid.into());
    metadata.insert("creationTimestamp".to_owned(), timestamp(now).into());
    if has_generation(resource) {
        metadata.insert("generation".to_owned(), 1.into());
    }
    if resource.plural == "namespaces" {
        child_mut(value, "spec").insert("finalizers".to_owned(), json!(["kubernetes"]));
        let metadata = metadata_mut(value);
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
        }
    }
    if resource.status
        && let Some(fields) = value.as_object_mut()
    {
        fields.remove("status");
        if !resource.custom {
            fields.insert("status".to_owned(), initial_status(resource));
        }
    }
}

fn initial_status(resource: &Resource) -> Value {
    match resource.plural {
        "namespaces" => json!({ "phase": "Active" }),
        "pods" => json!({ "phase": "Pending", "qosClass": "BestEffort" }),
        _ => json!({}),
    }
}

/// What a write of the main resource amounts to: identity and status stay as stored.
pub(super) fn on_update(resource: &Resource, old: &Value, new: &mut Value) {
    keep_identity(old, new);
    if resource.status {
        keep_member("status", old, new);
    }
    if resource.plural == "namespaces" {
        keep_member("spec", old, new);
    }
}

/// Drops what a write of `/status` does not look at, so that nobody decodes it.
pub(super) fn keep_status_parts(new: &mut Value) {
    if let Some(fields) = new.as_object_mut() {
        fields.retain(|field, _| matches!(field.as_str(), "kind" | "apiVersion" | "metadata" | "status"));
    }
}

/// What a write of `/status` amounts to. Built-in kinds take `metadata` as well (labels, annotations, finalizers), custom
/// ones the status alone.
pub(super) fn on_status_update(resource: &Resource, old: &Value, new: &mut Value) {
    if resource.custom {
        let metadata = old["metadata"].clone();
        metadata_mut(new).clone_from(metadata.as_object().unwrap_or(&Map::new()));
    }
    keep_identity(old, new);
    let mut wanted = new.as_object_mut().map(std::mem::take).unwrap_or_default();
    let mut kept = old.clone();
    if let Some(fields) = kept.as_object_mut() {
        for part in ["metadata", "status"] {
            fields.remove(part);
            if let Some((part, content)) = wanted.remove_entry(part) {
                fields.insert(part, content);
            }
        }
    }
    *new = kept;
}

/// Raises the generation if the wish changed: the spec of built-in kinds, all but metadata and status of custom ones.
pub(super) fn raise_generation(resource: &Resource, old: &Value, new: &mut Value) {
    if has_generation(resource) && wish_of(resource, old) != wish_of(resource, new) {
        bump_generation(new);
    }
}

/// Adds one to a generation that is there.
pub(super) fn bump_generation(value: &mut Value) {
    if let Some(generation) = value["metadata"]["generation"].as_i64() {
        metadata_mut(value).insert("generation".to_owned(), (generation + 1).into());
    }
}

fn wish_of<'a>(resource: &Resource, value: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let counts = |field: &str| match resource.custom {
        true => !matches!(field, "metadata" | "status" | "kind" | "apiVersion"),
        false => field == "spec",
    };
    let fields = value.as_object().into_iter().flatten();
    fields.map(|(field, content)| (field.as_str(), content)).filter(|(field, _)| counts(field)).collect()
}

fn has_generation(resource: &Resource) -> bool {
    resource.custom || matches!((resource.group, resource.plural), ("batch", _) | ("", "pods"))
}

fn keep_identity(old: &Value, new: &mut Value) {
    let was = &old["metadata"];
    let metadata = metadata_mut(new);
    drop_fields(metadata, &DROPPED_FIELDS);
    // Another uid is for the validation to refuse.
    let other_uid = metadata.get("uid").is_some_and(|uid| uid != "");
    let kept = SERVER_FIELDS.iter().chain(&["name", "namespace"]).filter(|field| **field != "uid" || !other_uid);
    for field in kept {
        match was.get(field) {
            Some(value) => metadata.insert((*field).to_owned(), value.clone()),
            None => metadata.remove(*field),
        };
    }
}

fn keep_member(field: &str, old: &Value, new: &mut Value) {
    let Some(fields) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

fn place_in(metadata: &mut Map<String, Value>, namespace: &str) {
    if namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
}

fn drop_fields(metadata: &mut Map<String, Value>, fields: &[&str]) {
    for field in fields {
        metadata.remove(*field);
    }
}

/// `metadata.finalizers`.
pub(super) fn finalizers(value: &Value) -> Vec<&str> {
    let list = value["metadata"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

/// Replaces `metadata.finalizers`; an empty list is no list.
pub(super) fn set_finalizers(value: &mut Value, finalizers: Vec<String>) {
    let metadata = metadata_mut(value);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), finalizers.into());
    }
}

/// Whether nothing keeps an object that is to be deleted: no finalizer, and a namespace not its content.
pub(super) fn nothing_holds(resource: &Resource, value: &Value) -> bool {
    let content = resource.plural == "namespaces"
        && value["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    finalizers(value).is_empty() && !content
}
