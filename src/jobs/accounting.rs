//! Counting Pods that ended exactly once, in two phases: a uid is written into `uncountedTerminatedPods` while its Pod cannot vanish,
//! for the finalizer holds it; then the finalizer goes; then one write takes the uid out and raises the counter.
//!
//! Invariants
//! - A uid never stands in both lists, and once it stands in one that is its verdict (rule `first-verdict-holds`).
//! - A uid leaves the lists only when its Pod is known to have no finalizer, in the write that counts it.
//! - What one step counts is bounded by [`MAX_UNCOUNTED`], so that the status stays small and the Job gives way to others.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::census::{Census, recorded};
use super::classify::{completion_index, count, is_failed, valid_index};
use super::failure_policy::judge;
use super::verdict::Verdict;
use crate::model::{BatchJob, BatchJobStatus, Pod, PodFailureAction, PodPhase, Uid};

/// How many Pods one step takes up, those that stand in the lists already included.
pub const MAX_UNCOUNTED: usize = 500;

/// What the first phase did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Pods whose finalizer goes once the status is written.
    pub untrack: Vec<Arc<Pod>>,
    /// Whether Pods were left for the next step; then the Job is not finished in this one.
    pub capped: bool,
    /// What the failure policy did, by action.
    pub failures_by_action: BTreeMap<PodFailureAction, u32>,
}

/// The first phase: puts what ended, and has not been recorded, into the lists or the completed indexes of `status`. `pods` are those
/// of `job`, a verdict is one that holds in this step.
pub fn record(
    job: &BatchJob,
    pods: &[Arc<Pod>],
    census: &Census,
    verdict: Option<&Verdict>,
    status: &mut BatchJobStatus,
) -> Recorded {
    let (mut out, mut new_indexes) = (Recorded::default(), BTreeSet::new());
    let known = recorded(status);
    for pod in in_order(job, pods) {
        let failed = is_failed(pod, job);
        if !may_untrack(job, census, verdict, pod, failed) {
            continue;
        }
        out.untrack.push(pod.clone());
        let is_known = known.contains(&pod.uid);
        let index = valid_index(pod, job);
        let lists = status.uncounted.get_or_insert_default();
        if is_known || job.indexed() && index.is_none() {
            // It has its verdict, or none that counts.
        } else if pod.phase == PodPhase::Succeeded {
            match index.filter(|_| job.indexed()) {
                Some(index) if !census.completed_before.contains(index) => {
                    new_indexes.insert(index);
                }
                Some(_) => {}
                None => lists.succeeded.push(pod.uid.clone()),
            }
        } else if failed || verdict.is_some_and(|verdict| !verdict.success) {
            let judged = judge(pod, job);
            if let Some(action) = judged.action {
                *out.failures_by_action.entry(action).or_default() += 1;
            }
            if judged.counts() {
                lists.failed.push(pod.uid.clone());
            }
        }
        if new_indexes.len() + lists.succeeded.len() + lists.failed.len() >= MAX_UNCOUNTED {
            out.capped = true;
            break;
        }
    }
    write_indexes(job, census, status);
    out
}

/// Tracked Pods, those of an Indexed Job by index.
fn in_order<'a>(job: &BatchJob, pods: &'a [Arc<Pod>]) -> Vec<&'a Arc<Pod>> {
    let mut tracked: Vec<&Arc<Pod>> = pods.iter().filter(|pod| pod.tracked).collect();
    if job.indexed() {
        tracked.sort_by_key(|pod| completion_index(pod));
    }
    tracked
}

/// Whether nobody needs the finalizer of this Pod any more.
fn may_untrack(job: &BatchJob, census: &Census, verdict: Option<&Verdict>, pod: &Pod, failed: bool) -> bool {
    if job.deleting() || verdict.is_some() || pod.phase == PodPhase::Succeeded {
        return true;
    }
    let replaces = |held: &Arc<Pod>| held.uid == pod.uid;
    failed && !valid_index(pod, job).and_then(|index| census.awaiting_replacement.get(&index)).is_some_and(replaces)
}

/// The texts of the index sets, as far as the Job still has the indexes; they are written even if nothing is new.
fn write_indexes(job: &BatchJob, census: &Census, status: &mut BatchJobStatus) {
    if job.indexed() {
        status.succeeded = census.completed.len();
        status.completed_indexes = census.completed.to_string().into();
        status.failed_indexes = census.failed_indexes.as_ref().map(|failed| failed.to_string().into());
    }
}

/// The second phase: uids whose Pods are not `tracked` any more, or gone, leave the lists and are counted.
pub fn settle(status: &mut BatchJobStatus, tracked: &BTreeSet<Uid>) {
    let Some(lists) = &mut status.uncounted else { return };
    for (list, counter) in [(&mut lists.succeeded, &mut status.succeeded), (&mut lists.failed, &mut status.failed)] {
        let before = list.len();
        list.retain(|uid| tracked.contains(uid));
        *counter = counter.saturating_add(count(before - list.len()));
    }
}

/// Whether nothing stands between the Job and its last condition: all is counted and no Pod is on its way out. A Job that never
/// started cannot end, but for one that is suspended and has nothing to do (rule `no-end-without-start`).
pub fn may_finish(job: &BatchJob, status: &BatchJobStatus) -> bool {
    let started = status.start_time.is_some() || job.spec.suspend && job.spec.completions == Some(0);
    started && status.terminating.unwrap_or(0) == 0 && status.uncounted.as_ref().is_none_or(|lists| lists.is_empty())
}
