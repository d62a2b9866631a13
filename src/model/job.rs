//! A Job of either API, pruned to what its CronJob's decision needs.

use super::{ObjectKey, Uid, WallTime};

/// Summary of one Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`.
    pub resource_version: Box<str>,
    /// `metadata.creationTimestamp`; orders Volcano history.
    pub creation_time: Option<WallTime>,
    /// `status.startTime`; orders batch/v1 history.
    pub start_time: Option<WallTime>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The owner reference with `controller: true`.
    pub controller: Option<OwnerReference>,
    /// The scheduled-timestamp annotation of the Job's API, if present and readable.
    pub scheduled_time: Option<WallTime>,
    /// How it ended, if it did: batch/v1, the first condition of type Complete or Failed that is True; Volcano, the phase.
    pub finish: Option<Finish>,
    /// batch/v1: any Complete condition is True, even behind a Failed one; Volcano: phase Completed.
    pub succeeded: bool,
    /// batch/v1 `status.completionTime`; Volcano `status.state.lastTransitionTime`.
    pub completion_time: Option<WallTime>,
}

/// How a Job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Condition Complete, or phase Completed.
    Complete,
    /// Condition Failed, or phase Failed.
    Failed,
    /// Phase Terminated (Volcano only).
    Terminated,
}

/// The controller owner reference of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerReference {
    /// `apiVersion`.
    pub api_version: Box<str>,
    /// `kind`.
    pub kind: Box<str>,
    /// `name`.
    pub name: Box<str>,
    /// `uid`.
    pub uid: Uid,
}
