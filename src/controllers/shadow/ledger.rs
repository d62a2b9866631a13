//! What the shadow of one CronJob knows: the view, the instants under judgement, and the deletions that are owed or unexplained.
//! Everything here is pure; times come in.
//!
//! Invariants
//! - The view is what the watches told so far, in their order; reality wins, whatever was planned.
//! - A difference is reported once: an instant that was judged does not open again, a Job that was kept is named once.
//! - Bounded: cases by the patience with each, everything else by the children of the CronJob.

use std::sync::Arc;

use super::case::{Case, SETTLE};
use super::feed::{Heard, Mail, News};
use super::plan::{PUNCTUAL, Plan};
use super::view::View;
use crate::model::{CronJob, Finish, Flavor, Job, Policy, Uid, WallTime, job_name};

/// How many refused instants are remembered.
const MOST_REFUSED: usize = 8;

/// A finished Job that we would have deleted for history and that is still there.
pub(super) struct Standing {
    pub(super) job: Arc<Job>,
    /// Since when we would have.
    pub(super) since: WallTime,
    /// Whether it was reported as kept.
    pub(super) reported: bool,
}

/// A Job whose deletion was seen and not yet understood.
pub(super) struct Gone {
    /// As it was before.
    pub(super) job: Arc<Job>,
    pub(super) heard: WallTime,
    /// The plan that would have kept it, once there is one.
    pub(super) plan: Option<Plan>,
}

/// Kept by the actor of one CronJob.
pub(super) struct Ledger {
    pub(super) view: View,
    /// Nothing due at or before it starts: schedule or zone were edited then.
    pub(super) floor: Option<WallTime>,
    /// The next instant to open.
    pub(super) next_due: Option<WallTime>,
    /// The newest instant that was opened.
    pub(super) opened: Option<WallTime>,
    /// The newest instant whose Job was seen and judged.
    pub(super) started: Option<WallTime>,
    /// Instants judged as not started, the newest last.
    pub(super) refused: Vec<WallTime>,
    /// lastScheduleTime before it was last raised.
    earlier_last: Option<WallTime>,
    pub(super) cases: Vec<Case>,
    pub(super) standing: Vec<Standing>,
    pub(super) gone: Vec<Gone>,
    /// Jobs of another owner of the same name that vanished.
    pub(super) others_gone: Vec<Arc<Job>>,
    /// Deletions that agree and that no record has named yet.
    pub(super) settled: Vec<Arc<Job>>,
    /// Deletions that came after they were reported as missing.
    pub(super) late_deletions: Vec<Arc<Job>>,
}

impl Ledger {
    /// What is known before `mail` is taken in; `view` is what the caches show.
    pub(super) fn begin(view: View, mail: &Mail) -> Self {
        let mut ledger = Self::on(view);
        let listed = mail.changes.iter().any(|heard| matches!(heard.news, News::Listed));
        for heard in mail.changes.iter().rev().filter(|_| !listed) {
            match &heard.news {
                News::Job(job) => ledger.view.remove(&job.uid),
                News::JobGone(job) if ledger.view.owns(job) => ledger.view.put(job.clone()),
                _ => {}
            }
        }
        ledger
    }

    fn on(view: View) -> Self {
        Self {
            view,
            floor: None,
            next_due: None,
            opened: None,
            started: None,
            refused: Vec::new(),
            earlier_last: None,
            cases: Vec::new(),
            standing: Vec::new(),
            gone: Vec::new(),
            others_gone: Vec::new(),
            settled: Vec::new(),
            late_deletions: Vec::new(),
        }
    }

    /// Takes in what was heard, in its order; whether it may change what is decided.
    pub(super) fn take_in(&mut self, changes: &[Heard], flavor: Flavor) -> bool {
        let mut moved = false;
        for Heard { news, at } in changes {
            moved |= match news {
                News::Listed => true,
                News::Gone => false,
                News::CronJob { new, edited, .. } => self.on_cronjob(new, *edited),
                News::Job(job) => self.on_job(job, *at),
                News::JobGone(job) => self.on_job_gone(job, *at, flavor),
            };
        }
        moved
    }

