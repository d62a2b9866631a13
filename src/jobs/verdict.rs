//! Whether a Job has come to its end, and why. A failure wins over a success of the same step; what the status says wins over both.

use std::sync::Arc;

use chrono::TimeDelta;

use super::census::Census;
use super::classify::{is_failed, restarts};
use super::failure_policy::judge;
use super::names::{condition, reason};
use super::success_policy::matching_rule;
use crate::model::{BatchJob, BatchJobStatus, Pod, PodPhase, WallTime};

/// How a Job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Complete or Failed.
    pub success: bool,
    /// `reason` of its conditions.
    pub reason: Box<str>,
    /// `message` of its conditions.
    pub message: Box<str>,
}

impl Verdict {
    fn failure(reason: &str, message: &str) -> Self {
        Self { success: false, reason: reason.into(), message: message.into() }
    }

    /// The one for a Job whose completions are reached.
    pub fn completed() -> Self {
        let message = "Reached expected number of succeeded pods";
        Self { success: true, reason: reason::COMPLETIONS_REACHED.into(), message: message.into() }
    }

    /// The condition that announces it, and the one that ends the Job.
    pub fn conditions(&self) -> [&'static str; 2] {
        if self.success {
            [condition::SUCCESS_CRITERIA_MET, condition::COMPLETE]
        } else {
            [condition::FAILURE_TARGET, condition::FAILED]
        }
    }
}

/// The first verdict that holds, in the peer's order. `job` has its start time. The completions are judged later, once Pods were
/// managed ([`is_complete`]).
pub fn verdict(job: &BatchJob, pods: &[Arc<Pod>], census: &Census, now: WallTime) -> Option<Verdict> {
    announced(&job.status)
        .or_else(|| by_failure_policy(job, pods))
        .or_else(|| by_back_off_limit(job, pods, census))
        .or_else(|| by_deadline(job, now))
        .or_else(|| by_failed_indexes(job, census))
        .or_else(|| by_success_policy(job, census))
}

/// The verdict that the status announces already.
fn announced(status: &BatchJobStatus) -> Option<Verdict> {
    [(condition::SUCCESS_CRITERIA_MET, true), (condition::FAILURE_TARGET, false)].into_iter().find_map(
        |(condition_type, success)| {
            let found = status.true_condition(condition_type)?;
            Some(Verdict { success, reason: found.reason.clone(), message: found.message.clone() })
        },
    )
}

fn by_failure_policy(job: &BatchJob, pods: &[Arc<Pod>]) -> Option<Verdict> {
    job.spec.pod_failure_policy.as_ref()?;
    let mut failed = pods.iter().filter(|pod| is_failed(pod, job));
    let message = failed.find_map(|pod| judge(pod, job).message)?;
    Some(Verdict::failure(reason::POD_FAILURE_POLICY, &message))
}

fn by_back_off_limit(job: &BatchJob, pods: &[Arc<Pod>], census: &Census) -> Option<Verdict> {
    let limit = job.spec.backoff_limit;
    let exceeded = census.failed > limit || job.spec.template.restarts_in_place && restarted(pods) >= limit.max(1);
    let message = "Job has reached the specified backoff limit";
    exceeded.then(|| Verdict::failure(reason::BACKOFF_LIMIT_EXCEEDED, message))
}

/// Restarts in place of all Pods that have not ended.
fn restarted(pods: &[Arc<Pod>]) -> i32 {
    let alive = pods.iter().filter(|pod| matches!(pod.phase, PodPhase::Running | PodPhase::Pending));
    alive.map(|pod| restarts(pod)).fold(0, i32::saturating_add)
}

fn by_deadline(job: &BatchJob, now: WallTime) -> Option<Verdict> {
    let message = "Job was active longer than specified deadline";
    (deadline(job)? <= now).then(|| Verdict::failure(reason::DEADLINE_EXCEEDED, message))
}

/// When a Job passes its deadline; `None` while it is suspended or has none. One that is about to be resumed starts anew, whatever start
/// time is left of before (rule `deadline-waits-for-resume`).
pub fn deadline(job: &BatchJob) -> Option<WallTime> {
    if job.spec.suspend || job.status.is_true(condition::SUSPENDED) {
        return None;
    }
    let seconds = TimeDelta::try_seconds(job.spec.active_deadline_s?)?;
    job.status.start_time?.checked_add_signed(seconds)
}

fn by_failed_indexes(job: &BatchJob, census: &Census) -> Option<Verdict> {
    let failed = census.failed_indexes.as_ref()?.len();
    if job.spec.max_failed_indexes.is_some_and(|most| failed > most) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(Verdict::failure(reason::MAX_FAILED_INDEXES_EXCEEDED, message));
    }
    let all_decided = failed > 0 && failed.saturating_add(census.completed.len()) >= job.indexes();
    all_decided.then(|| Verdict::failure(reason::FAILED_INDEXES, "Job has failed indexes"))
}

fn by_success_policy(job: &BatchJob, census: &Census) -> Option<Verdict> {
    let rule = matching_rule(job, &census.completed)?;
    let message = format!("Matched rules at index {rule}").into();
    Some(Verdict { success: true, reason: reason::SUCCESS_POLICY.into(), message })
}

