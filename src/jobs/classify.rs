//! What a single Pod is to its Job.
//!
//! Invariants
//! - A Pod is exactly one of finished, active, terminating.
//! - An index that cannot be read is no index.

use chrono::TimeDelta;

use crate::model::{BatchJob, ConditionStatus, ContainerStatus, Pod, PodPhase, PodReplacement, WallTime};

/// Whether it ended, well or badly.
pub fn is_finished(pod: &Pod) -> bool {
    matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed)
}

/// Whether it runs or will run.
pub fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !pod.deleting()
}

/// Whether it is being deleted and has not ended.
pub fn is_terminating(pod: &Pod) -> bool {
    !is_finished(pod) && pod.deleting()
}

/// Whether it serves.
pub fn is_ready(pod: &Pod) -> bool {
    pod.condition("Ready").is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// Whether a Pod is replaced only once it ended. A failure policy implies it, for it judges how a Pod ended.
pub fn replaces_only_ended(job: &BatchJob) -> bool {
    job.spec.pod_replacement == PodReplacement::Failed || job.spec.pod_failure_policy.is_some()
}

/// Whether the Pod is a failure of its Job: it ended badly, or is being deleted where that is enough.
pub fn is_failed(pod: &Pod, job: &BatchJob) -> bool {
    match pod.phase {
        PodPhase::Failed => true,
        PodPhase::Succeeded => false,
        _ => pod.deleting() && !replaces_only_ended(job),
    }
}

/// The index in its annotation.
pub fn completion_index(pod: &Pod) -> Option<i32> {
    pod.completion_index.as_deref()?.parse().ok().filter(|index| *index >= 0)
}

/// The index in its annotation, if the Job has it.
pub fn valid_index(pod: &Pod, job: &BatchJob) -> Option<i32> {
    completion_index(pod).filter(|index| *index < job.indexes())
}

/// When it ended, as well as can be told: the last of its containers; else when it stopped being ready; else when it was deleted;
/// else when it was made.
pub fn finish_time(pod: &Pod) -> WallTime {
    containers_finish(pod)
        .or_else(|| {
            let ready = pod.condition("Ready")?;
            (ready.status == ConditionStatus::False).then_some(ready.last_transition_time?)
        })
        .or_else(|| pod.deletion_time?.checked_sub_signed(TimeDelta::try_seconds(pod.deletion_grace_s)?))
        .or(pod.creation_time)
        .unwrap_or_default()
}

/// The latest end of its containers, once all have one; init containers count if they run beside the others.
fn containers_finish(pod: &Pod) -> Option<WallTime> {
    let finished_at = |status: &ContainerStatus| status.terminated.and_then(|terminated| terminated.finished_at);
    let side_cars = pod.init_containers.iter().filter(|status| status.side_car);
    let all: Option<Vec<WallTime>> = pod.containers.iter().chain(side_cars).map(finished_at).collect();
    all?.into_iter().max()
}

/// Restarts of its containers in place, init containers included.
pub fn restarts(pod: &Pod) -> i32 {
    let all = pod.containers.iter().chain(&pod.init_containers);
    all.map(|status| status.restart_count).fold(0, i32::saturating_add)
}

/// A number of Pods as the API writes it.
pub(super) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::{at, ended, indexed, job, pod, ready, running, terminating};
    use crate::model::{PodCondition, Termination};

    #[test]
    fn a_pod_is_one_of_three() {
        let cases = [
            (running("a"), [false, true, false]),
            (pod("a"), [false, true, false]),
            (terminating(running("a")), [false, false, true]),
            (ended(PodPhase::Failed, running("a")), [true, false, false]),
            (terminating(ended(PodPhase::Succeeded, running("a"))), [true, false, false]),
        ];
        for (pod, expected) in cases {
            assert_eq!([is_finished(&pod), is_active(&pod), is_terminating(&pod)], expected, "{pod:?}");
        }
        assert!(is_ready(&ready(running("a"))) && !is_ready(&running("a")));
    }

    #[test]
    fn a_pod_being_deleted_is_a_failure_only_where_deletion_is_enough() {
        let plain = job();
        let mut patient = job();
        patient.spec.pod_replacement = PodReplacement::Failed;
        let mut policy = job();
        policy.spec.pod_failure_policy = Some(Vec::new());
        let going = terminating(running("a"));
        assert_eq!([&plain, &patient, &policy].map(|job| is_failed(&going, job)), [true, false, false]);
        let failed = ended(PodPhase::Failed, going.clone());
        assert_eq!([&plain, &patient, &policy].map(|job| is_failed(&failed, job)), [true; 3]);
        let succeeded = ended(PodPhase::Succeeded, going);
        assert_eq!([&plain, &patient, &policy].map(|job| is_failed(&succeeded, job)), [false; 3]);
    }

    #[test]
    fn an_index_is_a_number_that_the_job_has() {
        let job = indexed(3);
        for (text, valid) in
            [("0", Some(0)), ("2", Some(2)), ("3", None), ("-1", None), ("x", None), ("", None), ("99999999999", None)]
        {
            let pod = Pod { completion_index: Some(text.into()), ..pod("a") };
            assert_eq!(valid_index(&pod, &job), valid, "{text}");
        }
        assert_eq!(completion_index(&pod("a")), None);
    }

    #[test]
    fn the_end_is_told_by_containers_then_readiness_then_deletion_then_creation() {
        let done = |s| ContainerStatus {
            terminated: Some(Termination { exit_code: 1, finished_at: Some(at(s)) }),
            ..ContainerStatus::default()
        };
        let mut pod = Pod { creation_time: Some(at(1)), ..pod("a") };
        assert_eq!(finish_time(&pod), at(1));
        (pod.deletion_time, pod.deletion_grace_s) = (Some(at(40)), 30);
        assert_eq!(finish_time(&pod), at(10));
        let not_ready = PodCondition {
            condition_type: "Ready".into(),
            status: ConditionStatus::False,
            last_transition_time: Some(at(20)),
        };
        pod.conditions = vec![not_ready];
        assert_eq!(finish_time(&pod), at(20));
        pod.containers = vec![done(30), done(33)];
        assert_eq!(finish_time(&pod), at(33));
        pod.init_containers = vec![ContainerStatus::default(), ContainerStatus { side_car: true, ..done(35) }];
        assert_eq!(finish_time(&pod), at(35));
        pod.init_containers.push(ContainerStatus { side_car: true, ..ContainerStatus::default() });
        assert_eq!(finish_time(&pod), at(20), "one still runs");
    }
}
