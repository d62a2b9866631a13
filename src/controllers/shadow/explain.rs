//! Which deviation rule explains a difference: whether the peer, by what is known of it, does otherwise in just this state.
//!
//! Nothing here decides anything about a run; it names what has happened. A rule is named only where its condition held, so a
//! difference that has another cause stays unexplained.

use std::sync::Arc;

use chrono::TimeDelta;

use super::plan::{Plan, Touched};
use crate::cluster::Store;
use crate::model::{Finish, Flavor, Job, ObjectKey, Policy, WallTime, job_name};
use crate::reconcile::{Rule, Settings, Timetable, effective_schedule};
use crate::schedule::{Schedule, Timing, Zone, next_start};

/// Seconds from which on the peers' `seconds x 1e9` overflows.
const GO_DURATION_MAX_S: i64 = 9_223_372_036;

/// Steps of the peers' walk that are followed; a schedule for every minute takes two.
const LONGEST_WALK: usize = 10_000;

/// What a difference is explained from.
pub(super) struct Question<'a> {
    pub(super) settings: Settings,
    pub(super) jobs: &'a Store<Job>,
    /// The plan, with the state that it was made on.
    pub(super) plan: &'a Plan,
    /// The edit floor.
    pub(super) floor: Option<WallTime>,
}

impl Question<'_> {
    /// We would have started the run of `due`, the peer did not.
    pub(super) fn not_started(&self, due: WallTime) -> Option<Rule> {
        let Touched { readopted, recorded, other_uid, left_active, .. } = self.plan.touched;
        let volcano = self.settings.flavor == Flavor::Volcano;
        self.arithmetic(due, true)
            .or_else(|| (other_uid && !volcano && self.policy() != Policy::Allow).then_some(Rule::SameNameOtherUid))
            // Volcano sets no timer after a status write that failed: a run is there that the status does not know.
            .or_else(|| ((readopted || recorded) && volcano).then_some(Rule::StatusAlwaysWritten))
            .or_else(|| (!volcano && self.lost_its_timer(due)).then_some(Rule::ForeignRequeues))
            .or_else(|| (volcano && left_active > 1).then_some(Rule::SnapshotIteration))
    }

    /// The peer started the run of `due`, we would not have.
    pub(super) fn started(&self, due: WallTime) -> Option<Rule> {
        let Touched { readopted, recorded, live_copy, .. } = self.plan.touched;
        let edited = self.floor.is_some_and(|floor| due <= floor);
        edited
            .then_some(Rule::EditFloor)
            .or_else(|| (live_copy && self.settings.flavor == Flavor::Volcano).then_some(Rule::ConsistentLiveCopy))
            .or_else(|| (readopted && self.policy() == Policy::Forbid).then_some(Rule::OwnRunReadopted))
            .or_else(|| recorded.then_some(Rule::OwnRunRecorded))
            .or_else(|| self.arithmetic(due, false))
    }

    /// We would have started another run than that of `theirs`.
    pub(super) fn elsewhere(&self, ours: WallTime, theirs: WallTime) -> Option<Rule> {
        self.started(theirs).or_else(|| self.not_started(ours))
    }

    /// We would have deleted `job`, the peer did not.
    pub(super) fn kept(&self, job: &Job) -> Option<Rule> {
        let Touched { readopted, left_active, .. } = self.plan.touched;
        let volcano = self.settings.flavor == Flavor::Volcano;
        let terminated = |job: &Job| job.finish == Some(Finish::Terminated);
        let any_terminated = self.plan.before.jobs.iter().any(|job| terminated(job));
        let counted_too = job.finish.is_some_and(|finish| finish != Finish::Complete) && any_terminated;
        (volcano && counted_too)
            .then_some(Rule::TerminatedIsFailed)
            .or_else(|| (readopted && job.finish.is_none()).then_some(Rule::OwnRunReadopted))
            .or_else(|| (volcano && left_active > 2 && job.finish.is_none()).then_some(Rule::SnapshotIteration))
    }

    /// `job` was deleted, we would have kept it.
    pub(super) fn deleted(&self, job: &Job) -> Option<Rule> {
        let Touched { other_uid, .. } = self.plan.touched;
        if self.settings.flavor == Flavor::Volcano {
            return None;
        }
        let by_name = other_uid && self.policy() == Policy::Replace && job.finish.is_none();
        let mistaken = || job.finish.is_some() && self.jobs_by_name().iter().any(|other| !self.plan.before.owns(other));
        by_name.then_some(Rule::SameNameOtherUid).or_else(|| mistaken().then_some(Rule::OwnerByUid))
    }

    /// Whether the Kubernetes controller, which goes by the name of a Job's owner, would have deleted this finished Job, which is
    /// gone by now. One of an earlier CronJob of the same name is cleaned away by the garbage collector.
    pub(super) fn is_beyond_limits_by_name(&self, job: &Job) -> bool {
        let cronjob = &self.plan.before.cronjob;
        let was_cronjob = job.controller.as_ref().is_some_and(|owner| &*owner.kind == "CronJob");
        let limit = if job.succeeded { cronjob.spec.successful_limit } else { cronjob.spec.failed_limit };
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(0));
        let left = self.jobs_by_name().iter().filter(|other| other.succeeded == job.succeeded).count();
        !was_cronjob && left >= limit
    }

    /// The finished Jobs that have an owner of the CronJob's name. Looks at every Job of the cluster; only for differences.
    fn jobs_by_name(&self) -> Vec<Arc<Job>> {
        let key = &self.plan.before.cronjob.key;
        let named = |job: &Job| job.controller.as_ref().is_some_and(|owner| *owner.name == *key.name);
        let finished = |job: &Arc<Job>| job.finish.is_some() && job.key.namespace == key.namespace;
        self.jobs.list().into_iter().filter(|job| finished(job) && named(job)).collect()
    }

    fn policy(&self) -> Policy {
        self.plan.policy()
    }

    /// The rule by which the peer finds another instant due than we do, if it does. `ours`: we find this one due, else the peer does.
    fn arithmetic(&self, due: WallTime, ours: bool) -> Option<Rule> {
        let cronjob = &self.plan.before.cronjob;
        let local = self.settings.local_zone;
        let schedule = Schedule::parse(&effective_schedule(&cronjob.spec, local)).ok()?;
        let anchor = cronjob.status.last_schedule_time.or(cronjob.creation_time)?;
        let now = self.plan.now;
        let theirs = peers_due(&schedule, local, anchor, cronjob.spec.starting_deadline_s, now);
        if (theirs == Some(due)) == ours {
            return None;
        }
        let walk_stands = |base| schedule.next(base, local) != next_start(&schedule, local, base);
        Some(match (cronjob.spec.starting_deadline_s, schedule.timing()) {
            (Some(0), _) => Rule::DeadlineZero,
            (Some(seconds), _) if seconds > GO_DURATION_MAX_S => Rule::DeadlineSaturates,
            (Some(_), Timing::Every { .. }) => Rule::EveryKeepsAnchor,
            _ if walk_stands(anchor) || walk_stands(due) => Rule::StuckWalk,
            _ => Rule::ExactNewest,
        })
    }

    /// Whether the Kubernetes controller found the name of the run before `due` taken, and set no timer any more: by somebody
    /// else's Job, or by one in `active` already.
    fn lost_its_timer(&self, due: WallTime) -> bool {
        let view = &self.plan.before;
        let cronjob = &view.cronjob;
        let before = due - TimeDelta::seconds(1);
        let (last, local) = (cronjob.status.last_schedule_time, self.settings.local_zone);
        let timetable = Timetable::new(cronjob, last, local, self.floor, before).ok();
        let Some(earlier) = timetable.and_then(|timetable| timetable.due().ok()?.newest) else { return false };
        let name = job_name(&cronjob.key.name, earlier);
        let taken = self.jobs.get(&ObjectKey::new(cronjob.key.namespace.clone(), &*name));
        taken.is_some_and(|job| {
            !view.owns(&job) || cronjob.status.active.iter().any(|reference| reference.uid == job.uid)
        })
    }
}