/// Whether enough Pods succeeded and none runs. A work queue is done with its first success.
pub fn is_complete(job: &BatchJob, succeeded: i32, active: i32) -> bool {
    active == 0 && succeeded >= job.spec.completions.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::conditions;
    use crate::jobs::fixtures::{at, ended, indexed, job, of_index, running};
    use crate::model::{ConditionStatus, ContainerStatus, PodTemplate, SuccessRule};
    use proptest::prelude::*;

    fn judged(job: &BatchJob, pods: &[Pod], now_s: i64) -> Option<Box<str>> {
        let pods: Vec<Arc<Pod>> = pods.iter().cloned().map(Arc::new).collect();
        verdict(job, &pods, &Census::take(job, &pods), at(now_s)).map(|verdict| verdict.reason)
    }

    fn failures(number: i32) -> Vec<Pod> {
        (0..number).map(|at| ended(PodPhase::Failed, running(&format!("f{at}")))).collect()
    }

    #[test]
    fn one_failure_more_than_the_limit_ends_it() {
        let mut job = job();
        job.spec.backoff_limit = 2;
        assert_eq!(judged(&job, &failures(2), 0), None);
        assert_eq!(judged(&job, &failures(3), 0).as_deref(), Some("BackoffLimitExceeded"));
    }

    #[test]
    fn restarts_in_place_reach_the_limit_by_equality() {
        for (limit, restart_count, phase, exceeded) in [
            (0, 0, PodPhase::Running, false),
            (0, 1, PodPhase::Running, true),
            (3, 2, PodPhase::Running, false),
            (3, 3, PodPhase::Pending, true),
            (3, 3, PodPhase::Failed, false),
        ] {
            let mut job = job();
            job.spec.backoff_limit = limit;
            job.spec.template = Arc::new(PodTemplate { restarts_in_place: true, ..PodTemplate::default() });
            let status = ContainerStatus { restart_count, ..ContainerStatus::default() };
            let pod = Pod { phase, init_containers: vec![status], ..running("a") };
            assert_eq!(judged(&job, &[pod], 0).is_some(), exceeded, "{limit} {restart_count} {phase:?}");
        }
    }

    #[test]
    fn the_deadline_counts_from_the_start_and_not_while_suspended() {
        let mut job = job();
        job.spec.active_deadline_s = Some(10);
        job.status.start_time = Some(at(0));
        assert_eq!([9, 10].map(|now| judged(&job, &[], now).is_some()), [false, true]);
        job.spec.suspend = true;
        assert_eq!(judged(&job, &[], 99), None);
    }

    #[test]
    fn failed_indexes_end_it_by_number_or_once_all_are_decided() {
        let mut job = indexed(3);
        job.spec.backoff_limit_per_index = Some(0);
        job.spec.backoff_limit = i32::MAX;
        job.status.failed_indexes = Some("0".into());
        job.status.completed_indexes = "1".into();
        assert_eq!(judged(&job, &[], 0), None);
        let last = of_index(2, ended(PodPhase::Succeeded, running("a")));
        assert_eq!(judged(&job, &[last], 0).as_deref(), Some("FailedIndexes"));
        job.spec.max_failed_indexes = Some(0);
        assert_eq!(judged(&job, &[], 0).as_deref(), Some("MaxFailedIndexesExceeded"));
    }

    #[test]
    fn the_order_of_verdicts_is_settled() {
        let mut job = indexed(3);
        job.status.completed_indexes = "0-2".into();
        job.spec.success_policy = Some(vec![SuccessRule { succeeded_indexes: None, succeeded_count: Some(1) }]);
        assert_eq!(judged(&job, &[], 0).as_deref(), Some("SuccessPolicy"));
        job.spec.active_deadline_s = Some(0);
        job.status.start_time = Some(at(0));
        assert_eq!(judged(&job, &[], 0).as_deref(), Some("DeadlineExceeded"));
        job.spec.backoff_limit = 0;
        job.status.failed = 1;
        assert_eq!(judged(&job, &[], 0).as_deref(), Some("BackoffLimitExceeded"));
        let announce = |job: &mut BatchJob, name, status, reason| {
            conditions::set(&mut job.status.conditions, name, ConditionStatus::True, reason, "m", at(0));
            if status == ConditionStatus::False {
                conditions::set(&mut job.status.conditions, name, status, reason, "m", at(0));
            }
        };
        announce(&mut job, "FailureTarget", ConditionStatus::False, "Not");
        assert_eq!(judged(&job, &[], 0).as_deref(), Some("BackoffLimitExceeded"));
        announce(&mut job, "FailureTarget", ConditionStatus::True, "Told");
        assert_eq!(judged(&job, &[], 0).as_deref(), Some("Told"));
        announce(&mut job, "SuccessCriteriaMet", ConditionStatus::True, "Good");
        assert_eq!(judged(&job, &[], 0).as_deref(), Some("Good"));
    }

    proptest! {
        #[test]
        fn completion_needs_enough_successes_and_nobody_running(
            completions in prop::option::of(0..5_i32), succeeded in 0..6_i32, active in 0..3_i32,
        ) {
            let mut job = job();
            job.spec.completions = completions;
            let enough = completions.map_or(succeeded > 0, |completions| succeeded >= completions);
            prop_assert_eq!(is_complete(&job, succeeded, active), enough && active == 0);
        }
    }
}
