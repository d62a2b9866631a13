//! What all Pods of a Job come to: how many there are of each sort, and what is new since the last count.
//!
//! Invariants
//! - A Pod is new while it has its finalizer and its uid stands in neither list of the status (rule `first-verdict-holds`).
//! - Of an Indexed Job's Pods only those with an index that the Job has are new; its successes are its completed indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::classify::{count, is_active, is_failed, is_ready, is_terminating, valid_index};
use super::failure_policy::judge;
use super::index_set::IndexSet;
use super::per_index::{awaiting_replacement, failed_indexes};
use crate::model::{BatchJob, BatchJobStatus, Pod, PodPhase, Uid};

/// The Pods of a Job, counted.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// Pods that run or will run.
    pub active: Vec<Arc<Pod>>,
    /// How many of the active ones are ready.
    pub ready: i32,
    /// Pods that are being deleted and have not ended.
    pub terminating: Vec<Arc<Pod>>,
    /// Pods that succeeded and are not counted.
    pub new_succeeded: Vec<Arc<Pod>>,
    /// Pods that failed and are not counted, ignored ones among them.
    pub new_failed: Vec<Arc<Pod>>,
    /// Successes, the new ones included; of an Indexed Job, its completed indexes.
    pub succeeded: i32,
    /// Failures that count, the new ones included.
    pub failed: i32,
    /// Completed indexes that the status has and the Job still has.
    pub completed_before: IndexSet,
    /// Those and the new ones.
    pub completed: IndexSet,
    /// `None` where indexes don't fail by themselves.
    pub failed_indexes: Option<IndexSet>,
    /// By index, failed Pods that are not counted until they are replaced.
    pub awaiting_replacement: BTreeMap<i32, Arc<Pod>>,
}

impl Census {
    /// Counts `pods` for a Job whose status is `job.status`.
    pub fn take(job: &BatchJob, pods: &[Arc<Pod>]) -> Self {
        let recorded = recorded(&job.status);
        let uncounted = job.status.uncounted.as_ref();
        let is_new = |pod: &&Arc<Pod>| {
            pod.tracked && !recorded.contains(&pod.uid) && (!job.indexed() || valid_index(pod, job).is_some())
        };
        let of =
            |test: &dyn Fn(&Pod) -> bool| -> Vec<Arc<Pod>> { pods.iter().filter(|pod| test(pod)).cloned().collect() };
        let new_succeeded: Vec<Arc<Pod>> =
            pods.iter().filter(is_new).filter(|pod| pod.phase == PodPhase::Succeeded).cloned().collect();
        let new_failed: Vec<Arc<Pod>> = pods.iter().filter(is_new).filter(|pod| is_failed(pod, job)).cloned().collect();
        let counting = new_failed.iter().filter(|pod| judge(pod, job).counts()).count();
        let open = |list: fn(&crate::model::UncountedPods) -> &Vec<Uid>| uncounted.map_or(0, |lists| list(lists).len());
        let failed = add(job.status.failed, counting + open(|lists| &lists.failed));
        let mut succeeded = add(job.status.succeeded, new_succeeded.len() + open(|lists| &lists.succeeded));
        let (mut completed_before, mut completed) = (IndexSet::default(), IndexSet::default());
        if job.indexed() {
            completed_before = IndexSet::parse(&job.status.completed_indexes, job.indexes());
            completed = completed_before.clone();
            for index in new_succeeded.iter().filter_map(|pod| valid_index(pod, job)) {
                completed.insert(index);
            }
            succeeded = completed.len();
        }
        let failed_indexes = failed_indexes(job, pods, &completed);
        let active = of(&is_active);
        Self {
            ready: count(active.iter().filter(|pod| is_ready(pod)).count()),
            active,
            terminating: of(&is_terminating),
            new_succeeded,
            new_failed,
            succeeded,
            failed,
            awaiting_replacement: awaiting_replacement(job, pods, &completed, failed_indexes.as_ref()),
            completed_before,
            completed,
            failed_indexes,
        }
    }
}

fn add(number: i32, more: usize) -> i32 {
    number.saturating_add(count(more))
}

/// The uids that the status holds as uncounted, of either list.
pub(super) fn recorded(status: &BatchJobStatus) -> BTreeSet<Uid> {
    status.uncounted.iter().flat_map(|lists| lists.succeeded.iter().chain(&lists.failed)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::{ended, indexed, job, of_index, pod, ready, running, terminating};
    use crate::model::UncountedPods;

    fn census(job: &BatchJob, pods: &[Pod]) -> Census {
        Census::take(job, &pods.iter().cloned().map(Arc::new).collect::<Vec<_>>())
    }

    fn good(name: &str) -> Pod {
        ended(PodPhase::Succeeded, running(name))
    }

    fn bad(name: &str) -> Pod {
        ended(PodPhase::Failed, running(name))
    }

    #[test]
    fn each_sort_is_counted_and_only_new_ends_are_new() {
        let mut job = job();
        (job.status.succeeded, job.status.failed) = (10, 20);
        job.status.uncounted = Some(UncountedPods { succeeded: vec!["s1".into()], failed: vec!["f1".into()] });
        let counted = Pod { tracked: false, ..bad("f2") };
        let pods = [
            pod("p"),
            ready(running("r")),
            terminating(running("t")),
            good("s1"),
            good("s2"),
            bad("f1"),
            counted,
            bad("f3"),
        ];
        let census = census(&job, &pods);
        assert_eq!((census.active.len(), census.ready, census.terminating.len()), (2, 1, 1));
        assert_eq!((census.succeeded, census.failed), (12, 23), "a terminating Pod fails, too");
        assert_eq!((census.new_succeeded.len(), census.new_failed.len()), (1, 2));
    }

    #[test]
    fn indexes_count_once_and_only_those_that_the_job_has() {
        let mut job = indexed(5);
        job.status.completed_indexes = "1,4,7-9".into();
        let pods = [
            of_index(0, good("a")),
            of_index(0, good("b")),
            of_index(1, good("c")),
            of_index(5, good("d")),
            good("e"),
            of_index(2, bad("f")),
            of_index(6, bad("g")),
        ];
        let census = census(&job, &pods);
        assert_eq!((census.completed_before.to_string(), census.completed.to_string()), ("1,4".into(), "0,1,4".into()));
        assert_eq!((census.succeeded, census.failed, census.new_succeeded.len()), (3, 1, 3));
    }
}