/// The run that the peers find due, by their arithmetic: an estimate from the first gap, nanoseconds in 64 bits, and a deadline
/// that moves the start of `@every`.
fn peers_due(
    schedule: &Schedule,
    local: Zone,
    anchor: WallTime,
    deadline_s: Option<i64>,
    now: WallTime,
) -> Option<WallTime> {
    let window = deadline_s.and_then(|seconds| {
        let back = TimeDelta::nanoseconds(seconds.wrapping_mul(1_000_000_000));
        now.checked_sub_signed(back)
    });
    let start = window.map_or(anchor, |window| window.max(anchor));
    let next = |base| schedule.next(base, local);
    let first = next(start)?;
    let second = next(first)?;
    if now < second {
        return (first <= now).then_some(first);
    }
    let gap_s = second.signed_duration_since(first).num_seconds();
    if gap_s < 1 {
        return None;
    }
    let missed = now.signed_duration_since(first).num_seconds().min(GO_DURATION_MAX_S) / gap_s + 1;
    let from = first.checked_add_signed(TimeDelta::try_seconds((missed - 2).checked_mul(gap_s)?)?)?;
    let mut newest = next(from).filter(|next| *next <= now)?;
    for _ in 0..LONGEST_WALK {
        match next(newest).filter(|next| *next <= now && *next > newest) {
            Some(next) => newest = next,
            None => break,
        }
    }
    Some(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> WallTime {
        text.parse().unwrap()
    }

    fn due(schedule: &str, last: &str, deadline_s: Option<i64>, now: &str) -> Option<WallTime> {
        peers_due(&Schedule::parse(schedule).unwrap(), Zone::UTC, at(last), deadline_s, at(now))
    }

    #[test]
    fn the_peers_find_the_newest_of_a_regular_schedule() {
        let now = "2026-03-01T10:05:00Z";
        assert_eq!(due("* * * * *", "2026-03-01T10:00:00Z", None, now), Some(at(now)));
        assert_eq!(due("* * * * *", "2026-03-01T10:04:00Z", Some(30), now), Some(at(now)));
        assert_eq!(due("* * * * *", "2026-03-01T10:05:00Z", None, now), None);
    }

    #[test]
    fn the_peers_estimate_jumps_past_irregular_instants() {
        assert_eq!(due("0,1 0 * * *", "2026-03-01T00:01:00Z", None, "2026-03-02T00:02:00Z"), None);
    }

    #[test]
    fn the_peers_start_nothing_in_a_window_of_no_length_or_before_a_moved_anchor() {
        let now = "2026-03-01T10:05:00Z";
        assert_eq!(due("* * * * *", "2026-03-01T10:04:00Z", Some(0), now), None);
        assert_eq!(due("@every 1m", "2026-03-01T10:04:00Z", Some(30), now), None);
    }
}
