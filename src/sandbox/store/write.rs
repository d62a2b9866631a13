//! Create, update and patch.

use std::sync::Arc;

use serde_json::Value;

use super::object::{Object, encode, key_of, metadata_mut};
use super::{Answer, Moment, Store, meta};
use crate::model::WallTime;
use crate::sandbox::admission::{Operation, Undecodable, admit, decode, duplicate_fields};
use crate::sandbox::call::{Call, Subresource, Verb};
use crate::sandbox::events;
use crate::sandbox::patch;
use crate::sandbox::resources::{Resource, stored_as};
use crate::sandbox::status::{Cause, Refusal};

/// How often a generated name that is taken is drawn again.
const NAME_TRIES: usize = 8;

const FINALIZER_RULE: &str =
    "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers";

impl Store {
    pub(super) fn create(&mut self, call: &Call, moment: &mut Moment<'_>) -> Result<Answer, Refusal> {
        let mut object = read_body(call)?;
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
            return Err(Refusal::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        check_place(call, &object)?;
        let name = self.name_for_create(call, &object, moment)?;
        self.check_namespace(call, &name)?;
        let mut warnings = decoded(call, &mut object)?;
        let mut object = events::to_stored(call.resource, object);
        let resource = stored_as(call.resource);
        meta::on_create(resource, &mut object, &call.namespace, &name, moment.ids.uid(), moment.now);
        warnings.extend(admitted(call, Operation::Create, &mut object, None)?);
        let key: Arc<str> = key_of(&call.namespace, &name).into();
        if self.collection(resource).is_some_and(|collection| collection.get(&key).is_some()) {
            return Err(Refusal::already_exists(call.resource, &name));
        }
        self.check_quota(call, &name)?;
        let stored = if call.options.is_dry_run() { None } else { self.put(resource, key.clone(), &object) };
        let stored = stored.unwrap_or_else(|| Arc::new(unsaved(resource, key, None, &object)));
        self.answer(201, call, &stored, moment.now, warnings)
    }

    pub(super) fn update(&mut self, call: &Call, moment: &mut Moment<'_>) -> Result<Answer, Refusal> {
        let mut object = read_body(call)?;
        check_place(call, &object)?;
        let current = match self.find(call) {
            Ok(current) => current,
            Err(_) if creates_on_update(call) => {
                metadata_mut(&mut object).remove("resourceVersion");
                let body = serde_json::to_vec(&object).unwrap_or_default().into();
                return self.create(&Call { body, ..call.clone() }, moment);
            }
            Err(missing) => return Err(missing),
        };
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if (version.is_empty() || version == "0") && needs_version(call.resource) {
            return Err(Refusal::version_required(call.resource, &call.name));
        }
        self.replace(call, &current, current.value(), object, moment.now)
    }

    pub(super) fn patch(&mut self, call: &Call, moment: &mut Moment<'_>) -> Result<Answer, Refusal> {
        patch::check_format(call)?;
        let current = self.find(call)?;
        let stored = current.value();
        let patched = if events::is_view(call.resource) {
            patch::apply(call, &events::to_view(call.resource, stored.clone()))?
        } else {
            patch::apply(call, &stored)?
        };
        check_place(call, &patched)?;
        self.replace(call, &current, stored, patched, moment.now)
    }

    /// Writes `new` over `current` (whose tree is `old`) if the rules allow, or answers `current` if nothing would change.
    fn replace(
        &mut self,
        call: &Call,
        current: &Arc<Object>,
        mut old: Value,
        mut new: Value,
        now: WallTime,
    ) -> Result<Answer, Refusal> {
        let resource = stored_as(call.resource);
        check_assumptions(call, current, &new)?;
        if call.subresource == Subresource::Status {
            meta::keep_status_parts(&mut new);
        }
        let mut warnings = decoded(call, &mut new)?;
        let mut new = events::to_stored(call.resource, new);
        metadata_mut(&mut old).remove("resourceVersion");
        let operation = if call.subresource == Subresource::Status {
            meta::on_status_update(resource, &old, &mut new);
            Operation::UpdateStatus
        } else {
            meta::on_update(resource, &old, &mut new);
            Operation::Update
        };
        warnings.extend(admitted(call, operation, &mut new, Some(&old))?);
        check_finalizers(call, current, &old, &new)?;
        meta::raise_generation(resource, &old, &mut new);
        if new == old {
            return self.answer(200, call, current, now, warnings);
        }
        let stored = if call.options.is_dry_run() { None } else { self.settle(resource, current.key.clone(), &new) };
        let stored =
            stored.unwrap_or_else(|| Arc::new(unsaved(resource, current.key.clone(), Some(current.revision), &new)));
        self.answer(200, call, &stored, now, warnings)
    }

    /// Stores a new version, or removes the object if it was only waiting for its last finalizer to go (`None`). One whose
    /// grace runs waits for whoever is to end it.
    pub(super) fn settle(&mut self, resource: &Resource, key: Arc<str>, value: &Value) -> Option<Arc<Object>> {
        let metadata = &value["metadata"];
        let granted = metadata["deletionGracePeriodSeconds"].as_i64().is_some_and(|period| period > 0);
        let due = !metadata["deletionTimestamp"].is_null() && !granted;
        if due && meta::nothing_holds(resource, value) {
            self.remove(resource, &key);
            return None;
        }
        self.put(resource, key, value)
    }

    fn name_for_create(&self, call: &Call, object: &Value, moment: &mut Moment<'_>) -> Result<String, Refusal> {
        let metadata = &object["metadata"];
        let given = metadata["name"].as_str().unwrap_or(&call.name);
        if !given.is_empty() {
            return Ok(given.to_owned());
        }
        let base = metadata["generateName"].as_str().unwrap_or_default();
        if base.is_empty() {
            let why = "Required value: name or generateName is required";
            return Err(Refusal::invalid_field(call.resource, "", "metadata.name", why));
        }
        let taken = |name: &str| {
            let collection = self.collection(call.resource);
            collection.is_some_and(|collection| collection.get(&key_of(&call.namespace, name)).is_some())
        };
        let mut name = String::new();
        for _ in 0..NAME_TRIES {
            name = format!("{base}{}", moment.ids.suffix());
            if !taken(&name) {
                break;
            }
        }
        Ok(name)
    }
}

/// The body as a tree of the kind that the path says.
fn read_body(call: &Call) -> Result<Value, Refusal> {
    if !matches!(call.content_type.as_str(), "" | "application/json") {
        return Err(Refusal::unsupported_media_type(&["application/json"]));
    }
    let kind = call.resource.kind;
    let unrecognized = |why: String| {
        Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {why}"
        ))
    };
    let mut object: Value = serde_json::from_slice(&call.body).map_err(|error| unrecognized(error.to_string()))?;
    let expected = [("kind", call.resource.kind.to_owned()), ("apiVersion", call.resource.api_version())];
    let Some(fields) = object.as_object_mut() else {
        return Err(unrecognized("not an object".to_owned()));
    };
    for (field, expected) in expected {
        match fields.get(field).and_then(Value::as_str) {
            Some(given) if given == expected => {}
            None if !call.resource.custom => {
                fields.insert(field.to_owned(), expected.into());
            }
            None => return Err(missing(call, if field == "kind" { "Kind" } else { field })),
            Some(given) if call.resource.custom && field == "kind" => {
                let name = fields.get("metadata").and_then(|metadata| metadata["name"].as_str());
                return Err(Refusal::other_kind(call.resource, given, name.unwrap_or_default()));
            }
            Some(given) => {
                let version = call.resource.version;
                let text = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {field} is {given}");
                return Err(Refusal::bad_request(text));
            }
        }
    }
    Ok(object)
}

