//! batch/v1 Job: what a valid spec is, and what of it never changes.

use serde_json::Value;

use super::job::{NAME_LABELS, UID_LABELS};
use super::{Causes, at, metadata, pod, text};

/// Fields that never change after creation. The template has rules of its own, completions depend on the mode.
const IMMUTABLE: [&str; 5] =
    ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"];
const COUNTS: [&str; 7] = [
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
];
const MAX_PARALLELISM: i64 = 100_000;

/// The rules for a Job, with those for changes if there is an old one.
pub(super) fn validate(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = at(object, &["spec"]);
    if at(spec, &["manualSelector"]) != &Value::Bool(true) {
        validate_generated(object, old, causes);
    }
    validate_whole(spec, causes);
    match old {
        None => validate_pod_names(object, causes),
        Some(old) => {
            // The real server asks for the whole spec once more when it looks at the change.
            validate_whole(spec, causes);
            validate_change(spec, old, causes);
        }
    }
}

fn validate_whole(spec: &Value, causes: &mut Causes) {
    validate_spec(spec, "spec", causes);
    validate_selector(spec, causes);
}

/// The rules for `spec.jobTemplate` of a CronJob; `field` is its path. Its metadata is not looked at.
pub(super) fn validate_template(template: &Value, field: &str, causes: &mut Causes) {
    let spec = at(template, &["spec"]);
    let field = format!("{field}.spec");
    validate_spec(spec, &field, causes);
    let selector = at(spec, &["selector"]);
    if !selector.is_null() {
        causes.invalid(format!("{field}.selector"), selector, "`selector` will be auto-generated");
    }
    let manual = at(spec, &["manualSelector"]);
    if manual == &Value::Bool(true) {
        causes.unsupported(format!("{field}.manualSelector"), manual, &["nil", "false"]);
    }
}

/// The generated labels name this Job; on update those with a prefix are asked for only if the old Job had both.
fn validate_generated(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let label = |object, name| at(object, &["spec", "template", "metadata", "labels", name]).clone();
    let prefixed =
        old.is_none_or(|old| [UID_LABELS[0], NAME_LABELS[0]].iter().all(|name: &&str| !label(old, *name).is_null()));
    for (names, field) in [(UID_LABELS, "uid"), (NAME_LABELS, "name")] {
        let expected = text(object, &["metadata", field]);
        for name in names.iter().filter(|name| prefixed || !name.contains('/')) {
            let found = label(object, name);
            if found.as_str() != Some(expected) {
                let field = format!("spec.template.metadata.labels[{name}]");
                match found {
                    Value::Null => causes.required(field, &format!("must be '{expected}'")),
                    _ => {
                        let labels = at(object, &["spec", "template", "metadata", "labels"]);
                        causes.invalid(field, labels, &format!("must be '{expected}'"));
                    }
                }
            }
        }
    }
    let selector = at(object, &["spec", "selector"]);
    let wanted = if prefixed { UID_LABELS[0] } else { UID_LABELS[1] };
    let generated = serde_json::json!({ "matchLabels": { wanted: at(object, &["metadata", "uid"]) } });
    if selector != &generated {
        causes.invalid("spec.selector", selector, "`selector` not auto-generated");
    }
}

