//! Decisions about a batch/v1 Job: which Pods it needs now and how it stands, as a pure step machine ([`Step`]); what a watch event
//! means; and what becomes of Pods that lost their Job.
//!
//! Invariants
//! - No I/O, no clock, no randomness, no map of random order: the same inputs give the same calls, events and status.
//! - A Pod that ended is counted once, whatever is cut off and however late the caches are ([`accounting`]).
//! - Every deviation from the peer is a named rule.

pub mod accounting;
mod call;
mod census;
mod claim;
pub mod classify;
pub mod conditions;
mod delay;
mod failure_policy;
#[cfg(test)]
mod fixtures;
mod index_set;
mod manage;
mod mandate;
mod memory;
pub mod names;
mod new_pod;
mod order;
mod orphans;
pub mod per_index;
mod rules;
mod step;
mod success_policy;
mod ttl;
mod verdict;
mod watch;

pub use call::{Action, Answer, Call, CreationReason, Next, Outcome, PodList, PodPatch, StepError, Tally};
pub use census::Census;
pub use claim::{Claim, adoption_hindrance, claim};
pub use delay::{BackOff, FIRST_DELAY, MAX_DELAY};
pub use failure_policy::{FailureMatch, judge};
pub use index_set::IndexSet;
pub use manage::{MAX_PODS_PER_STEP, Plan, plan, wanted_active};
pub use mandate::Mandate;
pub use memory::{BELIEVED_FOR, Memory, PodCache};
pub use new_pod::{IndexAdditions, PodAdditions};
pub use order::pods_to_delete;
pub use orphans::{Orphan, free, is_gone, orphan, sweep_result};
pub use per_index::IndexFailures;
pub use rules::Rule;
pub use step::{BATCH_PERIOD, Step};
pub use success_policy::matching_rule;
pub use ttl::{Expiry, NoFinishTime, expiry};
pub use verdict::{Verdict, deadline, is_complete, verdict};
pub use watch::{
    JobCache, Operation, Reaction, Tracking, on_job_added, on_job_deleted, on_job_updated, on_pod_added,
    on_pod_deleted, on_pod_updated,
};