/// 400 for a body of a custom kind that does not say what it is.
fn missing(call: &Call, field: &str) -> Refusal {
    let body = String::from_utf8_lossy(&call.body);
    Refusal::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): Object '{field}' is missing in '{body}'",
        call.resource.kind
    ))
}

/// Namespace and name of the object agree with the path.
fn check_place(call: &Call, object: &Value) -> Result<(), Refusal> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !namespace.is_empty() && namespace != call.namespace {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(text));
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if !call.name.is_empty() && name != call.name {
        if name.is_empty() {
            let text = "was undeterminable: name must be provided";
            return Err(Refusal::bad_request(format!("the name of the object ({} based on URL) {text}", call.name)));
        }
        let text = format!("the name of the object ({name}) does not match the name on the URL ({})", call.name);
        return Err(Refusal::bad_request(text));
    }
    Ok(())
}

/// The version and the uid that a write names are the stored ones.
fn check_assumptions(call: &Call, current: &Object, new: &Value) -> Result<(), Refusal> {
    let metadata = &new["metadata"];
    let version = metadata["resourceVersion"].as_str().unwrap_or_default();
    if !version.is_empty() && version != "0" {
        let version: u64 = version
            .parse()
            .map_err(|_| Refusal::internal(format!("strconv.ParseUint: parsing \"{version}\": invalid syntax")))?;
        if version != current.revision {
            return Err(Refusal::stale(call.resource, &call.name));
        }
    }
    let uid = metadata["uid"].as_str().unwrap_or_default();
    // What a patch makes of the uid is for the validation to refuse.
    if call.verb == Verb::Update && !uid.is_empty() && uid != &*current.uid {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
             UID in precondition: {uid}, UID in object meta: {}",
            storage_key(call),
            current.uid
        );
        return Err(Refusal::conflict(call.resource, &call.name, &why));
    }
    Ok(())
}

