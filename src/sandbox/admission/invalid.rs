//! A refused write, in the words and the shape of a `Status` answer.

use serde_json::Value;

use crate::sandbox::resources::Resource;
use crate::sandbox::status::join_once;
use crate::schedule::quote;

/// Why a write is refused. `Display` is the `message` of the `Status`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// HTTP status: 422 for invalid objects, 400 for what cannot be decoded and for a webhook's refusal.
    pub code: u16,
    /// `Status.reason`: `Invalid`, `BadRequest`, or empty (a webhook gives none).
    pub reason: &'static str,
    /// `Status.message`.
    pub message: String,
    /// `Status.details.causes`.
    pub causes: Vec<Cause>,
}

impl Invalid {
    /// A 400 with reason `BadRequest`.
    pub fn bad_request(message: String) -> Self {
        Self { code: 400, reason: "BadRequest", message, causes: Vec::new() }
    }

    /// The refusal of an admission webhook that gave a message and no code.
    pub(super) fn denied(webhook: &str, message: &str) -> Self {
        let message = format!("admission webhook \"{webhook}\" denied the request: {message}");
        Self { code: 400, reason: "", message, causes: Vec::new() }
    }
}

/// One entry of `Status.details.causes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueInvalid`, `FieldValueRequired`, ...
    pub reason: &'static str,
    /// What is wrong, without the field: `Invalid value: -1: must be greater than or equal to 0`.
    pub message: String,
    /// Path of the field: `spec.containers[0].name`.
    pub field: String,
}

/// What validation has found so far, in the order of the checks.
#[derive(Debug, Default)]
pub struct Causes(Vec<Cause>);

impl Causes {
    /// A field that must have a value.
    pub(super) fn required(&mut self, field: impl Into<String>, detail: &str) {
        self.push("FieldValueRequired", field, join("Required value", detail));
    }

    /// A value that breaks a rule.
    pub(super) fn invalid(&mut self, field: impl Into<String>, value: &Value, detail: &str) {
        self.push("FieldValueInvalid", field, join(&format!("Invalid value: {}", go_value(value)), detail));
    }

    /// A value of another type than the schema says.
    pub(super) fn wrong_type(&mut self, field: impl Into<String>, value: &Value, detail: &str) {
        self.push("FieldValueTypeInvalid", field, join(&format!("Invalid value: {}", go_value(value)), detail));
    }

    /// A value that breaks a rule, in the server's own spelling of the value.
    pub(super) fn invalid_text(&mut self, field: impl Into<String>, value: &str, detail: &str) {
        self.push("FieldValueInvalid", field, join(&format!("Invalid value: {value}"), detail));
    }

    /// A rule that no single value breaks.
    pub(super) fn broken(&mut self, field: impl Into<String>, detail: &str) {
        self.push("FieldValueInvalid", field, join("Invalid value", detail));
    }

    /// A change that is not allowed.
    pub(super) fn forbidden(&mut self, field: impl Into<String>, detail: &str) {
        self.push("FieldValueForbidden", field, join("Forbidden", detail));
    }

    /// A value that is none of the allowed ones.
    pub(super) fn unsupported(&mut self, field: impl Into<String>, value: &Value, allowed: &[&str]) {
        let allowed: Vec<String> = allowed.iter().map(|name| quote(name)).collect();
        let detail = format!("supported values: {}", allowed.join(", "));
        self.push("FieldValueNotSupported", field, join(&format!("Unsupported value: {}", go_value(value)), &detail));
    }

    /// A value that stands twice in a list of unique ones.
    pub(super) fn duplicate(&mut self, field: impl Into<String>, value: &Value) {
        self.push("FieldValueDuplicate", field, format!("Duplicate value: {}", go_value(value)));
    }

    /// A name that refers to nothing.
    pub(super) fn not_found(&mut self, field: impl Into<String>, value: &Value) {
        self.push("FieldValueNotFound", field, format!("Not found: {}", go_value(value)));
    }

    /// A text or map longer than `max` bytes.
    pub(super) fn too_long(&mut self, field: impl Into<String>, max: usize) {
        self.push("FieldValueTooLong", field, format!("Too long: may not be more than {max} bytes"));
    }

    /// A list of more than `max` items.
    pub(super) fn too_many(&mut self, field: impl Into<String>, count: usize, max: usize) {
        self.push("FieldValueTooMany", field, format!("Too many: {count}: must have at most {max} items"));
    }

    /// Whether nothing has been found.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number below zero; missing numbers pass.
    pub(super) fn non_negative(&mut self, field: impl Into<String>, value: &Value) {
        if value.as_i64().is_some_and(|number| number < 0) {
            self.invalid(field, value, "must be greater than or equal to 0");
        }
    }

    fn push(&mut self, reason: &'static str, field: impl Into<String>, message: String) {
        self.0.push(Cause { reason, message, field: field.into() });
    }

    /// Nothing if nothing was found, otherwise the 422 that names all of it.
    pub(super) fn refuse(&mut self, resource: &Resource, object: &Value) -> Result<(), Invalid> {
        let causes = std::mem::take(&mut self.0);
        if causes.is_empty() {
            return Ok(());
        }
        let joined = join_once(causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)));
        let name = super::text(object, &["metadata", "name"]);
        let message = format!("{} {} is invalid: {joined}", resource.qualified_kind(), quote(name));
        Err(Invalid { code: 422, reason: "Invalid", message, causes })
    }
}

fn join(head: &str, detail: &str) -> String {
    if detail.is_empty() { head.to_owned() } else { format!("{head}: {detail}") }
}

/// A value as the server prints it in messages: texts quoted as in Go, everything else as JSON.
fn go_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), quote)
}
