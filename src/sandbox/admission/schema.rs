//! The part of structural schemas (CustomResourceDefinitions) that the Volcano kinds use: pruning, defaults, validation.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::Value;

use super::fields::{join, prune_as};
use super::{Causes, metadata};

/// What may stand at one place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Schema {
    /// Anything, kept as it is.
    Any,
    Boolean,
    /// An integer not below `min`.
    Integer {
        min: i64,
    },
    /// A text of at most `max` bytes (0: any length).
    Text {
        max: usize,
        pattern: Pattern,
    },
    /// An RFC 3339 instant.
    Instant,
    /// One of these texts.
    Enum(&'static [&'static str]),
    /// A list of at least `min` items.
    List {
        items: &'static Schema,
        min: usize,
    },
    /// A map from any text.
    Map(&'static Schema),
    /// An object with these fields and no others.
    Object(&'static [Field]),
    /// A core/v1 PodTemplateSpec.
    PodTemplate,
}

/// A text's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Free,
    /// DNS-1123 subdomain.
    Subdomain,
    /// DNS-1123 label.
    Label,
    /// No colon, not empty.
    NoColon,
}

/// One field of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    name: &'static str,
    schema: Schema,
    required: bool,
    default: Default,
}

/// A field's default.
#[derive(Clone, Copy, Debug)]
enum Default {
    Nothing,
    Bool(bool),
    Integer(i64),
    Text(&'static str),
}

/// Any text.
pub(super) const TEXT: Schema = Schema::Text { max: 0, pattern: Pattern::Free };
/// Any integer.
pub(super) const INTEGER: Schema = Schema::Integer { min: i64::MIN };
/// An integer from 0.
pub(super) const COUNT: Schema = Schema::Integer { min: 0 };

/// An optional field without default.
pub(super) const fn field(name: &'static str, schema: Schema) -> Field {
    Field { name, schema, required: false, default: Default::Nothing }
}

impl Field {
    pub(super) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    pub(super) const fn or_bool(self, value: bool) -> Self {
        Self { default: Default::Bool(value), ..self }
    }

    pub(super) const fn or_integer(self, value: i64) -> Self {
        Self { default: Default::Integer(value), ..self }
    }

    pub(super) const fn or_text(self, value: &'static str) -> Self {
        Self { default: Default::Text(value), ..self }
    }

    fn default_value(&self) -> Option<Value> {
        match self.default {
            Default::Nothing => None,
            Default::Bool(value) => Some(value.into()),
            Default::Integer(value) => Some(value.into()),
            Default::Text(value) => Some(value.into()),
        }
    }
}

impl Schema {
    /// Removes fields that the schema does not name, and notes their paths.
    pub(super) fn prune(
        &self,
        value: &mut Value,
        path: &str,
        unknown: &mut Vec<String>,
    ) -> Result<(), serde_json::Error> {
        match (self, value) {
            (Self::Object(fields), Value::Object(values)) => {
                values.retain(|name, _| {
                    let known = fields.iter().any(|field| field.name == name);
                    if !known {
                        unknown.push(join(path, name));
                    }
                    known
                });
                for field in *fields {
                    if let Some(value) = values.get_mut(field.name) {
                        field.schema.prune(value, &join(path, field.name), unknown)?;
                    }
                }
            }
            (Self::List { items, .. }, Value::Array(values)) => {
                for (index, value) in values.iter_mut().enumerate() {
                    items.prune(value, &format!("{path}[{index}]"), unknown)?;
                }
            }
            (Self::Map(values), Value::Object(entries)) => {
                for (name, value) in entries {
                    values.prune(value, &join(path, name), unknown)?;
                }
            }
            (Self::PodTemplate, value @ Value::Object(_)) => prune_as::<PodTemplateSpec>(value, path, unknown)?,
            _ => {}
        }
        Ok(())
    }

