//! Job of `batch/v1` in full, from JSON to what the Job controller decides on, with the API server's defaults.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::decode::{DecodeError, Meta, Time, decode, wrong};
use super::job_policy::{FailurePolicy, SuccessPolicy, condition_status};
use super::selector::Selector;
use crate::model::{
    BatchJob, BatchJobSpec, BatchJobStatus, CompletionMode, JobCondition, ObjectKey, PodReplacement, PodTemplate, Uid,
    UncountedPods,
};

const KIND: &str = "Job";

/// `spec.backoffLimit` where nothing is said.
const BACKOFF_LIMIT: i32 = 6;

/// Reads one `batch/v1` Job from its JSON text (also `RawValue::get`). The Pod template stays the text that it is.
///
/// # Errors
/// The text is not JSON, a field that is read has the wrong type, the selector is missing (it would select every Pod) or has an
/// operator that is none, or the template is not an object.
pub fn decode_batch_job(text: &str) -> Result<BatchJob, DecodeError> {
    let WireJob { metadata, spec, status } = decode(KIND, text)?;
    let mut metadata = metadata.unwrap_or_default();
    let key = metadata.key();
    Ok(BatchJob {
        uid: metadata.uid(),
        resource_version: metadata.take_resource_version(),
        generation: metadata.generation.unwrap_or_default(),
        deletion_time: metadata.deletion_time(),
        spec: spec.unwrap_or_default().into_model(&key)?,
        status: status.unwrap_or_default().into_model(),
        key,
    })
}

#[derive(Deserialize)]
struct WireJob<'a> {
    metadata: Option<Meta>,
    #[serde(borrow)]
    spec: Option<Spec<'a>>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    parallelism: Option<i32>,
    completions: Option<i32>,
    completion_mode: Option<Box<str>>,
    backoff_limit: Option<i32>,
    backoff_limit_per_index: Option<i32>,
    max_failed_indexes: Option<i32>,
    active_deadline_seconds: Option<i64>,
    ttl_seconds_after_finished: Option<i32>,
    suspend: Option<bool>,
    selector: Option<Selector>,
    managed_by: Option<Box<str>>,
    pod_replacement_policy: Option<Box<str>>,
    pod_failure_policy: Option<FailurePolicy>,
    success_policy: Option<SuccessPolicy>,
    #[serde(borrow)]
    template: Option<&'a RawValue>,
}

impl Spec<'_> {
    fn into_model(self, object: &ObjectKey) -> Result<BatchJobSpec, DecodeError> {
        let selector = self.selector.ok_or_else(|| wrong(KIND, object, "spec.selector", "missing"))?;
        // Without either the Job is one Pod; with a parallelism alone it is a work queue.
        let completions = self.completions.or_else(|| self.parallelism.is_none().then_some(1));
        let backoff_limit = if self.backoff_limit_per_index.is_some() { i32::MAX } else { BACKOFF_LIMIT };
        let replacement = if self.pod_failure_policy.is_some() { "Failed" } else { "TerminatingOrFailed" };
        Ok(BatchJobSpec {
            parallelism: self.parallelism.unwrap_or(1),
            completions,
            completion_mode: match self.completion_mode.as_deref() {
                None | Some("" | "NonIndexed") => CompletionMode::NonIndexed,
                Some("Indexed") => CompletionMode::Indexed,
                Some(other) => CompletionMode::Unknown(other.into()),
            },
            backoff_limit: self.backoff_limit.unwrap_or(backoff_limit),
            backoff_limit_per_index: self.backoff_limit_per_index,
            max_failed_indexes: self.max_failed_indexes,
            active_deadline_s: self.active_deadline_seconds,
            ttl_after_finished_s: self.ttl_seconds_after_finished,
            suspend: self.suspend.unwrap_or(false),
            selector: selector.into_model(KIND, object, "spec.selector")?,
            managed_by: self.managed_by,
            pod_replacement: match self.pod_replacement_policy.as_deref().unwrap_or(replacement) {
                "Failed" => PodReplacement::Failed,
                _ => PodReplacement::TerminatingOrFailed,
            },
            pod_failure_policy: self.pod_failure_policy.map(FailurePolicy::into_model),
            success_policy: self.success_policy.map(SuccessPolicy::into_model),
            template: Arc::new(template(object, self.template)?),
        })
    }
}

