//! Finding the Job's Pods.

use std::sync::Arc;

use super::super::call::Answer;
use super::super::claim::{Claim, adoption_hindrance, claim};
use super::{Stage, Step, Task, job_of, list_of, patched_of};
use crate::model::{ApiFailure, Pod};

impl Step<'_> {
    /// Sorts the Pods that may be the Job's, and asks for what adopting and releasing needs.
    pub(super) fn claim_pods(&mut self) -> Vec<Task> {
        let candidates = self.listed.clone().unwrap_or_else(|| self.shown());
        let mut tasks = Vec::new();
        self.pods.clear();
        for pod in candidates {
            match claim(&pod, &self.job) {
                Claim::Keep => self.pods.push(pod),
                Claim::Adopt => self.adoptable.push(pod),
                Claim::Release => tasks.push(Task::Release(pod)),
                Claim::Leave => {}
            }
        }
        if !self.adoptable.is_empty() {
            tasks.push(Task::LiveJob);
            self.todo.push_front(Stage::Adopt);
        }
        tasks
    }

    /// What the cache shows, with own writes; whether all of those were visible is settled here, before any Pod is looked at.
    fn shown(&mut self) -> Vec<Arc<Pod>> {
        let version = self.cache.version();
        let mut shown = self.cache.owned(&self.job.uid);
        shown.extend(self.cache.unowned(&self.job.key.namespace));
        let view = self.memory.view(shown, version.as_deref(), self.now);
        self.satisfied = self.memory.is_satisfied();
        view
    }

    pub(super) fn adopt_pods(&mut self) -> Vec<Task> {
        let adoptable = std::mem::take(&mut self.adoptable);
        if let (Some(hindrance), Some(pod)) = (self.hindrance.take(), adoptable.first()) {
            let what = format!("can't adopt Pod {} ({}): {hindrance}", pod.key, pod.uid);
            self.fail(&what, &ApiFailure::default());
            return Vec::new();
        }
        adoptable.into_iter().map(Task::Adopt).collect()
    }

    pub(super) fn on_live_job(&mut self, answer: Answer) {
        self.hindrance = adoption_hindrance(&self.job, &job_of(answer));
    }

    /// An adopted Pod counts in this step as if it had always been one.
    pub(super) fn on_adopted(&mut self, pod: &Pod, answer: Answer) {
        match patched_of(answer) {
            Ok(after) => {
                self.memory.on_pod_patched(pod, after.clone(), self.now);
                self.pods.extend(after);
            }
            Err(failure) => self.fail("", &failure),
        }
    }

    pub(super) fn on_released(&mut self, pod: &Pod, answer: Answer) {
        match patched_of(answer) {
            Ok(after) => self.memory.on_pod_patched(pod, after, self.now),
            // Its uid is another by now: somebody else's Pod.
            Err(failure) if failure.code == 422 => {}
            Err(failure) => self.fail("", &failure),
        }
    }

    pub(super) fn on_listed(&mut self, answer: Answer) {
        match list_of(answer) {
            Ok(list) => {
                self.memory.on_listed(list.resource_version);
                self.listed = Some(list.pods);
            }
            Err(failure) => self.fail("", &failure),
        }
    }

    /// The step begins again with the Job and the Pods as the server has them.
    pub(super) fn on_read(&mut self, answer: Answer) {
        match job_of(answer) {
            Ok(live) if live.uid == self.base.uid => {
                if live.resource_version != self.base.resource_version {
                    self.memory.on_read(&self.base, live.clone());
                    self.base = live;
                }
                if self.outcome.error.is_none() {
                    self.open();
                }
            }
            Ok(live) => {
                let what = format!("Job {} is another by now: {}", live.key, live.uid);
                self.fail(&what, &ApiFailure::default());
            }
            Err(failure) => self.fail("", &failure),
        }
    }
}
