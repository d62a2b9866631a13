//! batch/v1 Job: what a status may say. The server has refused contradictions since Jobs may be managed from outside.
//!
//! Most rules look only at what a write changes, so that a status which was bad before does not block other writes
//! (`getStatusValidationOptions` of the real server decides the same way). Messages come in the order of the real server.

use serde_json::Value;

use super::{Causes, at, index_set, text};

const CONDITIONS: &str = "status.conditions";

/// Counts that are left out when there is nothing to count.
pub(super) fn default(object: &mut Value) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    status.retain(|name, value| {
        let empty = (matches!(&**name, "active" | "succeeded" | "failed") && value == 0)
            || (name == "completedIndexes" && value == "");
        !empty
    });
}

/// The rules for a status, and for its change from that of `old`.
pub(super) fn validate(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let change = Change {
        spec: at(object, &["spec"]),
        new: at(object, &["status"]),
        old: old.map_or(&Value::Null, |old| at(old, &["status"])),
    };
    validate_counts(change.new, causes);
    change.validate_verdict(causes);
    change.validate_end(causes);
    change.validate_indexes(causes);
    change.validate_pods(causes);
    change.validate_criteria(causes);
    change.validate_steps(causes);
}

fn holds(status: &Value, kind: &str) -> bool {
    is(status, kind, "True")
}

fn is(status: &Value, kind: &str, value: &str) -> bool {
    let conditions = at(status, &["conditions"]).as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| text(condition, &["type"]) == kind && text(condition, &["status"]) == value)
}

fn finished(status: &Value) -> bool {
    holds(status, "Complete") || holds(status, "Failed")
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
        for (index, uid) in uncounted(status, list).iter().enumerate() {
            let field = format!("status.uncountedTerminatedPods.{list}[{index}]");
            if uid == "" {
                causes.invalid(&field, uid, "must not be empty");
            } else if seen.contains(&uid) {
                causes.duplicate(&field, uid);
            } else {
                seen.push(uid);
            }
        }
    }
}

fn uncounted<'a>(status: &'a Value, list: &str) -> &'a [Value] {
    at(status, &["uncountedTerminatedPods", list]).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A write of a status.
struct Change<'a> {
    spec: &'a Value,
    new: &'a Value,
    old: &'a Value,
}

