//! An API server of model values: one Job and its Pods, conditional status writes judged by the rules of the real one, finalizers
//! that hold what is deleted. It asserts what must hold whatever a client does: a uid is counted once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronjob_controller::jobs::{Answer, Call, IndexSet, PodAdditions, PodList, PodPatch};
use cronjob_controller::model::{
    ApiFailure, BatchJob, BatchJobStatus, ObjectKey, Pod, PodPhase, Uid, UncountedPods, WallTime,
};

use crate::objects::pod;

pub(crate) fn failure(code: u16, reason: &str) -> ApiFailure {
    ApiFailure { code, reason: reason.into(), message: format!("it is {reason}").into(), ..ApiFailure::default() }
}

/// What a cache may show: the objects at one moment.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub job: Arc<BatchJob>,
    pub pods: Arc<BTreeMap<Uid, Arc<Pod>>>,
    pub version: u64,
}

pub(crate) struct Server {
    pub job: BatchJob,
    pub pods: BTreeMap<Uid, Arc<Pod>>,
    pub version: u64,
    pub history: Vec<Snapshot>,
    /// Uids that left the uncounted lists.
    pub counted: BTreeSet<Uid>,
    /// Pods that lost their finalizer before they were recorded: those that were too many.
    pub surplus: BTreeSet<Uid>,
    /// Every Pod that a client created.
    pub created: Vec<Uid>,
    /// Statuses in the order of their writes.
    pub writes: Vec<BatchJobStatus>,
}

impl Server {
    pub(crate) fn new(job: BatchJob, pods: Vec<Pod>) -> Self {
        let pods = pods.into_iter().map(|pod| (pod.uid.clone(), Arc::new(pod))).collect();
        let mut server = Self {
            job,
            pods,
            version: 1,
            history: Vec::new(),
            counted: BTreeSet::new(),
            surplus: BTreeSet::new(),
            created: Vec::new(),
            writes: Vec::new(),
        };
        server.keep();
        server
    }

    fn keep(&mut self) {
        let pods = Arc::new(self.pods.clone());
        self.history.push(Snapshot { job: Arc::new(self.job.clone()), pods, version: self.version });
    }

    fn next_version(&mut self) -> Box<str> {
        self.version += 1;
        self.version.to_string().into()
    }

    /// Somebody changes the Job.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut BatchJob)) {
        change(&mut self.job);
        self.job.resource_version = self.next_version();
        self.keep();
    }

    /// Somebody changes a Pod; it goes if nothing holds it any more.
    pub(crate) fn touch(&mut self, uid: &Uid, change: impl FnOnce(&mut Pod)) -> Option<Arc<Pod>> {
        let mut pod = (**self.pods.get(uid)?).clone();
        change(&mut pod);
        pod.resource_version = self.next_version();
        let pod = Arc::new(pod);
        self.pods.insert(uid.clone(), pod.clone());
        let ended = matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed) || !pod.scheduled;
        if pod.deleting() && !pod.tracked && ended {
            self.pods.remove(uid);
        }
        self.keep();
        Some(pod)
    }

    pub(crate) fn end(&mut self, uid: &Uid, phase: PodPhase) {
        self.touch(uid, |pod| pod.phase = phase);
    }

    fn by_key(&self, key: &ObjectKey) -> Option<Uid> {
        self.pods.values().find(|pod| pod.key == *key).map(|pod| pod.uid.clone())
    }

    pub(crate) fn apply(&mut self, call: &Call, now: WallTime) -> Answer {
        match call {
            Call::GetJob { .. } => Answer::Job(Ok(Arc::new(self.job.clone()))),
            Call::ListPods { selector, .. } => {
                let pods = self.pods.values().filter(|pod| selector.matches(&pod.labels)).cloned().collect();
                Answer::Pods(Ok(PodList { resource_version: self.version.to_string().into(), pods }))
            }
            Call::CreatePod { additions, .. } => Answer::Pod(Ok(self.create(additions, now))),
            Call::PatchPod { key, patch } => Answer::Pod(self.patch(key, patch)),
            Call::DeletePod { key } => Answer::Deleted(self.delete(key, now)),
            Call::PatchStatus { base, status } => Answer::Job(self.put(base, status)),
        }
    }

    fn create(&mut self, additions: &PodAdditions, now: WallTime) -> Arc<Pod> {
        let name = format!("{}{:05}", additions.generate_name, self.created.len());
        let index = additions.index.as_ref();
        let failures = index.and_then(|index| index.failures);
        let pod = Arc::new(Pod {
            controller: Some(additions.owner.clone()),
            creation_time: Some(now),
            completion_index: index.map(|index| index.index.to_string().into()),
            failure_count: failures.map(|failures| failures.counted.to_string().into()),
            ignored_failure_count: failures.map(|failures| failures.ignored.to_string().into()),
            resource_version: self.next_version(),
            ..pod(&name)
        });
        self.created.push(pod.uid.clone());
        self.pods.insert(pod.uid.clone(), pod.clone());
        self.keep();
        pod
    }

    fn patch(&mut self, key: &ObjectKey, patch: &PodPatch) -> Result<Arc<Pod>, ApiFailure> {
        let uid = self.by_key(key).ok_or_else(|| failure(404, "NotFound"))?;
        let before = self.pods[&uid].clone();
        let patched = match patch {
            PodPatch::Untrack => {
                if !before.tracked {
                    return Ok(before);
                }
                self.note_untracked(&before);
                self.touch(&uid, |pod| pod.tracked = false)
            }
            PodPatch::Adopt { uid: wanted, .. } | PodPatch::Release { uid: wanted, .. } if *wanted != uid => {
                return Err(failure(422, "Invalid"));
            }
            PodPatch::Adopt { job, .. } => {
                let owner = PodAdditions::new(job, None).owner;
                self.touch(&uid, |pod| (pod.controller, pod.tracked) = (Some(owner), true))
            }
            PodPatch::Release { .. } => self.touch(&uid, |pod| (pod.controller, pod.tracked) = (None, false)),
        };
        patched.ok_or_else(|| failure(404, "NotFound"))
    }

    /// A finalizer goes after its Pod was recorded, or from a Pod that is not to be counted.
    fn note_untracked(&mut self, pod: &Pod) {
        let recorded = self
            .job
            .status
            .uncounted
            .iter()
            .any(|lists| lists.succeeded.contains(&pod.uid) || lists.failed.contains(&pod.uid));
        if !recorded {
            self.surplus.insert(pod.uid.clone());
        }
    }

    fn delete(&mut self, key: &ObjectKey, now: WallTime) -> Result<(), ApiFailure> {
        let uid = self.by_key(key).ok_or_else(|| failure(404, "NotFound"))?;
        self.touch(&uid, |pod| pod.deletion_time = pod.deletion_time.or(Some(now)));
        Ok(())
    }

    fn put(&mut self, base: &BatchJob, status: &BatchJobStatus) -> Result<Arc<BatchJob>, ApiFailure> {
        if base.resource_version != self.job.resource_version {
            return Err(failure(409, "Conflict"));
        }
        if let Some(problem) = problem_of(&self.job, status) {
            panic!("the server refuses the status: {problem}\n{status:#?}");
        }
        self.note_counted(status);
        self.job.status = status.clone();
        self.job.resource_version = self.next_version();
        self.writes.push(status.clone());
        self.keep();
        Ok(Arc::new(self.job.clone()))
    }

    fn note_counted(&mut self, status: &BatchJobStatus) {
        let none = UncountedPods::default();
        let old = self.job.status.uncounted.as_ref().unwrap_or(&none);
        let new = status.uncounted.as_ref().unwrap_or(&none);
        let lists = [(&old.succeeded, &new.succeeded), (&old.failed, &new.failed)];
        let left = lists.map(|(old, new)| old.iter().filter(|uid| !new.contains(uid)).cloned().collect::<Vec<_>>());
        for uid in lists.iter().flat_map(|(_, new)| new.iter()) {
            assert!(!self.counted.contains(uid), "{uid} is recorded again after it was counted");
        }
        let raised = [status.succeeded - self.job.status.succeeded, status.failed - self.job.status.failed];
        let plain = status.completed_indexes.is_empty() && self.job.status.completed_indexes.is_empty();
        assert!(!plain || usize::try_from(raised[0]) == Ok(left[0].len()), "successes and uids differ");
        assert_eq!(usize::try_from(raised[1]), Ok(left[1].len()), "failures and uids differ");
        for uid in left.iter().flatten() {
            assert!(self.pods.get(uid).is_none_or(|pod| !pod.tracked), "{uid} is counted with its finalizer");
            assert!(self.counted.insert(uid.clone()), "{uid} is counted twice");
        }
    }
}

