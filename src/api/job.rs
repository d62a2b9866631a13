//! Job of either API, from JSON to the summary that its CronJob's decision needs.

use std::borrow::Cow;

use serde::Deserialize;

use super::decode::{DecodeError, Meta, Time, decode};
use super::time::parse_rfc3339;
use super::wire::wire;
use crate::model::{Finish, Flavor, Job, WallTime};

/// Reads one Job from its JSON text (also `RawValue::get`).
///
/// # Errors
/// The text is not JSON, or a field that is read has the wrong type.
pub fn decode_job(flavor: Flavor, text: &str) -> Result<Job, DecodeError> {
    let (metadata, end) = match flavor {
        Flavor::Kubernetes => {
            let WireJob { metadata, status } = decode("Job", text)?;
            (metadata, End::from_conditions(status.unwrap_or_default()))
        }
        Flavor::Volcano => {
            let WireJob { metadata, status } = decode("Job", text)?;
            (metadata, End::from_phase(status.unwrap_or_default()))
        }
    };
    let mut metadata: Meta = metadata.unwrap_or_default();
    let scheduled = metadata.annotations.as_ref().and_then(|all| all.get(wire(flavor).scheduled_annotation)?.as_str());
    Ok(Job {
        scheduled_time: scheduled.and_then(parse_rfc3339),
        key: metadata.key(),
        uid: metadata.uid(),
        resource_version: metadata.take_resource_version(),
        creation_time: metadata.creation_timestamp.map(|t| t.0),
        start_time: end.start_time,
        deleting: metadata.deleting(),
        controller: metadata.take_controller(),
        finish: end.finish,
        succeeded: end.succeeded,
        completion_time: end.completion_time,
    })
}

#[derive(Deserialize)]
struct WireJob<S> {
    metadata: Option<Meta>,
    #[serde(default = "none")]
    status: Option<S>,
}

fn none<S>() -> Option<S> {
    None
}

/// `status` of a batch/v1 Job.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct ConditionStatus<'a> {
    start_time: Option<Time>,
    completion_time: Option<Time>,
    conditions: Option<Vec<Condition<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
}

/// `status` of a Volcano Job.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PhaseStatus {
    state: Option<State>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct State {
    phase: Option<Box<str>>,
    last_transition_time: Option<Time>,
}

/// How a Job ended, in the model's words.
struct End {
    start_time: Option<WallTime>,
    finish: Option<Finish>,
    succeeded: bool,
    completion_time: Option<WallTime>,
}

impl End {
    /// The first condition of type Complete or Failed that is True is *the* outcome; any Complete one means success, even when
    /// a Failed one stands before it.
    fn from_conditions(status: ConditionStatus<'_>) -> Self {
        let conditions = status.conditions.unwrap_or_default();
        let outcome = |condition: &Condition<'_>| match (&*condition.kind, &*condition.status) {
            ("Complete", "True") => Some(Finish::Complete),
            ("Failed", "True") => Some(Finish::Failed),
            _ => None,
        };
        Self {
            start_time: status.start_time.map(|t| t.0),
            finish: conditions.iter().find_map(outcome),
            succeeded: conditions.iter().filter_map(outcome).any(|finish| finish == Finish::Complete),
            completion_time: status.completion_time.map(|t| t.0),
        }
    }

    fn from_phase(status: PhaseStatus) -> Self {
        let state = status.state.unwrap_or_default();
        let finish = match state.phase.as_deref() {
            Some("Completed") => Some(Finish::Complete),
            Some("Failed") => Some(Finish::Failed),
            Some("Terminated") => Some(Finish::Terminated),
            _ => None,
        };
        Self {
            start_time: None,
            finish,
            succeeded: finish == Some(Finish::Complete),
            completion_time: state.last_transition_time.map(|t| t.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubernetes(status: &str) -> Job {
        decode_job(Flavor::Kubernetes, &format!(r#"{{"metadata":{{"name":"j"}},"status":{status}}}"#)).unwrap()
    }

    #[test]
    fn the_first_true_condition_is_the_outcome_and_any_complete_one_is_success() {
        let both = kubernetes(
            r#"{"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Failed","status":"True"},{"type":"Complete","status":"True"}]}"#,
        );
        assert_eq!((both.finish, both.succeeded), (Some(Finish::Failed), true));
        let not_yet = kubernetes(
            r#"{"conditions":[{"type":"Failed","status":"False"},{"type":"FailureTarget","status":"True"}]}"#,
        );
        assert_eq!((not_yet.finish, not_yet.succeeded), (None, false));
    }

    #[test]
    fn a_volcano_job_ends_by_its_phase() {
        let phase = |phase: &str| {
            let text = format!(r#"{{"status":{{"state":{{"phase":"{phase}","lastTransitionTime":null}}}}}}"#);
            decode_job(Flavor::Volcano, &text).unwrap().finish
        };
        assert_eq!(phase("Completed"), Some(Finish::Complete));
        assert_eq!(phase("Terminated"), Some(Finish::Terminated));
        assert_eq!(phase("Aborted"), None);
    }

    #[test]
    fn only_the_owner_marked_as_controller_counts() {
        let job = decode_job(
            Flavor::Kubernetes,
            r#"{"metadata":{"ownerReferences":[{"name":"a","uid":"1"},{"name":"b","uid":"2","controller":true}]}}"#,
        )
        .unwrap();
        assert_eq!(&*job.controller.unwrap().name, "b");
    }

    #[test]
    fn the_due_instant_is_read_from_the_annotation_of_the_own_api() {
        let text =
            r#"{"metadata":{"annotations":{"volcano.sh/cronjob-scheduled-timestamp":"2025-01-15T18:30:00+08:00"}}}"#;
        assert_eq!(decode_job(Flavor::Volcano, text).unwrap().scheduled_time.unwrap().timestamp(), 1_736_937_000);
        assert_eq!(decode_job(Flavor::Kubernetes, text).unwrap().scheduled_time, None);
    }

    #[test]
    fn an_error_names_object_and_field() {
        let error =
            decode_job(Flavor::Volcano, r#"{"metadata":{"namespace":"s","name":"j"},"status":{"state":{"phase":1}}}"#);
        assert_eq!(error.unwrap_err().to_string(), "Job s/j: field status.state.phase");
    }
}
