//! Decisions: what a CronJob needs now, as a pure step machine ([`Step`]), and what a watch event means ([`on_cronjob_updated`] and
//! its like). One machine serves both controllers; what differs between them is data.
//!
//! Invariants
//! - No I/O, no clock, no randomness, no map of random order: the same inputs give the same calls, events and status.
//! - Forbid never creates a Job while `active` holds one; lastScheduleTime never moves back; the name of a Job follows from its due instant.
//! - Every deviation from the peers is a [`Rule`].

mod call;
mod due;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod guard_tests;
mod memory;
mod profile;
#[cfg(test)]
mod rule_tests;
mod rules;
mod step;
mod watch;

pub use call::{Answer, Call, Next, Outcome, Retry, RunResult, StepError};
pub use due::{CLOCKS_DIFFER_BY, Timetable, WAKE_DELAY, effective_schedule};
pub use memory::{BELIEVED_FOR, JobCache, Memory};
pub use rules::Rule;
pub use step::{Settings, Step};
pub use watch::{
    Operation, Owners, Reaction, on_cronjob_added, on_cronjob_deleted, on_cronjob_updated, on_job_added,
    on_job_deleted, on_job_updated, on_name_freed,
};