    fn on_cronjob(&mut self, new: &Arc<CronJob>, edited: Option<WallTime>) -> bool {
        if new.uid != self.view.cronjob.uid {
            let floor = self.floor;
            *self = Self { floor, ..Self::on(View { cronjob: new.clone(), jobs: Vec::new() }) };
        }
        let last = self.view.cronjob.status.last_schedule_time;
        if new.status.last_schedule_time > last {
            self.earlier_last = last;
        }
        self.floor = self.floor.max(edited);
        self.view.cronjob = new.clone();
        true
    }

    fn on_job(&mut self, job: &Arc<Job>, heard: WallTime) -> bool {
        if !self.view.owns(job) {
            let was_ours = self.view.job(&job.uid).is_some();
            self.view.remove(&job.uid);
            return was_ours;
        }
        let old = self.view.job(&job.uid).cloned();
        self.view.put(job.clone());
        match old {
            None => {
                if let Some(due) = self.due_of(job) {
                    self.on_started(due, job, heard);
                }
                true
            }
            Some(old) => {
                if job.deleting && !old.deleting {
                    self.gone.push(Gone { job: old.clone(), heard, plan: None });
                }
                !is_same(&old, job)
            }
        }
    }

    fn on_job_gone(&mut self, job: &Arc<Job>, heard: WallTime, flavor: Flavor) -> bool {
        if !self.view.owns(job) {
            if flavor == Flavor::Kubernetes && job.finish.is_some() {
                self.others_gone.push(job.clone());
            }
            return false;
        }
        let Some(known) = self.view.job(&job.uid).cloned() else { return false };
        self.view.remove(&job.uid);
        if !known.deleting {
            let job = Arc::new(Job { deleting: false, ..Job::clone(job) });
            self.gone.push(Gone { job, heard, plan: None });
        }
        true
    }

    /// The due instant of a Job that was started for one: its annotation, else the minute in its name. A Job made by hand has neither.
    fn due_of(&self, job: &Job) -> Option<WallTime> {
        let cronjob = &*self.view.cronjob.key.name;
        let named = || {
            let minutes: i64 = job.key.name.strip_prefix(cronjob)?.strip_prefix('-')?.parse().ok()?;
            let at = WallTime::from_timestamp(minutes.checked_mul(60)?, 0)?;
            (job_name(cronjob, at) == *job.key.name).then_some(at)
        };
        job.scheduled_time.or_else(named)
    }

    fn on_started(&mut self, due: WallTime, job: &Arc<Job>, heard: WallTime) {
        if let Some(case) = self.cases.iter_mut().find(|case| case.due == due && case.seen.is_none()) {
            return case.see(job.clone(), heard);
        }
        let last = self.view.cronjob.status.last_schedule_time;
        let last = if last >= Some(due) { self.earlier_last } else { last };
        let mut case = Case::new(due, last, Plan::nothing(self.view.clone(), heard), heard);
        case.see(job.clone(), heard);
        self.cases.push(case);
    }

    /// Opens an instant that is planned or has come due.
    pub(super) fn open(&mut self, due: WallTime, plan: Plan, now: WallTime) {
        self.opened = self.opened.max(Some(due));
        let last = self.view.cronjob.status.last_schedule_time;
        self.cases.push(Case::new(due, last, plan, now));
    }

    /// Whether nothing new is to be learnt of an instant: it is under judgement, or it was judged.
    pub(super) fn knows(&self, due: WallTime) -> bool {
        let judged = self.started.max(self.refused.iter().max().copied());
        judged >= Some(due) || self.cases.iter().any(|case| case.due == due)
    }

    /// Notes that the instant was not started.
    pub(super) fn refuse(&mut self, due: WallTime) {
        if self.refused.len() >= MOST_REFUSED {
            self.refused.remove(0);
        }
        self.refused.push(due);
    }

    /// Whether a changed state changes what is held against this case.
    pub(super) fn is_open_to_plans(&self, at: usize) -> bool {
        self.cases
            .get(at)
            .is_some_and(|case| case.is_unmatched() || (case.seen.is_none() && !self.is_superseded(case.due)))
    }

    fn is_superseded(&self, due: WallTime) -> bool {
        self.cases.iter().any(|other| other.due > due && !other.is_unmatched())
    }

