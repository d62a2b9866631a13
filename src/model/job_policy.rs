//! The policies of a batch/v1 Job, as plain values.

use super::ConditionStatus;

/// A rule of `spec.podFailurePolicy`: the first one that matches a failed Pod decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFailureRule {
    /// What a match leads to.
    pub action: PodFailureAction,
    /// `onExitCodes`.
    pub on_exit_codes: Option<ExitCodes>,
    /// `onPodConditions`; empty without any.
    pub on_pod_conditions: Vec<PodConditionPattern>,
}

/// `action` of a [`PodFailureRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodFailureAction {
    /// The Job fails.
    FailJob,
    /// The index of the Pod fails.
    FailIndex,
    /// The failure does not count.
    Ignore,
    /// The failure counts, as without a policy.
    Count,
    /// A text that this controller does not know; the rule is passed over.
    Unknown,
}

/// `onExitCodes` of a [`PodFailureRule`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitCodes {
    /// `containerName`; `None` means any container.
    pub container: Option<Box<str>>,
    /// `operator`.
    pub operator: ExitCodeOperator,
    /// `values`.
    pub values: Vec<i32>,
}

/// `operator` of [`ExitCodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCodeOperator {
    /// The code is one of the values.
    In,
    /// It is none of them.
    NotIn,
    /// A text that this controller does not know; nothing matches.
    Unknown,
}

/// An entry of `onPodConditions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodConditionPattern {
    /// `type`.
    pub condition_type: Box<str>,
    /// `status`.
    pub status: ConditionStatus,
}

/// A rule of `spec.successPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuccessRule {
    /// `succeededIndexes`, as text.
    pub succeeded_indexes: Option<Box<str>>,
    /// `succeededCount`.
    pub succeeded_count: Option<i32>,
}
