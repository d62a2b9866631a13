//! Closes what can be judged and says what came of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::case::{Case, SETTLE, Seen as SeenJob, WITHIN};
use super::explain::Question;
use super::ledger::{Gone, Ledger};
use super::plan::{Action, Plan, Planner};
use super::record::{API_VERSION, Difference, Planned, Record, Seen, UNEXPLAINED, time};
use super::tally::Tally;
use crate::model::{CronJob, Job, WallTime, job_name};
use crate::reconcile::Rule;

/// Judges for one controller.
pub(super) struct Judge {
    pub(super) controller: &'static str,
    pub(super) tally: Tally,
    /// Instants under judgement, over all CronJobs.
    pub(super) open: Arc<AtomicUsize>,
}

/// What is found about an instant, or about a Job that was deleted or kept.
struct Finding {
    due: WallTime,
    difference: Difference,
    rule: Option<Rule>,
    planned: Planned,
    seen: Seen,
    message: String,
}

impl Judge {
    /// Keeps the number of instants under judgement.
    pub(super) fn count_open(&self, before: usize, after: usize) {
        self.open.fetch_add(after, Ordering::Relaxed);
        self.forget(before);
    }

    /// So many instants will never be judged: their CronJob is gone.
    pub(super) fn forget(&self, cases: usize) {
        self.open.fetch_sub(cases, Ordering::Relaxed);
    }

    /// Judges everything whose time has come.
    pub(super) fn close(&self, ledger: &mut Ledger, planner: &Planner, now: WallTime) {
        while let Some(at) = (0..ledger.cases.len()).find(|at| ledger.deadline(*at) <= now) {
            let case = ledger.cases.remove(at);
            self.close_case(ledger, planner, &case);
        }
        if !ledger.view.cronjob.deleting {
            self.close_deletions(ledger, planner, now);
            self.close_standing(ledger, planner, now);
        }
        self.close_others(ledger, planner, now);
    }

    fn close_case(&self, ledger: &mut Ledger, planner: &Planner, case: &Case) {
        let mut finding = match &case.seen {
            Some(seen) => on_seen(ledger, planner, case, seen),
            None if case.is_planned() => on_missing(ledger, planner, case),
            None => Finding::new(Difference::None, case.due, &case.plan, unmoved(&case.plan)),
        };
        if finding.planned.job.is_some() && !case.replaced.is_empty() {
            finding.planned.action = Action::Replace.as_str();
        }
        for job in std::mem::take(&mut ledger.settled).iter().chain(&case.replaced) {
            let name = job.key.name.to_string();
            if !finding.planned.deletions.contains(&name) {
                finding.planned.deletions.push(name.clone());
            }
            finding.seen.deletions.push(name);
        }
        self.report(&ledger.view.cronjob, finding);
    }

    /// Deletions that nothing has explained in time.
    fn close_deletions(&self, ledger: &mut Ledger, planner: &Planner, now: WallTime) {
        let (ripe, green) =
            std::mem::take(&mut ledger.gone).into_iter().partition(|gone: &Gone| gone.heard + SETTLE <= now);
        ledger.gone = green;
        for Gone { job, plan, .. } in ripe {
            if job.finish.is_some() && has_time_to_live(&ledger.view.cronjob) {
                continue;
            }
            let nothing = || Plan::nothing(ledger.view.clone(), now);
            let plan = plan.unwrap_or_else(nothing);
            let rule = question(ledger, planner, &plan).deleted(&job);
            let message = format!("{} was deleted, which we would have kept; perhaps by somebody else", job.key.name);
            let finding = Finding { rule, ..Finding::new(Difference::Deleted, instant_of(&job, now), &plan, message) };
            self.report(&ledger.view.cronjob, finding.of_deletion(&job));
        }
        for job in std::mem::take(&mut ledger.late_deletions) {
            let plan = Plan::nothing(ledger.view.clone(), now);
            let message = format!("{} was deleted after all", job.key.name);
            let finding = Finding::new(Difference::Late, instant_of(&job, now), &plan, message).of_deletion(&job);
            let planned = Planned { deletions: vec![job.key.name.to_string()], ..finding.planned };
            self.report(&ledger.view.cronjob, Finding { planned, ..finding });
        }
    }

