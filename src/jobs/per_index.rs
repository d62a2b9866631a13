//! `backoffLimitPerIndex`: each index fails by itself. How often it failed travels in annotations, from a failed Pod to the one
//! that replaces it; so the last failed Pod of an index keeps its finalizer until its replacement exists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;

use super::classify::{finish_time, is_active, is_failed, valid_index};
use super::delay::remaining;
use super::failure_policy::judge;
use super::index_set::IndexSet;
use crate::model::{BatchJob, Pod, PodFailureAction, WallTime};

/// Failures of one index, as a Pod's annotations tell them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexFailures {
    /// Those that count for the limit.
    pub counted: i32,
    /// Those that the failure policy ignored.
    pub ignored: i32,
}

impl IndexFailures {
    /// The failures before this Pod. What cannot be read is none.
    pub fn before(pod: &Pod) -> Self {
        let number = |text: &Option<Box<str>>| {
            text.as_deref().and_then(|text| text.parse().ok()).filter(|number| *number >= 0).unwrap_or(0)
        };
        Self { counted: number(&pod.failure_count), ignored: number(&pod.ignored_failure_count) }
    }

    /// The failures up to and with this one, for the Pod that replaces it.
    pub fn with(pod: &Pod, job: &BatchJob) -> Self {
        let Self { counted, ignored } = Self::before(pod);
        if judge(pod, job).counts() {
            Self { counted: counted.saturating_add(1), ignored }
        } else {
            Self { counted, ignored: ignored.saturating_add(1) }
        }
    }

    fn total(self) -> i32 {
        self.counted.saturating_add(self.ignored)
    }
}

/// The failed indexes: those of the status that the Job still has, and those that fail by these Pods. A completed index has not
/// failed (rule `completed-wins`). `None` where indexes don't fail by themselves.
pub fn failed_indexes(job: &BatchJob, pods: &[Arc<Pod>], completed: &IndexSet) -> Option<IndexSet> {
    let limit = job.spec.backoff_limit_per_index?;
    let mut failed = IndexSet::parse(job.status.failed_indexes.as_deref().unwrap_or_default(), job.indexes());
    for pod in pods.iter().filter(|pod| pod.tracked && is_failed(pod, job)) {
        if let Some(index) = valid_index(pod, job)
            && ends_index(pod, job, limit)
        {
            failed.insert(index);
        }
    }
    Some(failed.without(completed))
}

fn ends_index(pod: &Pod, job: &BatchJob, limit: i32) -> bool {
    let judged = judge(pod, job);
    judged.action == Some(PodFailureAction::FailIndex) || judged.counts() && IndexFailures::before(pod).counted >= limit
}

/// For each index that is neither active nor decided, its last failed Pod that is not counted yet: the one that keeps its finalizer until
/// it is replaced. Empty where indexes don't fail by themselves.
pub fn awaiting_replacement(
    job: &BatchJob,
    pods: &[Arc<Pod>],
    completed: &IndexSet,
    failed: Option<&IndexSet>,
) -> BTreeMap<i32, Arc<Pod>> {
    let mut last: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
    let Some(failed) = failed else { return last };
    let active: BTreeSet<i32> =
        pods.iter().filter(|pod| is_active(pod)).filter_map(|pod| valid_index(pod, job)).collect();
    let age = |pod: &Pod| (IndexFailures::before(pod).total(), finish_time(pod));
    for pod in pods.iter().filter(|pod| pod.tracked && is_failed(pod, job)) {
        let Some(index) = valid_index(pod, job) else { continue };
        let decided = active.contains(&index) || completed.contains(index) || failed.contains(index);
        if !decided && last.get(&index).is_none_or(|earlier| age(earlier) <= age(pod)) {
            last.insert(index, pod.clone());
        }
    }
    last
}