    /// When the case can be judged.
    pub(super) fn deadline(&self, at: usize) -> WallTime {
        let Some(case) = self.cases.get(at) else { return WallTime::MAX_UTC };
        let waiting = self.cases.iter().any(Case::is_missing) && !self.refused.contains(&case.due);
        case.deadline(self.is_superseded(case.due), waiting)
    }

    /// The instant of a case, and the state without what was done for it.
    pub(super) fn view_of_case(&self, at: usize) -> (WallTime, View) {
        let Some(case) = self.cases.get(at) else { return (WallTime::MAX_UTC, self.view.clone()) };
        let replaces = self.view.cronjob.spec.policy == Policy::Replace;
        let mut view = if replaces { self.view_with_gone() } else { self.view.clone() };
        // Neither what was started for it, nor what was started in its place.
        let others = self.cases.iter().filter(|other| case.is_missing() && other.is_unmatched());
        for case in others.chain([case]) {
            view.undo_start(case.due, case.seen.as_ref().map(|seen| &seen.job.uid), case.last);
        }
        (case.due, view)
    }

    /// The state with the Jobs whose deletion is not understood yet.
    pub(super) fn view_with_gone(&self) -> View {
        let mut view = self.view.clone();
        self.gone.iter().for_each(|gone| view.put(gone.job.clone()));
        view
    }

    pub(super) fn update(&mut self, at: usize, plan: Plan, now: WallTime) {
        if let Some(case) = self.cases.get_mut(at) {
            case.update(plan, now);
        }
    }

    /// Deletions that a start which we hold due brings with it.
    pub(super) fn settle_owed(&mut self) {
        let cases = &mut self.cases;
        self.gone.retain(|gone| !cases.iter_mut().any(|case| case.settle_replaced(&gone.job.uid)));
    }

    /// Deletions that `plan`, made with the Jobs still there, holds as well; or that were held before.
    pub(super) fn settle_gone(&mut self, plan: &Plan) {
        for mut gone in std::mem::take(&mut self.gone) {
            let uid = &gone.job.uid;
            let stood = self.standing.iter().position(|standing| standing.job.uid == *uid);
            let reported = stood.is_some_and(|at| self.standing.swap_remove(at).reported);
            if reported {
                self.late_deletions.push(gone.job);
            } else if stood.is_some() || plan.deletions().any(|job| job.uid == *uid) {
                self.settled.push(gone.job);
            } else {
                gone.plan = Some(plan.clone());
                self.gone.push(gone);
            }
        }
    }

    /// What history asks for from now on.
    pub(super) fn note_history(&mut self, plan: &Plan, now: WallTime) {
        let earlier = std::mem::take(&mut self.standing);
        let there = |uid: &Uid| self.view.job(uid).filter(|job| !job.deleting).cloned();
        let asked = plan.history.iter().filter_map(|job| there(&job.uid));
        let standing = asked.map(|job| match earlier.iter().find(|old| old.job.uid == job.uid) {
            Some(Standing { since, reported, .. }) => Standing { job, since: *since, reported: *reported },
            None => Standing { job, since: now, reported: false },
        });
        self.standing = standing.collect();
    }

    /// An edit about the time of an instant leaves open whether it counted; nothing can be held against anybody.
    pub(super) fn drop_edited(&mut self) {
        let Some(floor) = self.floor else { return };
        self.cases.retain(|case| {
            let at_its_time = floor + SETTLE >= case.due && floor <= case.due + PUNCTUAL;
            !(at_its_time && case.seen.is_none() && case.plan.start.is_none())
        });
    }
}

/// Whether no decision can tell two versions of a Job apart.
fn is_same(old: &Job, new: &Job) -> bool {
    let Job { key, uid, resource_version: _, creation_time, start_time, deleting, controller, .. } = new;
    let ends =
        |job: &Job| -> (Option<Finish>, bool, Option<WallTime>) { (job.finish, job.succeeded, job.completion_time) };
    (key, uid, creation_time, start_time, deleting, controller)
        == (&old.key, &old.uid, &old.creation_time, &old.start_time, &old.deleting, &old.controller)
        && ends(old) == ends(new)
        && old.scheduled_time == new.scheduled_time
}
