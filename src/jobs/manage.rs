//! How many Pods a Job wants, and what brings it there. In one step Pods are deleted or created, never both.

use std::sync::Arc;

use chrono::TimeDelta;

use super::census::Census;
use super::classify::{count, replaces_only_ended, valid_index};
use super::delay::BackOff;
use super::index_set::IndexSet;
use super::new_pod::PodAdditions;
use super::order::pods_to_delete;
use super::per_index::{IndexFailures, index_delay};
use crate::model::{BatchJob, Pod, WallTime};

/// How many Pods one step creates or deletes for being too many, at most.
pub const MAX_PODS_PER_STEP: usize = 500;

/// What is to be done about the number of Pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing, or nothing before the wait is over.
    Keep {
        /// What is left of the failures' back-off.
        wait: Option<TimeDelta>,
    },
    /// These are too many. They will not be counted.
    Delete(Vec<Arc<Pod>>),
    /// These are missing.
    Create {
        /// Their additions to the template, in order.
        pods: Vec<PodAdditions>,
        /// What is left of the shortest back-off among indexes that must wait yet.
        wait: Option<TimeDelta>,
    },
}

/// What is to be done about the number of Pods of a Job that is not being deleted and has no verdict.
pub fn plan(job: &BatchJob, census: &Census, back_off: BackOff, now: WallTime) -> Plan {
    if job.spec.suspend {
        return delete_or_keep(census.active.clone());
    }
    let active = count(census.active.len());
    let wanted = wanted_active(job, census.succeeded, active);
    let excess = usize::try_from(active.saturating_sub(wanted)).unwrap_or(0);
    let mut surplus = pods_to_delete(job, &census.active, excess);
    if !surplus.is_empty() {
        surplus.truncate(MAX_PODS_PER_STEP);
        return Plan::Delete(surplus);
    }
    let occupied = if replaces_only_ended(job) { census.terminating.len() } else { 0 };
    let missing = usize::try_from(wanted.saturating_sub(active).saturating_sub(count(occupied))).unwrap_or(0);
    if missing == 0 {
        return Plan::Keep { wait: None };
    }
    create(job, census, back_off, missing.min(MAX_PODS_PER_STEP), now)
}

/// How many Pods are to be active. A work queue gets no new Pods after its first success, and keeps those that run.
pub fn wanted_active(job: &BatchJob, succeeded: i32, active: i32) -> i32 {
    match job.spec.completions {
        None if succeeded > 0 => active,
        None => job.spec.parallelism,
        Some(completions) => completions.saturating_sub(succeeded).clamp(0, job.spec.parallelism.max(0)),
    }
}

fn delete_or_keep(pods: Vec<Arc<Pod>>) -> Plan {
    if pods.is_empty() { Plan::Keep { wait: None } } else { Plan::Delete(pods) }
}

fn create(job: &BatchJob, census: &Census, back_off: BackOff, missing: usize, now: WallTime) -> Plan {
    let per_index = census.failed_indexes.is_some();
    let wait = if per_index { TimeDelta::zero() } else { back_off.remaining(now) };
    if wait > TimeDelta::zero() {
        return Plan::Keep { wait: Some(wait) };
    }
    if !job.indexed() {
        return Plan::Create { pods: vec![PodAdditions::new(job, None); missing], wait: None };
    }
    let (mut pods, mut wait) = (Vec::new(), None);
    for index in open_indexes(job, census).gaps(job.indexes()).take(missing) {
        let replaced = census.awaiting_replacement.get(&index);
        let left = replaced.map_or(TimeDelta::zero(), |pod| index_delay(pod, now));
        if left > TimeDelta::zero() {
            wait = Some(wait.map_or(left, |shortest: TimeDelta| shortest.min(left)));
            continue;
        }
        let failures = replaced.map(|pod| IndexFailures::with(pod, job)).unwrap_or_default();
        pods.push(PodAdditions::new(job, Some((index, per_index.then_some(failures)))));
    }
    if pods.is_empty() { Plan::Keep { wait } } else { Plan::Create { pods, wait } }
}

