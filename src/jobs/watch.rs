//! What a watch event means: which Jobs are looked at and when, and which Pods may have lost theirs. Pure. Expectations need no events
//! here: own writes end by what the cache shows ([`super::Memory`]).

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use super::classify::is_finished;
use super::mandate::Mandate;
use super::names::{API_VERSION, KIND};
use super::step::BATCH_PERIOD;
use crate::model::{BatchJob, LabelSelector, Labels, ObjectKey, Pod, Uid, WallTime};

/// The cache of Jobs, as reactions and the handler of orphans read it.
pub trait JobCache {
    /// The Job of this name.
    fn get(&self, key: &ObjectKey) -> Option<Arc<BatchJob>>;

    /// The Jobs of the namespace whose selector matches these labels.
    fn selecting(&self, namespace: &str, labels: &Labels) -> Vec<ObjectKey>;
}

/// Something for a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Look at the Job now.
    Sync(ObjectKey),
    /// Look at it after a delay; the earlier of two delays of one Job wins.
    SyncAfter(ObjectKey, Duration),
    /// See whether this Pod lost its Job ([`super::orphan`]).
    Orphan(ObjectKey),
    /// See whether any of the Pods of a Job lost it: those whose controller it is, and those without one that match.
    Sweep {
        /// Of which namespace.
        namespace: Arc<str>,
        /// `metadata.uid` of the Job.
        uid: Uid,
        /// Which Pods without a controller.
        selector: LabelSelector,
    },
}

/// What a watch event leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaction {
    /// For the queues, in order.
    pub operations: Vec<Operation>,
    /// For `terminated_pods_tracking_finalizer_total`: a Pod that ended has the finalizer since this event, or has it no more.
    pub tracking: Option<Tracking>,
    /// For `jobs_by_external_controller_total`: a Job that somebody else manages appeared; empty where it names nobody.
    pub external: Option<Box<str>>,
}

/// `event` of `terminated_pods_tracking_finalizer_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    /// It ended and waits to be counted.
    Add,
    /// It is counted, or gone.
    Delete,
}

/// A Job appeared. One that has ended is swept as well, for the process before may not have come to it (rule `finished-swept-at-start`).
pub fn on_job_added(mandate: &Mandate, job: &BatchJob) -> Reaction {
    if !mandate.covers(job) {
        return Reaction { external: Some(job.spec.managed_by.clone().unwrap_or_default()), ..Reaction::default() };
    }
    let sweep = job.finished().then(|| sweep(job));
    let operations = [Operation::Sync(job.key.clone())].into_iter().chain(sweep).collect();
    Reaction { operations, ..Reaction::default() }
}

/// A Job changed, or a resync shows it again.
pub fn on_job_updated(mandate: &Mandate, old: &BatchJob, new: &BatchJob, now: WallTime) -> Reaction {
    if !mandate.covers(new) {
        return Reaction::default();
    }
    if new.finished() {
        return Reaction { operations: vec![sweep(new)], ..Reaction::default() };
    }
    let mut operations = if old.generation == new.generation {
        vec![after_a_while(&new.key)]
    } else {
        vec![Operation::Sync(new.key.clone())]
    };
    if old.spec.active_deadline_s != new.spec.active_deadline_s
        && let Some(until) = until_deadline(new, now)
    {
        operations.push(Operation::SyncAfter(new.key.clone(), until));
    }
    Reaction { operations, ..Reaction::default() }
}

/// A Job is gone: its Pods keep no finalizer, whoever managed it.
pub fn on_job_deleted(job: &BatchJob) -> Reaction {
    Reaction { operations: vec![Operation::Sync(job.key.clone()), sweep(job)], ..Reaction::default() }
}

/// A Pod appeared.
pub fn on_pod_added(pod: &Pod, jobs: &dyn JobCache) -> Reaction {
    let operations = if pod.deleting() {
        on_pod_going(pod, jobs)
    } else if pod.controller.is_some() {
        owner(pod, jobs).map(|job| after_a_while(&job.key)).into_iter().collect()
    } else {
        orphan(pod).into_iter().chain(adopters(pod, jobs)).collect()
    };
    Reaction { operations, tracking: tracking(false, awaits_count(pod)), ..Reaction::default() }
}

/// A Pod changed, or a resync shows it again.
pub fn on_pod_updated(old: &Pod, new: &Pod, jobs: &dyn JobCache) -> Reaction {
    if old.resource_version == new.resource_version {
        return Reaction::default();
    }
    let tracking = tracking(awaits_count(old), awaits_count(new));
    if new.deleting() {
        return Reaction { operations: on_pod_going(new, jobs), tracking, ..Reaction::default() };
    }
    let moved = old.controller != new.controller;
    let before = owner(old, jobs).filter(|_| moved).map(|job| after_a_while(&job.key));
    let mut operations: Vec<Operation> = before.into_iter().collect();
    if new.controller.is_some() {
        operations.extend(owner(new, jobs).map(|job| after_a_while(&job.key)));
    } else {
        operations.extend(orphan(new));
        if moved || old.labels != new.labels {
            operations.extend(adopters(new, jobs));
        }
    }
    Reaction { operations, tracking, ..Reaction::default() }
}