fn validate_spec(spec: &Value, field: &str, causes: &mut Causes) {
    for count in COUNTS {
        causes.non_negative(format!("{field}.{count}"), at(spec, &[count]));
    }
    validate_mode(spec, field, causes);
    let manager = at(spec, &["managedBy"]);
    if manager.as_str().is_some_and(|manager| !manager.contains('/')) {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        causes.invalid(format!("{field}.managedBy"), manager, why);
    }
    let policies: &[&str] =
        if at(spec, &["podFailurePolicy"]).is_null() { &["Failed", "TerminatingOrFailed"] } else { &["Failed"] };
    let policy = at(spec, &["podReplacementPolicy"]);
    if !policy.is_null() && !policies.contains(&policy.as_str().unwrap_or_default()) {
        causes.unsupported(format!("{field}.podReplacementPolicy"), policy, policies);
    }
    let template = format!("{field}.template");
    pod::validate_template(at(spec, &["template"]), &template, causes);
    let restart = at(spec, &["template", "spec", "restartPolicy"]);
    let field = format!("{template}.spec.restartPolicy");
    match restart.as_str().unwrap_or_default() {
        "OnFailure" if !at(spec, &["podFailurePolicy"]).is_null() => {
            causes.invalid(field, restart, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        "OnFailure" | "Never" => {}
        "" | "Always" => causes.required(field, "valid values: \"OnFailure\", \"Never\""),
        _ => causes.unsupported(field, restart, &["OnFailure", "Never"]),
    }
}

/// Indexed Jobs have completions and a bound on parallelism; what needs indexes is refused without them.
fn validate_mode(spec: &Value, field: &str, causes: &mut Causes) {
    let mode = at(spec, &["completionMode"]);
    match mode.as_str() {
        Some("Indexed") => {
            if at(spec, &["completions"]).is_null() {
                causes.required(format!("{field}.completions"), "when completion mode is Indexed");
            }
            let parallelism = at(spec, &["parallelism"]);
            if parallelism.as_i64().is_some_and(|number| number > MAX_PARALLELISM) {
                let why = format!("must be less than or equal to {MAX_PARALLELISM} when completion mode is Indexed");
                causes.invalid(format!("{field}.parallelism"), parallelism, &why);
            }
            return;
        }
        None | Some("NonIndexed") => {}
        Some(_) => causes.unsupported(format!("{field}.completionMode"), mode, &["NonIndexed", "Indexed"]),
    }
    for needs in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
        let value = at(spec, &[needs]);
        if !value.is_null() {
            causes.invalid(format!("{field}.{needs}"), value, "requires indexed completion mode");
        }
    }
}

fn validate_selector(spec: &Value, causes: &mut Causes) {
    let selector = at(spec, &["selector"]);
    if selector.is_null() {
        causes.required("spec.selector", "");
    }
    let labels = at(spec, &["template", "metadata", "labels"]);
    // No selector at all selects nothing, an empty one everything.
    let matches = !selector.is_null()
        && at(selector, &["matchLabels"])
            .as_object()
            .is_none_or(|wanted| wanted.iter().all(|(name, value)| labels.get(name) == Some(value)));
    if !matches {
        causes.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`");
    }
}

/// The Pod of the last index must still have a valid name.
fn validate_pod_names(object: &Value, causes: &mut Causes) {
    let name = at(object, &["metadata", "name"]);
    let completions = at(object, &["spec", "completions"]).as_i64().unwrap_or_default();
    if text(object, &["spec", "completionMode"]) != "Indexed" || completions < 1 {
        return;
    }
    let last = format!("{}-{}", name.as_str().unwrap_or_default(), completions - 1);
    if !metadata::dns_label(&last).is_empty() {
        let why = format!("will not able to create pod with invalid DNS label: {last}");
        causes.invalid("metadata.name", name, &why);
    }
}

fn validate_change(spec: &Value, old: &Value, causes: &mut Causes) {
    let old_spec = at(old, &["spec"]);
    let mut immutable = |field: &str, new: &Value| causes.invalid(format!("spec.{field}"), new, "field is immutable");
    let completions = at(spec, &["completions"]);
    let elastic = text(spec, &["completionMode"]) == "Indexed";
    if completions != at(old_spec, &["completions"]) && !elastic {
        immutable("completions", completions);
    }
    if at(spec, &["selector"]) != at(old_spec, &["selector"]) {
        immutable("selector", at(spec, &["selector"]));
    }
    let template = at(spec, &["template"]);
    if may_change_template(old) {
        if template != &with_mutable_parts(old_spec, template) {
            immutable("template.spec", at(template, &["spec"]));
        }
    } else if template != at(old_spec, &["template"]) {
        immutable("template", template);
    }
    for field in IMMUTABLE.iter().filter(|field| at(spec, &[field]) != at(old_spec, &[field])) {
        immutable(field, at(spec, &[field]));
    }
    if completions != at(old_spec, &["completions"]) && elastic && completions != at(spec, &["parallelism"]) {
        let why = "can only be modified in tandem with spec.parallelism";
        causes.invalid("spec.completions", completions, why);
    }
}

/// A Job that is suspended and runs nothing may be re-aimed before it starts.
fn may_change_template(old: &Value) -> bool {
    let conditions = at(old, &["status", "conditions"]).as_array().map(Vec::as_slice).unwrap_or_default();
    let suspended = conditions.iter().any(|c| text(c, &["type"]) == "Suspended" && text(c, &["status"]) == "True");
    at(old, &["spec", "suspend"]) == &Value::Bool(true)
        && (at(old, &["status", "startTime"]).is_null() || suspended)
        && at(old, &["status", "active"]).as_i64().unwrap_or_default() == 0
}

/// The old template with the new one's labels, annotations, scheduling directives and resources.
fn with_mutable_parts(old_spec: &Value, new: &Value) -> Value {
    let mut template = at(old_spec, &["template"]).clone();
    let fixed = [
        "/metadata/labels",
        "/metadata/annotations",
        "/spec/nodeSelector",
        "/spec/tolerations",
        "/spec/schedulingGates",
        "/spec/affinity/nodeAffinity",
    ];
    fixed.iter().for_each(|pointer| copy(&mut template, new, pointer));
    for list in ["containers", "initContainers"] {
        let count = at(&template, &["spec", list]).as_array().map_or(0, Vec::len);
        for index in 0..count {
            copy(&mut template, new, &format!("/spec/{list}/{index}/resources"));
        }
    }
    template
}

/// Makes the value at `pointer` in `to` what it is in `from`, absent if it is absent there.
fn copy(to: &mut Value, from: &Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    let value = from.pointer(pointer);
    if value.is_some() && to.pointer(parent).is_none() {
        let Some((grandparent, parent)) = parent.rsplit_once('/') else { return };
        if let Some(fields) = to.pointer_mut(grandparent).and_then(Value::as_object_mut) {
            fields.insert(parent.to_owned(), Value::Object(serde_json::Map::new()));
        }
    }
    let Some(fields) = to.pointer_mut(parent).and_then(Value::as_object_mut) else { return };
    match value {
        Some(value) => fields.insert(name.to_owned(), value.clone()),
        None => fields.remove(name),
    };
}
