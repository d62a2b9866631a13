//! batch/v1 Job: defaults, the generated selector, warnings.

use serde_json::Value;

use super::{Operation, at, child, metadata, pod, set_default, text};

/// The two names of each generated label: today's and the one from before labels had prefixes.
pub(super) const UID_LABELS: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
pub(super) const NAME_LABELS: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

/// What stands before every check: defaults, and on create the generated selector.
pub(super) fn prepare(operation: Operation, object: &mut Value) {
    match operation {
        Operation::Create => {
            default(object);
            // The real server lets the Job's labels be those of the template, not a copy: what is generated is added to both,
            // and looked at in both. Labels that are all generated come to the Job only when it is read.
            let shared = at(object, &["spec", "template", "metadata", "labels"]).is_object();
            let own = at(object, &["metadata", "labels"]).is_object();
            generate_selector(object);
            if shared && !own {
                default_labels(object);
            }
        }
        Operation::Update => {
            default(object);
            default_labels(object);
        }
        Operation::UpdateStatus => default_labels(object),
    }
}

/// Defaults of the spec and of its Pod template.
fn default(object: &mut Value) {
    let Some(spec) = child(object, "spec") else { return };
    // A Job with only `parallelism` is a work queue: its completions stay open.
    if at(spec, &["completions"]).is_null() && at(spec, &["parallelism"]).is_null() {
        set_default(spec, "completions", 1);
    }
    set_default(spec, "parallelism", 1);
    let per_index = !at(spec, &["backoffLimitPerIndex"]).is_null();
    set_default(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
    set_default(spec, "completionMode", "NonIndexed");
    set_default(spec, "suspend", false);
    set_default(spec, "manualSelector", false);
    let only_failed = !at(spec, &["podFailurePolicy"]).is_null();
    set_default(spec, "podReplacementPolicy", if only_failed { "Failed" } else { "TerminatingOrFailed" });
    default_policies(spec);
    if let Some(template) = child(spec, "template") {
        pod::default_template(template);
    }
}

/// Conditions in a Pod failure policy are about status `True` unless they say otherwise.
pub(super) fn default_policies(spec: &mut Value) {
    if let Some(policy) = spec.get_mut("podFailurePolicy").and_then(Value::as_object_mut) {
        // A list that is always printed.
        policy.entry("rules").or_insert(Value::Null);
    }
    let rules = spec.pointer_mut("/podFailurePolicy/rules").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        let patterns = rule.get_mut("onPodConditions").and_then(Value::as_array_mut);
        patterns.into_iter().flatten().for_each(|pattern| set_default(pattern, "status", "True"));
    }
}

/// Adds the labels that tie Pods to this Job, and the selector, unless the user manages them.
fn generate_selector(object: &mut Value) {
    if at(object, &["spec", "manualSelector"]) == &Value::Bool(true) {
        return;
    }
    let uid = text(object, &["metadata", "uid"]).to_owned();
    let name = text(object, &["metadata", "name"]).to_owned();
    let Some(spec) = child(object, "spec") else { return };
    let labels = child(spec, "template").and_then(|template| child(template, "metadata"));
    if let Some(labels) = labels.and_then(|metadata| child(metadata, "labels")) {
        UID_LABELS.iter().for_each(|label| set_default(labels, label, uid.as_str()));
        NAME_LABELS.iter().for_each(|label| set_default(labels, label, name.as_str()));
    }
    if let Some(labels) = child(spec, "selector").and_then(|selector| child(selector, "matchLabels")) {
        set_default(labels, UID_LABELS[0], uid.as_str());
    }
}

/// A Job without labels carries those of its Pod template, the generated ones included.
pub(super) fn default_labels(object: &mut Value) {
    let template = at(object, &["spec", "template", "metadata", "labels"]).clone();
    let Some(metadata) = child(object, "metadata") else { return };
    let none = at(metadata, &["labels"]).as_object().is_none_or(serde_json::Map::is_empty);
    if none && template.is_object() {
        metadata["labels"] = template;
    }
}

pub(super) fn warn(object: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    if old.is_none() {
        metadata::warn_pod_name(Operation::Create, text(object, &["metadata", "name"]), warnings);
    }
    // A change of anything but the spec is none that anybody needs to be warned about.
    if old.is_some_and(|old| at(old, &["spec"]) == at(object, &["spec"])) {
        return;
    }
    let number = |field| at(object, &["spec", field]).as_i64().unwrap_or_default();
    let indexed = text(object, &["spec", "completionMode"]) == "Indexed";
    if indexed && number("completions") > 100_000 && number("parallelism") > 10_000 {
        warnings.push(
            "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
                .to_owned(),
        );
    }
}
