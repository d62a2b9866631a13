//! Refusals: what the server answers instead of an object, as `metav1.Status` with the texts of the real server.

use serde_json::{Map, Value, json};

use super::admission::Invalid;
use super::resources::Resource;
use crate::schedule::quote;

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
    /// What `details` speaks of; `None`: there are no details unless something else needs them.
    pub about: Option<Box<About>>,
    /// `details.causes`.
    pub causes: Vec<Cause>,
    /// `details.retryAfterSeconds` and the header `Retry-After`, in seconds.
    pub retry_after_s: Option<u32>,
}

/// What a refusal is about. Empty texts are left out; all empty, `details` is `{}`, as of requests that lead nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// `details.name`.
    pub name: String,
    /// `details.group`.
    pub group: &'static str,
    /// `details.kind`: the kind of an object that is refused, the plural of a resource otherwise.
    pub kind: String,
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
        Self { code, reason, message: message.into(), about: None, causes: Vec::new(), retry_after_s: None }
    }

    fn about(self, resource: &'static Resource, name: &str) -> Self {
        let about = About { name: name.to_owned(), group: resource.group, kind: resource.plural.to_owned() };
        Self { about: Some(Box::new(about)), ..self }
    }

    fn about_kind(self, resource: &'static Resource, name: &str) -> Self {
        let about = About { name: name.to_owned(), group: resource.group, kind: resource.kind.to_owned() };
        Self { about: Some(Box::new(about)), ..self }
    }

    /// With `details` that say nothing.
    fn about_nothing(self) -> Self {
        Self { about: Some(Box::default()), ..self }
    }

    /// 404 for one object.
    pub fn not_found(resource: &'static Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", resource.qualified())).about(resource, name)
    }

    /// 404 for a path that leads nowhere.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").about_nothing()
    }

    /// 405: the resource exists, but not with this verb.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .about_nothing()
    }

    /// 406 for media types that the server does not write.
    pub fn not_acceptable() -> Self {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json";
        Self::new(406, "NotAcceptable", message).about_nothing()
    }

    /// 406 for a form of a media type that the object does not have.
    pub fn no_such_form() -> Self {
        Self::new(406, "NotAcceptable", "only the following media types are accepted: application/json")
    }

    /// 406 for one object that is asked for as a list.
    pub fn not_a_list(resource: &Resource) -> Self {
        let package =
            if resource.group.is_empty() { "core" } else { resource.group.split('.').next().unwrap_or_default() };
        let kind = resource.kind;
        let message = format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list (*{package}.{kind})"
        );
        Self::new(406, "NotAcceptable", message)
    }

    /// 415 with the media types that would do.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 415 for a patch in no format that the kind takes.
    pub fn unsupported_patch() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").about_nothing()
    }

    /// 500 for what the real server did not foresee either.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
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

    /// 409 because a delete assumes another object; such conflicts name the kind, not the resource.
    pub fn failed_precondition(resource: &'static Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified_kind());
        Self::new(409, "Conflict", message).about_kind(resource, name)
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
        let message = format!("{} \"{name}\" is invalid: {}", resource.qualified_kind(), joined(&causes));
        Self { causes, ..Self::new(422, "Invalid", message) }.about_kind(resource, name)
    }

    /// 422 for one field.
    pub fn invalid_field(resource: &'static Resource, name: &str, field: &str, message: &str) -> Self {
        Self::invalid(resource, name, vec![Cause::of(field, message)])
    }

    /// 422 for a body of the kind `given` where a custom kind is served.
    pub fn other_kind(resource: &'static Resource, given: &str, name: &str) -> Self {
        let causes = vec![Cause::of("kind", &format!("Invalid value: {}: must be {}", quote(given), resource.kind))];
        let message = format!("{given}.{} \"{name}\" is invalid: {}", resource.group, joined(&causes));
        let about = About { name: name.to_owned(), group: resource.group, kind: given.to_owned() };
        Self { causes, about: Some(Box::new(about)), ..Self::new(422, "Invalid", message) }
    }

    /// 422 for a PUT of a kind that must say which version it replaces; it names the resource, not the kind.
    pub fn version_required(resource: &'static Resource, name: &str) -> Self {
        let causes = vec![Cause::of("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")];
        let message = format!("{} \"{name}\" is invalid: {}", resource.qualified(), joined(&causes));
        Self { causes, ..Self::new(422, "Invalid", message) }.about(resource, name)
    }

    /// 422 for query parameters or a body of options, by their kind: `ListOptions`, `DeleteOptions`, ...
    pub fn invalid_options(kind: &'static str, causes: Vec<Cause>) -> Self {
        let message = format!("{kind}.meta.k8s.io \"\" is invalid: {}", joined(&causes));
        let about = About { name: String::new(), group: "meta.k8s.io", kind: kind.to_owned() };
        Self { causes, about: Some(Box::new(about)), ..Self::new(422, "Invalid", message) }
    }

    /// 422 for a patch whose outcome `patched` is no object of the kind.
    pub fn invalid_patch(patched: &str, why: &str) -> Self {
        let causes = vec![Cause::of("patch", &format!("Invalid value: {}: {why}", quote(patched)))];
        let message = format!(" \"\" is invalid: {}", joined(&causes));
        Self { causes, ..Self::new(422, "Invalid", message) }
    }

    /// 422 for a JSON patch that cannot be applied. The server keeps to itself why.
    pub fn patch_rejected() -> Self {
        Self::new(422, "Invalid", "the server rejected our request due to an error in our request").about_nothing()
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
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
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
        Self { causes, ..refusal }.about_kind(resource, name)
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if self.reason.is_empty()
            && let Some(map) = status.as_object_mut()
        {
            map.remove("reason");
        }
        if self.about.is_some() || !self.causes.is_empty() || self.retry_after_s.is_some() {
            status["details"] = self.details();
        }
        status
    }

    fn details(&self) -> Value {
        let mut details = Map::new();
        if let Some(about) = &self.about {
            let texts = [("name", about.name.as_str()), ("group", about.group), ("kind", about.kind.as_str())];
            for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
                details.insert(key.to_owned(), text.into());
            }
        }
        if !self.causes.is_empty() {
            details.insert("causes".to_owned(), self.causes.iter().map(Cause::to_value).collect());
        }
        if let Some(after_s) = self.retry_after_s {
            details.insert("retryAfterSeconds".to_owned(), after_s.into());
        }
        Value::Object(details)
    }
}

impl Cause {
    /// A cause whose reason follows from the beginning of its message.
    pub fn of(field: &str, message: &str) -> Self {
        let reason = match message.split([' ', ':']).next() {
            Some("Required") => "FieldValueRequired",
            Some("Forbidden") => "FieldValueForbidden",
            Some("Unsupported") => "FieldValueNotSupported",
            _ => "FieldValueInvalid",
        };
        Self { reason: reason.to_owned(), message: message.to_owned(), field: field.to_owned() }
    }

    fn to_value(&self) -> Value {
        let mut cause = json!({ "reason": self.reason, "message": self.message });
        if !self.field.is_empty() {
            cause["field"] = self.field.as_str().into();
        }
        cause
    }
}

/// The causes in one line; what stands twice among them is said once.
fn joined(causes: &[Cause]) -> String {
    join_once(causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)))
}

/// One text as it is, several in brackets; repetitions are left out.
pub(super) fn join_once(texts: impl Iterator<Item = String>) -> String {
    let mut once: Vec<String> = Vec::new();
    for text in texts {
        if !once.contains(&text) {
            once.push(text);
        }
    }
    if let [only] = once.as_slice() { only.clone() } else { format!("[{}]", once.join(", ")) }
}
