//! A due instant under judgement: what we would have done about it, and what is seen.
//!
//! Invariants
//! - The controller in charge may have decided on any state from just before the instant up to its act. So a start that is seen
//!   agrees if any plan of the case held it; that nothing is seen agrees if the last plan held nothing.
//! - Plans are made without what the controller in charge did for this very instant.

use std::sync::Arc;

use chrono::TimeDelta;

use super::plan::Plan;
use crate::model::{Job, Uid, WallTime};

/// What is done later than this after the time counts as late.
pub(super) const WITHIN: TimeDelta = TimeDelta::seconds(30);

/// How long a run that was not seen in time is still waited for, unless the next one comes due.
pub(super) const PATIENCE: TimeDelta = TimeDelta::minutes(5);

/// The two watches are this much apart at the most: what looks wrong by one may be explained by the other.
pub(super) const SETTLE: TimeDelta = TimeDelta::seconds(2);

/// One due instant.
pub(super) struct Case {
    pub(super) due: WallTime,
    /// lastScheduleTime before anybody acted on the instant.
    pub(super) last: Option<WallTime>,
    /// The last plan, and since when it stands; not before the instant.
    pub(super) plan: Plan,
    pub(super) since: WallTime,
    /// The last plan that starts the run, and since when we would have.
    pub(super) starting: Option<(Plan, WallTime)>,
    /// The Job of the instant.
    pub(super) seen: Option<Seen>,
    /// Active Jobs that our start would have deleted first and that are still there.
    pub(super) owed: Vec<Arc<Job>>,
    /// Those that were deleted.
    pub(super) replaced: Vec<Arc<Job>>,
}

/// A Job that was started.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) job: Arc<Job>,
    /// When the server created it.
    pub(super) at: WallTime,
    /// When we heard of it.
    pub(super) heard: WallTime,
}

impl Case {
    pub(super) fn new(due: WallTime, last: Option<WallTime>, plan: Plan, now: WallTime) -> Self {
        let since = now.max(due);
        let mut case = Self {
            due,
            last,
            plan: plan.clone(),
            since,
            starting: None,
            seen: None,
            owed: Vec::new(),
            replaced: Vec::new(),
        };
        case.take(plan, since);
        case
    }

    /// Whether our last plan is to start the run.
    pub(super) fn is_planned(&self) -> bool {
        self.plan.start == Some(self.due)
    }

    /// Whether it waits for a Job that we would have started.
    pub(super) fn is_missing(&self) -> bool {
        self.seen.is_none() && self.is_planned()
    }

    /// Whether a Job was started that no plan held.
    pub(super) fn is_unmatched(&self) -> bool {
        self.seen.is_some() && self.starting.is_none()
    }

    /// The state changed by something else than the run itself: this would be done now.
    pub(super) fn update(&mut self, mut plan: Plan, now: WallTime) {
        // Only the server knew, and it was asked when the case was opened.
        plan.touched.live_copy |= self.plan.touched.live_copy;
        if plan.starts_as(&self.plan) {
            // The same, perhaps with other Jobs to replace.
            let since = self.since;
            return self.take(plan, since);
        }
        self.take(plan, now.max(self.due));
    }

    fn take(&mut self, plan: Plan, since: WallTime) {
        self.since = since;
        if plan.start == Some(self.due) {
            let begun = self.starting.as_ref().map_or(since, |(_, begun)| *begun);
            let left = |job: &&Arc<Job>| !self.replaced.iter().any(|gone| gone.uid == job.uid);
            self.owed = plan.replaced.iter().filter(left).cloned().collect();
            self.starting = Some((plan.clone(), begun));
        }
        self.plan = plan;
    }

    /// The Job of the instant is there.
    pub(super) fn see(&mut self, job: Arc<Job>, heard: WallTime) {
        let at = job.creation_time.unwrap_or(heard);
        self.seen = Some(Seen { job, at, heard });
    }

    /// Whether our start would have deleted this Job; it is then settled.
    pub(super) fn settle_replaced(&mut self, uid: &Uid) -> bool {
        let Some(at) = self.owed.iter().position(|job| job.uid == *uid) else { return false };
        self.replaced.push(self.owed.swap_remove(at));
        true
    }

    /// When it can be judged. `superseded`: a later instant has come due; `waiting`: an earlier one may claim the Job seen here.
    pub(super) fn deadline(&self, superseded: bool, waiting: bool) -> WallTime {
        match &self.seen {
            Some(_) if self.starting.is_some() && self.owed.is_empty() => self.due.min(self.since),
            Some(seen) if self.starting.is_some() => seen.heard.max(self.since) + WITHIN,
            Some(seen) if waiting => seen.heard + PATIENCE,
            Some(seen) => seen.heard + SETTLE,
            None if self.is_planned() && !superseded => self.since + PATIENCE,
            None if self.is_planned() => self.since + WITHIN,
            None => self.due + WITHIN,
        }
    }
}
