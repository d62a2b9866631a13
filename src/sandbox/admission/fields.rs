//! Fields that a kind does not have: found, told, and dropped, as decoding into the kind's type does.
//!
//! For built-in kinds the generated types of k8s-openapi are the list of known fields: what a round trip through them loses
//! was unknown. Custom kinds have a schema of their own.

use k8s_openapi::api::{batch::v1 as batch, coordination::v1 as coordination, core::v1 as core, events::v1 as events};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Invalid;
use super::volcano_schema;
use crate::sandbox::resources::Resource;

/// What the query parameter `fieldValidation` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop unknown fields silently.
    Ignore,
    /// Drop them and warn: what the server does when not asked.
    #[default]
    Warn,
    /// Refuse the object.
    Strict,
}

impl FieldValidation {
    /// Reads the query parameter; `None` for a value that the server refuses.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Warn" => Some(Self::Warn),
            "Ignore" => Some(Self::Ignore),
            "Strict" => Some(Self::Strict),
            _ => None,
        }
    }
}

/// Drops fields that the kind does not have, and `null`s of built-in kinds. Returns the warnings.
///
/// # Errors
/// 400, if a field has the wrong type, or with [`FieldValidation::Strict`] if one is unknown.
pub fn decode(
    resource: &'static Resource,
    validation: FieldValidation,
    object: &mut Value,
) -> Result<Vec<String>, Invalid> {
    let refuse = |why: &str| {
        let (kind, version) = (resource.kind, resource.version);
        Invalid::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
    };
    let unknown = unknown_fields(resource, object).map_err(|error| refuse(&error.to_string()))?;
    let messages = unknown.iter().map(|field| format!("unknown field {field:?}")).collect::<Vec<_>>();
    match validation {
        FieldValidation::Strict if !messages.is_empty() => {
            Err(refuse(&format!("strict decoding error: {}", messages.join(", "))))
        }
        FieldValidation::Warn => Ok(messages),
        FieldValidation::Strict | FieldValidation::Ignore => Ok(Vec::new()),
    }
}

/// Removes what the kind does not have and returns the paths of it.
fn unknown_fields(resource: &Resource, object: &mut Value) -> Result<Vec<String>, serde_json::Error> {
    match (resource.group, resource.plural) {
        ("", "namespaces") => typed::<core::Namespace>(object),
        ("", "pods") => typed::<core::Pod>(object),
        ("", "configmaps") => typed::<core::ConfigMap>(object),
        ("", "serviceaccounts") => typed::<core::ServiceAccount>(object),
        ("", "resourcequotas") => typed::<core::ResourceQuota>(object),
        ("", "events") => typed::<core::Event>(object),
        ("events.k8s.io", "events") => typed::<events::Event>(object),
        ("coordination.k8s.io", "leases") => typed::<coordination::Lease>(object),
        ("batch", "cronjobs") => typed::<batch::CronJob>(object),
        ("batch", "jobs") => typed::<batch::Job>(object),
        ("batch.volcano.sh", plural) => {
            let mut unknown = Vec::new();
            if let Some(metadata) = object.get_mut("metadata") {
                prune_as::<ObjectMeta>(metadata, "metadata", &mut unknown)?;
            }
            volcano_schema::root(plural).prune(object, "", &mut unknown)?;
            Ok(unknown)
        }
        _ => Ok(Vec::new()),
    }
}

fn typed<T: DeserializeOwned + Serialize>(object: &mut Value) -> Result<Vec<String>, serde_json::Error> {
    let mut unknown = Vec::new();
    prune_as::<T>(object, "", &mut unknown)?;
    Ok(unknown)
}

/// Prunes `value`, which stands at `path`, to the fields of `T`.
pub(super) fn prune_as<T: DeserializeOwned + Serialize>(
    value: &mut Value,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), serde_json::Error> {
    let known = serde_json::to_value(T::deserialize(&*value)?)?;
    prune(value, &known, path, unknown);
    Ok(())
}

fn prune(value: &mut Value, known: &Value, path: &str, unknown: &mut Vec<String>) {
    match (value, known) {
        (Value::Object(fields), Value::Object(known)) => {
            fields.retain(|name, value| match known.get(name) {
                Some(known) => {
                    // Plain values end the walk, so their paths are not spelt out.
                    if known.is_object() || known.is_array() {
                        prune(value, known, &join(path, name), unknown);
                    }
                    !value.is_null()
                }
                None if value.is_null() => false,
                None => {
                    unknown.push(join(path, name));
                    false
                }
            });
        }
        (Value::Array(items), Value::Array(known)) => {
            for (index, (item, known)) in items.iter_mut().zip(known).enumerate() {
                prune(item, known, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// `path.name`, or `name` at the root.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
