//! Replacing active Jobs, creating the Job of a run, and what the server may answer.

use std::sync::Arc;

use super::{Step, Task, job_of};
use crate::model::{EventType, Job, ObjectKey, ObjectReference, WallTime, job_name, unix_minutes};
use crate::reconcile::call::{Answer, Call, Retry, RunResult, StepError};
use crate::reconcile::due::zone_of;
use crate::reconcile::memory::Once;
use crate::schedule::MissedCount;

impl Step<'_> {
    /// The active Job that a run replaces was fetched: it is deleted if it is this CronJob's. Anybody may have written the entry, and
    /// named somebody else's (rule `only-own-deleted`).
    pub(super) fn on_replaced_job(&mut self, reference: &ObjectReference, answer: Answer) {
        match job_of(answer) {
            Ok(job) if job.key.namespace != self.base.key.namespace || !self.controls(&job) => {
                self.speak_of_entry(format!("Active job {} is not of this CronJob, and not replaced", job.key));
                self.drop_active(&reference.uid);
            }
            Ok(job) => self.todo.push_front(Task::DeleteReplaced(job)),
            Err(failure) => {
                self.say(EventType::Warning, "FailedGet", format!("Get job: {}", failure.message));
                self.fail(StepError::of(&failure));
            }
        }
    }

    pub(super) fn on_replaced_deleted(&mut self, job: &Job, answer: Answer) {
        if self.on_deleted(job, answer).is_ok() {
            self.note(RunResult::Replaced);
        } else {
            self.fail(StepError::new(format!("could not replace job {}", job.key), Retry::BackOff));
        }
    }

    /// The request that creates the Job of a run.
    pub(super) fn create(&mut self, at: WallTime) -> Option<Call> {
        // The annotation shows UTC where no zone is set, whatever zone the schedule runs in.
        let zone = zone_of(&self.base.spec, self.local).ok().flatten();
        Some(Call::CreateJob {
            cronjob: self.base.clone(),
            name: job_name(&self.base.key.name, at).into(),
            at,
            offset_s: zone.map_or(0, |zone| zone.offset_s(at)),
        })
    }

    pub(super) fn job_key(&self, at: WallTime) -> ObjectKey {
        ObjectKey::new(self.base.key.namespace.clone(), job_name(&self.base.key.name, at))
    }

    pub(super) fn on_created(&mut self, at: WallTime, answer: Answer) {
        let failure = match job_of(answer) {
            Ok(job) => return self.on_new_job(at, job),
            Err(failure) => failure,
        };
        if failure.is_withheld() {
            // The run did not fail: whoever leads starts it.
            return self.fail(StepError::of(&failure));
        }
        let words = &self.profile.words;
        if failure.is_ambiguous() {
            self.memory.set_unanswered(Some(at));
        }
        if failure.namespace_terminating {
            if let Some(terminating) = words.namespace_terminating {
                let (reason, message) = terminating(&self.base.key.namespace);
                self.say(EventType::Warning, reason, message);
            }
            self.note(RunResult::Failed);
            let error = StepError { retry: Retry::NextDue, ..StepError::of(&failure) };
            return self.fail(error);
        }
        if failure.is_already_exists() {
            self.note(RunResult::AlreadyExists);
            return self.todo.push_front(Task::GetExisting(at));
        }
        self.note(RunResult::Failed);
        self.say(EventType::Warning, "FailedCreate", (words.failed_create)(&failure.message));
        self.fail(StepError::of(&failure));
    }

    fn on_new_job(&mut self, at: WallTime, job: Arc<Job>) {
        if self.profile.checks_returned_owner && !self.controls(&job) {
            return self.todo.push_front(Task::Disown(job));
        }
        self.outcome.skew_s = job.creation_time.map(|created| created.signed_duration_since(at).num_seconds());
        let key = &self.base.key;
        let message = (self.profile.words.created)(&key.namespace, &key.name, &job.key.name);
        self.say(EventType::Normal, "SuccessfulCreate", message);
        self.note(RunResult::Created);
        self.record(at, job);
    }

    /// A Job without our owner reference would never be seen again; whether or not its deletion succeeded, the run failed.
    pub(super) fn on_disowned(&mut self) {
        self.note(RunResult::Failed);
        self.fail(StepError::new("created job missing owner reference", Retry::BackOff));
    }

    /// The Job that has the run's name already: ours (the run was started before, and its record lost), or foreign.
    pub(super) fn on_existing(&mut self, at: WallTime, answer: Answer) {
        let job = match job_of(answer) {
            Ok(job) => job,
            Err(failure) => {
                let text = (self.profile.words.existing_not_fetched)(failure.is_not_found(), &failure.message);
                return self.fail(StepError { text: text.into(), ..StepError::of(&failure) });
            }
        };
        if !self.controls(&job) {
            self.speak_of_foreign(at, &job);
            return self.wait();
        }
        if self.is_active(&job.uid) || (job.finish.is_some() && !self.profile.adopts_finished) {
            return self.wait();
        }
        self.record(at, job);
    }

    /// A creation that was not answered may have made its Job all the same. No other run starts before that is known, lest Forbid
    /// overlook it; the Job is taken up if it is ours (rule `own-run-readopted`).
    pub(super) fn on_unanswered(&mut self, at: WallTime, answer: Answer) {
        match job_of(answer) {
            Ok(job) if self.controls(&job) && job.finish.is_none() => {
                if !self.is_active(&job.uid) {
                    self.add_active(&job, at);
                    self.memory.on_created(job, self.now);
                }
            }
            // Finished already: the run is recorded as that of any finished child, when the cache shows it.
            Ok(_) => {}
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => return self.fail(StepError::of(&failure)),
        }
        self.memory.set_unanswered(None);
    }

    /// Rule `foreign-requeues`: said by both controllers, and the timer is kept.
    fn speak_of_foreign(&mut self, at: WallTime, job: &Job) {
        if self.memory.first(Once::Foreign, unix_minutes(at)) {
            let owner = job.controller.as_ref().map_or("none", |owner| &*owner.name);
            let name = &job.key.name;
            let message = format!("Job {name} exists but is not owned by this CronJob (current owner: {owner})");
            self.say_of_run(EventType::Warning, "ForeignJob", message, at);
        }
    }

    fn controls(&self, job: &Job) -> bool {
        job.controller.as_ref().is_some_and(|owner| owner.uid == self.base.uid)
    }

    /// The run has its Job: into `active`, with its instant. Older pending runs are lost by that.
    fn record(&mut self, at: WallTime, job: Arc<Job>) {
        self.add_active(&job, at);
        self.memory.on_started(at);
        self.memory.on_created(job, self.now);
        self.outcome.missed = match self.pending {
            MissedCount::Exactly(0 | 1) => None,
            MissedCount::Exactly(count) => Some(MissedCount::Exactly(count - 1)),
            MissedCount::More => Some(MissedCount::More),
        };
        self.wait();
    }
}
