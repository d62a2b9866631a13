//! What a step asks of the API server, what it is answered, and what it comes to in the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::new_pod::PodAdditions;
use crate::model::{
    ApiFailure, BatchJob, BatchJobStatus, Happening, LabelSelector, ObjectKey, Pod, PodFailureAction, Uid,
};

/// One request that a step wants sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// GET the Job itself, not from a cache. Answered by [`Answer::Job`].
    GetJob {
        /// Which one.
        key: ObjectKey,
    },
    /// List Pods, not from a cache and not from the server's (no resource version). Answered by [`Answer::Pods`].
    ListPods {
        /// Of which namespace.
        namespace: Arc<str>,
        /// Which Pods.
        selector: LabelSelector,
    },
    /// POST a Pod. Answered by [`Answer::Pod`] with what the server stored.
    CreatePod {
        /// Its Job, whose template makes the body.
        job: Arc<BatchJob>,
        /// What the body has beyond the template.
        additions: PodAdditions,
    },
    /// Strategic merge PATCH of a Pod. Answered by [`Answer::Pod`] with what the server stored.
    PatchPod {
        /// Which one.
        key: ObjectKey,
        /// What is changed. Nothing else is.
        patch: PodPatch,
    },
    /// DELETE a Pod, gracefully. Answered by [`Answer::Deleted`].
    DeletePod {
        /// Which one.
        key: ObjectKey,
    },
    /// Write the status of the Job. Answered by [`Answer::Job`] with what the server stored.
    PatchStatus {
        /// The copy that was decided on: its resource version makes the write conditional.
        base: Arc<BatchJob>,
        /// The status to write, whole.
        status: Box<BatchJobStatus>,
    },
}

/// What a [`Call::PatchPod`] changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodPatch {
    /// `$deleteFromPrimitiveList/finalizers` with the tracking finalizer; other finalizers stay.
    Untrack,
    /// A controller reference to the Job and the tracking finalizer, if the Pod still has this uid.
    Adopt {
        /// The Job.
        job: Arc<BatchJob>,
        /// `metadata.uid` of the Pod.
        uid: Uid,
    },
    /// No reference to the Job and no tracking finalizer, if the Pod still has this uid.
    Release {
        /// `metadata.uid` of the Job.
        job: Uid,
        /// `metadata.uid` of the Pod.
        uid: Uid,
    },
}

/// The answer to a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To GetJob and PatchStatus.
    Job(Result<Arc<BatchJob>, ApiFailure>),
    /// To ListPods.
    Pods(Result<PodList, ApiFailure>),
    /// To CreatePod and PatchPod.
    Pod(Result<Arc<Pod>, ApiFailure>),
    /// To DeletePod.
    Deleted(Result<(), ApiFailure>),
}

/// A list of Pods as the server has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodList {
    /// `metadata.resourceVersion` of the list.
    pub resource_version: Box<str>,
    /// The Pods.
    pub pods: Vec<Arc<Pod>>,
}

/// What [`super::Step::advance`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// Send all of these, at once or in any order, and come back with the answers. Never empty.
    Calls(Vec<Call>),
    /// The step is over.
    Done(Box<Outcome>),
}

/// What a step came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When to look again though nothing is heard: a deadline, or the end of a back-off. At least a second for the latter.
    pub requeue: Option<Duration>,
    /// What went wrong, if the step failed.
    pub error: Option<StepError>,
    /// What is to be told about the Job, in order, unless it was [taken](super::Step::take_happenings) before.
    pub happenings: Vec<Happening>,
    /// What is to be counted.
    pub tally: Tally,
}

/// Why a step failed. It is tried again after the key's back-off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct StepError {
    /// The peer's text.
    pub text: Box<str>,
    /// The copy decided on was stale, and a newer one is on its way.
    pub conflict: bool,
    /// How long the server asked us to wait at least.
    pub retry_after: Option<Duration>,
}

impl StepError {
    /// A failed call, with the peer's words for what it was for.
    pub(super) fn of(what: &str, failure: &ApiFailure) -> Self {
        let text = format!("{what}{}", failure.message).into();
        Self { text, conflict: failure.is_conflict(), retry_after: failure.retry_after }
    }
}

/// Numbers for the metrics of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// What the step did, for the metrics of syncs; `None` where there was nothing to look at.
    pub action: Option<Action>,
    /// Pods whose success was counted, `job_pods_finished_total`.
    pub pods_succeeded: i32,
    /// Pods whose failure was counted, `job_pods_finished_total`.
    pub pods_failed: i32,
    /// `job_finished_indexes_total` of status succeeded.
    pub indexes_succeeded: i32,
    /// `job_finished_indexes_total` of status failed.
    pub indexes_failed: i32,
    /// `pod_failures_handled_by_failure_policy_total`.
    pub failures_by_action: BTreeMap<PodFailureAction, u32>,
    /// `job_pods_creation_total` of status succeeded.
    pub pods_created: u32,
    /// `job_pods_creation_total` of status failed.
    pub pods_not_created: u32,
    /// `reason` of both.
    pub creation_reason: Option<CreationReason>,
    /// `jobs_finished_total`: whether it is Complete, and the reason.
    pub finished: Option<(bool, Box<str>)>,
}

/// `action` of the metrics of syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The number of Pods was not looked at.
    Reconciling,
    /// There were as many Pods as wanted.
    Tracking,
    /// Pods were created.
    PodsCreated,
    /// Pods were deleted for being too many.
    PodsDeleted,
}

impl Action {
    /// The text of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reconciling => "reconciling",
            Self::Tracking => "tracking",
            Self::PodsCreated => "pods_created",
            Self::PodsDeleted => "pods_deleted",
        }
    }
}

/// `reason` of `job_pods_creation_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreationReason {
    /// Nothing failed before.
    New,
    /// After failures, where a Pod being deleted is replaced.
    RecreateTerminatingOrFailed,
    /// After failures, where only a Pod that ended is replaced.
    RecreateFailed,
}

impl CreationReason {
    /// The text of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::RecreateTerminatingOrFailed => "recreate_terminating_or_failed",
            Self::RecreateFailed => "recreate_failed",
        }
    }
}
