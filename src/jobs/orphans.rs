//! Pods that keep the finalizer of a Job that does not count them any more. Without the finalizer they can go.

use super::call::{Answer, Call, PodPatch, StepError};
use super::mandate::Mandate;
use super::names::{API_VERSION, KIND};
use super::watch::JobCache;
use crate::model::{ApiFailure, ObjectKey, Pod, Uid};

/// Whether a Pod lost its Job, so that the finalizer must go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Orphan {
    /// It has no finalizer, or somebody counts it.
    No,
    /// Nobody will.
    Yes,
    /// Nobody will, unless its Job is there after all: the cache of Jobs does not show it, but may be older than that of Pods. The
    /// server is to be asked ([`is_gone`]; rule `orphan-asks-server`).
    Unless {
        /// The Job.
        job: ObjectKey,
        /// Its `metadata.uid`.
        uid: Uid,
    },
}

/// Whether the Pod lost its Job: it has no controller, or its Job is gone or has ended. A controller of another kind or group looks
/// after its Pods itself, and so does somebody else who manages a Job.
pub fn orphan(mandate: &Mandate, pod: &Pod, jobs: &dyn JobCache) -> Orphan {
    if !pod.tracked {
        return Orphan::No;
    }
    let Some(owner) = &pod.controller else { return Orphan::Yes };
    if &*owner.kind != KIND || &*owner.api_version != API_VERSION {
        return Orphan::No;
    }
    let key = ObjectKey::new(pod.key.namespace.clone(), &*owner.name);
    match jobs.get(&key).filter(|job| job.uid == owner.uid) {
        Some(job) if mandate.covers(&job) && job.finished() => Orphan::Yes,
        Some(_) => Orphan::No,
        None => Orphan::Unless { job: key, uid: owner.uid.clone() },
    }
}

/// What the answer to [`Call::GetJob`] says of the Job with this uid. One that cannot be read is there.
///
/// # Errors
/// The server did not say.
pub fn is_gone(uid: &Uid, answer: Answer) -> Result<bool, StepError> {
    match answer {
        Answer::Job(Ok(job)) => Ok(job.uid != *uid),
        Answer::Job(Err(failure)) if failure.is_not_found() => Ok(true),
        Answer::Job(Err(failure)) if failure.is_unreadable() => Ok(false),
        Answer::Job(Err(failure)) => Err(StepError::of("asking for the Job of an orphan Pod: ", &failure)),
        _ => Err(StepError::of("asking for the Job of an orphan Pod: ", &no_answer())),
    }
}

/// The request that takes the finalizer off a Pod. Answered to [`sweep_result`].
pub fn free(pod: &Pod) -> Call {
    Call::PatchPod { key: pod.key.clone(), patch: PodPatch::Untrack }
}

/// What the answers to [`free`] come to: any failure but a missing Pod means that all is tried again (rule `sweep-retries`).
///
/// # Errors
/// The first failure.
pub fn sweep_result(answers: impl IntoIterator<Item = Answer>) -> Result<(), StepError> {
    let failed = |answer| match answer {
        Answer::Pod(Ok(_)) => None,
        Answer::Pod(Err(failure)) if failure.is_not_found() => None,
        Answer::Pod(Err(failure)) => Some(failure),
        _ => Some(no_answer()),
    };
    match answers.into_iter().find_map(failed) {
        Some(failure) => Err(StepError::of("removing the finalizer of an orphan Pod: ", &failure)),
        None => Ok(()),
    }
}

fn no_answer() -> ApiFailure {
    ApiFailure { message: "no answer to this request".into(), ..ApiFailure::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::jobs::fixtures::{finished, job, pod};
    use crate::jobs::names::MANAGED_BY_US;
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
        let unless = || Orphan::Unless { job: job().key, uid: job().uid };
        let mandate = Mandate::all(MANAGED_BY_US);
        for (pod, owner, expected) in [
            (ours.clone(), Some(job()), Orphan::No),
            (ours.clone(), Some(finished(job())), Orphan::Yes),
            (ours.clone(), None, unless()),
            (ours.clone(), Some(recreated), unless()),
            (ours.clone(), Some(foreign(job())), Orphan::No),
            (ours.clone(), Some(foreign(finished(job()))), Orphan::No),
            (Pod { controller: None, ..ours.clone() }, Some(job()), Orphan::Yes),
            (Pod { tracked: false, controller: None, ..ours.clone() }, None, Orphan::No),
            (owned_by("batch/v1", "CronJob"), None, Orphan::No),
            (owned_by("example.com/v1", "Job"), None, Orphan::No),
        ] {
            assert_eq!(orphan(&mandate, &pod, &Cache(owner.clone())), expected, "{pod:?} {owner:?}");
        }
        let of_the_built_in = Cache(Some(finished(job())));
        assert_eq!(orphan(&Mandate::marked(MANAGED_BY_US), &ours, &of_the_built_in), Orphan::No);
    }

    #[test]
    fn a_job_that_the_cache_lacks_is_gone_only_if_the_server_says_so() {
        let refused = |reason: &str| Answer::Job(Err(ApiFailure { reason: reason.into(), ..ApiFailure::default() }));
        let recreated = BatchJob { uid: "new".into(), ..job() };
        let uid = job().uid;
        assert_eq!(is_gone(&uid, Answer::Job(Ok(Arc::new(job())))), Ok(false));
        assert_eq!(is_gone(&uid, Answer::Job(Ok(Arc::new(recreated)))), Ok(true));
        assert_eq!(is_gone(&uid, refused("NotFound")), Ok(true));
        assert_eq!(is_gone(&uid, Answer::Job(Err(ApiFailure::unreadable("odd".into())))), Ok(false));
        assert!(is_gone(&uid, refused("Timeout")).is_err());
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