/// The template as text, and what a decision reads of it.
fn template(object: &ObjectKey, part: Option<&RawValue>) -> Result<PodTemplate, DecodeError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Template {
        spec: Option<TemplateSpec>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct TemplateSpec {
        restart_policy: Option<Box<str>>,
    }
    const FIELD: &str = "spec.template";
    let Some(text) = part.map(RawValue::get) else { return Err(wrong(KIND, object, FIELD, "missing")) };
    if !text.starts_with('{') {
        return Err(wrong(KIND, object, FIELD, "invalid type, expected an object"));
    }
    let read: Template = serde_json::from_str(text).map_err(|error| wrong(KIND, object, FIELD, &error.to_string()))?;
    let policy = read.spec.unwrap_or_default().restart_policy;
    Ok(PodTemplate { restarts_in_place: policy.as_deref() == Some("OnFailure"), json: text.into() })
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    conditions: Option<Vec<Condition>>,
    start_time: Option<Time>,
    completion_time: Option<Time>,
    active: Option<i32>,
    ready: Option<i32>,
    terminating: Option<i32>,
    succeeded: Option<i32>,
    failed: Option<i32>,
    completed_indexes: Option<Box<str>>,
    failed_indexes: Option<Box<str>>,
    uncounted_terminated_pods: Option<Uncounted>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Uncounted {
    succeeded: Option<Vec<Box<str>>>,
    failed: Option<Vec<Box<str>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    condition_type: Box<str>,
    status: Box<str>,
    reason: Option<Box<str>>,
    message: Option<Box<str>>,
    last_probe_time: Option<Time>,
    last_transition_time: Option<Time>,
}

impl Status {
    fn into_model(self) -> BatchJobStatus {
        let uids = |list: Option<Vec<Box<str>>>| list.unwrap_or_default().into_iter().map(Uid::from).collect();
        BatchJobStatus {
            conditions: self.conditions.unwrap_or_default().into_iter().map(Condition::into_model).collect(),
            start_time: self.start_time.map(|time| time.0),
            completion_time: self.completion_time.map(|time| time.0),
            active: self.active.unwrap_or(0),
            ready: self.ready,
            terminating: self.terminating,
            succeeded: self.succeeded.unwrap_or(0),
            failed: self.failed.unwrap_or(0),
            completed_indexes: self.completed_indexes.unwrap_or_default(),
            failed_indexes: self.failed_indexes,
            uncounted: self
                .uncounted_terminated_pods
                .map(|lists| UncountedPods { succeeded: uids(lists.succeeded), failed: uids(lists.failed) }),
        }
    }
}

impl Condition {
    fn into_model(self) -> JobCondition {
        JobCondition {
            status: condition_status(&self.status),
            condition_type: self.condition_type,
            reason: self.reason.unwrap_or_default(),
            message: self.message.unwrap_or_default(),
            last_probe_time: self.last_probe_time.map(|time| time.0),
            last_transition_time: self.last_transition_time.map(|time| time.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ConditionStatus;
    use serde_json::{Value, json};

    fn with_spec(over: Value) -> Result<BatchJob, DecodeError> {
        let mut spec =
            json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"restartPolicy": "Never"}}});
        for (field, value) in over.as_object().unwrap() {
            spec[field] = value.clone();
        }
        decode_batch_job(&json!({"metadata": {"name": "n", "namespace": "s"}, "spec": spec}).to_string())
    }

    #[test]
    fn what_is_not_said_is_what_the_server_would_have_said() {
        let spec = with_spec(json!({})).unwrap().spec;
        assert_eq!((spec.parallelism, spec.completions, spec.backoff_limit), (1, Some(1), 6));
        assert_eq!(spec.pod_replacement, PodReplacement::TerminatingOrFailed);
        assert_eq!((spec.completion_mode, spec.suspend, spec.managed_by), (CompletionMode::NonIndexed, false, None));
        let queue = with_spec(json!({"parallelism": 3})).unwrap().spec;
        assert_eq!((queue.parallelism, queue.completions), (3, None));
        let indexed = with_spec(json!({"backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": []}})).unwrap().spec;
        assert_eq!((indexed.backoff_limit, indexed.pod_replacement), (i32::MAX, PodReplacement::Failed));
    }

    #[test]
    fn the_template_stays_the_text_that_it_is() {
        let text = r#"{"metadata":{"name":"n","namespace":"s","uid":"u","resourceVersion":"7","generation":3,
            "deletionTimestamp":"2025-01-15T10:30:00Z"},
            "spec":{"selector":{},"template":{ "new": 1.50, "spec":{"restartPolicy":"OnFailure"} }}}"#;
        let job = decode_batch_job(text).unwrap();
        assert_eq!(&*job.spec.template.json, r#"{ "new": 1.50, "spec":{"restartPolicy":"OnFailure"} }"#);
        assert!(job.spec.template.restarts_in_place && job.deleting());
        assert_eq!((job.uid.as_str(), &*job.resource_version, job.generation), ("u", "7", 3));
    }

    #[test]
    fn the_status_keeps_apart_what_is_empty_and_what_is_absent() {
        let read = |status: Value| {
            let text = json!({"metadata": {}, "status": status, "spec": {"selector": {}, "template": {}}}).to_string();
            decode_batch_job(&text).unwrap().status
        };
        assert_eq!(read(json!({})), BatchJobStatus::default());
        let status = read(json!({"ready": 0, "terminating": 0, "failedIndexes": "", "uncountedTerminatedPods": {},
            "conditions": [{"type": "Complete", "status": "True", "reason": "r", "lastTransitionTime": "2025-01-15T10:30:00Z"}]}));
        assert_eq!((status.ready, status.terminating, status.failed_indexes.as_deref()), (Some(0), Some(0), Some("")));
        assert_eq!(status.uncounted, Some(UncountedPods::default()));
        assert_eq!(status.conditions[0].status, ConditionStatus::True);
        let open =
            read(json!({"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b", "c"]}})).uncounted.unwrap();
        assert_eq!((open.succeeded.len(), open.failed[1].as_str()), (1, "c"));
    }

    #[test]
    fn a_wrong_field_is_named_with_its_object() {
        let told = |over: Value| with_spec(over).unwrap_err().told();
        for (over, field) in [
            (json!({"parallelism": "2"}), "field spec.parallelism: invalid type"),
            (json!({"selector": null}), "field spec.selector: missing"),
            (json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}), "field spec.selector: "),
            (json!({"template": []}), "field spec.template: invalid type"),
            (json!({"template": null}), "field spec.template: missing"),
            (json!({"template": {"spec": 3}}), "field spec.template: invalid type"),
            (
                json!({"podFailurePolicy": {"rules": [{"onExitCodes": {"values": ["x"]}}]}}),
                "field spec.podFailurePolicy.rules[0]",
            ),
        ] {
            let told = told(over);
            assert!(told.starts_with("Job s/n: ") && told.contains(field), "{told}");
        }
    }
}
