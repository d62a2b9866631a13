//! The rules for Jobs, one line each: what is written, and what is said about it. `tests/conformance` asks the real server.

use super::*;
use crate::sandbox::resources::find;
use serde_json::json;

fn jobs() -> &'static Resource {
    find("batch", "v1", "jobs").unwrap()
}

/// A stored Job with `spec` and `status` merged in.
fn job(spec: Value, status: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "j", "namespace": "default", "uid": "u-1"}, "status": {},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}]}}}
    });
    json_patch::merge(&mut object["spec"], &spec);
    admit(jobs(), Operation::Create, &mut object, None).unwrap();
    object["status"] = status;
    object
}

fn messages(result: Result<Vec<String>, Invalid>) -> Vec<String> {
    let causes = result.map_or_else(|invalid| invalid.causes, |_| Vec::new());
    let mut all: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    all.dedup();
    all
}

fn of_spec(spec: Value) -> Vec<String> {
    let mut object = job(json!({}), json!({}));
    object["spec"]["selector"] = Value::Null;
    object["spec"]["podReplacementPolicy"] = Value::Null;
    json_patch::merge(&mut object["spec"], &spec);
    messages(admit(jobs(), Operation::Create, &mut object, None))
}

/// What is said to the change of a status from `old` by the merge patch `patch`.
fn of_status(spec: Value, old: Value, patch: Value) -> Vec<String> {
    let old = job(spec, old);
    let mut new = old.clone();
    json_patch::merge(&mut new["status"], &patch);
    messages(admit(jobs(), Operation::UpdateStatus, &mut new, Some(&old)))
}

fn conditions(kinds: &[&str]) -> Value {
    kinds.iter().map(|kind| json!({"type": kind, "status": "True"})).collect()
}

#[test]
fn a_spec_is_told_what_is_wrong_with_it() {
    let indexed = |more: Value| {
        let mut spec = json!({"completionMode": "Indexed", "completions": 3});
        json_patch::merge(&mut spec, &more);
        spec
    };
    let failure = |rule: Value| json!({"podFailurePolicy": {"rules": [rule]}});
    let codes = |codes: Value| failure(json!({"action": "Count", "onExitCodes": codes}));
    let success = |rule: Value| indexed(json!({"successPolicy": {"rules": [rule]}}));
    let long = (0..20_000).step_by(2).map(|index| index.to_string()).collect::<Vec<_>>().join(",");
    assert!(long.len() < 64 * 1024);
    let too_long =
        format!("{long},{}", (20_000..40_000).step_by(2).map(|i| i.to_string()).collect::<Vec<_>>().join(","));
    for (spec, expected) in [
        (json!({"parallelism": 0, "completions": 0, "managedBy": "acme.io/foo"}), ""),
        (
            json!({"maxFailedIndexes": 1}),
            "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
        ),
        (
            json!({"completionMode": "Indexed", "completions": null}),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            indexed(json!({"backoffLimitPerIndex": 1, "maxFailedIndexes": 4})),
            "spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions",
        ),
        (
            json!({"backoffLimitPerIndex": 1}),
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
        ),
        (
            json!({"managedBy": "acme.io"}),
            "spec.managedBy: Invalid value: \"acme.io\": must be a domain-prefixed path (such as \"acme.io/foo\")",
        ),
        (
            json!({"managedBy": format!("acme.io/{}", "a".repeat(56))}),
            "spec.managedBy: Too long: may not be more than 63 bytes",
        ),
        (
            failure(json!({"onExitCodes": {"operator": "In", "values": [1]}})),
            "spec.podFailurePolicy.rules[0].action: Required value: valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]",
        ),
        (
            failure(json!({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}})),
            "spec.podFailurePolicy.rules[0].action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set",
        ),
        (
            failure(json!({"action": "Count"})),
            "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
        ),
        (
            codes(json!({"operator": "In", "values": [0, 1]})),
            "spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
        ),
        (codes(json!({"operator": "NotIn", "values": [0, 1]})), ""),
        (
            codes(json!({"operator": "In", "values": [2, 1]})),
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,1]: must be ordered",
        ),
        (
            codes(json!({"operator": "In", "values": [2, 2]})),
            "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Duplicate value: 2",
        ),
        (
            codes(json!({"operator": "In", "values": (1..=256).collect::<Vec<_>>()})),
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Too many: 256: must have at most 255 items",
        ),
        (
            codes(json!({"operator": "In", "values": [1], "containerName": "d"})),
            "spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: \"d\": must be one of the container or initContainer names in the pod template",
        ),
        (
            failure(json!({"action": "Ignore", "onPodConditions": [{"type": "A", "status": "Maybe"}]})),
            "spec.podFailurePolicy.rules[0].onPodConditions[0].status: Unsupported value: \"Maybe\": supported values: \"False\", \"True\", \"Unknown\"",
        ),
        (
            success(json!({})),
            "spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified",
        ),
        (
            success(json!({"succeededIndexes": "0-1", "succeededCount": 3})),
            "spec.successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)",
        ),
        (
            success(json!({"succeededIndexes": "3"})),
            "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"3\": error parsing succeededIndexes: too large index: \"3\"",
        ),
        (indexed(json!({"completions": 40_000, "successPolicy": {"rules": [{"succeededIndexes": long}]}})), ""),
        (
            indexed(json!({"completions": 40_000, "successPolicy": {"rules": [{"succeededIndexes": too_long}]}})),
            "spec.successPolicy.rules[0].succeededIndexes: Too long: may not be more than 65536 bytes",
        ),
    ] {
        let told = of_spec(spec.clone());
        if expected.is_empty() {
            assert_eq!(told, Vec::<String>::new(), "{spec}");
        } else {
            assert!(told.iter().any(|text| text == expected), "{spec}: {told:#?}");
        }
    }
}