/// A Pod is gone.
pub fn on_pod_deleted(pod: &Pod, jobs: &dyn JobCache) -> Reaction {
    let tracking = tracking(awaits_count(pod), false);
    Reaction { operations: on_pod_going(pod, jobs), tracking, ..Reaction::default() }
}

/// A Pod is gone or being deleted: its Job counts it, or nobody does.
fn on_pod_going(pod: &Pod, jobs: &dyn JobCache) -> Vec<Operation> {
    match owner(pod, jobs).filter(|job| !job.finished()) {
        Some(job) => vec![after_a_while(&job.key)],
        None => orphan(pod).into_iter().collect(),
    }
}

/// The living Job that controls the Pod.
fn owner(pod: &Pod, jobs: &dyn JobCache) -> Option<Arc<BatchJob>> {
    let reference =
        pod.controller.as_ref().filter(|owner| &*owner.kind == KIND && &*owner.api_version == API_VERSION)?;
    jobs.get(&ObjectKey::new(pod.key.namespace.clone(), &*reference.name)).filter(|job| job.uid == reference.uid)
}

fn orphan(pod: &Pod) -> Option<Operation> {
    pod.tracked.then(|| Operation::Orphan(pod.key.clone()))
}

fn adopters(pod: &Pod, jobs: &dyn JobCache) -> Vec<Operation> {
    jobs.selecting(&pod.key.namespace, &pod.labels).iter().map(after_a_while).collect()
}

fn after_a_while(key: &ObjectKey) -> Operation {
    Operation::SyncAfter(key.clone(), BATCH_PERIOD)
}

fn sweep(job: &BatchJob) -> Operation {
    Operation::Sweep { namespace: job.key.namespace.clone(), uid: job.uid.clone(), selector: job.spec.selector.clone() }
}

fn until_deadline(job: &BatchJob, now: WallTime) -> Option<Duration> {
    let seconds = TimeDelta::try_seconds(job.spec.active_deadline_s?)?;
    let at = job.status.start_time?.checked_add_signed(seconds)?;
    Some(at.signed_duration_since(now).to_std().unwrap_or_default())
}

fn awaits_count(pod: &Pod) -> bool {
    is_finished(pod) && pod.tracked
}