    /// Fills in defaults, and drops `null`s of optional fields, as the server does for fields that are not nullable.
    pub(super) fn default(&self, value: &mut Value) {
        match (self, value) {
            (Self::Object(fields), Value::Object(values)) => {
                values.retain(|_, value| !value.is_null());
                for field in *fields {
                    if let Some(default) = field.default_value() {
                        values.entry(field.name).or_insert(default);
                    }
                    if let Some(value) = values.get_mut(field.name) {
                        field.schema.default(value);
                    }
                }
            }
            (Self::List { items, .. }, Value::Array(values)) => {
                values.iter_mut().for_each(|value| items.default(value))
            }
            (Self::Map(values), Value::Object(entries)) => {
                entries.values_mut().for_each(|value| values.default(value));
            }
            _ => {}
        }
    }

    /// Notes what breaks the schema, in the words of the server's validator.
    pub(super) fn validate(&self, value: &Value, path: &str, causes: &mut Causes) {
        match (self, value) {
            (Self::Any, _) | (Self::Boolean, Value::Bool(_)) | (Self::PodTemplate, Value::Object(_)) => {}
            (Self::Integer { min }, Value::Number(number)) if number.is_i64() || number.is_u64() => {
                if number.as_i64().is_some_and(|number| number < *min) {
                    let detail = format!("{path} in body should be greater than or equal to {min}");
                    causes.invalid(path, value, &detail);
                }
            }
            (Self::Text { max, pattern }, Value::String(text)) => {
                if *max > 0 && text.len() > *max {
                    causes.too_long(path, *max);
                }
                if !pattern.matches(text) {
                    causes.invalid(path, value, &format!("{path} in body should match '{}'", pattern.regex()));
                }
            }
            (Self::Instant, Value::String(text)) => {
                if chrono::DateTime::parse_from_rfc3339(text).is_err() {
                    // Formats are told of by the last part of the path alone.
                    let name = path.rsplit('.').next().unwrap_or(path);
                    causes.wrong_type(path, value, &format!("{name} in body must be of type date-time: {text:?}"));
                }
            }
            (Self::Enum(allowed), Value::String(text)) => {
                if !allowed.contains(&text.as_str()) {
                    causes.unsupported(path, value, allowed);
                }
            }
            (Self::List { items, min }, Value::Array(values)) => {
                if values.len() < *min {
                    let detail = format!("{path} in body should have at least {min} items");
                    causes.invalid(path, &Value::from(values.len()), &detail);
                }
                for (index, value) in values.iter().enumerate() {
                    items.validate(value, &format!("{path}[{index}]"), causes);
                }
            }
            (Self::Map(schema), Value::Object(entries)) => {
                entries.iter().for_each(|(name, value)| schema.validate(value, &join(path, name), causes));
            }
            (Self::Object(fields), Value::Object(values)) => {
                for field in *fields {
                    match values.get(field.name) {
                        Some(value) => field.schema.validate(value, &join(path, field.name), causes),
                        None if field.required => causes.required(join(path, field.name), ""),
                        None => {}
                    }
                }
            }
            _ => {
                let found = type_of(value);
                let detail = format!("{path} in body must be of type {}: {found:?}", self.type_name());
                causes.wrong_type(path, &Value::from(found), &detail);
            }
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Boolean => "boolean",
            Self::Integer { .. } => "integer",
            Self::Text { .. } | Self::Instant | Self::Enum(_) => "string",
            Self::List { .. } => "array",
            Self::Map(_) | Self::Object(_) | Self::PodTemplate => "object",
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Pattern {
    fn matches(self, text: &str) -> bool {
        match self {
            Self::Free => true,
            Self::Subdomain => metadata::dns_subdomain(text).is_empty(),
            Self::Label => metadata::dns_label(text).is_empty(),
            Self::NoColon => !text.is_empty() && !text.contains(':'),
        }
    }

    fn regex(self) -> &'static str {
        match self {
            Self::Free => "",
            Self::Subdomain => r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            Self::Label => r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            Self::NoColon => r"^[^:]+$",
        }
    }
}