/// The key under which the real server stores the object: some of its texts name it.
fn storage_key(call: &Call) -> String {
    let resource = stored_as(call.resource);
    let group = if resource.custom { format!("{}/", resource.group) } else { String::new() };
    format!("/registry/{group}{}/{}", resource.plural, key_of(&call.namespace, &call.name))
}

fn check_finalizers(call: &Call, current: &Object, old: &Value, new: &Value) -> Result<(), Refusal> {
    if !current.deleting {
        return Ok(());
    }
    let before = meta::finalizers(old);
    let added: Vec<&str> = meta::finalizers(new).into_iter().filter(|finalizer| !before.contains(finalizer)).collect();
    if added.is_empty() {
        return Ok(());
    }
    let quoted: Vec<String> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
    let why = format!("{FINALIZER_RULE} []string{{{}}}", quoted.join(", "));
    // The real server asks twice: once for every kind, once for this one.
    let cause = Cause::of("metadata.finalizers", &why);
    Err(Refusal::invalid(call.resource, &call.name, vec![cause.clone(), cause]))
}

/// Unknown fields dropped; the warnings about them.
fn decoded(call: &Call, object: &mut Value) -> Result<Vec<String>, Refusal> {
    // Of a patch it is the outcome that is read, and that has every field once.
    let duplicates = if call.verb == Verb::Patch { Vec::new() } else { duplicate_fields(&call.body) };
    let patched = if call.verb == Verb::Patch { patch::outcome(call, object) } else { String::new() };
    decode(call.resource, call.options.field_validation(), &duplicates, object).map_err(|Undecodable(why)| {
        let (kind, version) = (call.resource.kind, call.resource.version);
        match call.verb {
            Verb::Patch => Refusal::invalid_patch(&patched, &why),
            _ => Refusal::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")),
        }
    })
}

fn admitted(
    call: &Call,
    operation: Operation,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<Vec<String>, Refusal> {
    admit(call.resource, operation, object, old).map_err(|invalid| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Refusal::from_admission(invalid, stored_as(call.resource), name)
    })
}

/// Kinds whose PUT creates what is missing.
fn creates_on_update(call: &Call) -> bool {
    call.subresource == Subresource::Main && matches!(call.resource.plural, "leases" | "events")
}

/// Kinds whose PUT must say which version it replaces.
fn needs_version(resource: &Resource) -> bool {
    resource.custom || resource.plural == "leases"
}

/// What a dry run (or a write that removes the object) answers: encoded, not stored.
pub(super) fn unsaved(resource: &Resource, key: Arc<str>, revision: Option<u64>, value: &Value) -> Object {
    let object = Object::new(resource, key, revision.unwrap_or_default(), value);
    Object { bytes: encode(resource, revision, value), ..object }
}
