//! A Pod, pruned to what the Job controller decides on.

use super::{Labels, ObjectKey, OwnerReference, Uid, WallTime};

/// The finalizer of a Pod that is not counted yet.
pub const TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// Label and annotation: the index of a Pod.
pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Annotation: how many failures of the index counted before this Pod.
pub const INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
/// Annotation: how many failures of the index were ignored before this Pod.
pub const INDEX_IGNORED_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// One Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`.
    pub resource_version: Box<str>,
    /// `metadata.creationTimestamp`.
    pub creation_time: Option<WallTime>,
    /// `metadata.deletionTimestamp`: by when it is to be gone.
    pub deletion_time: Option<WallTime>,
    /// `metadata.deletionGracePeriodSeconds`.
    pub deletion_grace_s: i64,
    /// `metadata.labels`.
    pub labels: Labels,
    /// The owner reference with `controller: true`.
    pub controller: Option<OwnerReference>,
    /// Whether `metadata.finalizers` holds [`TRACKING_FINALIZER`]: it is not counted yet, or not known to be.
    pub tracked: bool,
    /// Annotation [`COMPLETION_INDEX`], as text.
    pub completion_index: Option<Box<str>>,
    /// Annotation [`INDEX_FAILURE_COUNT`], as text.
    pub failure_count: Option<Box<str>>,
    /// Annotation [`INDEX_IGNORED_FAILURE_COUNT`], as text.
    pub ignored_failure_count: Option<Box<str>>,
    /// Whether `spec.nodeName` is set.
    pub scheduled: bool,
    /// `status.phase`.
    pub phase: PodPhase,
    /// `status.conditions`.
    pub conditions: Vec<PodCondition>,
    /// `status.containerStatuses`.
    pub containers: Vec<ContainerStatus>,
    /// `status.initContainerStatuses`.
    pub init_containers: Vec<ContainerStatus>,
}

impl Pod {
    /// Whether it is being deleted.
    pub fn deleting(&self) -> bool {
        self.deletion_time.is_some()
    }

    /// The first condition of this type.
    pub fn condition(&self, condition_type: &str) -> Option<&PodCondition> {
        self.conditions.iter().find(|condition| &*condition.condition_type == condition_type)
    }
}

/// `status.phase` of a Pod, in the order of the way it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPhase {
    /// Not all containers started; also no phase at all.
    #[default]
    Pending,
    /// The node is not heard of.
    Unknown,
    /// Bound and started.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, one of them badly.
    Failed,
}

/// An entry of `status.conditions` of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCondition {
    /// `type`.
    pub condition_type: Box<str>,
    /// `status`.
    pub status: ConditionStatus,
    /// `lastTransitionTime`.
    pub last_transition_time: Option<WallTime>,
}

/// `status` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

/// An entry of `status.containerStatuses` or `status.initContainerStatuses`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerStatus {
    /// `name`.
    pub name: Box<str>,
    /// `restartCount`.
    pub restart_count: i32,
    /// Whether it is an init container with restartPolicy Always: it runs beside the others.
    pub side_car: bool,
    /// `state.terminated`.
    pub terminated: Option<Termination>,
}

/// `state.terminated` of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Termination {
    /// `exitCode`.
    pub exit_code: i32,
    /// `finishedAt`.
    pub finished_at: Option<WallTime>,
}