/// How long the index of this failed Pod waits before it runs again.
pub fn index_delay(failed: &Pod, now: WallTime) -> TimeDelta {
    remaining(IndexFailures::before(failed).total().saturating_add(1), finish_time(failed), now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::{at, ended, indexed, of_index, pod, running};
    use crate::model::{ContainerStatus, ExitCodeOperator, ExitCodes, PodFailureRule, PodPhase, Termination};

    fn per_index(limit: i32) -> BatchJob {
        let mut job = indexed(5);
        job.spec.backoff_limit_per_index = Some(limit);
        job
    }

    fn failed_pod(name: &str, index: i32, counted: i32) -> Pod {
        let pod = ended(PodPhase::Failed, of_index(index, running(name)));
        let terminated = Some(Termination { exit_code: 1, finished_at: None });
        let containers = vec![ContainerStatus { terminated, ..ContainerStatus::default() }];
        Pod { failure_count: Some(counted.to_string().into()), containers, ..pod }
    }

    fn shared(pods: &[Pod]) -> Vec<Arc<Pod>> {
        pods.iter().cloned().map(Arc::new).collect()
    }

    fn with_rule(mut job: BatchJob, action: PodFailureAction) -> BatchJob {
        let codes = ExitCodes { container: None, operator: ExitCodeOperator::In, values: vec![1] };
        let rule = PodFailureRule { action, on_exit_codes: Some(codes), on_pod_conditions: Vec::new() };
        job.spec.pod_failure_policy = Some(vec![rule]);
        job
    }

    #[test]
    fn annotations_that_cannot_be_read_are_zero() {
        for text in ["", "x", "-1", "99999999999"] {
            let pod = Pod { failure_count: Some(text.into()), ignored_failure_count: Some(text.into()), ..pod("a") };
            assert_eq!(IndexFailures::before(&pod), IndexFailures::default(), "{text}");
        }
    }

    #[test]
    fn an_ignored_failure_raises_the_other_number() {
        let pod = failed_pod("a", 0, 2);
        assert_eq!(IndexFailures::with(&pod, &per_index(9)), IndexFailures { counted: 3, ignored: 0 });
        let ignoring = with_rule(per_index(9), PodFailureAction::Ignore);
        assert_eq!(IndexFailures::with(&pod, &ignoring), IndexFailures { counted: 2, ignored: 1 });
    }

    #[test]
    fn an_index_fails_at_its_limit_or_by_rule() {
        let failed =
            |job: &BatchJob, pod: Pod| failed_indexes(job, &shared(&[pod]), &IndexSet::default()).unwrap().to_string();
        assert_eq!(failed(&per_index(1), failed_pod("a", 2, 0)), "");
        assert_eq!(failed(&per_index(1), failed_pod("a", 2, 1)), "2");
        assert_eq!(failed(&per_index(1), Pod { tracked: false, ..failed_pod("a", 2, 1) }), "");
        assert_eq!(failed(&per_index(1), failed_pod("a", 5, 1)), "");
        assert_eq!(failed(&with_rule(per_index(3), PodFailureAction::FailIndex), failed_pod("a", 2, 0)), "2");
        assert_eq!(failed(&with_rule(per_index(0), PodFailureAction::Ignore), failed_pod("a", 2, 0)), "");
        assert_eq!(failed_indexes(&indexed(5), &[], &IndexSet::default()), None);
        let mut truncated = per_index(1);
        truncated.status.failed_indexes = Some("1,7".into());
        assert_eq!(failed(&truncated, pod("b")), "1");
    }

    #[test]
    fn the_last_failed_pod_of_an_open_index_waits_for_its_replacement() {
        let job = per_index(5);
        let pods = shared(&[
            failed_pod("a", 0, 1),
            failed_pod("b", 0, 2),
            failed_pod("c", 1, 0),
            of_index(1, running("d")),
            failed_pod("e", 2, 0),
            failed_pod("f", 3, 0),
        ]);
        let (completed, failed) = (IndexSet::parse("2", 5), IndexSet::parse("3", 5));
        let waiting = awaiting_replacement(&job, &pods, &completed, Some(&failed));
        let names: Vec<_> = waiting.iter().map(|(index, pod)| (*index, pod.uid.as_str())).collect();
        assert_eq!(names, [(0, "b")]);
        assert!(awaiting_replacement(&job, &pods, &completed, None).is_empty());
    }

    #[test]
    fn each_index_has_its_own_delay() {
        let pod = Pod { creation_time: Some(at(0)), ..failed_pod("a", 0, 1) };
        assert_eq!(index_delay(&pod, at(5)).num_seconds(), 15);
        let ignored = Pod { ignored_failure_count: Some("1".into()), ..pod };
        assert_eq!(index_delay(&ignored, at(5)).num_seconds(), 35);
    }
}