/// The indexes that get no new Pod: decided, active, or held by a Pod that is to end first.
fn open_indexes(job: &BatchJob, census: &Census) -> IndexSet {
    let mut taken = census.completed.clone();
    let failed = census.failed_indexes.iter().flat_map(IndexSet::iter);
    let held: &[Arc<Pod>] = if replaces_only_ended(job) { &census.terminating } else { &[] };
    let pods = census.active.iter().chain(held).filter_map(|pod| valid_index(pod, job));
    for index in failed.chain(pods) {
        taken.insert(index);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::{at, ended, indexed, job, of_index, pod, running, terminating};
    use crate::model::{PodPhase, PodReplacement};

    fn planned(job: &BatchJob, pods: &[Pod], back_off: BackOff) -> Plan {
        let pods: Vec<Arc<Pod>> = pods.iter().cloned().map(Arc::new).collect();
        plan(job, &Census::take(job, &pods), back_off, at(100))
    }

    /// The plan in short: `+indexes`, `-uids`, `=wait`.
    fn short(plan: Plan) -> String {
        let seconds = |wait: Option<TimeDelta>| wait.map_or(String::new(), |wait| format!("={}", wait.num_seconds()));
        match plan {
            Plan::Keep { wait } => seconds(wait),
            Plan::Delete(pods) => {
                format!("-{}", pods.iter().map(|pod| pod.uid.to_string()).collect::<Vec<_>>().join(","))
            }
            Plan::Create { pods, wait } => {
                let index = |pod: &PodAdditions| pod.completion_index().map_or("x".into(), |index| index.to_string());
                format!("+{}{}", pods.iter().map(index).collect::<Vec<_>>().join(","), seconds(wait))
            }
        }
    }

    fn of(parallelism: i32, completions: Option<i32>, mut job: BatchJob) -> BatchJob {
        (job.spec.parallelism, job.spec.completions) = (parallelism, completions);
        job
    }

    #[test]
    fn the_wanted_number_follows_completions_or_the_first_success() {
        for (parallelism, completions, succeeded, active, wanted) in [
            (2, Some(5), 0, 0, 2),
            (2, Some(5), 4, 2, 1),
            (2, Some(5), 5, 0, 0),
            (2, Some(5), 7, 0, 0),
            (0, Some(5), 0, 3, 0),
            (3, None, 0, 1, 3),
            (3, None, 1, 2, 2),
            (0, None, 1, 2, 2),
            (0, None, 0, 2, 0),
        ] {
            let job = of(parallelism, completions, job());
            assert_eq!(wanted_active(&job, succeeded, active), wanted, "{parallelism} {completions:?} {succeeded}");
        }
    }

    #[test]
    fn pods_are_created_or_deleted_towards_the_wanted_number() {
        let three = [pod("a"), running("b"), running("c")];
        let short_of = |job: BatchJob, pods: &[Pod]| short(planned(&job, pods, BackOff::default()));
        assert_eq!(short_of(of(2, Some(5), job()), &[]), "+x,x");
        assert_eq!(short_of(of(2, Some(5), job()), &three[..2]), "");
        assert_eq!(short_of(of(2, Some(5), job()), &three), "-a");
        assert_eq!(short_of(of(0, Some(5), job()), &three), "-a,b,c");
        let mut suspended = of(5, Some(5), job());
        suspended.spec.suspend = true;
        assert_eq!(short_of(suspended.clone(), &three), "-a,b,c");
        assert_eq!(short_of(suspended, &[terminating(running("a"))]), "");
    }

    #[test]
    fn a_terminating_pod_holds_its_place_where_only_ended_pods_are_replaced() {
        let mut patient = of(2, Some(5), job());
        let pods = [terminating(running("a")), running("b")];
        assert_eq!(short(planned(&patient, &pods, BackOff::default())), "+x");
        patient.spec.pod_replacement = PodReplacement::Failed;
        assert_eq!(short(planned(&patient, &pods, BackOff::default())), "");
        let many: Vec<Pod> = ["a", "b", "c", "d"].map(|name| terminating(running(name))).into();
        assert_eq!(short(planned(&patient, &many, BackOff::default())), "", "more than parallelism");
        let mut by_index = of(2, Some(5), indexed(5));
        by_index.spec.pod_replacement = PodReplacement::Failed;
        let one = [of_index(0, terminating(running("a")))];
        assert_eq!(short(planned(&by_index, &one, BackOff::default())), "+1");
    }

    #[test]
    fn holes_are_filled_in_order() {
        let mut job = of(10, Some(20), indexed(20));
        job.status.completed_indexes = "2,4,5,7-9".into();
        let active: Vec<Pod> = [0, 3].map(|index| of_index(index, running(&format!("p{index}")))).into();
        assert_eq!(short(planned(&job, &active, BackOff::default())), "+1,6,10,11,12,13,14,15");
    }

    #[test]
    fn a_back_off_holds_up_all_pods_of_the_job() {
        let failed = BackOff { failures: 2, last_failure: Some(at(95)) };
        assert_eq!(short(planned(&of(2, Some(5), job()), &[], failed)), "=15");
        assert_eq!(short(planned(&of(2, Some(5), job()), &[], BackOff { failures: 1, ..failed })), "=5");
        let long_ago = BackOff { last_failure: Some(at(0)), ..failed };
        assert_eq!(short(planned(&of(2, Some(5), job()), &[], long_ago)), "+x,x");
    }

    #[test]
    fn indexes_wait_by_themselves_and_hold_up_later_ones_as_in_the_peer() {
        let mut job = of(2, Some(5), indexed(5));
        job.spec.backoff_limit_per_index = Some(3);
        let failed = |index, s| {
            let pod = of_index(index, ended(PodPhase::Failed, running(&format!("f{index}"))));
            Pod { creation_time: Some(at(s)), ..pod }
        };
        let global = BackOff { failures: 5, last_failure: Some(at(100)) };
        assert_eq!(short(planned(&job, &[failed(0, 95)], global)), "+1=5");
        assert_eq!(short(planned(&job, &[failed(0, 95), failed(1, 97)], global)), "=5");
        assert_eq!(short(planned(&job, &[failed(0, 50), failed(1, 97)], global)), "+0=7");
        let Plan::Create { pods, .. } = planned(&job, &[failed(0, 50)], global) else { panic!("nothing created") };
        let failures = pods.iter().map(|pod| pod.index.as_ref().unwrap().failures.unwrap().counted);
        assert_eq!(failures.collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn a_step_has_a_limit() {
        let Plan::Create { pods, .. } = planned(&of(900, Some(900), job()), &[], BackOff::default()) else { panic!() };
        assert_eq!(pods.len(), MAX_PODS_PER_STEP);
        let many: Vec<Pod> = (0..600).map(|at| running(&format!("p{at:03}"))).collect();
        let Plan::Delete(pods) = planned(&of(0, Some(900), job()), &many, BackOff::default()) else { panic!() };
        assert_eq!(pods.len(), MAX_PODS_PER_STEP);
    }
}
