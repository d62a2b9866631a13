//! Refusals: what the server answers instead of an object, as `metav1.Status` with the texts of the real server.

use serde_json::{Map, Value, json};

use super::admission::Invalid;
use super::resources::Resource;

/// Why a request was refused. Becomes a `Status` object and an HTTP code.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// HTTP status code, repeated in the object.
    pub code: u16,
    /// Machine-readable reason (`NotFound`, `Conflict`, ...); empty for an unknown one.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
    /// `details.name`; empty if the refusal is about no single object.
    pub name: String,
    /// What `details.group` and `details.kind` speak of.
    pub resource: Option<&'static Resource>,
    /// `details.causes`.
    pub causes: Vec<Cause>,
    /// `details.retryAfterSeconds` and the header `Retry-After`, in seconds.
    pub retry_after_s: Option<u32>,
}

/// One entry of `details.causes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueInvalid`, `NamespaceTerminating`, ...
    pub reason: String,
    /// What is wrong, without the field.
    pub message: String,
    /// Path of the field, as in `spec.schedule`; may be empty.
    pub field: String,
}

impl Refusal {
    /// A refusal with neither details nor causes.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            name: String::new(),
            resource: None,
            causes: Vec::new(),
            retry_after_s: None,
        }
    }

    fn about(mut self, resource: &'static Resource, name: &str) -> Self {
        (self.resource, self.name) = (Some(resource), name.to_owned());
        self
    }

    /// 404 for one object.
    pub fn not_found(resource: &'static Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", resource.qualified())).about(resource, name)
    }

    /// 404 for a path that leads nowhere.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// 405: the resource exists, but not with this verb.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    /// 406 with the media types that would do.
    pub fn not_acceptable() -> Self {
        Self::new(406, "NotAcceptable", "only the following media types are accepted: application/json")
    }

    /// 415 with the media types that would do.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 400 with a text.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 409 because the name is taken.
    pub fn already_exists(resource: &'static Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    /// 409 because the object is not what the request assumes.
    pub fn conflict(resource: &'static Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// 409 because the resourceVersion of a write is not the stored one.
    pub fn stale(resource: &'static Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 403 with a text that follows `is forbidden: `.
    pub fn forbidden(resource: &'static Resource, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", resource.qualified());
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// 403 for a create in a namespace that is going away.
    pub fn namespace_terminating(resource: &'static Resource, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        Self { causes: vec![cause], ..Self::forbidden(resource, name, &why) }
    }

    /// 422 with one cause per bad field.
    pub fn invalid(resource: &'static Resource, name: &str, causes: Vec<Cause>) -> Self {
        let texts: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let all = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
        let kind = if resource.group.is_empty() {
            resource.kind.to_owned()
        } else {
            format!("{}.{}", resource.kind, resource.group)
        };
        let refusal = Self::new(422, "Invalid", format!("{kind} \"{name}\" is invalid: {all}"));
        Self { causes, ..refusal.about(resource, name) }
    }

    /// 422 for one field.
    pub fn invalid_field(resource: &'static Resource, name: &str, field: &str, message: &str) -> Self {
        let reason = if message.starts_with("Required") {
            "FieldValueRequired"
        } else if message.starts_with("Forbidden") {
            "FieldValueForbidden"
        } else {
            "FieldValueInvalid"
        };
        let cause = Cause { reason: reason.to_owned(), message: message.to_owned(), field: field.to_owned() };
        Self::invalid(resource, name, vec![cause])
    }

    /// 410: the event log no longer reaches back to `asked`; it starts after `oldest`.
    pub fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    /// 504: a list that asks for a revision that is not written yet.
    pub fn ahead(asked: u64, current: u64) -> Self {
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let message = format!("Too large resource version: {asked}, current: {current}");
        Self { causes: vec![cause], retry_after_s: Some(1), ..Self::new(504, "Timeout", message) }
    }

    /// What admission says of an object, with the details of the request that brought it.
    pub fn from_admission(invalid: Invalid, resource: &'static Resource, name: &str) -> Self {
        let refusal = Self::new(invalid.code, invalid.reason, invalid.message);
        if invalid.reason != "Invalid" {
            return refusal;
        }
        let cause = |cause: super::admission::Cause| Cause {
            reason: cause.reason.to_owned(),
            message: cause.message,
            field: cause.field,
        };
        let causes = invalid.causes.into_iter().map(cause).collect();
        Self { causes, ..refusal.about(resource, name) }
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut details = Map::new();
        let mut put = |key: &str, text: &str| {
            if !text.is_empty() {
                details.insert(key.to_owned(), text.into());
            }
        };
        put("name", &self.name);
        if let Some(resource) = self.resource {
            put("group", resource.group);
            // Of an invalid object the real server says the kind, otherwise the plural.
            put("kind", if self.code == 422 { resource.kind } else { resource.plural });
        }
        if !self.causes.is_empty() {
            details.insert("causes".to_owned(), self.causes.iter().map(Cause::to_value).collect());
        }
        if let Some(after_s) = self.retry_after_s {
            details.insert("retryAfterSeconds".to_owned(), after_s.into());
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if self.reason.is_empty()
            && let Some(map) = status.as_object_mut()
        {
            map.remove("reason");
        }
        if !details.is_empty() {
            status["details"] = Value::Object(details);
        }
        status
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut cause = json!({ "reason": self.reason, "message": self.message });
        if !self.field.is_empty() {
            cause["field"] = self.field.as_str().into();
        }
        cause
    }
}
