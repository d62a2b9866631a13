//! The Jobs in the store: what replicas create.

use super::Oracle;
use super::facts::{End, Job, Policy, Version, Wall, is_due, job_name, text};
use super::scene::{Cron, Key, Left, Started};
use crate::history::Changed;
use crate::plan::Ms;

impl Oracle {
    pub(super) fn on_job(&mut self, at: Ms, key: Key, changed: &Changed, gone: bool) {
        let mut job = Job::read(key.0, &changed.object);
        let known = self.scene.jobs.get(&key).and_then(|before| before.ended_at);
        job.ended_at = known.or(job.end.map(|_| at));
        let before = if gone { self.scene.jobs.remove(&key) } else { self.scene.jobs.insert(key.clone(), job.clone()) };
        let owner = job.owner.clone();
        self.register(&key, &job);
        match (before, changed.by) {
            (None, Some(replica)) => self.on_start(at, &key, &job, replica),
            (Some(before), Some(_)) if gone || (job.deleting && !before.deleting) => {
                self.on_removed(at, &key, &before);
                // The answer may be lost, and the old cache count it all the same.
                if !self.scene.is_calm(at) {
                    self.on_left(at, &key, &before);
                }
            }
            (Some(_), Some(_)) => self.blame(8, at, &key, "a replica changed a Job".to_owned()),
            (Some(before), None) if gone => self.on_left(at, &key, &before),
            (_, None) => {}
        }
        // Whoever owns it, its name may be that of a run (rule `freed-name-wakes`).
        let named = key.2.rsplit_once('-').map(|(name, _)| (key.0, key.1.clone(), name.to_owned()));
        let named =
            named.and_then(|name| self.scene.uids.get(&name).cloned()).filter(|uid| owner.as_ref() != Some(uid));
        for uid in owner.into_iter().chain(named) {
            self.look(&uid, at, true);
        }
    }

    /// A Job was deleted, by somebody else or, in a trouble, by a replica.
    fn on_left(&mut self, at: Ms, key: &Key, job: &Job) {
        let window = self.scene.window(at);
        let cron = job.owner.as_ref().and_then(|uid| self.scene.crons.get_mut(uid));
        if let (Some(cron), Some(end)) = (cron, job.end) {
            cron.left.retain(|left| left.at >= window);
            cron.left.push(Left { at, end, order: job.order(&key.2) });
        }
    }

    /// What a Job justifies in the status of its CronJob, for good.
    fn register(&mut self, key: &Key, job: &Job) {
        let Some(cron) = job.owner.as_ref().and_then(|uid| self.scene.crons.get_mut(uid)) else { return };
        if let Some(minutes) = cron.minutes_in(&key.2) {
            cron.named.entry(minutes).or_default().extend(job.due);
        }
        cron.completions.extend(job.completed.filter(|_| job.end == Some(End::Succeeded)));
    }

    /// A replica created a Job.
    fn on_start(&mut self, at: Ms, key: &Key, job: &Job, replica: usize) {
        self.tally.started += 1;
        let Some(uid) = job.owner.clone() else {
            return self.blame(8, at, key, "a replica created a Job without an owner".to_owned());
        };
        let Some(due) = job.due else {
            return self.blame(3, at, key, "a replica created a Job without a due instant".to_owned());
        };
        let (window, term) = (self.scene.window(at), self.scene.term);
        let Some(cron) = self.scene.crons.get(&uid) else {
            return self.blame(8, at, key, "a replica created a Job for nobody".to_owned());
        };
        let mut wrongs: Vec<(u8, String)> = Vec::new();
        let text = text(due);
        if key.2 != job_name(&cron.key.2, due) {
            wrongs.push((1, format!("the name is not that of the run of {text}")));
        }
        if cron.gone.is_some_and(|gone| gone < window) {
            wrongs.push((3, "its CronJob is gone".to_owned()));
        }
        // Nobody can know of a Job that vanished before it was recorded, once the term of whoever made it is over.
        let first = cron.started.get(&due);
        let stands = |first: &Started| self.scene.jobs.values().any(|job| job.uid == first.job);
        let forgotten = |first: &Started| first.term != term && !stands(first);
        if let Some(first) = first.filter(|first| !forgotten(first)) {
            wrongs.push((1, format!("the run of {text} was started before, by r{}: {}", first.by, first.job)));
        }
        if cron.version().last_schedule >= Some(due) {
            wrongs.push((1, format!("the run of {text} is in lastScheduleTime already")));
        }
        self.check_due(at, cron, due, &text, &mut wrongs);
        self.check_policy(at, cron, job, &mut wrongs);
        if let Some(cron) = self.scene.crons.get_mut(&uid) {
            cron.started.insert(due, Started { job: job.uid.clone(), by: replica, term });
        }
        for (invariant, what) in wrongs {
            self.blame(invariant, at, key, what);
        }
    }

    /// Invariant 3.
    fn check_due(&self, at: Ms, cron: &Cron, due: Wall, text: &str, wrongs: &mut Vec<(u8, String)>) {
        let scene = &self.scene;
        // A step reads the time once, at its begin, and may take long while answers are slow.
        let (latest, earliest) = (scene.latest_wall(at), scene.earliest_wall(scene.window(at)));
        if due > latest {
            wrongs.push((3, format!("the run of {text} is not due yet on any clock")));
        }
        let started = cron.started.keys().rev().take(5).copied();
        let fits = |version: &Version| {
            let Some(schedule) = &version.schedule else { return false };
            // The chain may begin at an edit, or with a deadline at the start of its window, which matters where the clock goes back by
            // half an hour.
            let window = version.deadline_s.map(|deadline_s| due - deadline_s.saturating_mul(1000));
            let mut bases = started.clone().chain([version.base(), version.created]).chain(cron.floor).chain(window);
            let in_time = version.deadline_s.is_none_or(|s| due > earliest - s.saturating_mul(1000));
            !version.suspend && !version.deleting && in_time && bases.any(|base| is_due(schedule, base, due))
        };
        let window = scene.window(at);
        if !cron.since(window).any(fits) {
            wrongs.push((3, format!("the run of {text} is not due")));
        }
        let calm_since_edit = cron.calm_edit.filter(|(edit, _)| *edit >= scene.calm_from && scene.is_calm(at));
        if calm_since_edit.is_some_and(|(_, floor)| due <= floor) {
            wrongs.push((3, format!("the run of {text} lies before the edit of the schedule")));
        }
    }

    /// Invariants 4 and 5.
    fn check_policy(&self, at: Ms, cron: &Cron, job: &Job, wrongs: &mut Vec<(u8, String)>) {
        let window = self.scene.window(at);
        let always = |policy: Policy| cron.since(window).all(|version| version.policy == policy);
        let others = self.scene.unfinished(cron).filter(|(_, other)| other.uid != job.uid);
        let others: Vec<String> = others.map(|(due, _)| job_name(&cron.key.2, due)).collect();
        if others.is_empty() {
            return;
        }
        if always(Policy::Forbid) {
            wrongs.push((4, format!("Forbid, and unfinished already: {others:?}")));
        }
        if always(Policy::Replace) {
            wrongs.push((5, format!("Replace, and not replaced: {others:?}")));
        }
    }
}