fn tracking(before: bool, after: bool) -> Option<Tracking> {
    match (before, after) {
        (false, true) => Some(Tracking::Add),
        (true, false) => Some(Tracking::Delete),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::{at, ended, finished, job, pod, running, terminating};
    use crate::model::PodPhase;

    struct Cache(Vec<BatchJob>);

    impl JobCache for Cache {
        fn get(&self, key: &ObjectKey) -> Option<Arc<BatchJob>> {
            self.0.iter().find(|job| job.key == *key).cloned().map(Arc::new)
        }
        fn selecting(&self, namespace: &str, labels: &Labels) -> Vec<ObjectKey> {
            let fits = |job: &&BatchJob| &*job.key.namespace == namespace && job.spec.selector.matches(labels);
            self.0.iter().filter(fits).map(|job| job.key.clone()).collect()
        }
    }

    fn ours() -> Mandate {
        Mandate::all("acme.io/ours")
    }

    fn changed(pod: Pod) -> Pod {
        Pod { resource_version: "6".into(), ..pod }
    }

    fn later() -> Operation {
        after_a_while(&job().key)
    }

    fn orphaned(name: &str) -> Operation {
        Operation::Orphan(ObjectKey::new("ns", name))
    }

    #[test]
    fn a_change_of_the_spec_is_looked_at_now_and_one_of_the_status_later() {
        let touched = |change: fn(&mut BatchJob)| {
            let mut new = job();
            change(&mut new);
            on_job_updated(&ours(), &job(), &new, at(20)).operations
        };
        assert_eq!(touched(|new| new.status.active = 1), [later()]);
        assert_eq!(touched(|new| new.generation = 2), [Operation::Sync(job().key)]);
        assert_eq!(touched(|new| *new = finished(job())), [sweep(&job())]);
    }

    #[test]
    fn a_new_deadline_arms_its_own_timer() {
        let mut new = BatchJob { generation: 2, ..job() };
        (new.spec.active_deadline_s, new.status.start_time) = (Some(30), Some(at(0)));
        let at_deadline = |now| on_job_updated(&ours(), &job(), &new, at(now)).operations[1].clone();
        assert_eq!(at_deadline(20), Operation::SyncAfter(job().key, Duration::from_secs(10)));
        assert_eq!(at_deadline(99), Operation::SyncAfter(job().key, Duration::ZERO));
        assert_eq!(on_job_updated(&ours(), &new, &new, at(20)).operations, [later()]);
    }

    #[test]
    fn jobs_that_come_and_go_are_looked_at_and_swept_when_they_ended() {
        assert_eq!(on_job_added(&ours(), &job()).operations, [Operation::Sync(job().key)]);
        assert_eq!(on_job_deleted(&job()).operations, [Operation::Sync(job().key), sweep(&job())]);
        let mut foreign = job();
        foreign.spec.managed_by = Some("acme.io/jobs".into());
        let heard = on_job_added(&ours(), &foreign);
        assert_eq!((heard.operations.len(), heard.external.as_deref()), (0, Some("acme.io/jobs")));
        assert_eq!(on_job_updated(&ours(), &foreign, &foreign, at(20)).operations, []);
        assert_eq!(on_job_added(&Mandate::marked("acme.io/ours"), &job()).external.as_deref(), Some(""));
        assert_eq!(on_job_added(&ours(), &job()).external, None);
    }

    #[test]
    fn a_pod_wakes_its_living_job_of_the_same_uid_and_kind() {
        let jobs = Cache(vec![job()]);
        assert_eq!(on_pod_added(&pod("a"), &jobs).operations, [later()]);
        for wrong in ["uid", "kind", "group"] {
            let mut stranger = pod("a");
            let owner = stranger.controller.as_mut().unwrap();
            match wrong {
                "uid" => owner.uid = "earlier".into(),
                "kind" => owner.kind = "Workflow".into(),
                _ => owner.api_version = "example.com/v1".into(),
            }
            assert_eq!(on_pod_added(&stranger, &jobs).operations, [], "{wrong}");
            assert_eq!(on_pod_deleted(&stranger, &jobs).operations, [orphaned("a")], "{wrong}");
        }
    }

    #[test]
    fn a_pod_that_goes_is_its_jobs_business_or_nobodys() {
        let going = terminating(running("a"));
        for (jobs, expected) in
            [(vec![job()], vec![later()]), (vec![finished(job())], vec![orphaned("a")]), (vec![], vec![orphaned("a")])]
        {
            let jobs = Cache(jobs);
            assert_eq!(on_pod_added(&going, &jobs).operations, expected);
            assert_eq!(on_pod_updated(&running("a"), &changed(going.clone()), &jobs).operations, expected);
            assert_eq!(on_pod_deleted(&running("a"), &jobs).operations, expected);
        }
        assert_eq!(on_pod_deleted(&Pod { tracked: false, ..pod("a") }, &Cache(vec![])).operations, []);
    }

    #[test]
    fn a_pod_without_controller_is_offered_to_all_that_select_it_when_it_came_or_changed() {
        let orphan = Pod { controller: None, tracked: false, ..pod("a") };
        let jobs = Cache(vec![job()]);
        assert_eq!(on_pod_added(&orphan, &jobs).operations, [later()]);
        assert_eq!(on_pod_updated(&orphan, &orphan, &jobs).operations, []);
        assert_eq!(on_pod_updated(&orphan, &changed(orphan.clone()), &jobs).operations, []);
        let unlabelled = Pod { labels: Labels::new(), ..orphan.clone() };
        assert_eq!(on_pod_updated(&unlabelled, &changed(orphan.clone()), &jobs).operations, [later()]);
        assert_eq!(on_pod_updated(&pod("a"), &changed(orphan), &jobs).operations, [later(), later()]);
        let tracked = Pod { controller: None, ..pod("a") };
        assert_eq!(on_pod_added(&tracked, &jobs).operations, [orphaned("a"), later()]);
    }

    #[test]
    fn ends_with_the_finalizer_are_counted_in_and_out() {
        let jobs = Cache(vec![job()]);
        let done = changed(ended(PodPhase::Failed, running("a")));
        let free = Pod { tracked: false, resource_version: "7".into(), ..done.clone() };
        assert_eq!(on_pod_updated(&running("a"), &done, &jobs).tracking, Some(Tracking::Add));
        assert_eq!(on_pod_updated(&done, &free, &jobs).tracking, Some(Tracking::Delete));
        assert_eq!(on_pod_added(&done, &jobs).tracking, Some(Tracking::Add));
        assert_eq!(on_pod_deleted(&done, &jobs).tracking, Some(Tracking::Delete));
        assert_eq!(on_pod_deleted(&free, &jobs).tracking, None);
    }
}
