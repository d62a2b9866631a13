//! The upkeep before the decision: history, children, and the entries of `active`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::active::ActiveList;
use super::{Step, Task, cronjob_of, deleted_of, job_of};
use crate::model::{
    ApiFailure, CronJob, CronJobStatus, EventType, Finish, Job, ObjectKey, ObjectReference, Uid, WallTime, job_name,
};
use crate::reconcile::call::{Answer, Call, Retry, StepError};
use crate::reconcile::due::CLOCKS_DIFFER_BY;
use crate::reconcile::profile::Stage;

/// Most Jobs that one step deletes for history: what is due must not wait for thousands of deletions. Each deletion is heard
/// and leads to another step, which goes on.
const HISTORY_PORTION: usize = 50;

impl Step<'_> {
    /// Puts the tasks of a stage in front of what is still to do.
    pub(super) fn start_stage(&mut self, stage: Stage) {
        let tasks: Vec<Task> = match stage {
            Stage::History => self.beyond_limits().into_iter().map(Task::DeleteOld).collect(),
            Stage::Children { finished, unknown } => {
                self.children.iter().map(|job| Task::Child { job: job.clone(), finished, unknown }).collect()
            }
            Stage::ActiveList => {
                let children: BTreeSet<&Uid> = self.children.iter().map(|job| &job.uid).collect();
                let childless = |reference: &&ObjectReference| !children.contains(&reference.uid);
                self.active.iter().filter(childless).cloned().map(Task::Reference).collect()
            }
        };
        for task in tasks.into_iter().rev() {
            self.todo.push_front(task);
        }
    }

    /// Finished children beyond the history limits, oldest first, successful ones before failed ones. Volcano's Terminated ones
    /// count as failed (rule `terminated-is-failed`).
    fn beyond_limits(&self) -> Vec<Arc<Job>> {
        let limits = [self.base.spec.successful_limit, self.base.spec.failed_limit];
        let mut beyond = Vec::new();
        for (limit, successful) in limits.into_iter().zip([true, false]) {
            let Some(limit) = limit else { continue };
            let of_kind = |job: &&Arc<Job>| job.finish.is_some_and(|f| (f == Finish::Complete) == successful);
            let mut jobs: Vec<Arc<Job>> = self.children.iter().filter(of_kind).cloned().collect();
            let excess = jobs.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
            if excess > 0 {
                jobs.sort_by(|a, b| self.history_order(a).cmp(&self.history_order(b)));
                jobs.truncate(excess);
                // Rule `own-run-recorded`: first the status, then the deletion, lest a crash between them start the run again.
                jobs.retain(|job| self.unrecorded_run(job, self.base.status.last_schedule_time).is_none());
                beyond.extend(jobs);
            }
        }
        // Rule `history-in-portions`.
        beyond.truncate(HISTORY_PORTION);
        beyond
    }

    /// Jobs without the time that orders history are the newest; ties are settled by name.
    fn history_order<'j>(&self, job: &'j Job) -> (bool, Option<WallTime>, &'j str) {
        let time = (self.profile.history_key)(job);
        (time.is_none(), time, &job.key.name)
    }

    /// A child beyond its limit was to be deleted (rule `history-retried`).
    pub(super) fn on_old_deleted(&mut self, job: &Job, answer: Answer) {
        if let Err(failure) = self.on_deleted(job, answer)
            && failure.may_pass()
        {
            self.outcome.left_over.get_or_insert_with(|| StepError::of(&failure));
        }
    }

    /// Takes note of a deletion that succeeded, or found the Job gone.
    ///
    /// # Errors
    /// The Job still stands; said already.
    pub(super) fn on_deleted(&mut self, job: &Job, answer: Answer) -> Result<(), ApiFailure> {
        let words = &self.profile.words;
        let by_us = match deleted_of(answer) {
            Ok(()) => true,
            // Rule `delete-notfound-ok`.
            Err(failure) if failure.is_not_found() => false,
            // The one that was meant is gone, and another has its name (rule `only-own-deleted`).
            Err(failure) if failure.is_other_uid() => false,
            Err(failure) => {
                let message = (words.failed_delete)(&job.key.name, &failure.message);
                self.say(EventType::Warning, "FailedDelete", message);
                return Err(failure);
            }
        };
        self.memory.on_deleted(&job.uid);
        self.drop_active(&job.uid);
        if by_us {
            self.say(EventType::Normal, "SuccessfulDelete", (words.deleted)(&job.key.name));
        }
        Ok(())
    }

    /// One child: a finished one is noted at once; an unfinished one missing from `active` needs the live CronJob.
    pub(super) fn look_at_child(&mut self, job: &Job, finished: bool, unknown: bool) -> Option<Call> {
        match job.finish {
            Some(finish) if finished => self.note_finished(job, finish),
            None if unknown && !self.is_active(&job.uid) => {
                return Some(Call::GetCronJob { key: self.base.key.clone() });
            }
            _ => {}
        }
        None
    }

    fn note_finished(&mut self, job: &Job, finish: Finish) {
        if self.is_active(&job.uid) {
            self.drop_active(&job.uid);
            self.say(EventType::Normal, "SawCompletedJob", (self.profile.words.saw_completed)(job, finish));
        }
        if let Some(at) = self.own_run(job).filter(|at| self.status.last_schedule_time < Some(*at)) {
            self.status.last_schedule_time = Some(at);
            self.changed = true;
        }
        let last = self.status.last_successful_time;
        // An unset time counts as changed even if the Job brings none, as in the peers.
        if job.succeeded && (last.is_none() || job.completion_time > last) {
            self.status.last_successful_time = job.completion_time;
            self.changed = true;
        }
    }

    /// The live CronJob knows the Job (then the cached copy was stale), or the Job is a run of ours that the status forgot, or it
    /// is nobody's.
    pub(super) fn on_live_cronjob(&mut self, job: &Job, answer: Answer) {
        let live = match cronjob_of(answer) {
            Ok(live) => live,
            Err(failure) => {
                if failure.is_not_found() {
                    self.memory.on_gone(&self.base, self.now);
                }
                return self.fail(StepError::of(&failure));
            }
        };
        if live.uid != self.base.uid {
            self.memory.on_gone(&self.base, self.now);
            let text = format!("CronJob {} was deleted and created again; the cache shows the old one", live.key);
            return self.fail(StepError::new(text, Retry::Conflict));
        }
        if live.status.active.iter().any(|reference| reference.uid == job.uid) {
            self.adopt(live);
        } else if let Some(at) = self.own_run(job) {
            self.add_active(job, at);
        } else if self.memory.first_unknown(&job.uid) {
            let (reason, message) = (self.profile.words.unknown_job)(job);
            self.say(EventType::Warning, reason, message);
        }
    }

    /// The due instant that a Job names twice as our runs do: its annotation gives the minute in its name. A Job made by hand has
    /// another name or no such annotation.
    fn named_run(&self, job: &Job) -> Option<WallTime> {
        job.scheduled_time.filter(|at| job_name(&self.base.key.name, *at) == *job.key.name)
    }

    /// The due instant of a Job that we may well have created (rules `own-run-readopted`, `own-run-recorded`). An instant that
    /// no clock of a replica can have shown was never due, whatever the Job says: to record it would hold back runs (ADR 0087). What
    /// this actor started itself under a clock that was further ahead stays its own.
    fn own_run(&self, job: &Job) -> Option<WallTime> {
        let latest = self.memory.started().max(self.now.checked_add_signed(CLOCKS_DIFFER_BY));
        self.named_run(job).filter(|at| Some(*at) <= latest)
    }

    /// The due instant named by a Job if the status, as of `last`, does not know of it. To be kept from history: if it is a run of a
    /// leader whose clock is ahead of ours, its instant is still to come, and its Job must then hold the name.
    fn unrecorded_run(&self, job: &Job, last: Option<WallTime>) -> Option<WallTime> {
        self.named_run(job).filter(|at| last < Some(*at))
    }

    /// Goes on with the live copy (rule `consistent-live-copy`): what this step did to the status so far is done to it too.
    fn adopt(&mut self, live: Arc<CronJob>) {
        let earlier = std::mem::replace(&mut self.status, CronJobStatus { active: Vec::new(), ..live.status });
        let added = self.added();
        let before = self.base.status.last_schedule_time;
        self.base = live;
        self.list_active();
        for uid in &self.dropped {
            self.active.remove(uid);
        }
        self.status.last_successful_time = self.status.last_successful_time.max(earlier.last_successful_time);
        if earlier.last_schedule_time > before {
            self.status.last_schedule_time = self.status.last_schedule_time.max(earlier.last_schedule_time);
        }
        for reference in added {
            if !self.active.holds(&reference.uid) {
                self.active.push(reference);
            }
        }
    }

    /// Takes `active` from the copy decided on, but for entries that can refer to nothing (rule `nameless-entry-dropped`): to ask for
    /// a Job without a name is to ask for all of them.
    pub(super) fn list_active(&mut self) {
        let refers = |entry: &&ObjectReference| !entry.name.is_empty() && !entry.uid.is_empty();
        let (entries, nameless): (Vec<_>, Vec<_>) =
            self.base.clone().status.active.iter().cloned().partition(|entry| refers(&entry));
        self.active = ActiveList::new(entries);
        for entry in nameless {
            self.speak_of_entry((self.profile.words.gone_from_active)(&entry));
            self.changed = true;
        }
    }

    /// Runs taken back into `active` in this step.
    fn added(&self) -> Vec<ObjectReference> {
        let original: BTreeSet<&Uid> = self.base.status.active.iter().map(|reference| &reference.uid).collect();
        self.active.iter().filter(|reference| !original.contains(&reference.uid)).cloned().collect()
    }

    /// An entry of `active` that is no child: on the server, or in the cache, is it still there?
    pub(super) fn check_reference(&mut self, reference: &ObjectReference) -> Option<Call> {
        let key = self.key_of(reference);
        if self.profile.asks_live_about_active {
            return Some(Call::GetJob { key });
        }
        let cached = self.memory.job(self.cache, &key).map(|job| job.uid.clone());
        if cached.as_ref() != Some(&reference.uid) {
            let message = match cached {
                None => (self.profile.words.gone_from_active)(reference),
                Some(actual) => format!(
                    "Active job reference {} points to a different UID (expected: {}, actual: {actual})",
                    crate::schedule::quote(&reference.name),
                    reference.uid
                ),
            };
            self.speak_of_entry(message);
            self.drop_active(&reference.uid);
        }
        None
    }

    /// Gone, or its name belongs to another uid by now (rule `same-name-other-uid`): the entry is dropped.
    pub(super) fn on_referenced_job(&mut self, reference: &ObjectReference, answer: Answer) {
        let found: Option<Uid> = match job_of(answer) {
            Ok(job) => Some(job.uid.clone()),
            Err(failure) if failure.is_not_found() => None,
            // Rule `unreadable-job-stays`: it is there, and how it fares nobody can tell; the runs of others must not wait for it.
            Err(failure) if failure.is_unreadable() => {
                return self.say(EventType::Warning, "UnreadableObject", failure.message.into());
            }
            Err(failure) => return self.fail(StepError::of(&failure)),
        };
        if found.as_ref() != Some(&reference.uid) {
            self.speak_of_entry((self.profile.words.gone_from_active)(reference));
            self.drop_active(&reference.uid);
        }
    }

    /// An entry of `active` is dropped; `message` says why.
    pub(super) fn speak_of_entry(&mut self, message: String) {
        let (event_type, reason) = self.profile.words.stale_entry;
        self.say(event_type, reason, message);
    }

    /// Where the Job of a reference is. One without a namespace is sought in the CronJob's (rule `get-in-namespace`).
    pub(super) fn key_of(&self, reference: &ObjectReference) -> ObjectKey {
        let namespace = match &*reference.namespace {
            "" => self.base.key.namespace.clone(),
            namespace => namespace.into(),
        };
        ObjectKey::new(namespace, &*reference.name)
    }
}
