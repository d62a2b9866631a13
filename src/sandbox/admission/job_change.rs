//! batch/v1 Job: what of a spec never changes after creation, and what changes only at rest.

use serde_json::{Map, Value};

use super::{Causes, at, child, job_policies, text};

const IMMUTABLE: &str = "field is immutable";
/// Parts of a template's Pod spec that tell where Pods run.
const SCHEDULING: [&str; 3] = ["nodeSelector", "tolerations", "schedulingGates"];

/// The rules for the change from `old`, the whole Job, to `spec`.
pub(super) fn validate(spec: &Value, old: &Value, causes: &mut Causes) {
    let old_spec = at(old, &["spec"]);
    let changed = |field: &str| at(spec, &[field]) != at(old_spec, &[field]);
    validate_completions(spec, changed("completions"), causes);
    if changed("selector") {
        causes.invalid("spec.selector", at(spec, &["selector"]), IMMUTABLE);
    }
    validate_template(at(spec, &["template"]), old, causes);
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        let value = at(spec, &[field]);
        match field {
            _ if !changed(field) => {}
            "podFailurePolicy" => {
                causes.invalid_text("spec.podFailurePolicy", &job_policies::go_failure(value), IMMUTABLE)
            }
            "successPolicy" => causes.invalid_text("spec.successPolicy", &job_policies::go_success(value), IMMUTABLE),
            _ => causes.invalid(format!("spec.{field}"), value, IMMUTABLE),
        }
    }
}

/// Indexes may come and go as long as all of them may run at once.
fn validate_completions(spec: &Value, changed: bool, causes: &mut Causes) {
    let completions = at(spec, &["completions"]);
    if !changed {
        return;
    }
    if text(spec, &["completionMode"]) != "Indexed" {
        causes.invalid("spec.completions", completions, IMMUTABLE);
    } else if !completions.is_null() && completions != at(spec, &["parallelism"]) {
        causes.invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism");
    }
}

/// A suspended Job may be re-aimed and resized while none of its Pods is active. Only its Pod spec is compared then: other
/// metadata of the template slips through, as on the real server.
fn validate_template(template: &Value, old: &Value, causes: &mut Causes) {
    let old_template = at(old, &["spec", "template"]);
    if !at_rest(old) {
        if template != old_template {
            causes.invalid("spec.template", template, IMMUTABLE);
        }
        return;
    }
    let (mut allowed, new) = (at(old_template, &["spec"]).clone(), at(template, &["spec"]));
    SCHEDULING.iter().for_each(|field| take(&mut allowed, new, field));
    take_node_affinity(&mut allowed, new);
    take_resources(&mut allowed, new, "containers");
    take_resources(&mut allowed, new, "initContainers");
    if &allowed != new {
        causes.invalid("spec.template.spec", new, IMMUTABLE);
    }
}

/// Suspended, never started or seen to be suspended, and nothing active.
fn at_rest(old: &Value) -> bool {
    let conditions = at(old, &["status", "conditions"]).as_array().map(Vec::as_slice).unwrap_or_default();
    let suspended = conditions.iter().any(|c| text(c, &["type"]) == "Suspended" && text(c, &["status"]) == "True");
    at(old, &["spec", "suspend"]) == &Value::Bool(true)
        && (at(old, &["status", "startTime"]).is_null() || suspended)
        && at(old, &["status", "active"]).as_i64().unwrap_or_default() == 0
}

/// Makes `field` in `to` what it is in `from`, absent if it is absent there.
fn take(to: &mut Value, from: &Value, field: &str) {
    let Some(fields) = to.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => drop(fields.insert(field.to_owned(), value.clone())),
        None => drop(fields.remove(field)),
    }
}

/// An affinity may come or go with nothing but a node affinity in it.
fn take_node_affinity(to: &mut Value, from: &Value) {
    let new = from.get("affinity");
    if new.is_none() && to.get("affinity").is_none() {
        return;
    }
    let Some(affinity) = child(to, "affinity") else { return };
    take(affinity, new.unwrap_or(&Value::Null), "nodeAffinity");
    let empty = affinity.as_object().is_none_or(Map::is_empty);
    if empty && new.is_none() {
        take(to, &Value::Null, "affinity");
    }
}

/// Resources may change where the containers stay the same, one by one.
fn take_resources(to: &mut Value, from: &Value, list: &str) {
    let new = at(from, &[list]).as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(old) = to.get_mut(list).and_then(Value::as_array_mut).filter(|old| old.len() == new.len()) else { return };
    for (old, new) in old.iter_mut().zip(new) {
        if at(old, &["name"]) == at(new, &["name"]) {
            take(old, new, "resources");
        }
    }
}
