//! Wire forms of both CronJob APIs: decoded straight into [`crate::model`], and the bodies and paths to send.
//!
//! Invariants
//! - What differs between `batch/v1` and `batch.volcano.sh/v1alpha1` is a row of [`Wire`]; nothing else asks which API it serves,
//!   except where the shape of a status differs.
//! - Decoding is lenient about what is missing (null, absent and empty mean the zero value, as in the peers) and strict about
//!   types: a field of the wrong type is a [`DecodeError`] that names object and field, and never a panic.
//! - A Job template is kept as the JSON texts that came, so that fields unknown here reach the Job unchanged.

mod body;
mod cronjob;
mod decode;
mod failure;
mod job;
mod time;
mod wire;

pub use body::{delete_body, job_body, status_patch};
pub use cronjob::decode_cronjob;
pub use decode::DecodeError;
pub use job::decode_job;
pub use time::rfc3339;
pub use wire::{Wire, wire};
