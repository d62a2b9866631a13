//! Pods: what a status always has, what a write of it leaves alone, and what it may not say.

use serde_json::{Map, Value, json};

use super::{Causes, at, metadata, set_default, text};

/// Conditions that need no look at their name.
const SYSTEM_CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];

/// Conditions carry their two times even if nobody set them.
pub(super) fn default_conditions(object: &mut Value) {
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        for time in ["lastProbeTime", "lastTransitionTime"] {
            condition.entry(time).or_insert(Value::Null);
        }
        condition.entry("type").or_insert_with(|| "".into());
    }
}

/// What a Pod's status has in any case.
pub(super) fn default(pod: &mut Value) {
    default_conditions(pod);
    let Some(status) = pod.get_mut("status") else { return };
    for list in ["containerStatuses", "initContainerStatuses"] {
        let containers = status.get_mut(list).and_then(Value::as_array_mut);
        containers.into_iter().flatten().for_each(default_container);
    }
    let address = text(status, &["podIP"]).to_owned();
    if !address.is_empty() {
        set_default(status, "podIPs", json!([{ "ip": address }]));
    }
}

fn default_container(container: &mut Value) {
    for state in ["lastState", "state"] {
        set_default(container, state, Map::new());
        for (kind, times) in [("running", &["startedAt"][..]), ("terminated", &["startedAt", "finishedAt"])] {
            let of = container.get_mut(state).and_then(|state| state.get_mut(kind)).and_then(Value::as_object_mut);
            if let Some(fields) = of {
                times.iter().for_each(|time| {
                    fields.entry(*time).or_insert(Value::Null);
                });
            }
        }
    }
}

/// What a write of the status leaves as it is: the owners, since old kubelets spoilt them, and the class.
pub(super) fn keep(pod: &mut Value, old: Option<&Value>) {
    let Some(old) = old else { return };
    if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
        match old.pointer("/metadata/ownerReferences") {
            Some(owners) => metadata.insert("ownerReferences".to_owned(), owners.clone()),
            None => metadata.remove("ownerReferences"),
        };
    }
    let class = at(old, &["status", "qosClass"]).clone();
    if let Some(status) = pod.get_mut("status").filter(|_| !class.is_null()) {
        set_default(status, "qosClass", class);
    }
}

/// The rules for a change of the status.
pub(super) fn validate(pod: &Value, old: Option<&Value>, causes: &mut Causes) {
    for (index, condition) in items(pod, "conditions").iter().enumerate() {
        let kind = text(condition, &["type"]);
        if !SYSTEM_CONDITIONS.contains(&kind) {
            let field = format!("status.conditions[{index}].Type");
            metadata::qualified_name(kind).iter().for_each(|why| causes.invalid(&*field, &kind.into(), why));
        }
    }
    let Some(old) = old else { return };
    let class = at(pod, &["status", "qosClass"]);
    if class != at(old, &["status", "qosClass"]) {
        causes.invalid("status.qosClass", class, "field is immutable");
    }
    if text(old, &["spec", "restartPolicy"]) != "Always" {
        validate_ends(pod, old, "containerStatuses", causes);
    }
}

/// What has ended for good does not run again.
fn validate_ends(pod: &Value, old: &Value, list: &str, causes: &mut Causes) {
    let restarts = text(old, &["spec", "restartPolicy"]) == "OnFailure";
    for (index, was) in items(old, list).iter().enumerate() {
        let end = at(was, &["state", "terminated"]);
        if end.is_null() || (restarts && at(end, &["exitCode"]) != 0) {
            continue;
        }
        let now = items(pod, list).iter().find(|now| at(now, &["name"]) == at(was, &["name"]));
        if now.is_some_and(|now| at(now, &["state", "terminated"]).is_null()) {
            let field = format!("status.{list}[{index}].state");
            causes.forbidden(field, "may not be transitioned to non-terminated state");
        }
    }
}

fn items<'a>(pod: &'a Value, list: &str) -> &'a [Value] {
    at(pod, &["status", list]).as_array().map(Vec::as_slice).unwrap_or_default()
}