    /// Jobs that history asks to be deleted and that are still there.
    fn close_standing(&self, ledger: &mut Ledger, planner: &Planner, now: WallTime) {
        let mut overdue = Vec::new();
        for standing in &mut ledger.standing {
            if !standing.reported && standing.since + WITHIN <= now {
                standing.reported = true;
                overdue.push(standing.job.clone());
            }
        }
        for job in overdue {
            let plan = Plan::nothing(ledger.view.clone(), now);
            let rule = question(ledger, planner, &plan).kept(&job);
            let message = format!("{} lies beyond the history limits and was kept", job.key.name);
            let finding = Finding { rule, ..Finding::new(Difference::Kept, instant_of(&job, now), &plan, message) };
            let planned = Planned { deletions: vec![job.key.name.to_string()], ..finding.planned };
            self.report(&ledger.view.cronjob, Finding { planned, ..finding });
        }
    }

    /// Jobs of another owner of the same name that vanished although they are none of the CronJob's: told only where the Kubernetes
    /// controller, which looks at the name alone, would have deleted them for its history.
    fn close_others(&self, ledger: &mut Ledger, planner: &Planner, now: WallTime) {
        for job in std::mem::take(&mut ledger.others_gone) {
            let plan = Plan::nothing(ledger.view.clone(), now);
            if !question(ledger, planner, &plan).is_beyond_limits_by_name(&job) {
                continue;
            }
            let message = format!("{}, which belongs to another owner of the same name, was deleted", job.key.name);
            let finding = Finding::new(Difference::Deleted, instant_of(&job, now), &plan, message).of_deletion(&job);
            self.report(&ledger.view.cronjob, Finding { rule: Some(Rule::OwnerByUid), ..finding });
        }
    }

    fn report(&self, cronjob: &CronJob, finding: Finding) {
        let Finding { due, difference, rule, planned, seen, message } = finding;
        let rule = difference.is_decision().then(|| rule.map_or(UNEXPLAINED, Rule::name));
        if let Some(rule) = rule {
            tracing::info!(controller = self.controller, cronjob = %cronjob.key, %difference, rule, message, "difference");
        }
        self.tally.record(&Record {
            api_version: API_VERSION,
            kind: "Instant",
            controller: self.controller,
            namespace: cronjob.key.namespace.to_string(),
            name: cronjob.key.name.to_string(),
            uid: cronjob.uid.to_string(),
            due: time(due),
            planned,
            seen,
            difference,
            rule,
            message,
        });
    }
}

/// The Job of the instant is there.
fn on_seen(ledger: &mut Ledger, planner: &Planner, case: &Case, seen: &SeenJob) -> Finding {
    let again = ledger.started >= Some(case.due);
    ledger.started = ledger.started.max(Some(case.due));
    let (name, due) = (&seen.job.key.name, case.due);
    let begun = case.starting.as_ref().map_or(due, |(_, since)| *since);
    let late = seen.at.signed_duration_since(begun);
    let finding = match &case.starting {
        _ if again => {
            let rule = Some(Rule::OwnRunRecorded).filter(|_| case.last < Some(due));
            let message = format!("the run was started a second time, as {name} with another uid");
            Finding { rule, ..Finding::new(Difference::Started, due, &case.plan, message) }
        }
        None if ledger.refused.contains(&due) => {
            let message = format!("{name} was started after all, when the next instant had come");
            Finding::new(Difference::Late, due, &case.plan, message)
        }
        None => {
            let rule = question(ledger, planner, &case.plan).started(due);
            let message = format!("{name} was started; {}", unmoved(&case.plan));
            Finding { rule, ..Finding::new(Difference::Started, due, &case.plan, message) }
        }
        Some((plan, _)) if !case.owed.is_empty() => {
            let kept: Vec<&str> = case.owed.iter().map(|job| &*job.key.name).collect();
            let rule = case.owed.first().and_then(|job| question(ledger, planner, plan).kept(job));
            let message = format!("{name} was started; {} was not deleted before", kept.join(", "));
            Finding { rule, ..Finding::new(Difference::Kept, due, plan, message) }
        }
        Some((plan, _)) if late > WITHIN => {
            let message = format!("{name} was started {} s after its time", late.num_seconds());
            Finding::new(Difference::Late, due, plan, message)
        }
        Some((plan, _)) => Finding::new(Difference::None, due, plan, format!("{name} was started")),
    };
    finding.with_job(seen)
}

