//! The plain values that every room speaks: a CronJob as it is decided on, a summary of each of its Jobs, references,
//! events and answers of the API server. Nothing here does I/O, reads a clock or knows a wire format.
//!
//! Invariants
//! - Every time is an instant in UTC ([`WallTime`]); zones exist only inside `schedule/`.
//! - Uids and resource versions are opaque texts, except for [`newer_version`], which orders two versions of one resource.
//! - A Job's name follows from its CronJob's name and its due instant alone ([`job_name`]); it is the last lock against a double start.

mod cronjob;
mod event;
mod failure;
mod job;
mod key;

pub use cronjob::{CronJob, CronJobSpec, CronJobStatus, JobTemplate, ObjectReference, Policy};
pub use event::{EventType, Happening};
pub use failure::ApiFailure;
pub use job::{Finish, Job, OwnerReference};
pub use key::{Flavor, ObjectKey, Uid, job_name, newer_version, unix_minutes};

/// An instant on the wall clock, in UTC.
pub type WallTime = chrono::DateTime<chrono::Utc>;