/// What the real server has against the status.
fn problem_of(job: &BatchJob, new: &BatchJobStatus) -> Option<String> {
    let lists = new.uncounted.clone().unwrap_or_default();
    let mut uids: Vec<&Uid> = lists.succeeded.iter().chain(&lists.failed).collect();
    let number = uids.len();
    uids.sort();
    uids.dedup();
    let completed = IndexSet::parse(&new.completed_indexes, i32::MAX);
    let failed = IndexSet::parse(new.failed_indexes.as_deref().unwrap_or_default(), i32::MAX);
    let (complete, is_failed) = (new.is_true("Complete"), new.is_true("Failed"));
    let finished = complete || is_failed;
    let mut types: Vec<&str> = new.conditions.iter().map(|condition| &*condition.condition_type).collect();
    types.sort_unstable();
    let count = types.len();
    types.dedup();
    let started = new.start_time.is_some() || job.spec.suspend && job.spec.completions == Some(0);
    [
        (uids.len() != number, "Duplicate value in uncounted"),
        (new.active < 0 || new.terminating.unwrap_or(0) < 0 || new.ready.unwrap_or(0) < 0, "negative numbers"),
        (new.ready.unwrap_or(0) > new.active, "cannot set more ready pods than active"),
        (new.failed < job.status.failed, "cannot decrease the failed counter"),
        (new.succeeded < job.status.succeeded && !job.indexed(), "cannot decrease the succeeded counter"),
        (completed.overlap(&failed) > 0, "failedIndexes and completedIndexes overlap"),
        (complete && is_failed, "Complete and Failed"),
        (is_failed && !new.is_true("FailureTarget"), "Failed without FailureTarget"),
        (complete && !new.is_true("SuccessCriteriaMet"), "Complete without SuccessCriteriaMet"),
        (new.is_true("SuccessCriteriaMet") && new.is_true("FailureTarget"), "both interim conditions"),
        (types.len() != count, "a condition type twice"),
        (finished && (new.active > 0 || new.terminating.unwrap_or(0) > 0), "finished with Pods"),
        (finished && !lists.is_empty(), "finished with uncounted Pods"),
        (finished && !started, "startTime is required for finished job"),
        (complete != new.completion_time.is_some(), "completionTime and Complete"),
        (job.status.is_true("FailureTarget") && !new.is_true("FailureTarget"), "FailureTarget removed"),
    ]
    .into_iter()
    .find_map(|(wrong, what)| wrong.then(|| what.to_owned()))
}
