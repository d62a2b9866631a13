//! Which active Pods go first when there are too many.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::classify::{is_ready, valid_index};
use crate::model::{BatchJob, Pod, WallTime};

/// The active Pods to delete: at least `excess`, as far as there are so many. Of an Indexed Job, in any case those without a
/// valid index, and of each index all but the Pod that would be deleted last.
pub fn pods_to_delete(job: &BatchJob, active: &[Arc<Pod>], excess: usize) -> Vec<Arc<Pod>> {
    let (mut chosen, mut rest) =
        if job.indexed() { surplus_of_indexes(job, active) } else { (vec![], active.to_vec()) };
    if chosen.len() < excess {
        rest.sort_by(|a, b| deletion_order(a, b));
        rest.truncate(excess - chosen.len());
        chosen.append(&mut rest);
    }
    chosen
}

/// Pods that an Indexed Job has no use for, and the others.
fn surplus_of_indexes(job: &BatchJob, active: &[Arc<Pod>]) -> (Vec<Arc<Pod>>, Vec<Arc<Pod>>) {
    let mut of_index: BTreeMap<Option<i32>, Vec<Arc<Pod>>> = BTreeMap::new();
    for pod in active {
        of_index.entry(valid_index(pod, job)).or_default().push(pod.clone());
    }
    let mut surplus = of_index.remove(&None).unwrap_or_default();
    let mut kept = Vec::with_capacity(of_index.len());
    for mut pods in of_index.into_values() {
        pods.sort_by(|a, b| deletion_order(a, b));
        kept.extend(pods.pop());
        surplus.append(&mut pods);
    }
    (surplus, kept)
}

/// Who has done least goes first: not scheduled, not running, not ready, ready or made most recently; before that, who restarted most.
fn deletion_order(a: &Pod, b: &Pod) -> Ordering {
    let ready_since = |pod: &Pod| {
        let since = pod.condition("Ready").filter(|_| is_ready(pod)).and_then(|ready| ready.last_transition_time);
        latest_first(since)
    };
    let rank = |pod: &Pod| {
        (pod.scheduled, pod.phase, is_ready(pod), ready_since(pod), restarts(pod), latest_first(pod.creation_time))
    };
    // Uids settle what is equal, so that the same Pods in another order give the same choice.
    rank(a).cmp(&rank(b)).then_with(|| a.uid.cmp(&b.uid))
}

/// An unknown time counts as later than any.
fn latest_first(time: Option<WallTime>) -> (bool, Reverse<Option<WallTime>>) {
    (time.is_some(), Reverse(time))
}

/// The most restarts of a container, then of a side-car; more come first.
fn restarts(pod: &Pod) -> Reverse<(i32, i32)> {
    let containers = pod.containers.iter().map(|status| status.restart_count).max();
    let side_cars = pod.init_containers.iter().filter(|status| status.side_car);
    Reverse((containers.unwrap_or(0), side_cars.map(|status| status.restart_count).max().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::{at, indexed, job, of_index, pod, ready, running};
    use crate::model::{ContainerStatus, PodPhase};

    fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
        pods.iter().map(|pod| pod.uid.as_str()).collect()
    }

    fn shared(pods: Vec<Pod>) -> Vec<Arc<Pod>> {
        pods.into_iter().map(Arc::new).collect()
    }

    #[test]
    fn who_has_done_least_goes_first() {
        let restarted = |count, pod: Pod| {
            let status = ContainerStatus { restart_count: count, ..ContainerStatus::default() };
            Pod { containers: vec![status], ..pod }
        };
        let side_car = |count, pod: Pod| {
            let status = ContainerStatus { restart_count: count, side_car: true, ..ContainerStatus::default() };
            Pod { init_containers: vec![status], ..pod }
        };
        let made = |s, pod: Pod| Pod { creation_time: Some(at(s)), ..pod };
        let ready_since = |s, pod: Pod| {
            let mut pod = ready(pod);
            pod.conditions[0].last_transition_time = Some(at(s));
            pod
        };
        let in_order = vec![
            Pod { scheduled: false, ..pod("01-unscheduled") },
            Pod { scheduled: true, ..pod("02-pending") },
            Pod { phase: PodPhase::Unknown, ..running("03-unknown") },
            made(5, restarted(4, running("04-restarted"))),
            made(5, side_car(2, running("05-side-car-restarted"))),
            Pod { creation_time: None, ..running("06-of-unknown-age") },
            made(9, running("07-young")),
            made(5, running("08-old")),
            ready_since(9, running("09-ready-lately")),
            made(9, ready_since(3, running("10-ready-young"))),
            made(1, ready_since(3, running("11-ready-old"))),
        ];
        let expected: Vec<String> = in_order.iter().map(|pod| pod.uid.to_string()).collect();
        let mut reversed = shared(in_order);
        reversed.reverse();
        assert_eq!(names(&pods_to_delete(&job(), &reversed, 11)), expected);
        assert_eq!(names(&pods_to_delete(&job(), &reversed, 2)), expected[..2]);
        assert_eq!(names(&pods_to_delete(&job(), &reversed, 99)).len(), 11);
    }

    #[test]
    fn indexes_lose_duplicates_and_what_is_no_index_even_without_excess() {
        let pods = shared(vec![
            of_index(0, running("a")),
            of_index(0, ready(running("b"))),
            of_index(1, running("c")),
            of_index(3, running("d")),
            running("e"),
        ]);
        assert_eq!(names(&pods_to_delete(&indexed(3), &pods, 0)), ["d", "e", "a"]);
        assert_eq!(names(&pods_to_delete(&indexed(3), &pods, 4)), ["d", "e", "a", "c"]);
    }
}
