//! What of a Pod's spec changes once the Pod is there: little.

use serde_json::Value;

use super::{Causes, at, text};

const CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];

/// The rules for the change of a Pod's spec.
pub(super) fn validate(pod: &Value, old: Option<&Value>, causes: &mut Causes) {
    let Some(old) = old.map(|old| at(old, &["spec"])) else { return };
    let new = at(pod, &["spec"]);
    for list in CONTAINER_LISTS {
        if items(new, list).len() != items(old, list).len() {
            let why = "pod updates may not add or remove containers";
            return causes.forbidden(format!("spec.{list}"), why);
        }
    }
    if !validate_deadline(at(new, &["activeDeadlineSeconds"]), at(old, &["activeDeadlineSeconds"]), causes) {
        return;
    }
    validate_tolerations(items(new, "tolerations"), items(old, "tolerations"), causes);
    validate_gates(items(new, "schedulingGates"), items(old, "schedulingGates"), causes);
    if &with_changeable_parts(old, new) != new {
        causes.forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
             `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
             `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        );
    }
}

/// A deadline comes, or becomes shorter. Answers whether the other rules are asked.
fn validate_deadline(new: &Value, old: &Value, causes: &mut Causes) -> bool {
    let field = "spec.activeDeadlineSeconds";
    match (new.as_i64(), old.as_i64()) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            causes.invalid(field, new, "must be between 0 and 2147483647, inclusive");
            false
        }
        (Some(new_s), Some(old_s)) if new_s > old_s => {
            causes.invalid(field, new, "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            causes.invalid(field, new, "must not update from a positive integer to nil value");
            true
        }
        _ => true,
    }
}

/// Tolerations come; those that are there change in nothing but their time.
fn validate_tolerations(new: &[Value], old: &[Value], causes: &mut Causes) {
    let timeless = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration.as_object_mut().map(|fields| fields.remove("tolerationSeconds"));
        toleration
    };
    let new: Vec<Value> = new.iter().map(timeless).collect();
    if !old.iter().all(|toleration| new.contains(&timeless(toleration))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.forbidden("spec.tolerations", why);
    }
}

/// Gates open and never close.
fn validate_gates(new: &[Value], old: &[Value], causes: &mut Causes) {
    for (index, gate) in new.iter().enumerate().filter(|(_, gate)| !old.contains(gate)) {
        let name = text(gate, &["name"]);
        let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
        causes.forbidden(format!("spec.schedulingGates[{index}].name"), &why);
    }
}

/// The old spec with what of the new one may differ, or has been looked at already.
fn with_changeable_parts(old: &Value, new: &Value) -> Value {
    let mut allowed = old.clone();
    for list in CONTAINER_LISTS {
        let containers = allowed.get_mut(list).and_then(Value::as_array_mut);
        for (container, new) in containers.into_iter().flatten().zip(items(new, list)) {
            container["image"] = at(new, &["image"]).clone();
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        match new.get(field) {
            Some(value) => allowed[field] = value.clone(),
            None => drop(allowed.as_object_mut().and_then(|fields| fields.remove(field))),
        }
    }
    if at(old, &["terminationGracePeriodSeconds"]).as_i64().is_some_and(|grace| grace < 0)
        && at(new, &["terminationGracePeriodSeconds"]) == 1
    {
        allowed["terminationGracePeriodSeconds"] = 1.into();
    }
    allowed
}

fn items<'a>(object: &'a Value, list: &str) -> &'a [Value] {
    at(object, &[list]).as_array().map(Vec::as_slice).unwrap_or_default()
}
