//! What is written of a `batch/v1` Job: its status, and its end.

use serde_json::{Map, Value, json};

use super::time::rfc3339;
use crate::model::{BatchJobStatus, ConditionStatus, JobCondition, Uid, UncountedPods, WallTime};

/// JSON merge patch that turns the status `before` (as it stands at `resource_version`) into `after`. It carries the resource version,
/// so that a stale one is answered with a conflict, and only the fields that changed. What is absent in `after` is `null`, which
/// removes it; lists of uids that became empty go, and the object around them stays.
pub fn job_status_patch(before: &BatchJobStatus, after: &BatchJobStatus, resource_version: &str) -> Vec<u8> {
    let mut status = Map::new();
    let mut put = |field: &str, changed: bool, value: Value| {
        if changed {
            status.insert(field.to_owned(), value);
        }
    };
    let conditions = || after.conditions.iter().map(condition).collect();
    put("conditions", before.conditions != after.conditions, conditions());
    put("startTime", before.start_time != after.start_time, time(after.start_time));
    put("completionTime", before.completion_time != after.completion_time, time(after.completion_time));
    put("active", before.active != after.active, after.active.into());
    put("ready", before.ready != after.ready, after.ready.into());
    put("terminating", before.terminating != after.terminating, after.terminating.into());
    put("succeeded", before.succeeded != after.succeeded, after.succeeded.into());
    put("failed", before.failed != after.failed, after.failed.into());
    let completed = (!after.completed_indexes.is_empty()).then_some(&*after.completed_indexes);
    put("completedIndexes", before.completed_indexes != after.completed_indexes, completed.into());
    put("failedIndexes", before.failed_indexes != after.failed_indexes, after.failed_indexes.as_deref().into());
    put("uncountedTerminatedPods", before.uncounted != after.uncounted, uncounted(after.uncounted.as_ref()));
    json!({"metadata": {"resourceVersion": resource_version}, "status": status}).to_string().into_bytes()
}

fn time(at: Option<WallTime>) -> Value {
    at.map(|at| rfc3339(at, 0)).into()
}

fn condition(condition: &JobCondition) -> Value {
    let JobCondition { condition_type, status, reason, message, last_probe_time, last_transition_time } = condition;
    let status = match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    };
    let mut value = json!({"type": condition_type, "status": status});
    let texts = [("reason", reason), ("message", message)];
    for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        value[field] = json!(text);
    }
    for (field, at) in [("lastProbeTime", last_probe_time), ("lastTransitionTime", last_transition_time)] {
        if at.is_some() {
            value[field] = time(*at);
        }
    }
    value
}

fn uncounted(lists: Option<&UncountedPods>) -> Value {
    let list = |uids: &[Uid]| -> Value {
        if uids.is_empty() { Value::Null } else { uids.iter().map(Uid::as_str).collect::<Vec<_>>().into() }
    };
    lists.map_or(Value::Null, |lists| json!({"succeeded": list(&lists.succeeded), "failed": list(&lists.failed)}))
}

/// Body of the DELETE of a Job whose time after its end is over: in the foreground, and only the Job with this uid.
pub fn expired_delete_body(uid: &str) -> Vec<u8> {
    json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground", "preconditions": {"uid": uid}})
        .to_string()
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeZone;

    fn patch(before: &BatchJobStatus, after: &BatchJobStatus) -> Value {
        let patch: Value = serde_json::from_slice(&job_status_patch(before, after, "7")).unwrap();
        assert_eq!(patch["metadata"], json!({"resourceVersion": "7"}));
        patch["status"].clone()
    }

    #[test]
    fn only_what_changed_is_written_and_zero_is_not_absent() {
        let before = BatchJobStatus::default();
        assert_eq!(patch(&before, &before), json!({}));
        let after = BatchJobStatus {
            ready: Some(0),
            terminating: Some(0),
            failed_indexes: Some("".into()),
            uncounted: Some(UncountedPods { succeeded: vec!["a".into()], failed: Vec::new() }),
            ..before.clone()
        };
        let lists = json!({"succeeded": ["a"], "failed": null});
        assert_eq!(
            patch(&before, &after),
            json!({"ready": 0, "terminating": 0, "failedIndexes": "", "uncountedTerminatedPods": lists})
        );
        let emptied = BatchJobStatus { uncounted: Some(UncountedPods::default()), ..after.clone() };
        let lists = json!({"succeeded": null, "failed": null});
        assert_eq!(patch(&after, &emptied), json!({ "uncountedTerminatedPods": lists }));
    }

    #[test]
    fn what_is_taken_back_is_null_and_conditions_are_written_whole() {
        let at = chrono::Utc.timestamp_opt(1_736_937_000, 0).unwrap();
        let suspended = JobCondition {
            condition_type: "Suspended".into(),
            status: ConditionStatus::True,
            reason: "JobSuspended".into(),
            message: "".into(),
            last_probe_time: None,
            last_transition_time: Some(at),
        };
        let before =
            BatchJobStatus { start_time: Some(at), active: 2, completed_indexes: "0".into(), ..Default::default() };
        let after = BatchJobStatus { conditions: vec![suspended], ..Default::default() };
        let written = json!([{"type": "Suspended", "status": "True", "reason": "JobSuspended",
            "lastTransitionTime": "2025-01-15T10:30:00Z"}]);
        assert_eq!(
            patch(&before, &after),
            json!({"conditions": written, "startTime": null, "active": 0, "completedIndexes": null})
        );
    }

    #[test]
    fn an_expired_job_is_deleted_with_its_pods_and_by_its_uid() {
        let body: Value = serde_json::from_slice(&expired_delete_body("u")).unwrap();
        assert_eq!((&body["propagationPolicy"], &body["preconditions"]["uid"]), (&json!("Foreground"), &json!("u")));
    }
}
