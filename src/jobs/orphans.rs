//! Pods that keep the finalizer of a Job that does not count them any more. Without the finalizer they can go.

use super::call::{Answer, Call, PodPatch, StepError};
use super::names::{API_VERSION, KIND, MANAGED_BY_US};
use super::watch::JobCache;
use crate::model::{ApiFailure, ObjectKey, Pod};

/// Whether the finalizer must go: the Pod has no controller, or its Job is gone or has ended. A controller of another kind or group
/// looks after its Pods itself, and so does somebody else who manages a Job.
pub fn must_free(pod: &Pod, jobs: &dyn JobCache) -> bool {
    if !pod.tracked {
        return false;
    }
    let Some(owner) = &pod.controller else { return true };
    if &*owner.kind != KIND || &*owner.api_version != API_VERSION {
        return false;
    }
    let key = ObjectKey::new(pod.key.namespace.clone(), &*owner.name);
    let Some(job) = jobs.get(&key).filter(|job| job.uid == owner.uid) else { return true };
    let foreign = job.spec.managed_by.as_ref().is_some_and(|by| &**by != MANAGED_BY_US);
    !foreign && job.finished()
}

/// The requests that free those of the Pods that must be; all at once.
pub fn plan_sweep<'a>(pods: impl IntoIterator<Item = &'a Pod>, jobs: &dyn JobCache) -> Vec<Call> {
    let lost = pods.into_iter().filter(|pod| must_free(pod, jobs));
    lost.map(|pod| Call::PatchPod { key: pod.key.clone(), patch: PodPatch::Untrack }).collect()
}

/// What the answers to [`plan_sweep`] come to: any failure but a missing Pod means that all is tried again (rule `sweep-retries`).
///
/// # Errors
/// The first failure.
pub fn sweep_result(answers: impl IntoIterator<Item = Answer>) -> Result<(), StepError> {
    let failed = |answer| match answer {
        Answer::Pod(Ok(_)) => None,
        Answer::Pod(Err(failure)) if failure.is_not_found() => None,
        Answer::Pod(Err(failure)) => Some(failure),
        _ => Some(ApiFailure { message: "no answer to this request".into(), ..ApiFailure::default() }),
    };
    match answers.into_iter().find_map(failed) {
        Some(failure) => Err(StepError::of("removing the finalizer of an orphan Pod: ", &failure)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::jobs::fixtures::{finished, job, pod};
    use crate::model::{BatchJob, Labels};

    struct Cache(Option<BatchJob>);

    impl JobCache for Cache {
        fn get(&self, key: &ObjectKey) -> Option<Arc<BatchJob>> {
            self.0.clone().filter(|job| job.key == *key).map(Arc::new)
        }
        fn selecting(&self, _: &str, _: &Labels) -> Vec<ObjectKey> {
            Vec::new()
        }
    }

    fn owned_by(api_version: &str, kind: &str) -> Pod {
        let mut pod = pod("a");
        let owner = pod.controller.as_mut().unwrap();
        (owner.api_version, owner.kind) = (api_version.into(), kind.into());
        pod
    }

    #[test]
    fn a_pod_is_freed_when_no_job_counts_it_any_more() {
        let foreign = |mut job: BatchJob| {
            job.spec.managed_by = Some("acme.io/jobs".into());
            job
        };
        let recreated = BatchJob { uid: "new".into(), ..job() };
        let ours = pod("a");
        for (pod, owner, freed) in [
            (ours.clone(), Some(job()), false),
            (ours.clone(), Some(finished(job())), true),
            (ours.clone(), None, true),
            (ours.clone(), Some(recreated), true),
            (ours.clone(), Some(foreign(job())), false),
            (ours.clone(), Some(foreign(finished(job()))), false),
            (Pod { controller: None, ..ours.clone() }, Some(job()), true),
            (Pod { tracked: false, controller: None, ..ours }, None, false),
            (owned_by("batch/v1", "CronJob"), None, false),
            (owned_by("example.com/v1", "Job"), None, false),
        ] {
            assert_eq!(must_free(&pod, &Cache(owner.clone())), freed, "{pod:?} {owner:?}");
        }
    }

    #[test]
    fn a_sweep_touches_only_what_must_be_freed() {
        let kept = owned_by("batch/v1", "CronJob");
        let calls = plan_sweep([&pod("a"), &kept], &Cache(None));
        assert_eq!(calls, [Call::PatchPod { key: pod("a").key, patch: PodPatch::Untrack }]);
    }

    #[test]
    fn one_failure_makes_the_whole_sweep_fail() {
        let failed = |reason: &str| Answer::Pod(Err(ApiFailure { reason: reason.into(), ..ApiFailure::default() }));
        let done = || Answer::Pod(Ok(Arc::new(pod("a"))));
        assert!(sweep_result([done(), failed("NotFound")]).is_ok());
        assert!(sweep_result([failed("Timeout"), done()]).is_err());
        assert!(sweep_result([Answer::Deleted(Ok(()))]).is_err());
    }
}
