//! Decisions about a batch/v1 Job: which Pods it needs now.

mod index_set;
pub mod names;

pub use index_set::IndexSet;
