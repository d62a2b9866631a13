//! Delete, delete a collection, and namespaces that empty themselves.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::deletion::{self, Deletion, Propagation};
use super::object::{Object, child_mut};
use super::write::unsaved;
use super::{Answer, ListSource, Store};
use crate::model::WallTime;
use crate::sandbox::call::Call;
use crate::sandbox::options::unsupported_dry_run;
use crate::sandbox::render::View;
use crate::sandbox::resources::{RESOURCES, Resource, find, stored_as};
use crate::sandbox::status::{Cause, Refusal};

const ORPHAN_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                              remove them or set propagationPolicy=Orphan to suppress this warning";

/// The body of a DELETE.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeleteOptions {
    preconditions: Preconditions,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    grace_period_seconds: Option<i64>,
    dry_run: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    fn parse(call: &Call) -> Result<Self, Refusal> {
        let mut options: Self = if call.body.is_empty() {
            Self::default()
        } else {
            serde_json::from_slice(&call.body).map_err(|error| {
                Refusal::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
            })?
        };
        if options.propagation_policy.is_none() && !call.options.propagation_policy.is_empty() {
            options.propagation_policy = Some(call.options.propagation_policy.clone());
        }
        options.grace_period_seconds = options.grace_period_seconds.or(call.options.grace_period_s);
        let causes = options.broken();
        if causes.is_empty() { Ok(options) } else { Err(Refusal::invalid_options("DeleteOptions", causes)) }
    }

    fn broken(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        if let (Some(policy), Some(_)) = (&self.propagation_policy, self.orphan_dependents) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            causes.push(Cause::of("propagationPolicy", &format!("Invalid value: \"{policy}\": {why}")));
        }
        if let Some(policy) = self.propagation_policy.as_deref()
            && !matches!(policy, "Foreground" | "Background" | "Orphan")
        {
            let supported = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
            causes.push(Cause::of("propagationPolicy", &format!("Unsupported value: \"{policy}\": {supported}")));
        }
        causes.extend(unsupported_dry_run(&self.dry_run));
        causes
    }

    fn is_dry_run(&self, call: &Call) -> bool {
        call.options.is_dry_run() || self.dry_run.iter().any(|part| part == "All")
    }

    /// What was asked for; `None`: the default of the kind.
    fn propagation(&self) -> Option<Propagation> {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some(_), _) | (None, Some(false)) => Some(Propagation::Background),
            (None, None) => None,
        }
    }

    fn check(&self, call: &Call, object: &Object) -> Result<(), Refusal> {
        let conflict = |what: &str, asked: &str, stored: &str, hint: &str| {
            let why = format!(
                "the {what} in the precondition ({asked}) does not match the {what} in record ({stored}). \
                 The object might have been {hint}"
            );
            Err(Refusal::failed_precondition(call.resource, &call.name, &why))
        };
        match (&self.preconditions.uid, &self.preconditions.resource_version) {
            (Some(uid), _) if **uid != *object.uid => conflict("UID", uid, &object.uid, "deleted and then recreated"),
            (_, Some(version)) if *version != object.revision.to_string() => {
                conflict("ResourceVersion", version, &object.revision.to_string(), "modified")
            }
            _ => Ok(()),
        }
    }
}

impl Store {
    pub(super) fn delete(&mut self, call: &Call, now: WallTime) -> Result<Answer, Refusal> {
        let options = DeleteOptions::parse(call)?;
        let object = self.find(call)?;
        options.check(call, &object)?;
        check_not_protected(call)?;
        let asked = options.propagation();
        let propagation = asked.unwrap_or_else(|| standing_propagation(&object, call.resource));
        let mut warnings = Vec::new();
        if asked.is_none() && Propagation::default_of(call.resource) == Propagation::Orphan {
            warnings.push(ORPHAN_WARNING.to_owned());
        }
        let resource = stored_as(call.resource);
        let deletion = deletion::decide(resource, &object, propagation, options.grace_period_seconds, now);
        let removes = matches!(deletion, Deletion::Removes(_));
        let last = if options.is_dry_run(call) {
            unwritten(resource, &object, deletion)
        } else {
            self.apply_deletion(resource, &object, deletion)
        };
        if removes && !returns_object(call.resource) {
            return Ok(Answer { warnings, ..Answer::json(200, success(call, &object).to_string()) });
        }
        self.answer(200, call, &last, now, warnings)
    }

