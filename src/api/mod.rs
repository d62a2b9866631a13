//! Wire forms of both CronJob APIs, of `batch/v1` Jobs in full and of their Pods: decoded straight into [`crate::model`], and the
//! bodies and paths to send.
//!
//! Invariants
//! - What differs between `batch/v1` and `batch.volcano.sh/v1alpha1` is a row of [`Wire`]; nothing else asks which API it serves,
//!   except where the shape of a status differs.
//! - Decoding is lenient about what is missing (null, absent and empty mean the zero value, as in the peers) and strict about
//!   types: a field of the wrong type is a [`DecodeError`] that names object and field, and never a panic.
//! - A Job or Pod template is kept as the JSON texts that came, so that fields unknown here reach the Job or Pod unchanged.

mod batch_job;
mod body;
mod cronjob;
mod decode;
mod failure;
mod job;
mod job_policy;
mod job_status;
mod pod;
mod pod_body;
mod selector;
mod time;
mod wire;

pub use batch_job::decode_batch_job;
pub use body::{delete_body, job_body, status_patch};
pub use cronjob::decode_cronjob;
pub use decode::DecodeError;
pub use job::decode_job;
pub use job_status::{expired_delete_body, job_status_patch};
pub use pod::{decode_pod, decode_pod_list};
pub use pod_body::{NewPod, adopt_patch, pod_body, release_patch, untrack_patch};
pub use time::rfc3339;
pub use wire::{ALL_PODS_PATH, PODS_THAT_END, Wire, pod_path, pods_path, pods_query, wire};