impl Change<'_> {
    fn changes(&self, field: &str) -> bool {
        at(self.new, &[field]) != at(self.old, &[field])
    }

    fn turns(&self, kind: &str) -> bool {
        holds(self.new, kind) != holds(self.old, kind)
    }

    fn ends(&self) -> bool {
        finished(self.new) != finished(self.old)
    }

    /// Both at once is refused if either was not so before.
    fn refuse_both(&self, first: &str, second: &str, causes: &mut Causes) {
        if (self.turns(first) || self.turns(second)) && holds(self.new, first) && holds(self.new, second) {
            causes.broken(CONDITIONS, &format!("cannot set {first}=True and {second}=true conditions"));
        }
    }

    fn validate_verdict(&self, causes: &mut Causes) {
        self.refuse_both("Complete", "Failed", causes);
        self.refuse_both("Complete", "FailureTarget", causes);
        let (complete, end) = (holds(self.new, "Complete"), at(self.new, &["completionTime"]));
        let field = "status.completionTime";
        if self.turns("Complete") || self.changes("completionTime") {
            match (end.is_null(), complete) {
                (false, false) => {
                    causes.invalid(field, end, "cannot set completionTime when there is no Complete=True condition");
                }
                (true, true) => causes.required(field, "completionTime is required for Complete jobs"),
                _ => {}
            }
        }
        // Times in one form compare as texts do.
        if let (Some(start), Some(ended)) = (at(self.new, &["startTime"]).as_str(), end.as_str())
            && (self.changes("startTime") || self.changes("completionTime"))
            && ended < start
        {
            causes.invalid(field, end, "must be equal to or after `startTime`");
        }
        let without = |end: &str, leads_there: &str| {
            let missing = holds(self.new, end) && !holds(self.new, leads_there);
            missing.then(|| format!("cannot set {end}=True condition without the {leads_there}=true condition"))
        };
        if self.turns("Failed") || self.changes("failedIndexes") {
            without("Failed", "FailureTarget").iter().for_each(|why| causes.broken(CONDITIONS, why));
        }
        if self.turns("Complete") || self.turns("SuccessCriteriaMet") {
            without("Complete", "SuccessCriteriaMet").iter().for_each(|why| causes.broken(CONDITIONS, why));
        }
    }

    /// Nothing goes on after the end, and what has ended has begun.
    fn validate_end(&self, causes: &mut Causes) {
        if !finished(self.new) {
            return;
        }
        if (self.ends() || self.changes("active")) && count(self.new, "active") > 0 {
            causes.invalid("status.active", at(self.new, &["active"]), "active>0 is invalid for finished job");
        }
        let nothing_to_do = at(self.spec, &["suspend"]) == &Value::Bool(true) && at(self.spec, &["completions"]) == 0;
        if (self.ends() || self.changes("startTime")) && !nothing_to_do && at(self.new, &["startTime"]).is_null() {
            causes.required("status.startTime", "startTime is required for finished job");
        }
        let lists = [uncounted(self.new, "succeeded"), uncounted(self.new, "failed")];
        if (self.ends() || self.changes("uncountedTerminatedPods")) && lists.iter().any(|list| !list.is_empty()) {
            causes.invalid_text(
                "status.uncountedTerminatedPods",
                &go_uncounted(lists),
                "must be empty for finished job",
            );
        }
    }

    fn validate_indexes(&self, causes: &mut Causes) {
        let (completed, failed) = (text(self.new, &["completedIndexes"]), at(self.new, &["failedIndexes"]));
        let completions = at(self.spec, &["completions"]).as_i64();
        let per_index = !at(self.spec, &["backoffLimitPerIndex"]).is_null();
        let (completed_new, failed_new) = (self.changes("completedIndexes"), self.changes("failedIndexes"));
        let (completed_field, failed_field) = ("status.completedIndexes", "status.failedIndexes");
        if let Some(completions) = completions.filter(|_| completed_new) {
            index_set::validate(completed, completions, completed_field, "completedIndexes", causes);
        }
        if let (Some(completions), Some(failed)) = (completions.filter(|_| failed_new && per_index), failed.as_str()) {
            index_set::validate(failed, completions, failed_field, "failedIndexes", causes);
        }
        if completed_new && !completed.is_empty() && text(self.spec, &["completionMode"]) != "Indexed" {
            let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
            causes.invalid(completed_field, &completed.into(), why);
        }
        if failed_new && !failed.is_null() && !per_index {
            causes.invalid(failed_field, failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
        }
        if let (Some(completions), Some(text)) = (completions, failed.as_str())
            && (failed_new || completed_new)
            && let Some(index) = index_set::overlap(completed, text, completions)
        {
            causes.invalid(
                failed_field,
                failed,
                &format!("failedIndexes and completedIndexes overlap at index: {index}"),
            );
        }
    }

    fn validate_pods(&self, causes: &mut Causes) {
        let (terminating, ready) = (at(self.new, &["terminating"]), at(self.new, &["ready"]));
        if (self.ends() || self.changes("terminating")) && finished(self.new) && count(self.new, "terminating") > 0 {
            causes.invalid("status.terminating", terminating, "terminating>0 is invalid for finished job");
        }
        let more = ready.as_i64().is_some_and(|ready| ready > count(self.new, "active"));
        if (self.changes("ready") || self.changes("active")) && more {
            causes.invalid("status.ready", ready, "cannot set more ready pods than active");
        }
    }

    /// These hold whatever the write changes.
    fn validate_criteria(&self, causes: &mut Causes) {
        let met = holds(self.new, "SuccessCriteriaMet");
        for failure in ["Failed", "FailureTarget"] {
            if met && holds(self.new, failure) {
                let why = format!("cannot set SuccessCriteriaMet=True and {failure}=true conditions");
                causes.broken(CONDITIONS, &why);
            }
        }
        if !at(self.spec, &["successPolicy"]).is_null() && !met && holds(self.new, "Complete") {
            let why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            causes.broken(CONDITIONS, why);
        }
    }

    /// What only the step from the old status shows.
    fn validate_steps(&self, causes: &mut Causes) {
        let lost = |kind: &str| holds(self.old, kind) && !holds(self.new, kind);
        for kind in ["Failed", "Complete", "FailureTarget"].into_iter().filter(|kind| lost(kind)) {
            causes.broken(CONDITIONS, &format!("cannot disable the terminal {kind}=True condition"));
        }
        // An elastic Job forgets what was beyond its new end.
        let elastic = text(self.spec, &["completionMode"]) == "Indexed"
            && at(self.spec, &["completions"]) == at(self.spec, &["parallelism"]);
        for name in ["failed", "succeeded"] {
            let (new, old) = (count(self.new, name), count(self.old, name));
            if new < old && !(name == "succeeded" && elastic) {
                causes.invalid(format!("status.{name}"), &new.into(), &format!("cannot decrease the {name} counter"));
            }
        }
        let ended = [at(self.new, &["completionTime"]), at(self.old, &["completionTime"])];
        if ended.iter().all(|time| !time.is_null()) && ended[0] != ended[1] {
            causes.invalid("status.completionTime", ended[0], "field is immutable");
        }
        let resumes = is(self.old, "Suspended", "True") && is(self.new, "Suspended", "False");
        if !at(self.old, &["startTime"]).is_null()
            && self.changes("startTime")
            && !resumes
            && at(self.spec, &["suspend"]) != &Value::Bool(true)
        {
            let why = "field is immutable for unsuspended job once set";
            causes.invalid("status.startTime", at(self.new, &["startTime"]), why);
        }
        if lost("SuccessCriteriaMet") {
            causes.broken(CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition");
        }
        if holds(self.old, "Complete")
            && !holds(self.old, "SuccessCriteriaMet")
            && holds(self.new, "SuccessCriteriaMet")
        {
            let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            causes.broken(CONDITIONS, why);
        }
    }
}

/// The lists as the server prints them: its internal type, in the order of its fields.
fn go_uncounted([succeeded, failed]: [&[Value]; 2]) -> String {
    let list = |list: &[Value]| if list.is_empty() { "null".to_owned() } else { Value::from(list).to_string() };
    format!("{{\"Succeeded\":{},\"Failed\":{}}}", list(succeeded), list(failed))
}