    /// Deletes every selected object and answers them as a list.
    pub(super) fn delete_collection(&mut self, call: &Call, now: WallTime) -> Result<Answer, Refusal> {
        let options = DeleteOptions::parse(call)?;
        let asked = options.propagation();
        let (selected, metadata, _) = self.select(call, ListSource::Current)?;
        if !options.is_dry_run(call) {
            for object in &selected {
                let propagation = asked.unwrap_or_else(|| standing_propagation(object, call.resource));
                self.delete_object(stored_as(call.resource), object, propagation, options.grace_period_seconds, now);
            }
        }
        let view = View::of(call, now);
        Ok(Answer::json(200, view.many(&selected, &metadata, self.revision)))
    }

    /// Removes an object, or marks it if finalizers or its grace hold it.
    pub(super) fn delete_object(
        &mut self,
        resource: &'static Resource,
        object: &Arc<Object>,
        propagation: Propagation,
        grace_s: Option<i64>,
        now: WallTime,
    ) {
        let deletion = deletion::decide(resource, object, propagation, grace_s, now);
        self.apply_deletion(resource, object, deletion);
    }

    /// Writes what has been decided. Answers the last version.
    fn apply_deletion(&mut self, resource: &Resource, object: &Arc<Object>, deletion: Deletion) -> Arc<Object> {
        let (version, removes) = match deletion {
            Deletion::Marks(value) => (Some(value), false),
            Deletion::Removes(value) => (value, true),
        };
        let changed = version.filter(|value| *value != object.value());
        let marked = changed.and_then(|value| self.put(resource, object.key.clone(), &value));
        let last = marked.unwrap_or_else(|| object.clone());
        if !removes {
            return last;
        }
        self.remove(resource, &object.key);
        // Its last version, as of the deletion.
        Arc::new(last.restamped(resource, self.revision.max(last.revision)))
    }

    /// Whether a namespace is being emptied.
    pub fn namespaces_pending(&self) -> bool {
        let namespaces = find("", "v1", "namespaces").and_then(|resource| self.collection(resource));
        namespaces.is_some_and(|namespaces| namespaces.range("", None).any(|namespace| namespace.deleting))
    }

    /// Empties namespaces that are being deleted, and removes those that are empty. Answers how many objects were written or
    /// removed.
    pub fn namespace_step(&mut self, now: WallTime) -> usize {
        let Some(resource) = find("", "v1", "namespaces") else { return 0 };
        let terminating: Vec<Arc<Object>> = self
            .collection(resource)
            .into_iter()
            .flat_map(|namespaces| namespaces.range("", None))
            .filter(|namespace| namespace.deleting)
            .cloned()
            .collect();
        terminating.iter().map(|namespace| self.empty_namespace(resource, namespace, now)).sum()
    }

    fn empty_namespace(&mut self, resource: &Resource, namespace: &Object, now: WallTime) -> usize {
        let mut writes = 0;
        for row in RESOURCES.iter().filter(|row| row.namespaced) {
            let content: Vec<Arc<Object>> = self
                .collection(row)
                .into_iter()
                .flat_map(|collection| collection.range(namespace.name(), None))
                .filter(|object| !object.deleting)
                .cloned()
                .collect();
            for object in content {
                self.delete_object(stored_as(row), &object, Propagation::Background, None, now);
                writes += 1;
            }
        }
        let mut left = RESOURCES.iter().filter(|row| row.namespaced).filter_map(|row| self.collection(row));
        if left.any(|collection| collection.range(namespace.name(), None).next().is_some()) {
            return writes;
        }
        let mut value = namespace.value();
        child_mut(&mut value, "spec").remove("finalizers");
        self.settle(resource, namespace.key.clone(), &value);
        writes + 1
    }
}

/// The namespaces of every cluster stay.
fn check_not_protected(call: &Call) -> Result<(), Refusal> {
    let protected = ["default", "kube-public", "kube-system"].contains(&call.name.as_str());
    if call.resource.plural == "namespaces" && protected {
        return Err(Refusal::forbidden(call.resource, &call.name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// What the dry run of a delete answers.
fn unwritten(resource: &Resource, object: &Arc<Object>, deletion: Deletion) -> Arc<Object> {
    match deletion {
        Deletion::Marks(value) | Deletion::Removes(Some(value)) => {
            Arc::new(unsaved(resource, object.key.clone(), Some(object.revision), &value))
        }
        Deletion::Removes(None) => object.clone(),
    }
}

fn standing_propagation(object: &Object, resource: &Resource) -> Propagation {
    Propagation::standing(object, Propagation::default_of(resource))
}

/// Kinds whose DELETE answers the object rather than a Status.
fn returns_object(resource: &Resource) -> bool {
    resource.group.is_empty() && matches!(resource.plural, "pods" | "serviceaccounts" | "resourcequotas")
}

fn success(call: &Call, object: &Object) -> Value {
    let mut details = json!({ "name": object.name(), "kind": call.resource.plural, "uid": &*object.uid });
    if !call.resource.group.is_empty() {
        details["group"] = call.resource.group.into();
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}
