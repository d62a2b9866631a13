//! One stored object: its bytes as served, and the few facts the store itself decides on.
//!
//! Invariants
//! - `bytes` is one JSON object that begins with [`prefix`] of its resource, so a list can leave kind and version out of its
//!   items by slicing, as the real server does for built-in kinds. Its revision follows at a fixed place.
//! - An object never changes; a write makes a new one. Watches, lists and the event log share it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::sandbox::resources::Resource;

/// One version of one object.
#[derive(Debug)]
pub struct Object {
    /// `namespace/name`, or `name` for cluster-scoped kinds: the order of lists, as in etcd.
    pub key: Arc<str>,
    /// The revision of the write that made this version; also in the bytes, as `metadata.resourceVersion`.
    pub revision: u64,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Uids of `metadata.ownerReferences`.
    pub owners: Box<[Arc<str>]>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// Whether anything must happen before a deletion takes effect: finalizers, in `metadata` or in the spec of a Namespace.
    pub finalizers: bool,
    /// What GET answers.
    pub bytes: Bytes,
}

impl Object {
    /// Encodes `value` as of `revision`.
    pub fn new(resource: &Resource, key: Arc<str>, revision: u64, value: &Value) -> Self {
        let metadata = &value["metadata"];
        let owners = metadata["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            key,
            revision,
            uid: metadata["uid"].as_str().unwrap_or_default().into(),
            owners: owners.iter().filter_map(|owner| owner["uid"].as_str()).map(Arc::from).collect(),
            deleting: metadata.get("deletionTimestamp").is_some_and(|at| !at.is_null()),
            finalizers: [metadata, &value["spec"]].iter().any(|part| has_finalizers(part)),
            bytes: encode(resource, Some(revision), value),
        }
    }

    /// The object as a tree. The bytes came from [`encode`], so they decode.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The same object as of a later revision: how a DELETED event carries it.
    pub fn restamped(&self, resource: &Resource, revision: u64) -> Self {
        // The revision stands right after the head (see `encode`), so nothing needs to be decoded.
        let at = prefix(resource).len() + REVISION_HEAD.len();
        let (head, rest) = self.bytes.split_at(at.min(self.bytes.len()));
        let tail = rest.iter().position(|byte| *byte == b'"').map_or(rest, |end| &rest[end..]);
        let bytes = [head, revision.to_string().as_bytes(), tail].concat();
        Self {
            key: self.key.clone(),
            revision,
            uid: self.uid.clone(),
            owners: self.owners.clone(),
            deleting: self.deleting,
            finalizers: self.finalizers,
            bytes: bytes.into(),
        }
    }

    /// Namespace of the key; empty for cluster-scoped kinds.
    pub fn namespace(&self) -> &str {
        self.key.rsplit_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// Name of the key.
    pub fn name(&self) -> &str {
        self.key.rsplit_once('/').map_or(&*self.key, |(_, name)| name)
    }
}

fn has_finalizers(part: &Value) -> bool {
    part.get("finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

/// The key of an object.
pub fn key_of(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// What the bytes of every object of a resource begin with; a comma or the closing brace follows.
pub fn prefix(resource: &Resource) -> String {
    format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\"", resource.kind, resource.api_version())
}

const REVISION_HEAD: &str = ",\"metadata\":{\"resourceVersion\":\"";

/// Kind, version and metadata first (its revision leading), then the rest in the order of the tree. A `resourceVersion` in
/// the tree itself does not count.
pub fn encode(resource: &Resource, revision: Option<u64>, value: &Value) -> Bytes {
    let mut out = Vec::with_capacity(2048);
    out.extend_from_slice(prefix(resource).as_bytes());
    let mut members =
        value["metadata"].as_object().into_iter().flatten().filter(|(field, _)| *field != "resourceVersion");
    if let Some(revision) = revision {
        out.extend_from_slice(REVISION_HEAD.as_bytes());
        out.extend_from_slice(revision.to_string().as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(b",\"metadata\":{");
        if let Some((field, content)) = members.next() {
            write_member(&mut out, field, content);
        }
    }
    for (field, content) in members {
        out.push(b',');
        write_member(&mut out, field, content);
    }
    out.push(b'}');
    for (field, content) in value.as_object().into_iter().flatten() {
        if !matches!(field.as_str(), "kind" | "apiVersion" | "metadata") {
            out.push(b',');
            write_member(&mut out, field, content);
        }
    }
    out.push(b'}');
    out.shrink_to_fit();
    Bytes::from(out)
}

/// Writing a tree into memory cannot fail.
fn write_member(out: &mut Vec<u8>, field: &str, content: &Value) {
    let _ = serde_json::to_writer(&mut *out, field);
    out.push(b':');
    let _ = serde_json::to_writer(&mut *out, content);
}

/// `metadata` of an object, made an object if it is not one.
pub(super) fn metadata_mut(value: &mut Value) -> &mut Map<String, Value> {
    child_mut(value, "metadata")
}

/// The member `field` of an object; whatever is not an object becomes one.
pub(super) fn child_mut<'a>(value: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    let child = as_map(value).entry(field).or_insert(Value::Null);
    as_map(child)
}

fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::resources;
    use serde_json::json;

    #[test]
    fn a_restamped_object_differs_in_its_revision_alone() {
        let events = resources::find("", "v1", "events").unwrap();
        let value = json!({
            "involvedObject": {"resourceVersion": "9"},
            "metadata": {"name": "x", "uid": "u", "labels": {"resourceVersion": "9"}},
        });
        let object = Object::new(events, "ns/x".into(), 9, &value);
        let later = object.restamped(events, 1234);
        let mut expected = object.value();
        expected["metadata"]["resourceVersion"] = "1234".into();
        assert_eq!(later.value(), expected);
        assert_eq!((later.namespace(), later.name(), later.revision), ("ns", "x", 1234));
        assert!(later.bytes.starts_with(prefix(events).as_bytes()));
    }
}
