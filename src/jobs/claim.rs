//! Whose Pod it is. A Job's Pods carry its uid in their controller reference and match its selector; one that matches and has no
//! controller is adopted, one that does not match any more is released.

use crate::model::{ApiFailure, BatchJob, Pod};

/// What a Job does with a Pod of its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is one of its own.
    Keep,
    /// It becomes one, if the Job still exists.
    Adopt,
    /// It was one, and is given up.
    Release,
    /// It is none of its business.
    Leave,
}

/// What the Job does with the Pod. A Job that is being deleted neither adopts nor releases; a Pod that is being deleted is not adopted.
pub fn claim(pod: &Pod, job: &BatchJob) -> Claim {
    if pod.key.namespace != job.key.namespace {
        return Claim::Leave;
    }
    let matches = job.spec.selector.matches(&pod.labels);
    match &pod.controller {
        Some(owner) if owner.uid != job.uid => Claim::Leave,
        Some(_) if matches => Claim::Keep,
        Some(_) if !job.deleting() => Claim::Release,
        None if matches && !job.deleting() && !pod.deleting() => Claim::Adopt,
        _ => Claim::Leave,
    }
}

/// Why the Job, as the server shows it, must not adopt anything; `None` if it may.
pub fn adoption_hindrance(job: &BatchJob, live: &Result<std::sync::Arc<BatchJob>, ApiFailure>) -> Option<String> {
    match live {
        Err(failure) => Some(failure.message.to_string()),
        Ok(live) if live.uid != job.uid => {
            Some(format!("original Job {} is gone: got uid {}, wanted {}", job.key, live.uid, job.uid))
        }
        Ok(live) => live.deletion_time.map(|at| format!("{} has just been deleted at {at}", job.key)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::jobs::fixtures::{at, job, pod, running, terminating};
    use crate::model::{Labels, ObjectKey};

    #[test]
    fn a_pod_is_kept_adopted_released_or_left() {
        let stranger = |mut pod: Pod| {
            pod.controller.as_mut().unwrap().uid = "other".into();
            pod
        };
        let orphan = |pod: Pod| Pod { controller: None, ..pod };
        let other_labels = |pod: Pod| Pod { labels: Labels::new(), ..pod };
        let live = job();
        let deleting = BatchJob { deletion_time: Some(at(0)), ..job() };
        for (pod, expected, while_deleting) in [
            (pod("a"), Claim::Keep, Claim::Keep),
            (terminating(running("a")), Claim::Keep, Claim::Keep),
            (other_labels(pod("a")), Claim::Release, Claim::Leave),
            (orphan(pod("a")), Claim::Adopt, Claim::Leave),
            (orphan(terminating(running("a"))), Claim::Leave, Claim::Leave),
            (orphan(other_labels(pod("a"))), Claim::Leave, Claim::Leave),
            (stranger(pod("a")), Claim::Leave, Claim::Leave),
            (orphan(Pod { key: ObjectKey::new("elsewhere", "a"), ..pod("a") }), Claim::Leave, Claim::Leave),
        ] {
            assert_eq!((claim(&pod, &live), claim(&pod, &deleting)), (expected, while_deleting), "{pod:?}");
        }
    }

    #[test]
    fn only_the_same_living_job_adopts() {
        let hindrance = |live: BatchJob| adoption_hindrance(&job(), &Ok(Arc::new(live)));
        assert_eq!(hindrance(job()), None);
        let other = hindrance(BatchJob { uid: "new".into(), ..job() }).unwrap();
        assert_eq!(other, "original Job ns/job is gone: got uid new, wanted job-uid");
        let deleted = hindrance(BatchJob { deletion_time: Some(at(0)), ..job() }).unwrap();
        assert!(deleted.starts_with("ns/job has just been deleted at "), "{deleted}");
        assert!(adoption_hindrance(&job(), &Err(ApiFailure::default())).is_some());
    }
}
