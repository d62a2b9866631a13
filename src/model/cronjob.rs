//! A CronJob of either API, pruned to what a decision needs.

use std::sync::Arc;

use super::{ObjectKey, Uid, WallTime};

/// A CronJob as it is decided on. Wire fields that no decision reads are not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronJob {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`; carried by status writes so that a stale one conflicts.
    pub resource_version: Box<str>,
    /// `metadata.creationTimestamp`; absent only in objects that never saw a server.
    pub creation_time: Option<WallTime>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// What the user asked for.
    pub spec: CronJobSpec,
    /// What the controller recorded.
    pub status: CronJobStatus,
}

/// `spec` of a CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronJobSpec {
    /// `spec.schedule`, exactly as written; empty when missing.
    pub schedule: Box<str>,
    /// `spec.timeZone`; `Some("")` and `None` differ.
    pub time_zone: Option<Box<str>>,
    /// `spec.startingDeadlineSeconds`.
    pub starting_deadline_s: Option<i64>,
    /// `spec.concurrencyPolicy`.
    pub policy: Policy,
    /// `spec.suspend`; absent means false.
    pub suspend: bool,
    /// `spec.successfulJobsHistoryLimit`; absent keeps all.
    pub successful_limit: Option<i32>,
    /// `spec.failedJobsHistoryLimit`; absent keeps all.
    pub failed_limit: Option<i32>,
    /// `spec.jobTemplate`, shared with whoever builds bodies from it.
    pub template: Arc<JobTemplate>,
}

/// `spec.concurrencyPolicy`. Any text other than the two named policies acts as `Allow`, as in the peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Runs may overlap.
    #[default]
    Allow,
    /// A due run is skipped while an earlier one is active.
    Forbid,
    /// Active runs are deleted before the due one starts.
    Replace,
}

/// `spec.jobTemplate` as JSON texts, so that fields unknown to us pass through unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobTemplate {
    /// `metadata.labels`, a JSON object.
    pub labels_json: Option<Box<str>>,
    /// `metadata.annotations`, a JSON object.
    pub annotations_json: Option<Box<str>>,
    /// `spec`, a JSON object.
    pub spec_json: Option<Box<str>>,
}

/// `status` of a CronJob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CronJobStatus {
    /// `status.active`, in order.
    pub active: Vec<ObjectReference>,
    /// `status.lastScheduleTime`: the due instant of the newest Job created, not the instant of its creation.
    pub last_schedule_time: Option<WallTime>,
    /// `status.lastSuccessfulTime`.
    pub last_successful_time: Option<WallTime>,
}

/// An entry of `status.active` (core/v1 ObjectReference). Absent fields are empty texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectReference {
    /// `kind`.
    pub kind: Box<str>,
    /// `apiVersion`.
    pub api_version: Box<str>,
    /// `namespace`.
    pub namespace: Box<str>,
    /// `name`.
    pub name: Box<str>,
    /// `uid`.
    pub uid: Uid,
    /// `resourceVersion`.
    pub resource_version: Box<str>,
    /// `fieldPath`; written by nobody here, kept when somebody else did.
    pub field_path: Box<str>,
}
