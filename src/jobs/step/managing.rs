//! Creating and deleting Pods.

use std::sync::Arc;

use super::super::call::{Action, Answer, CreationReason, StepError};
use super::super::classify::{is_ready, replaces_only_ended};
use super::super::conditions;
use super::super::manage::{MAX_PODS_PER_STEP, Plan};
use super::super::names::{condition, reason};
use super::super::verdict::{Verdict, is_complete};
use super::{BATCH_PERIOD, Stage, Step, Task, deleted_of, patched_of, pod_of};
use crate::model::{ApiFailure, ConditionStatus, EventType, Pod};

impl Step<'_> {
    /// The stages that a plan needs.
    pub(super) fn carry_out(&mut self, plan: Plan) -> Vec<Stage> {
        let (action, stages, wait) = match plan {
            Plan::Keep { wait } => (Action::Tracking, Vec::new(), wait),
            Plan::Delete(pods) => {
                let portions = pods.chunks(MAX_PODS_PER_STEP).map(|pods| Stage::UntrackSurplus(pods.to_vec()));
                (Action::PodsDeleted, portions.collect(), None)
            }
            Plan::Create { pods, wait } => {
                self.to_create = pods.into();
                (Action::PodsCreated, vec![Stage::Create], wait)
            }
        };
        self.outcome.tally.action = Some(action);
        if let Some(wait) = wait {
            self.wake_in(wait.max(chrono::TimeDelta::from_std(BATCH_PERIOD).unwrap_or_default()));
        }
        stages
    }

    pub(super) fn on_active_deleted(&mut self, pod: &Pod, answer: Answer) {
        match deleted_of(answer) {
            Ok(existed) => {
                self.memory.on_pod_deleted(pod, false, self.now);
                self.note_deleted(pod, existed);
            }
            Err(failure) => self.note_not_deleted("", &failure),
        }
    }

    /// A verdict must not take effect while Pods may run that this step did not delete: ones that could not be deleted, and ones
    /// that were created and are not visible yet.
    pub(super) fn uphold_verdict(&mut self) -> Vec<Task> {
        if self.managing_error.is_some() || !self.satisfied {
            self.verdict = None;
        }
        self.write_numbers();
        Vec::new()
    }

    pub(super) fn untrack_surplus(&mut self, pods: Vec<Arc<Pod>>) -> Vec<Task> {
        let (tracked, others): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| pod.tracked);
        self.todo.push_front(Stage::DeleteSurplus(others));
        tracked.into_iter().map(Task::UntrackSurplus).collect()
    }

    pub(super) fn on_surplus_untracked(&mut self, pod: &Arc<Pod>, answer: Answer) {
        match patched_of(answer) {
            Ok(Some(after)) => {
                self.memory.on_pod_patched(pod, Some(after), self.now);
                if let Some(Stage::DeleteSurplus(pods)) = self.todo.front_mut() {
                    pods.push(pod.clone());
                }
            }
            Ok(None) => {
                self.memory.on_pod_patched(pod, None, self.now);
                self.note_deleted(pod, false);
            }
            Err(failure) => self.note_not_deleted("removing uncounted finalizer: ", &failure),
        }
    }

    pub(super) fn on_surplus_deleted(&mut self, pod: &Pod, answer: Answer) {
        match deleted_of(answer) {
            Ok(existed) => {
                self.memory.on_pod_deleted(pod, existed, self.now);
                self.note_deleted(pod, existed);
            }
            Err(failure) => self.note_not_deleted("", &failure),
        }
    }

    fn note_deleted(&mut self, pod: &Pod, existed: bool) {
        self.active -= 1;
        self.terminating += 1;
        self.ready -= i32::from(is_ready(pod));
        if existed {
            self.say(EventType::Normal, "SuccessfulDelete", format!("Deleted pod: {}", pod.key.name));
        }
    }

    fn note_not_deleted(&mut self, what: &str, failure: &ApiFailure) {
        self.say(EventType::Warning, "FailedDelete", format!("Error deleting: {}", failure.message));
        self.managing_error.get_or_insert_with(|| StepError::of(what, failure));
    }

    /// Slow start: one Pod, then two, then four, as long as all are created; so a quota or a webhook is not asked hundreds of times.
    pub(super) fn create_batch(&mut self) -> Vec<Task> {
        let batch = self.to_create.len().min(self.batch);
        self.batch = self.batch.saturating_mul(2);
        let tasks: Vec<Task> = self.to_create.drain(..batch).map(Task::Create).collect();
        if !self.to_create.is_empty() {
            self.todo.push_front(Stage::Create);
        }
        tasks
    }

    pub(super) fn on_created(&mut self, answer: Answer) {
        self.outcome.tally.creation_reason = Some(self.creation_reason());
        match pod_of(answer) {
            Ok(pod) => {
                self.active += 1;
                self.outcome.tally.pods_created += 1;
                self.say(EventType::Normal, "SuccessfulCreate", format!("Created pod: {}", pod.key.name));
                self.memory.on_pod_created(pod, self.now);
            }
            Err(failure) => {
                self.outcome.tally.pods_not_created += 1;
                self.to_create.clear();
                // Nothing will be created here any more, and nobody needs to be told (rule `ending-namespace-creates-nothing`).
                if !failure.namespace_terminating {
                    self.say(EventType::Warning, "FailedCreate", format!("Error creating: {}", failure.message));
                    self.managing_error.get_or_insert_with(|| StepError::of("", &failure));
                }
            }
        }
    }

    fn creation_reason(&self) -> CreationReason {
        let (failed, terminating) = (self.census.failed > 0, !self.census.terminating.is_empty());
        match replaces_only_ended(&self.job) {
            true if failed => CreationReason::RecreateFailed,
            false if failed || terminating => CreationReason::RecreateTerminatingOrFailed,
            _ => CreationReason::New,
        }
    }

    /// Completions reached? Otherwise the Suspended condition follows the spec. All Pods must be visible for it (rule
    /// `completion-waits-for-expectations`).
    pub(super) fn judge(&mut self) -> Vec<Task> {
        if self.satisfied && is_complete(&self.job, self.census.succeeded, self.active) {
            self.verdict = Some(Verdict::completed());
        } else if self.managed && self.job.spec.suspend {
            if self.set_suspended(ConditionStatus::True, reason::JOB_SUSPENDED, "Suspended", "Job suspended") {
                self.job.status.start_time = None;
            }
        } else if self.managed
            && self.set_suspended(ConditionStatus::False, reason::JOB_RESUMED, "Resumed", "Job resumed")
        {
            self.job.status.start_time = Some(self.now);
        }
        self.write_numbers();
        Vec::new()
    }

    fn set_suspended(&mut self, status: ConditionStatus, reason: &str, event: &'static str, message: &str) -> bool {
        let conditions = &mut self.job.status.conditions;
        let changed = conditions::set(conditions, condition::SUSPENDED, status, reason, message, self.now);
        if changed {
            self.say(EventType::Normal, event, message.to_owned());
        }
        changed
    }

    fn write_numbers(&mut self) {
        let status = &mut self.job.status;
        status.active = self.active;
        status.ready = Some(self.ready);
        status.terminating = Some(self.terminating);
    }
}
