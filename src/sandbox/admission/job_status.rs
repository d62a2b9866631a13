//! batch/v1 Job: what a status may say. The server has refused contradictions since Jobs may be managed from outside.

use serde_json::Value;

use super::{Causes, at, text};

const CONDITIONS: &str = "status.conditions";

/// Conditions that stay once they are true.
const FINAL: [&str; 3] = ["Failed", "Complete", "FailureTarget"];

/// Counts that are left out when there is nothing to count.
pub(super) fn default(object: &mut Value) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    status.retain(|name, value| !(matches!(&**name, "active" | "succeeded" | "failed") && value == 0));
}

/// The rules for a status, and for its change from that of `old`. A write that leaves the status alone is not looked at.
pub(super) fn validate(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let (spec, status) = (at(object, &["spec"]), at(object, &["status"]));
    let before = old.map_or(&Value::Null, |old| at(old, &["status"]));
    if status == before {
        return;
    }
    validate_counts(status, causes);
    validate_conditions(status, causes);
    validate_end(status, causes);
    validate_indexes(spec, status, causes);
    validate_change(spec, status, before, causes);
}

fn holds(status: &Value, kind: &str) -> bool {
    let conditions = at(status, &["conditions"]).as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| text(condition, &["type"]) == kind && text(condition, &["status"]) == "True")
}

fn count(status: &Value, name: &str) -> i64 {
    at(status, &[name]).as_i64().unwrap_or_default()
}

fn validate_counts(status: &Value, causes: &mut Causes) {
    for name in ["active", "succeeded", "failed", "ready", "terminating"] {
        causes.non_negative(format!("status.{name}"), at(status, &[name]));
    }
    let mut seen = Vec::new();
    for list in ["succeeded", "failed"] {
        let uids = at(status, &["uncountedTerminatedPods", list]).as_array();
        for (index, uid) in uids.into_iter().flatten().enumerate() {
            let field = format!("status.uncountedTerminatedPods.{list}[{index}]");
            if uid == "" {
                causes.invalid(&field, uid, "must not be empty");
            } else if seen.contains(&uid) {
                causes.duplicate(&field, uid);
            }
            seen.push(uid);
        }
    }
}

/// What no status may say at the same time, and what must be said before the end.
fn validate_conditions(status: &Value, causes: &mut Causes) {
    for first in ["Complete", "SuccessCriteriaMet"] {
        for second in ["Failed", "FailureTarget"] {
            if holds(status, first) && holds(status, second) {
                causes.broken(CONDITIONS, &format!("cannot set {first}=True and {second}=true conditions"));
            }
        }
    }
    for (end, leads_there) in [("Failed", "FailureTarget"), ("Complete", "SuccessCriteriaMet")] {
        if holds(status, end) && !holds(status, leads_there) {
            let why = format!("cannot set {end}=True condition without the {leads_there}=true condition");
            causes.broken(CONDITIONS, &why);
        }
    }
}

/// When it ended, and that nothing goes on after that.
fn validate_end(status: &Value, causes: &mut Causes) {
    let (complete, failed) = (holds(status, "Complete"), holds(status, "Failed"));
    let (start, end) = (at(status, &["startTime"]), at(status, &["completionTime"]));
    let field = "status.completionTime";
    if complete && end.is_null() {
        causes.required(field, "completionTime is required for Complete jobs");
    }
    if !complete && !end.is_null() {
        causes.invalid(field, end, "cannot set completionTime when there is no Complete=True condition");
    }
    // Times in one form compare as texts do.
    if let (Some(start), Some(ended)) = (start.as_str(), end.as_str())
        && ended < start
    {
        causes.invalid(field, end, "must be equal to or after `startTime`");
    }
    if complete || failed {
        for name in ["active", "terminating"] {
            if count(status, name) > 0 {
                let why = format!("{name}>0 is invalid for finished job");
                causes.invalid(format!("status.{name}"), at(status, &[name]), &why);
            }
        }
        if start.is_null() {
            causes.required("status.startTime", "startTime is required for finished job");
        }
        let uncounted = at(status, &["uncountedTerminatedPods"]);
        let lists = uncounted.as_object().into_iter().flatten();
        if lists.filter_map(|(_, list)| list.as_array()).any(|list| !list.is_empty()) {
            let why = "uncountedTerminatedPods needs to be empty for finished job";
            causes.invalid("status.uncountedTerminatedPods", uncounted, why);
        }
    } else if count(status, "ready") > count(status, "active").max(0) {
        causes.invalid("status.ready", at(status, &["ready"]), "cannot set more ready pods than active");
    }
}

fn validate_indexes(spec: &Value, status: &Value, causes: &mut Causes) {
    let (completed, failed) = (at(status, &["completedIndexes"]), at(status, &["failedIndexes"]));
    if !matches!(completed.as_str(), None | Some("")) && text(spec, &["completionMode"]) != "Indexed" {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        causes.invalid("status.completedIndexes", completed, why);
    }
    if !failed.is_null() && at(spec, &["backoffLimitPerIndex"]).is_null() {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        causes.invalid("status.failedIndexes", failed, why);
    }
}

fn validate_change(spec: &Value, status: &Value, before: &Value, causes: &mut Causes) {
    let lost = |kind: &str| holds(before, kind) && !holds(status, kind);
    for kind in FINAL.into_iter().filter(|kind| lost(kind)) {
        causes.broken(CONDITIONS, &format!("cannot disable the terminal {kind}=True condition"));
    }
    for name in ["failed", "succeeded"] {
        if count(status, name) < count(before, name) {
            let why = format!("cannot decrease the {name} counter");
            causes.invalid(format!("status.{name}"), &count(status, name).into(), &why);
        }
    }
    if lost("SuccessCriteriaMet") {
        causes.broken(CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition");
    }
    let (start, started) = (at(status, &["startTime"]), at(before, &["startTime"]));
    if !started.is_null() && start != started && at(spec, &["suspend"]) != &Value::Bool(true) {
        causes.invalid("status.startTime", start, "field is immutable for unsuspended job once set");
    }
    let (end, ended) = (at(status, &["completionTime"]), at(before, &["completionTime"]));
    if !ended.is_null() && !end.is_null() && end != ended {
        causes.invalid("status.completionTime", end, "field is immutable");
    }
}
