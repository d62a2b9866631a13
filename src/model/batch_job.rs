//! A batch/v1 Job in full: what the Job controller decides on. (A CronJob's decision sees its Jobs in summary only: [`super::Job`].)

use std::sync::Arc;

use super::{ConditionStatus, LabelSelector, ObjectKey, PodFailureRule, SuccessRule, Uid, WallTime};

/// A Job as the Job controller decides on it, with the API server's defaults applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchJob {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`; carried by status writes so that a stale one conflicts.
    pub resource_version: Box<str>,
    /// `metadata.generation`: raised by each change of the spec.
    pub generation: i64,
    /// `metadata.deletionTimestamp`.
    pub deletion_time: Option<WallTime>,
    /// What the user asked for.
    pub spec: BatchJobSpec,
    /// What the controller recorded.
    pub status: BatchJobStatus,
}

impl BatchJob {
    /// Whether it is being deleted.
    pub fn deleting(&self) -> bool {
        self.deletion_time.is_some()
    }

    /// Whether it ended: a condition Complete or Failed is True.
    pub fn finished(&self) -> bool {
        self.status.is_true("Complete") || self.status.is_true("Failed")
    }

    /// Whether Pods have completion indexes.
    pub fn indexed(&self) -> bool {
        self.spec.completion_mode == CompletionMode::Indexed
    }

    /// The number of indexes of an Indexed Job: `spec.completions`, which is required there.
    pub fn indexes(&self) -> i32 {
        self.spec.completions.unwrap_or(0)
    }
}

/// `spec` of a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchJobSpec {
    /// `spec.parallelism`.
    pub parallelism: i32,
    /// `spec.completions`; `None` is a work queue: any success completes it once all its Pods ended.
    pub completions: Option<i32>,
    /// `spec.completionMode`.
    pub completion_mode: CompletionMode,
    /// `spec.backoffLimit`.
    pub backoff_limit: i32,
    /// `spec.backoffLimitPerIndex`.
    pub backoff_limit_per_index: Option<i32>,
    /// `spec.maxFailedIndexes`.
    pub max_failed_indexes: Option<i32>,
    /// `spec.activeDeadlineSeconds`.
    pub active_deadline_s: Option<i64>,
    /// `spec.ttlSecondsAfterFinished`.
    pub ttl_after_finished_s: Option<i32>,
    /// `spec.suspend`.
    pub suspend: bool,
    /// `spec.selector`.
    pub selector: LabelSelector,
    /// `spec.managedBy`.
    pub managed_by: Option<Box<str>>,
    /// `spec.podReplacementPolicy`.
    pub pod_replacement: PodReplacement,
    /// `spec.podFailurePolicy.rules`; `None` without a policy.
    pub pod_failure_policy: Option<Vec<PodFailureRule>>,
    /// `spec.successPolicy.rules`; `None` without a policy.
    pub success_policy: Option<Vec<SuccessRule>>,
    /// `spec.template`, shared with whoever builds bodies from it.
    pub template: Arc<PodTemplate>,
}

/// `spec.completionMode`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CompletionMode {
    /// Pods are alike.
    #[default]
    NonIndexed,
    /// Each Pod has an index.
    Indexed,
    /// A text that this controller does not know; such a Job is left alone.
    Unknown(Box<str>),
}

/// `spec.podReplacementPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodReplacement {
    /// A Pod is replaced as soon as it is being deleted.
    #[default]
    TerminatingOrFailed,
    /// Only once it ended.
    Failed,
}

/// `spec.template`: what a decision reads of it, and the whole as JSON text, so that fields unknown to us pass through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodTemplate {
    /// Whether `spec.restartPolicy` is OnFailure: containers restart in place. (Never is the only other value of a Job.)
    pub restarts_in_place: bool,
    /// The template, a JSON object.
    pub json: Box<str>,
}

/// `status` of a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchJobStatus {
    /// `status.conditions`, in the order of their appearance.
    pub conditions: Vec<JobCondition>,
    /// `status.startTime`.
    pub start_time: Option<WallTime>,
    /// `status.completionTime`.
    pub completion_time: Option<WallTime>,
    /// `status.active`.
    pub active: i32,
    /// `status.ready`; `None` and 0 differ.
    pub ready: Option<i32>,
    /// `status.terminating`; `None` and 0 differ.
    pub terminating: Option<i32>,
    /// `status.succeeded`.
    pub succeeded: i32,
    /// `status.failed`.
    pub failed: i32,
    /// `status.completedIndexes`; empty without any.
    pub completed_indexes: Box<str>,
    /// `status.failedIndexes`; empty and `None` differ.
    pub failed_indexes: Option<Box<str>>,
    /// `status.uncountedTerminatedPods`; `None` before the first sync.
    pub uncounted: Option<UncountedPods>,
}

impl BatchJobStatus {
    /// The first condition of this type.
    pub fn condition(&self, condition_type: &str) -> Option<&JobCondition> {
        self.conditions.iter().find(|condition| &*condition.condition_type == condition_type)
    }

    /// The first condition of this type that is True.
    pub fn true_condition(&self, condition_type: &str) -> Option<&JobCondition> {
        let mut of_type = self.conditions.iter().filter(|condition| &*condition.condition_type == condition_type);
        of_type.find(|condition| condition.status == ConditionStatus::True)
    }

    /// Whether a condition of this type is True.
    pub fn is_true(&self, condition_type: &str) -> bool {
        self.true_condition(condition_type).is_some()
    }
}

/// `status.uncountedTerminatedPods`: Pods that ended and whose finalizer may still be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UncountedPods {
    /// Uids of Pods that succeeded.
    pub succeeded: Vec<Uid>,
    /// Uids of Pods that failed.
    pub failed: Vec<Uid>,
}

impl UncountedPods {
    /// Whether neither list holds anything.
    pub fn is_empty(&self) -> bool {
        self.succeeded.is_empty() && self.failed.is_empty()
    }
}

/// An entry of `status.conditions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobCondition {
    /// `type`.
    pub condition_type: Box<str>,
    /// `status`.
    pub status: ConditionStatus,
    /// `reason`.
    pub reason: Box<str>,
    /// `message`.
    pub message: Box<str>,
    /// `lastProbeTime`.
    pub last_probe_time: Option<WallTime>,
    /// `lastTransitionTime`.
    pub last_transition_time: Option<WallTime>,
}
