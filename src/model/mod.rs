//! The plain values that every room speaks: a CronJob as it is decided on, a summary of each of its Jobs, a Job as it is decided
//! on with its Pods, references, events and answers of the API server. Nothing here does I/O, reads a clock or knows a wire format.
//!
//! Invariants
//! - Every time is an instant in UTC ([`WallTime`]); zones exist only inside `schedule/`.
//! - Uids and resource versions are opaque texts, except for [`newer_version`], which orders two versions of one resource.
//! - A Job's name follows from its CronJob's name and its due instant alone ([`job_name`]); it is the last lock against a double start.

mod batch_job;
mod cronjob;
mod event;
mod failure;
mod job;
mod job_policy;
mod key;
mod labels;
mod pod;
mod rules;

pub use batch_job::{
    BatchJob, BatchJobSpec, BatchJobStatus, CompletionMode, JobCondition, PodReplacement, PodTemplate, UncountedPods,
};
pub use cronjob::{CronJob, CronJobSpec, CronJobStatus, JobTemplate, ObjectReference, Policy};
pub use event::{EventType, Happening};
pub use failure::ApiFailure;
pub use job::{Finish, Job, OwnerReference};
pub use job_policy::{ExitCodeOperator, ExitCodes, PodConditionPattern, PodFailureAction, PodFailureRule, SuccessRule};
pub use key::{Flavor, ObjectKey, Uid, job_name, newer_version, unix_minutes};
pub use labels::{LabelOperator, LabelRequirement, LabelSelector, Labels};
pub use pod::{
    COMPLETION_INDEX, ConditionStatus, ContainerStatus, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT, Pod,
    PodCondition, PodPhase, TRACKING_FINALIZER, Termination,
};
pub(crate) use rules::named_rules;

/// An instant on the wall clock, in UTC.
pub type WallTime = chrono::DateTime<chrono::Utc>;
