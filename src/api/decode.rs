//! What the kinds share when they are decoded: the error, lenient times, and the metadata.

use serde::{Deserialize, Deserializer};

use super::time::parse_rfc3339;
use crate::model::{ObjectKey, OwnerReference, Uid, WallTime};

/// An object that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {object}: field {field}")]
pub struct DecodeError {
    /// `CronJob`, `Job` or `Pod`.
    pub kind: &'static str,
    /// `namespace/name`, as far as it could be read.
    pub object: String,
    /// Path of the field, for example `spec.startingDeadlineSeconds`; `.` for the whole text.
    pub field: String,
    /// What is wrong with it.
    #[source]
    pub source: serde_json::Error,
}

impl DecodeError {
    /// In one line with what is wrong with the field: for events, which show no sources.
    pub fn told(&self) -> String {
        format!("{self}: {}", self.source)
    }
}

/// Decodes `text` as `T`. Only when that fails is the text read a second time, to find out which field was wrong.
pub(super) fn decode<'a, T: Deserialize<'a>>(kind: &'static str, text: &'a str) -> Result<T, DecodeError> {
    serde_json::from_str(text).map_err(|plain| explain::<T>(kind, text, plain))
}

fn explain<'a, T: Deserialize<'a>>(kind: &'static str, text: &'a str, plain: serde_json::Error) -> DecodeError {
    let mut json = serde_json::Deserializer::from_str(text);
    let (field, source) = match serde_path_to_error::deserialize::<_, T>(&mut json) {
        Ok(_) => (".".to_owned(), plain),
        Err(error) => (error.path().to_string(), error.into_inner()),
    };
    // A field may be called nothing.
    let field = if field.is_empty() { ".".to_owned() } else { field };
    DecodeError { kind, object: object_name(text), field, source }
}

/// An error about a field that serde itself accepted.
pub(super) fn wrong(kind: &'static str, object: &ObjectKey, field: &str, message: &str) -> DecodeError {
    let source = <serde_json::Error as serde::de::Error>::custom(message);
    DecodeError { kind, object: object.to_string(), field: field.to_owned(), source }
}

/// `namespace/name` of a text that could not be decoded as what it should be.
fn object_name(text: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let part = |name: &str| value["metadata"][name].as_str().unwrap_or("?").to_owned();
    format!("{}/{}", part("namespace"), part("name"))
}

/// `metadata`, as far as a decision reads it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Meta {
    namespace: Option<Box<str>>,
    name: Option<Box<str>>,
    uid: Option<Box<str>>,
    resource_version: Option<Box<str>>,
    pub(super) generation: Option<i64>,
    pub(super) creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    owner_references: Option<Vec<Owner>>,
    /// Values that are not texts are the annotation's own trouble, not the object's.
    pub(super) annotations: Option<std::collections::BTreeMap<String, serde_json::Value>>,
}

impl Meta {
    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_deref().unwrap_or_default(), self.name.as_deref().unwrap_or_default())
    }

    pub(super) fn uid(&self) -> Uid {
        Uid::from(self.uid.as_deref().unwrap_or_default())
    }

    pub(super) fn take_resource_version(&mut self) -> Box<str> {
        self.resource_version.take().unwrap_or_default()
    }

    pub(super) fn deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    pub(super) fn deletion_time(&self) -> Option<WallTime> {
        self.deletion_timestamp.map(|time| time.0)
    }

    pub(super) fn take_controller(&mut self) -> Option<OwnerReference> {
        controller(self.owner_references.take().unwrap_or_default())
    }
}

/// The first owner reference with `controller: true`.
pub(super) fn controller(owners: Vec<Owner>) -> Option<OwnerReference> {
    owners.into_iter().find(|owner| owner.controller == Some(true)).map(|owner| OwnerReference {
        api_version: owner.api_version.unwrap_or_default(),
        kind: owner.kind.unwrap_or_default(),
        name: owner.name.unwrap_or_default(),
        uid: Uid::from(owner.uid.as_deref().unwrap_or_default()),
    })
}

/// An owner reference.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owner {
    api_version: Option<Box<str>>,
    kind: Option<Box<str>>,
    name: Option<Box<str>>,
    uid: Option<Box<str>>,
    controller: Option<bool>,
}

/// A `metav1.Time`.
#[derive(Clone, Copy)]
pub(super) struct Time(pub(super) WallTime);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Time;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an RFC 3339 time")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Time, E> {
                parse_rfc3339(text).map(Time).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}
