//! Jobs and Pods as these tests begin with them.

use std::sync::Arc;

use chrono::TimeDelta;
use cronjob_controller::jobs::names::{API_VERSION, KIND};
use cronjob_controller::model::{
    BatchJob, BatchJobSpec, BatchJobStatus, CompletionMode, ConditionStatus, ContainerStatus, JobCondition,
    LabelSelector, Labels, ObjectKey, OwnerReference, Pod, PodPhase, PodReplacement, PodTemplate, Termination,
    UncountedPods, WallTime,
};

/// `seconds` after 2024-03-01 10:00 UTC.
pub(crate) fn at(seconds: i64) -> WallTime {
    WallTime::from_timestamp(1_709_287_200, 0).unwrap() + TimeDelta::seconds(seconds)
}

pub(crate) fn labels() -> Labels {
    Labels::from([("batch.kubernetes.io/controller-uid".into(), "job-uid".into())])
}

/// `ns/job`, never synced.
pub(crate) fn job(parallelism: i32, completions: Option<i32>) -> BatchJob {
    BatchJob {
        key: ObjectKey::new("ns", "job"),
        uid: "job-uid".into(),
        resource_version: "1".into(),
        generation: 1,
        deletion_time: None,
        spec: BatchJobSpec {
            parallelism,
            completions,
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

pub(crate) fn indexed(parallelism: i32, completions: i32) -> BatchJob {
    let mut job = job(parallelism, Some(completions));
    job.spec.completion_mode = CompletionMode::Indexed;
    job
}

/// The Job, synced before with nothing to show for it.
pub(crate) fn started(mut job: BatchJob) -> BatchJob {
    job.status.start_time = Some(at(-100));
    (job.status.ready, job.status.terminating) = (Some(0), Some(0));
    job.status.uncounted = Some(UncountedPods::default());
    job
}

pub(crate) fn uncounted(mut job: BatchJob, succeeded: &[&str], failed: &[&str]) -> BatchJob {
    let uids = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
    job.status.uncounted = Some(UncountedPods { succeeded: uids(succeeded), failed: uids(failed) });
    job
}

pub(crate) fn with_condition(mut job: BatchJob, name: &str, status: ConditionStatus, reason: &str) -> BatchJob {
    job.status.conditions.push(JobCondition {
        condition_type: name.into(),
        status,
        reason: reason.into(),
        message: "told before".into(),
        last_probe_time: Some(at(-50)),
        last_transition_time: Some(at(-50)),
    });
    job
}

/// A pending, tracked Pod of the Job, its name as uid.
pub(crate) fn pod(name: &str) -> Pod {
    Pod {
        key: ObjectKey::new("ns", name),
        uid: name.into(),
        resource_version: "1".into(),
        creation_time: Some(at(-60)),
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

pub(crate) fn running(name: &str) -> Pod {
    Pod { scheduled: true, phase: PodPhase::Running, ..pod(name) }
}

pub(crate) fn succeeded(name: &str) -> Pod {
    Pod { phase: PodPhase::Succeeded, ..running(name) }
}

/// Failed with exit code 1 at [`at`]`(-60)`.
pub(crate) fn failed(name: &str) -> Pod {
    let status = ContainerStatus {
        name: "main".into(),
        terminated: Some(Termination { exit_code: 1, finished_at: Some(at(-60)) }),
        ..ContainerStatus::default()
    };
    Pod { phase: PodPhase::Failed, containers: vec![status], ..running(name) }
}

pub(crate) fn terminating(pod: Pod) -> Pod {
    Pod { deletion_time: Some(at(30)), deletion_grace_s: 30, ..pod }
}

pub(crate) fn untracked(pod: Pod) -> Pod {
    Pod { tracked: false, ..pod }
}

pub(crate) fn of_index(index: i32, pod: Pod) -> Pod {
    Pod { completion_index: Some(index.to_string().into()), ..pod }
}
