//! batch/v1 Job: `podFailurePolicy`, `successPolicy` and `podReplacementPolicy`.

use serde_json::Value;

use super::{Causes, at, index_set, metadata, text};

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_CONDITIONS: usize = 20;
const MAX_INDEX_TEXT: usize = 64 * 1024;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// What may be replaced when: without a failure policy the user chooses.
pub(super) fn validate_replacement(spec: &Value, field: &str, causes: &mut Causes) {
    let policies: &[&str] =
        if at(spec, &["podFailurePolicy"]).is_null() { &["Failed", "TerminatingOrFailed"] } else { &["Failed"] };
    let policy = at(spec, &["podReplacementPolicy"]);
    if !policy.is_null() && !policies.contains(&policy.as_str().unwrap_or_default()) {
        causes.unsupported(format!("{field}.podReplacementPolicy"), policy, policies);
    }
}

/// Which failed Pods count, if the Job says.
pub(super) fn validate_failure(spec: &Value, field: &str, causes: &mut Causes) {
    let policy = at(spec, &["podFailurePolicy"]);
    if policy.is_null() {
        return;
    }
    let rules = items(policy, "rules");
    let field = format!("{field}.podFailurePolicy.rules");
    if rules.len() > MAX_RULES {
        causes.too_many(&field, rules.len(), MAX_RULES);
    }
    for (index, rule) in rules.iter().enumerate() {
        validate_failure_rule(spec, rule, &format!("{field}[{index}]"), causes);
    }
}

fn validate_failure_rule(spec: &Value, rule: &Value, field: &str, causes: &mut Causes) {
    let action = at(rule, &["action"]);
    if action == "FailIndex" {
        if at(spec, &["backoffLimitPerIndex"]).is_null() {
            causes.invalid(format!("{field}.action"), action, "requires the backoffLimitPerIndex to be set");
        }
    } else {
        one_of(action, &format!("{field}.action"), &ACTIONS, causes);
    }
    let (codes, conditions) = (at(rule, &["onExitCodes"]), items(rule, "onPodConditions"));
    if !codes.is_null() {
        validate_exit_codes(spec, codes, &format!("{field}.onExitCodes"), causes);
    }
    validate_conditions(conditions, &format!("{field}.onPodConditions"), causes);
    match (codes.is_null(), conditions.is_empty()) {
        (false, false) => {
            causes.broken(field, "specifying both OnExitCodes and OnPodConditions is not supported");
        }
        (true, true) => causes.broken(field, "specifying one of OnExitCodes and OnPodConditions is required"),
        _ => {}
    }
}

fn validate_exit_codes(spec: &Value, codes: &Value, field: &str, causes: &mut Causes) {
    one_of(at(codes, &["operator"]), &format!("{field}.operator"), &OPERATORS, causes);
    let container = at(codes, &["containerName"]);
    let pod = at(spec, &["template", "spec"]);
    let named = |list: &str| items(pod, list).iter().any(|c| at(c, &["name"]) == container);
    if !container.is_null() && !named("containers") && !named("initContainers") {
        let why = "must be one of the container or initContainer names in the pod template";
        causes.invalid(format!("{field}.containerName"), container, why);
    }
    let values = items(codes, "values");
    let field = format!("{field}.values");
    if values.is_empty() {
        causes.invalid(&*field, at(codes, &["values"]), "at least one value is required");
    } else if values.len() > MAX_EXIT_CODES {
        causes.too_many(&*field, values.len(), MAX_EXIT_CODES);
    }
    for (index, value) in values.iter().enumerate() {
        let field = format!("{field}[{index}]");
        if text(codes, &["operator"]) == "In" && value == 0 {
            causes.invalid(&*field, value, "must not be 0 for the In operator");
        }
        if values[..index].contains(value) {
            causes.duplicate(field, value);
        }
    }
    if !values.is_sorted_by_key(Value::as_i64) {
        causes.invalid(field, at(codes, &["values"]), "must be ordered");
    }
}

fn validate_conditions(patterns: &[Value], field: &str, causes: &mut Causes) {
    if patterns.len() > MAX_CONDITIONS {
        causes.too_many(field, patterns.len(), MAX_CONDITIONS);
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let field = format!("{field}[{index}]");
        let kind = Value::from(text(pattern, &["type"]));
        metadata::qualified_name(text(pattern, &["type"]))
            .iter()
            .for_each(|why| causes.invalid(format!("{field}.type"), &kind, why));
        one_of(at(pattern, &["status"]), &format!("{field}.status"), &STATUSES, causes);
    }
}

