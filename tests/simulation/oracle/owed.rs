//! What must come true by itself while all is calm: the conditions of a CronJob, each of which may be wrong only for a moment.

use super::facts::{End, Policy, Version, Wall, job_name, newest, next};
use super::scene::{Cron, Scene};
use crate::plan::Ms;

/// A due instant has its Job.
pub(super) const RUN: usize = 0;
/// `status.active` lists the unfinished runs.
pub(super) const ACTIVE: usize = 1;
/// lastScheduleTime knows every run that stands.
pub(super) const SCHEDULED: usize = 2;
/// lastSuccessfulTime knows every success that stands.
pub(super) const SUCCESS: usize = 3;
/// No more successes stand than the limit says.
pub(super) const SUCCESSES: usize = 4;
/// Nor failures.
pub(super) const FAILURES: usize = 5;
/// A skip was said.
pub(super) const SKIP: usize = 6;
/// A miss was said.
pub(super) const MISS: usize = 7;
/// That somebody else's Job holds the name was said.
pub(super) const FOREIGN: usize = 8;
/// A Job that nobody knows was spoken of.
pub(super) const UNKNOWN: usize = 9;
/// How many there are.
pub(super) const CONDITIONS: usize = 10;

/// Each condition's invariant, and what is wrong.
pub(super) const MEANING: [(u8, &str); CONDITIONS] = [
    (2, "a due run does not start"),
    (6, "status.active does not list the unfinished runs"),
    (6, "lastScheduleTime does not know a run that stands"),
    (6, "lastSuccessfulTime does not know a success that stands"),
    (7, "more successful Jobs stand than the limit says"),
    (7, "more failed Jobs stand than the limit says"),
    (9, "a run is skipped and nothing is said of it"),
    (9, "a run is missed and nothing is said of it"),
    (9, "somebody else's Job has the name of a run and nothing is said of it"),
    (9, "a Job that the controller did not create stands and nothing is said of it"),
];

/// Conditions that only the next step mends, whenever it comes: where the server refused a deletion for good, nobody tries it again
/// (rule `history-retried`).
pub(super) fn needs_a_step(condition: usize, cron: &Cron) -> bool {
    matches!(condition, SUCCESSES | FAILURES) && cron.refused_at.is_some()
}

/// How long a condition may be wrong.
pub(super) fn patience(scene: &Scene, cron: &Cron) -> Ms {
    // What a quota refused is tried again after a back-off.
    if scene.quotas.contains_key(&cron.key.1) { 65_000 } else { 700 }
}

/// What of a CronJob is not as it should be at `now`, by its leader's clock; with the instant that it is about.
pub(super) fn wrongs(scene: &Scene, cron: &Cron, now: Wall) -> [Option<Wall>; CONDITIONS] {
    let mut wrongs = [None; CONDITIONS];
    let version = cron.version();
    if cron.gone.is_some() || version.deleting || scene.closed.contains(&cron.key.1) {
        return wrongs;
    }
    let mut unfinished: Vec<&str> = scene.unfinished(cron).map(|(_, job)| &*job.uid).collect();
    let mut active: Vec<&str> = version.active.iter().map(|uid| &**uid).collect();
    active.retain(|uid| !scene.children(cron).any(|(_, job)| job.uid == *uid && job.deleting));
    unfinished.sort_unstable();
    active.sort_unstable();
    wrongs[ACTIVE] = (unfinished != active).then_some(now);
    wrongs[SCHEDULED] = scene.runs(cron).map(|(due, _)| due).max().filter(|due| version.last_schedule < Some(*due));
    let successes = scene.children(cron).filter(|(_, job)| job.end == Some(End::Succeeded));
    let newest_success = successes.filter_map(|(_, job)| job.completed).max();
    wrongs[SUCCESS] = newest_success.filter(|completed| version.last_success < Some(*completed));
    for (condition, end) in [(SUCCESSES, End::Succeeded), (FAILURES, End::Failed)] {
        let beyond = version.limit(end).is_some_and(|limit| scene.finished(cron, end).count() > limit);
        wrongs[condition] = beyond.then_some(now);
    }
    let unknown = scene.children(cron).filter(|(_, job)| job.end.is_none() && !job.deleting);
    let mut unknown = unknown.filter(|(key, job)| job.due.is_none_or(|due| key.2 != job_name(&cron.key.2, due)));
    wrongs[UNKNOWN] = unknown.any(|(key, _)| !cron.unknown_said.contains(&key.2)).then_some(now);
    if let Some((condition, due)) = pending(scene, cron, version, now) {
        wrongs[condition] = Some(due);
    }
    wrongs
}

/// The newest pending instant, and which condition it makes wrong: what has not started must start, or somebody must say why not.
fn pending(scene: &Scene, cron: &Cron, version: &Version, now: Wall) -> Option<(usize, Wall)> {
    if version.suspend {
        return None;
    }
    let schedule = version.schedule.as_ref()?;
    let due = newest(schedule, version.base(), now)?;
    if Some(due) <= cron.floor || cron.started.contains_key(&due) {
        return None;
    }
    let said = |reasons: &[&'static str]| reasons.iter().any(|reason| cron.said.contains(&(*reason, due / 60_000)));
    if version.deadline_s.is_some_and(|deadline_s| due <= now - deadline_s.saturating_mul(1000)) {
        let told = said(&["MissSchedule", "JobAlreadyActive", "ForbidConcurrent", "ForeignJob"]);
        return (!told).then_some((MISS, due));
    }
    if version.policy == Policy::Forbid && scene.runs(cron).any(|(_, job)| job.end.is_none()) {
        return (!said(&["JobAlreadyActive", "ForbidConcurrent"])).then_some((SKIP, due));
    }
    let (api, namespace, name) = &cron.key;
    if let Some(job) = scene.jobs.get(&(*api, namespace.clone(), job_name(name, due))) {
        let is_foreign = job.owner.as_ref() != Some(&version.uid);
        return (is_foreign && !said(&["ForeignJob"])).then_some((FOREIGN, due));
    }
    if scene.quotas.get(namespace).is_some_and(|most| scene.jobs_in(*api, namespace) >= *most) {
        return None;
    }
    Some((RUN, due))
}

/// When the next instant comes, by the same clock.
pub(super) fn next_due(cron: &Cron, now: Wall) -> Option<Wall> {
    let version = cron.version();
    let schedule = version.schedule.as_ref().filter(|_| !version.suspend && !version.deleting)?;
    let base = newest(schedule, version.base(), now).unwrap_or(version.base());
    let due = next(schedule, base)?;
    (due > now).then_some(due)
}