/// We would have started the run, and its Job is not there.
fn on_missing(ledger: &mut Ledger, planner: &Planner, case: &Case) -> Finding {
    let due = case.due;
    let ours = job_name(&ledger.view.cronjob.key.name, due);
    let claimed = ledger.cases.iter().position(|other| other.is_unmatched() && !ledger.refused.contains(&other.due));
    let other = claimed.map(|at| ledger.cases.remove(at)).and_then(|other| Some((other.due, other.seen?)));
    ledger.refuse(due);
    let Some((theirs, seen)) = other else {
        let rule = question(ledger, planner, &case.plan).not_started(due);
        let message = format!("{ours} was not seen; we would have started it");
        return Finding { rule, ..Finding::new(Difference::NotStarted, due, &case.plan, message) };
    };
    ledger.started = ledger.started.max(Some(theirs));
    let rule = question(ledger, planner, &case.plan).elsewhere(due, theirs);
    let message = format!("{} was started in the place of {ours}", seen.job.key.name);
    Finding { rule, ..Finding::new(Difference::Elsewhere, due, &case.plan, message) }.with_job(&seen)
}

fn question<'a>(ledger: &Ledger, planner: &'a Planner, plan: &'a Plan) -> Question<'a> {
    Question { settings: planner.settings, jobs: &planner.jobs, plan, floor: ledger.floor }
}

impl Finding {
    fn new(difference: Difference, due: WallTime, plan: &Plan, message: String) -> Self {
        let starts = plan.start == Some(due);
        let action = if plan.start.is_some() && !starts { Action::None } else { plan.action };
        let planned = Planned {
            action: action.as_str(),
            job: starts.then(|| job_name(&plan.before.cronjob.key.name, due)),
            deletions: plan.replaced.iter().filter(|_| starts).map(|job| job.key.name.to_string()).collect(),
        };
        Self { due, difference, rule: None, planned, seen: Seen::default(), message }
    }

    fn with_job(mut self, seen: &SeenJob) -> Self {
        self.seen.job = Some(seen.job.key.name.to_string());
        self.seen.uid = Some(seen.job.uid.to_string());
        self.seen.at = Some(time(seen.at));
        self
    }

    fn of_deletion(mut self, job: &Job) -> Self {
        self.seen.deletions.push(job.key.name.to_string());
        self
    }
}

/// Why we would start nothing, in words.
fn unmoved(plan: &Plan) -> String {
    match plan.action {
        Action::Skip => "an earlier run is active and the policy is Forbid".to_owned(),
        Action::Missed => "the run is past its deadline".to_owned(),
        Action::Exists => "a Job of the run's name exists".to_owned(),
        Action::Suspended => "the CronJob is suspended".to_owned(),
        Action::Invalid => "its schedule or zone cannot be used".to_owned(),
        Action::Start | Action::Replace | Action::None => "we hold no such run due".to_owned(),
    }
}

/// The due instant of a Job, or when it was created.
fn instant_of(job: &Job, now: WallTime) -> WallTime {
    job.scheduled_time.or(job.creation_time).unwrap_or(now)
}

/// Whether finished Jobs of the CronJob go by themselves.
fn has_time_to_live(cronjob: &CronJob) -> bool {
    cronjob.spec.template.spec_json.as_deref().is_some_and(|spec| spec.contains("\"ttlSecondsAfterFinished\""))
}