/// A value that must be there and be one of `allowed`.
fn one_of(value: &Value, field: &str, allowed: &[&str], causes: &mut Causes) {
    match value.as_str().unwrap_or_default() {
        "" => {
            let quoted: Vec<String> = allowed.iter().map(|name| format!("\"{name}\"")).collect();
            causes.required(field, &format!("valid values: [{}]", quoted.join(" ")));
        }
        text if allowed.contains(&text) => {}
        _ => causes.unsupported(field, value, allowed),
    }
}

/// When an Indexed Job has succeeded before all of it has, if the Job says.
pub(super) fn validate_success(spec: &Value, field: &str, causes: &mut Causes) {
    let policy = at(spec, &["successPolicy"]);
    if policy.is_null() {
        return;
    }
    if text(spec, &["completionMode"]) != "Indexed" {
        causes.invalid_text(format!("{field}.successPolicy"), &go_success(policy), "requires indexed completion mode");
        return;
    }
    let rules = items(policy, "rules");
    let field = format!("{field}.successPolicy.rules");
    if rules.is_empty() {
        causes.required(&*field, "at least one rules must be specified when the successPolicy is specified");
    }
    if rules.len() > MAX_RULES {
        causes.too_many(&*field, rules.len(), MAX_RULES);
    }
    // Indexed without completions is refused for that.
    let Some(completions) = at(spec, &["completions"]).as_i64() else { return };
    for (index, rule) in rules.iter().enumerate() {
        validate_success_rule(rule, completions, &format!("{field}[{index}]"), causes);
    }
}

fn validate_success_rule(rule: &Value, completions: i64, field: &str, causes: &mut Causes) {
    let (indexes, count) = (at(rule, &["succeededIndexes"]), at(rule, &["succeededCount"]));
    if indexes.is_null() && count.is_null() {
        causes.required(field, "at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut listed = None;
    if let Some(text) = indexes.as_str() {
        let field = format!("{field}.succeededIndexes");
        if text.len() > MAX_INDEX_TEXT {
            causes.too_long(&*field, MAX_INDEX_TEXT);
        }
        index_set::validate(text, completions, &field, "succeededIndexes", causes);
        listed = Some(index_set::count(text, completions).unwrap_or_default());
    }
    let field = format!("{field}.succeededCount");
    causes.non_negative(&*field, count);
    let bounds = [
        (Some(completions), "the number of specified completions"),
        (listed, "the number of indexes in the specified succeededIndexes field"),
    ];
    for (bound, what) in bounds {
        if let Some(bound) = bound.filter(|bound| count.as_i64().is_some_and(|count| count > *bound)) {
            causes.invalid(&*field, count, &format!("must be less than or equal to {bound} ({what})"));
        }
    }
}

/// A success policy as the server prints it: its internal type, with every field, in the order of that type.
pub(super) fn go_success(policy: &Value) -> String {
    go_rules(policy, |rule| go_members(rule, &["succeededIndexes", "succeededCount"], Value::to_string))
}

/// A failure policy, the same way.
pub(super) fn go_failure(policy: &Value) -> String {
    let codes = |codes: &Value| go_members(codes, &["containerName", "operator", "values"], Value::to_string);
    let pattern = |pattern: &Value| go_members(pattern, &["type", "status"], Value::to_string);
    go_rules(policy, |rule| {
        go_members(rule, &["action", "onExitCodes", "onPodConditions"], |value| match value {
            Value::Object(_) => codes(value),
            Value::Array(patterns) => go_list(patterns, pattern),
            other => other.to_string(),
        })
    })
}

fn go_rules(policy: &Value, rule: impl Fn(&Value) -> String) -> String {
    if policy.is_null() {
        return "null".to_owned();
    }
    go_members(policy, &["rules"], |rules| match rules {
        Value::Array(rules) => go_list(rules, &rule),
        other => other.to_string(),
    })
}

fn go_list(items: &[Value], item: impl Fn(&Value) -> String) -> String {
    format!("[{}]", items.iter().map(item).collect::<Vec<_>>().join(","))
}

/// `{"Name":value,...}`: fields of the internal type are named as in Go.
fn go_members(object: &Value, names: &[&str], print: impl Fn(&Value) -> String) -> String {
    let member = |name: &&str| {
        let (first, rest) = name.split_at(1);
        format!("\"{}{rest}\":{}", first.to_uppercase(), print(at(object, &[name])))
    };
    format!("{{{}}}", names.iter().map(member).collect::<Vec<_>>().join(","))
}

fn items<'a>(object: &'a Value, list: &str) -> &'a [Value] {
    at(object, &[list]).as_array().map(Vec::as_slice).unwrap_or_default()
}
