//! Fields that a kind does not have: found, told, and dropped, as decoding into the kind's type does.
//!
//! For built-in kinds the generated types of k8s-openapi are the list of known fields: what a round trip through them loses
//! was unknown. Custom kinds have a schema of their own.

use k8s_openapi::api::{batch::v1 as batch, coordination::v1 as coordination, core::v1 as core, events::v1 as events};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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

/// An object that cannot be read as one of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Undecodable(pub String);

/// Drops fields that the kind does not have, and what built-in kinds leave out when it is empty. `duplicates` are paths of
/// fields that the text of the object had twice. Returns the warnings.
///
/// # Errors
/// If a field has the wrong type, or with [`FieldValidation::Strict`] if one is unknown or stands twice.
pub fn decode(
    resource: &'static Resource,
    validation: FieldValidation,
    duplicates: &[String],
    object: &mut Value,
) -> Result<Vec<String>, Undecodable> {
    check_micro_times(resource, object)?;
    let unknown = unknown_fields(resource, object).map_err(|error| Undecodable(error.to_string()))?;
    let twice = duplicates.iter().map(|field| format!("duplicate field {field:?}"));
    let messages = twice.chain(unknown.iter().map(|field| format!("unknown field {field:?}"))).collect::<Vec<_>>();
    match validation {
        FieldValidation::Strict if !messages.is_empty() => {
            Err(Undecodable(format!("strict decoding error: {}", messages.join(", "))))
        }
        FieldValidation::Warn => Ok(messages),
        FieldValidation::Strict | FieldValidation::Ignore => Ok(Vec::new()),
    }
}

/// Times with microseconds have exactly six digits of them.
fn check_micro_times(resource: &Resource, object: &Value) -> Result<(), Undecodable> {
    let places: &[&str] = match resource.plural {
        "leases" => &["/spec/acquireTime", "/spec/renewTime"],
        "events" => &["/eventTime", "/series/lastObservedTime"],
        _ => &[],
    };
    for text in places.iter().filter_map(|place| object.pointer(place)?.as_str()) {
        let fraction = text.get(19..).unwrap_or_default();
        let digits = fraction.strip_prefix('.').and_then(|rest| rest.get(..6));
        if !digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
            || fraction.as_bytes().get(7).is_some_and(u8::is_ascii_digit)
        {
            let layout = "2006-01-02T15:04:05.000000Z07:00";
            let why = format!("cannot parse \"{fraction}\" as \".000000\"");
            return Err(Undecodable(format!("parsing time \"{text}\" as \"{layout}\": {why}")));
        }
    }
    Ok(())
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
                    let path = if known.is_object() || known.is_array() { join(path, name) } else { String::new() };
                    prune(value, known, &path, unknown);
                    !is_left_out(name, value)
                }
                None if value.is_null() => false,
                None => {
                    unknown.push(join(path, name));
                    false
                }
            });
        }
        // A time in the one form that times are stored in; other texts come back as they went.
        (Value::String(text), Value::String(known)) => text.clone_from(known),
        (Value::Array(items), Value::Array(known)) => {
            for (index, (item, known)) in items.iter_mut().zip(known).enumerate() {
                prune(item, known, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Maps that are left out when they are empty; structures such as `emptyDir` are not.
const MAPS: [&str; 10] = [
    "labels",
    "annotations",
    "nodeSelector",
    "matchLabels",
    "data",
    "binaryData",
    "limits",
    "requests",
    "hard",
    "used",
];

/// Whether the real server leaves such a value out: nothing, an empty list, an empty map.
fn is_left_out(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        // A Pod's containers are refused instead.
        Value::Array(items) => items.is_empty() && name != "containers",
        Value::Object(fields) => fields.is_empty() && MAPS.contains(&name),
        _ => false,
    }
}

/// `path.name`, or `name` at the root.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
