//! batch/v1 Job: what a valid spec is. [`job_change`] says what of it never changes, [`job_policies`] what its policies may say.

use serde_json::{Map, Value};

use super::job::{NAME_LABELS, UID_LABELS};
use super::{Causes, at, job_change, job_policies, label_selector, metadata, pod, text};

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
const MAX_FAILED_INDEXES: i64 = 100_000;
/// From here on a Job with limits per index has narrower bounds: its status must not outgrow the store.
const MANY_COMPLETIONS: i64 = 100_000;
const MAX_OF_MANY: i64 = 10_000;
/// Bytes of `managedBy`.
const MAX_MANAGER: usize = 63;
const PATH_FORM: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
const PATH_SIGNS: &[u8] = b"/-._~%!$&'()*+,;=:";

/// The rules for a Job, with those for changes if there is an old one.
pub(super) fn validate(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = at(object, &["spec"]);
    if at(spec, &["manualSelector"]) != &Value::Bool(true) && !at(spec, &["selector"]).is_null() {
        validate_generated(object, old, causes);
    }
    validate_whole(spec, causes);
    validate_pod_names(object, causes);
    if let Some(old) = old {
        // The real server asks for the whole spec once more when it looks at the change.
        validate_whole(spec, causes);
        job_change::validate(spec, old, causes);
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
    let labels = at(object, &["spec", "template", "metadata", "labels"]);
    let had = |old, name| !at(old, &["spec", "template", "metadata", "labels", name]).is_null();
    let prefixed = old.is_none_or(|old| had(old, UID_LABELS[0]) && had(old, NAME_LABELS[0]));
    let mut expected = Map::new();
    for legacy in [true, false].into_iter().filter(|legacy| *legacy || prefixed) {
        for (names, field) in [(UID_LABELS, "uid"), (NAME_LABELS, "name")] {
            let (name, value) = (names[usize::from(legacy)], text(object, &["metadata", field]));
            let (field, why) = (format!("spec.template.metadata.labels[{name}]"), format!("must be '{value}'"));
            match labels.get(name) {
                None => causes.required(field, &why),
                Some(found) if found != value => causes.invalid(field, labels, &why),
                Some(_) => {}
            }
            expected.insert(name.to_owned(), value.into());
        }
    }
    let selector = at(object, &["spec", "selector"]);
    if label_selector::matches(selector, &expected.into()) == Some(false) {
        causes.invalid("spec.selector", selector, "`selector` not auto-generated");
    }
}

fn validate_spec(spec: &Value, field: &str, causes: &mut Causes) {
    for count in COUNTS {
        causes.non_negative(format!("{field}.{count}"), at(spec, &[count]));
    }
    if !at(spec, &["maxFailedIndexes"]).is_null() && at(spec, &["backoffLimitPerIndex"]).is_null() {
        causes.required(format!("{field}.backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    validate_manager(at(spec, &["managedBy"]), &format!("{field}.managedBy"), causes);
    validate_mode(spec, field, causes);
    job_policies::validate_failure(spec, field, causes);
    job_policies::validate_success(spec, field, causes);
    job_policies::validate_replacement(spec, field, causes);
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

/// Another controller is named by a domain and a path.
fn validate_manager(manager: &Value, field: &str, causes: &mut Causes) {
    let Some(name) = manager.as_str() else { return };
    match name.split_once('/') {
        _ if name.is_empty() => causes.required(field, ""),
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            metadata::dns_subdomain(host).iter().for_each(|why| causes.invalid(field, &host.into(), why));
            if !path.bytes().all(|b| b.is_ascii_alphanumeric() || PATH_SIGNS.contains(&b)) {
                let why = format!("Invalid path (regex used for validation is '{PATH_FORM}')");
                causes.invalid(field, &path.into(), &why);
            }
        }
        _ => causes.invalid(field, manager, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
    }
    if name.len() > MAX_MANAGER {
        causes.too_long(field, MAX_MANAGER);
    }
}

/// Indexed Jobs have completions and bounds; what needs indexes is refused without them.
fn validate_mode(spec: &Value, field: &str, causes: &mut Causes) {
    let mode = at(spec, &["completionMode"]);
    match mode.as_str() {
        Some("Indexed") => validate_indexed(spec, field, causes),
        None | Some("NonIndexed") => {
            for needs in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                let value = at(spec, &[needs]);
                if !value.is_null() {
                    causes.invalid(format!("{field}.{needs}"), value, "requires indexed completion mode");
                }
            }
        }
        Some(_) => causes.unsupported(format!("{field}.completionMode"), mode, &["NonIndexed", "Indexed"]),
    }
}

fn validate_indexed(spec: &Value, field: &str, causes: &mut Causes) {
    let completions = at(spec, &["completions"]).as_i64();
    if completions.is_none() {
        causes.required(format!("{field}.completions"), "when completion mode is Indexed");
    }
    let bounded = |bound: i64| format!("must be less than or equal to {bound}");
    at_most(
        spec,
        field,
        "parallelism",
        MAX_PARALLELISM,
        &format!("{} when completion mode is Indexed", bounded(MAX_PARALLELISM)),
        causes,
    );
    if let Some(completions) = completions {
        at_most(spec, field, "maxFailedIndexes", completions, "must be less than or equal to completions", causes);
    }
    at_most(spec, field, "maxFailedIndexes", MAX_FAILED_INDEXES, &bounded(MAX_FAILED_INDEXES), causes);
    if completions.is_none_or(|count| count <= MANY_COMPLETIONS) || at(spec, &["backoffLimitPerIndex"]).is_null() {
        return;
    }
    let many = format!(
        "{} when completions are above {MANY_COMPLETIONS} and used with backoff limit per index",
        bounded(MAX_OF_MANY)
    );
    if at(spec, &["maxFailedIndexes"]).is_null() {
        let why = format!("must be specified when completions is above {MANY_COMPLETIONS}");
        causes.required(format!("{field}.maxFailedIndexes"), &why);
    }
    at_most(spec, field, "parallelism", MAX_OF_MANY, &many, causes);
    at_most(spec, field, "maxFailedIndexes", MAX_OF_MANY, &many, causes);
}

fn at_most(spec: &Value, field: &str, name: &str, bound: i64, why: &str, causes: &mut Causes) {
    let value = at(spec, &[name]);
    if value.as_i64().is_some_and(|number| number > bound) {
        causes.invalid(format!("{field}.{name}"), value, why);
    }
}

fn validate_selector(spec: &Value, causes: &mut Causes) {
    let selector = at(spec, &["selector"]);
    if selector.is_null() {
        causes.required("spec.selector", "");
    }
    label_selector::validate(selector, "spec.selector", causes);
    let labels = at(spec, &["template", "metadata", "labels"]);
    if label_selector::matches(selector, labels) == Some(false) {
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
