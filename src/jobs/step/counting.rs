//! The two writes of the status, and the finalizers between them.

use std::sync::Arc;

use super::super::accounting::{may_finish, record, settle};
use super::super::call::{Answer, StepError};
use super::super::conditions;
use super::super::index_set::IndexSet;
use super::super::names::reason;
use super::super::verdict::Verdict;
use super::{Step, Task, job_of, patched_of};
use crate::model::{BatchJob, ConditionStatus, EventType, Pod};

impl Step<'_> {
    /// First write: what ended, and the condition that announces the verdict.
    pub(super) fn record(&mut self) -> Vec<Task> {
        let status = &mut self.job.status;
        settle(status, &self.tracked);
        self.recorded = record(&self.base, &self.pods, &self.census, self.verdict.as_ref(), status);
        if let Some(verdict) = &self.verdict {
            let [announced, _] = verdict.conditions();
            let (reason, message) = (&verdict.reason, &verdict.message);
            conditions::set(&mut status.conditions, announced, ConditionStatus::True, reason, message, self.now);
        }
        if self.job.status == self.base.status { Vec::new() } else { vec![Task::Record] }
    }

    pub(super) fn on_recorded(&mut self, answer: Answer) {
        if self.on_put("tracking status: adding uncounted pods to status: ", answer) {
            self.memory.back_off = self.back_off;
        }
    }

    pub(super) fn on_untracked(&mut self, pod: &Arc<Pod>, answer: Answer) {
        match patched_of(answer) {
            Ok(after) => {
                self.memory.on_pod_patched(pod, after, self.now);
                self.tracked.remove(&pod.uid);
            }
            Err(failure) => {
                self.counting_error.get_or_insert_with(|| StepError::of("tracking status: ", &failure));
            }
        }
    }

    /// Second write: what was recorded is counted, and the Job ends if nothing is left to count.
    pub(super) fn settle(&mut self) -> Vec<Task> {
        self.outcome.tally.failures_by_action = std::mem::take(&mut self.recorded.failures_by_action);
        settle(&mut self.job.status, &self.tracked);
        let whole = self.counting_error.is_none() && !self.recorded.capped;
        let finished = whole && may_finish(&self.job, &self.job.status) && self.end();
        if self.job.status == self.base.status { Vec::new() } else { vec![Task::Settle { finished }] }
    }

    /// Sets the last condition, if there is a verdict.
    fn end(&mut self) -> bool {
        let Some(verdict) = &self.verdict else { return false };
        let [_, last] = verdict.conditions();
        let status = &mut self.job.status;
        let (reason, message) = (&verdict.reason, &verdict.message);
        conditions::set(&mut status.conditions, last, ConditionStatus::True, reason, message, self.now);
        if verdict.success {
            status.completion_time = Some(self.now);
        }
        true
    }

    pub(super) fn on_settled(&mut self, finished: bool, answer: Answer) {
        if self.on_put("tracking status: removing uncounted pods from status: ", answer)
            && finished
            && let Some(verdict) = self.verdict.clone()
        {
            self.tell_end(&verdict);
            self.outcome.tally.finished = Some((verdict.success, verdict.reason));
            self.memory.on_finished();
        }
    }

    fn tell_end(&mut self, verdict: &Verdict) {
        if !verdict.success {
            self.say(EventType::Warning, event_reason(&verdict.reason), verdict.message.to_string());
            return;
        }
        if self.job.spec.completions.is_some_and(|completions| self.job.status.succeeded > completions) {
            let message = "Too many succeeded pods running after completion count reached";
            self.say(EventType::Warning, "TooManySucceededPods", message.to_owned());
        }
        self.say(EventType::Normal, "Completed", "Job completed".to_owned());
    }

    /// Goes on with what the server stored; whether it did.
    fn on_put(&mut self, what: &str, answer: Answer) -> bool {
        match job_of(answer) {
            Ok(stored) => {
                self.count_pods(&stored);
                self.memory.on_written(&self.base, stored.clone());
                self.job.status = stored.status.clone();
                self.base = stored;
                true
            }
            Err(failure) => {
                self.fail(what, &failure);
                false
            }
        }
    }

    fn count_pods(&mut self, stored: &BatchJob) {
        let (before, after) = (&self.base.status, &stored.status);
        let raised = |before: i32, after: i32| after.saturating_sub(before).max(0);
        let failed = |text: &Option<Box<str>>| IndexSet::parse(text.as_deref().unwrap_or_default(), i32::MAX).len();
        let completed = |text: &str| IndexSet::parse(text, i32::MAX).len();
        let tally = &mut self.outcome.tally;
        tally.pods_succeeded += raised(before.succeeded, after.succeeded);
        tally.pods_failed += raised(before.failed, after.failed);
        tally.indexes_succeeded += raised(completed(&before.completed_indexes), completed(&after.completed_indexes));
        tally.indexes_failed += raised(failed(&before.failed_indexes), failed(&after.failed_indexes));
    }
}

/// The reason of a verdict as an event's. One that another controller wrote and we don't know is told as `Failed`.
fn event_reason(verdict: &str) -> &'static str {
    let known = [
        reason::POD_FAILURE_POLICY,
        reason::BACKOFF_LIMIT_EXCEEDED,
        reason::DEADLINE_EXCEEDED,
        reason::MAX_FAILED_INDEXES_EXCEEDED,
        reason::FAILED_INDEXES,
    ];
    known.into_iter().find(|known| *known == verdict).unwrap_or("Failed")
}
