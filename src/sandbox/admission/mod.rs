//! What the API server does to an object between decoding and storing it: unknown fields, defaults, validation, warnings.
//!
//! Invariants
//! - Pure: the object, the old object and the tables of this room decide; no clock, no store, no randomness.
//! - [`decode`] comes first (fields that the kind does not have), then [`admit`] (defaults, then validation); a dry run goes
//!   through both.
//! - Messages are those of a real API server of Kubernetes 1.36 and of Volcano's webhook, since users read them in kubectl.

mod cronjob;
mod duplicates;
mod event;
mod fields;
mod index_set;
mod invalid;
mod job;
mod job_change;
mod job_policies;
mod job_rules;
mod job_status;
mod label_selector;
mod metadata;
mod pod;
mod pod_change;
mod pod_status;
mod rest;
mod schema;
mod time_zone;
mod volcano;
mod volcano_schema;

#[cfg(test)]
mod job_tests;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use duplicates::duplicate_fields;
pub use fields::{FieldValidation, Undecodable, decode};
pub use invalid::{Cause, Causes, Invalid};
pub(super) use metadata::{label_value, qualified_name};

use super::resources::{Resource, stored_as};

/// What is about to happen to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A POST, or a server-side apply that creates.
    Create,
    /// A PUT or PATCH of the main resource.
    Update,
    /// A PUT or PATCH of `/status`.
    UpdateStatus,
}

/// Fills in the defaults of `object` and validates it. Returns the warnings for the `Warning` header.
///
/// The caller has set `metadata.namespace`, `metadata.name` (also from `generateName`) and, on create, `metadata.uid` (the
/// generated labels of a Job carry it). An Event comes in its stored form, under the resource of the request. `old` is the stored object; it is there except on create.
///
/// # Errors
/// [`Invalid`], ready to be sent as a `Status`.
pub fn admit(
    resource: &'static Resource,
    operation: Operation,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<Vec<String>, Invalid> {
    let mut causes = Causes::default();
    let mut warnings = Vec::new();
    if (resource.group, resource.plural) == ("batch", "jobs") {
        job::prepare(operation, object);
    }
    metadata::validate(resource, object, old, &mut causes);
    match (resource.group, resource.plural, operation) {
        ("batch", "cronjobs", Operation::Create | Operation::Update) => {
            cronjob::default(object);
            cronjob::validate(object, old, &mut causes);
            cronjob::warn(object, old, &mut warnings);
        }
        ("batch", "jobs", Operation::Create | Operation::Update) => {
            job_rules::validate(object, old, &mut causes);
            job::default_labels(object);
            job::warn(object, old, &mut warnings);
        }
        ("batch", "jobs", Operation::UpdateStatus) => {
            pod_status::default_conditions(object);
            job_status::default(object);
            job_status::validate(object, old, &mut causes);
        }
        ("", "pods", Operation::Create) => {
            pod::default_pod(object);
            pod::validate_spec(at(object, &["spec"]), "spec", &mut causes);
            pod::warn(object, &mut warnings);
        }
        ("", "pods", Operation::Update) => pod_change::validate(object, old, &mut causes),
        ("", "pods", Operation::UpdateStatus) => {
            pod_status::default(object);
            pod_status::keep(object, old);
            pod_status::validate(object, old, &mut causes);
        }
        ("", "configmaps", _) => rest::validate_config_map(object, old, &mut causes),
        ("", "resourcequotas", _) => rest::validate_quota(object, &mut causes),
        ("coordination.k8s.io", "leases", _) => {
            set_default(object, "spec", serde_json::Map::new());
            rest::validate_lease(object, &mut causes);
        }
        ("", "events", _) => {
            event::default(object);
            event::validate(object, &mut causes);
        }
        ("events.k8s.io", "events", _) => {
            event::default(object);
            event::validate_new(object, old, &mut causes);
        }
        ("batch.volcano.sh", _, _) => {
            // The schema also covers the status, and `/status` writes go through it too; the webhook does not see them.
            volcano::default_and_validate(resource, object, &mut causes);
            causes.refuse(resource, object)?;
            if operation != Operation::UpdateStatus {
                volcano::webhook(resource, object)?;
            }
            return Ok(warnings);
        }
        _ => {}
    }
    causes.refuse(stored_as(resource), object)?;
    Ok(warnings)
}

/// The value at a path of object keys; `Null` when any is missing.
fn at<'a>(object: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(object, |value, key| value.get(key).unwrap_or(&Value::Null))
}

/// The text at a path of object keys; empty when missing.
fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).as_str().unwrap_or_default()
}

/// Sets `key` of a JSON object unless it has a value already.
fn set_default(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut() {
        let slot = fields.entry(key).or_insert(Value::Null);
        // An empty text is how the built-in kinds' types say that there is none.
        if slot.is_null() || slot == "" {
            *slot = value.into();
        }
    }
}

/// The JSON object at `key`, made if missing; `None` if something else stands there.
fn child<'a>(object: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    set_default(object, key, serde_json::Map::new());
    object.get_mut(key).filter(|value| value.is_object())
}
