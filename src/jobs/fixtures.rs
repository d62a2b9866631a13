//! Objects for the tests of this room.

use std::sync::Arc;

use chrono::TimeDelta;

use super::names::{API_VERSION, KIND};
use crate::model::{
    BatchJob, BatchJobSpec, BatchJobStatus, CompletionMode, ConditionStatus, LabelSelector, Labels, ObjectKey,
    OwnerReference, Pod, PodCondition, PodPhase, PodReplacement, PodTemplate, WallTime,
};

/// `seconds` after 2024-03-01 10:00 UTC.
pub(super) fn at(seconds: i64) -> WallTime {
    WallTime::from_timestamp(1_709_287_200, 0).unwrap() + TimeDelta::seconds(seconds)
}

fn labels() -> Labels {
    Labels::from([("batch.kubernetes.io/controller-uid".into(), "job-uid".into())])
}

/// `ns/job`: one completion, one Pod at a time, backoffLimit 6, never synced.
pub(super) fn job() -> BatchJob {
    BatchJob {
        key: ObjectKey::new("ns", "job"),
        uid: "job-uid".into(),
        resource_version: "10".into(),
        generation: 1,
        deletion_time: None,
        spec: BatchJobSpec {
            parallelism: 1,
            completions: Some(1),
            completion_mode: CompletionMode::NonIndexed,
            backoff_limit: 6,
            backoff_limit_per_index: None,
            max_failed_indexes: None,
            active_deadline_s: None,
            ttl_after_finished_s: None,
            suspend: false,
            selector: LabelSelector { match_labels: labels(), ..LabelSelector::default() },
            managed_by: None,
            pod_replacement: PodReplacement::TerminatingOrFailed,
            pod_failure_policy: None,
            success_policy: None,
            template: Arc::new(PodTemplate::default()),
        },
        status: BatchJobStatus::default(),
    }
}

/// The same, Indexed, with so many completions, all at once.
pub(super) fn indexed(completions: i32) -> BatchJob {
    let mut job = job();
    job.spec.completion_mode = CompletionMode::Indexed;
    (job.spec.completions, job.spec.parallelism) = (Some(completions), completions);
    job
}

/// A pending Pod of [`job`], tracked, with its name as uid.
pub(super) fn pod(name: &str) -> Pod {
    Pod {
        key: ObjectKey::new("ns", name),
        uid: name.into(),
        resource_version: "5".into(),
        creation_time: Some(at(0)),
        deletion_time: None,
        deletion_grace_s: 0,
        labels: labels(),
        controller: Some(OwnerReference {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            name: "job".into(),
            uid: "job-uid".into(),
        }),
        tracked: true,
        completion_index: None,
        failure_count: None,
        ignored_failure_count: None,
        scheduled: false,
        phase: PodPhase::Pending,
        conditions: Vec::new(),
        containers: Vec::new(),
        init_containers: Vec::new(),
    }
}

pub(super) fn running(name: &str) -> Pod {
    Pod { scheduled: true, phase: PodPhase::Running, ..pod(name) }
}

pub(super) fn ready(pod: Pod) -> Pod {
    let ready = PodCondition {
        condition_type: "Ready".into(),
        status: ConditionStatus::True,
        last_transition_time: Some(at(0)),
    };
    Pod { conditions: vec![ready], ..pod }
}

pub(super) fn ended(phase: PodPhase, pod: Pod) -> Pod {
    Pod { phase, ..pod }
}

pub(super) fn terminating(pod: Pod) -> Pod {
    Pod { deletion_time: Some(at(30)), deletion_grace_s: 30, ..pod }
}

pub(super) fn of_index(index: i32, pod: Pod) -> Pod {
    Pod { completion_index: Some(index.to_string().into()), ..pod }
}

/// The Job, Complete since [`at`]`(0)`.
pub(super) fn finished(mut job: BatchJob) -> BatchJob {
    super::conditions::set(&mut job.status.conditions, "Complete", ConditionStatus::True, "", "", at(0));
    job
}