#[test]
fn a_status_is_told_what_is_wrong_with_its_change() {
    let (start, end) = ("2020-01-01T00:00:00Z", "2020-01-01T00:01:00Z");
    let running = || json!({"startTime": start, "active": 1, "failed": 2, "succeeded": 2});
    let complete = || json!({"startTime": start, "completionTime": end, "conditions": conditions(&["SuccessCriteriaMet", "Complete"])});
    for (old, patch, expected) in [
        (running(), json!({"active": 2, "ready": 2}), ""),
        (running(), json!({"ready": 2}), "status.ready: Invalid value: 2: cannot set more ready pods than active"),
        (running(), json!({"failed": 1}), "status.failed: Invalid value: 1: cannot decrease the failed counter"),
        (
            running(),
            json!({"succeeded": 1}),
            "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter",
        ),
        (
            running(),
            json!({"startTime": end}),
            "status.startTime: Invalid value: \"2020-01-01T00:01:00Z\": field is immutable for unsuspended job once set",
        ),
        (
            running(),
            json!({"conditions": conditions(&["FailureTarget", "Failed"])}),
            "status.active: Invalid value: 1: active>0 is invalid for finished job",
        ),
        (
            running(),
            json!({"active": 0, "conditions": conditions(&["Failed"])}),
            "status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (running(), json!({"active": 0, "conditions": conditions(&["FailureTarget", "Failed"])}), ""),
        (
            running(),
            json!({"active": 0, "uncountedTerminatedPods": {"failed": ["a"]}, "conditions": conditions(&["FailureTarget", "Failed"])}),
            "status.uncountedTerminatedPods: Invalid value: {\"Succeeded\":null,\"Failed\":[\"a\"]}: must be empty for finished job",
        ),
        (
            complete(),
            json!({"conditions": conditions(&["SuccessCriteriaMet"]), "completionTime": null}),
            "status.conditions: Invalid value: cannot disable the terminal Complete=True condition",
        ),
        (
            complete(),
            json!({"completionTime": start}),
            "status.completionTime: Invalid value: \"2020-01-01T00:00:00Z\": field is immutable",
        ),
        (
            complete(),
            json!({"completionTime": null}),
            "status.completionTime: Required value: completionTime is required for Complete jobs",
        ),
        (
            complete(),
            json!({"terminating": 1}),
            "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job",
        ),
        // What was bad before blocks nothing else.
        (json!({"ready": 5, "conditions": conditions(&["Failed"])}), json!({"failed": 1}), ""),
        (json!({"completionTime": end, "completedIndexes": "7"}), json!({"active": 1}), ""),
        (
            json!({"conditions": conditions(&["Complete"])}),
            json!({"conditions": conditions(&["Complete", "SuccessCriteriaMet"])}),
            "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        ),
    ] {
        let told = of_status(json!({}), old, patch.clone());
        let expected: Vec<&str> = Some(expected).filter(|text| !text.is_empty()).into_iter().collect();
        assert_eq!(told, expected, "{patch}");
    }
}

#[test]
fn indexes_of_a_status_are_looked_at_when_they_change() {
    let indexed =
        || json!({"completionMode": "Indexed", "completions": 5, "parallelism": 5, "backoffLimitPerIndex": 1});
    let old = || json!({"completedIndexes": "0-9", "failedIndexes": "0", "succeeded": 10});
    for (patch, expected) in [
        (json!({"active": 1}), ""),
        (json!({"succeeded": 4}), ""),
        (
            json!({"completedIndexes": "0-8"}),
            "status.completedIndexes: Invalid value: \"0-8\": error parsing completedIndexes: too large index: \"8\"",
        ),
        (
            json!({"completedIndexes": "0-3"}),
            "status.failedIndexes: Invalid value: \"0\": failedIndexes and completedIndexes overlap at index: 0",
        ),
        (json!({"completedIndexes": "1-3"}), ""),
        (
            json!({"completedIndexes": "1-3", "failedIndexes": "0,,"}),
            "status.failedIndexes: Invalid value: \"0,,\": error parsing failedIndexes: cannot convert string to integer for index: \"\"",
        ),
    ] {
        let told = of_status(indexed(), old(), patch.clone());
        let expected: Vec<&str> = Some(expected).filter(|text| !text.is_empty()).into_iter().collect();
        assert_eq!(told, expected, "{patch}");
    }
}
