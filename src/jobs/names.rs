//! The words of the API that the Job controller and its users share.

pub use crate::model::{COMPLETION_INDEX, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT, TRACKING_FINALIZER};

/// The variable in which a container finds its index.
pub const COMPLETION_INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// `spec.managedBy` of the built-in controller; absent means the same.
pub const MANAGED_BY_BUILT_IN: &str = "kubernetes.io/job-controller";
/// `spec.managedBy` of this controller, unless it is given another name.
pub const MANAGED_BY_US: &str = "cronjob-controller.dev/job-controller";
/// `apiVersion` of a Job.
pub const API_VERSION: &str = "batch/v1";
/// `kind` of a Job.
pub const KIND: &str = "Job";

/// Conditions of a Job.
pub mod condition {
    /// It is suspended.
    pub const SUSPENDED: &str = "Suspended";
    /// It will be Failed once its Pods are gone.
    pub const FAILURE_TARGET: &str = "FailureTarget";
    /// It will be Complete once its Pods are gone.
    pub const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
    /// It failed.
    pub const FAILED: &str = "Failed";
    /// It succeeded.
    pub const COMPLETE: &str = "Complete";
}

/// Reasons of conditions, which are those of the events about them too.
pub mod reason {
    /// A rule FailJob matched.
    pub const POD_FAILURE_POLICY: &str = "PodFailurePolicy";
    /// `backoffLimit`.
    pub const BACKOFF_LIMIT_EXCEEDED: &str = "BackoffLimitExceeded";
    /// `activeDeadlineSeconds`.
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
    /// `maxFailedIndexes`.
    pub const MAX_FAILED_INDEXES_EXCEEDED: &str = "MaxFailedIndexesExceeded";
    /// All indexes ended, some of them badly.
    pub const FAILED_INDEXES: &str = "FailedIndexes";
    /// `successPolicy`.
    pub const SUCCESS_POLICY: &str = "SuccessPolicy";
    /// `completions`.
    pub const COMPLETIONS_REACHED: &str = "CompletionsReached";
    /// `suspend` was set.
    pub const JOB_SUSPENDED: &str = "JobSuspended";
    /// `suspend` was taken back.
    pub const JOB_RESUMED: &str = "JobResumed";
}
