//! What an actor remembers between steps: own writes that the caches may not show yet, and the failures' back-off.
//!
//! Invariants
//! - Everything belongs to one incarnation (uid) of the Job; another uid empties it (rule `expectations-by-uid`).
//! - It is sound between any two answers: an own write is noted when it is answered, and one that was never answered is as if it had
//!   not been made. So a Pod is hidden only for what is known to be so.
//! - An own write ends by what the cache shows, not by an event that could be missed; nothing is believed longer than [`BELIEVED_FOR`] for
//!   the cache's silence alone.
//! - A step that could count a Pod twice, or make one that exists, because its caches are behind what another process did, is not
//!   taken on trust ([`Memory::is_fresh`]).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;

use super::delay::BackOff;
use crate::model::{BatchJob, Pod, Uid, WallTime, newer_version};

/// The cache of Pods, as a step reads it.
pub trait PodCache: Sync {
    /// The Pods whose controller reference carries this uid.
    fn owned(&self, job: &Uid) -> Vec<Arc<Pod>>;

    /// The Pods of a namespace without a controller reference.
    fn unowned(&self, namespace: &str) -> Vec<Arc<Pod>>;

    /// The newest resource version up to which the cache is complete; `None` when it cannot tell.
    fn version(&self) -> Option<Box<str>> {
        None
    }
}

/// How long an own write is believed that the cache doesn't show; the peer's time-out of expectations.
pub const BELIEVED_FOR: TimeDelta = TimeDelta::minutes(5);

/// Kept by the actor of one Job; handed to each of its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The incarnation that everything here belongs to.
    uid: Uid,
    /// The Job as the server returned it last.
    job: Option<OwnJob>,
    /// Pods as the server returned them last, by uid.
    pods: BTreeMap<Uid, OwnPod>,
    /// Pods that were deleted, by uid.
    deleted: BTreeMap<Uid, Deletion>,
    /// Failures since the last success.
    pub(super) back_off: BackOff,
    /// How far the caches must have come.
    trust: Trust,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnJob {
    job: Arc<BatchJob>,
    /// The versions that it is known to be newer than.
    over: Vec<Box<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnPod {
    /// `None`: it does not exist any more.
    pod: Option<Arc<Pod>>,
    /// The version that the cache showed; `None` for a Pod that we created.
    over: Option<Box<str>>,
    since: WallTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Deletion {
    since: WallTime,
    /// Whether nothing else is created or deleted before the cache shows it.
    expected: bool,
}

/// Whether the caches are known to show what other processes did to the Job before this memory began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Trust {
    /// They may lag.
    #[default]
    Fresh,
    /// They may, until the Pods are known to be as new as this version, which was listed.
    Listed(Box<str>),
    /// They do.
    Settled,
}

impl Memory {
    /// For a Job of which the caches show all that other processes did.
    pub fn trusting(uid: Uid) -> Self {
        Self { uid, trust: Trust::Settled, ..Self::default() }
    }

    /// The server showed `live`: believed like an own write until the cache is as new.
    pub fn on_read(&mut self, cached: &BatchJob, live: Arc<BatchJob>) {
        self.belongs_to(&cached.uid);
        self.believe(cached, live);
    }

    /// How many own writes are remembered.
    pub fn own_writes(&self) -> usize {
        self.pods.len() + self.deleted.len() + usize::from(self.job.is_some())
    }

    fn belongs_to(&mut self, uid: &Uid) {
        if self.uid != *uid {
            *self = Self { uid: uid.clone(), ..Self::default() };
        }
    }

    /// The newer of what the cache shows and what the server returned last.
    pub(super) fn newest(&mut self, cached: Arc<BatchJob>) -> Arc<BatchJob> {
        self.belongs_to(&cached.uid);
        match &self.job {
            Some(own) if own.is_newer_than(&cached) => own.job.clone(),
            _ => {
                self.job = None;
                cached
            }
        }
    }

    /// The server took a status based on `base` and returned `job`. A write over a status that nobody had ever written tells that
    /// nobody else has counted anything.
    pub(super) fn on_written(&mut self, base: &BatchJob, job: Arc<BatchJob>) {
        if base.status.uncounted.is_none() && self.trust == Trust::Fresh {
            self.trust = Trust::Settled;
        }
        self.believe(base, job);
    }

    fn believe(&mut self, base: &BatchJob, job: Arc<BatchJob>) {
        if job.uid != self.uid {
            return;
        }
        let mut over = self.job.take().map(|own| own.over).unwrap_or_default();
        over.push(base.resource_version.clone());
        self.job = Some(OwnJob { job: sharing_template(job, base), over });
    }

    /// Forgets what a finished Job does not need.
    pub(super) fn on_finished(&mut self) {
        (self.pods, self.deleted, self.back_off) = Default::default();
    }

    /// The server returned `pod` for a creation.
    pub(super) fn on_pod_created(&mut self, pod: Arc<Pod>, now: WallTime) {
        self.pods.insert(pod.uid.clone(), OwnPod { pod: Some(pod), over: None, since: now });
    }

    /// The server returned `after` for a patch of a Pod; `None`: it does not exist any more.
    pub(super) fn on_pod_patched(&mut self, before: &Pod, after: Option<Arc<Pod>>, now: WallTime) {
        let over = match self.pods.get(&before.uid) {
            Some(own) => own.over.clone(),
            None => Some(before.resource_version.clone()),
        };
        self.pods.insert(before.uid.clone(), OwnPod { pod: after, over, since: now });
    }

    /// The server deleted the Pod, or begins to. `expected`: nothing else is created or deleted until the cache shows it.
    pub(super) fn on_pod_deleted(&mut self, pod: &Pod, expected: bool, now: WallTime) {
        self.deleted.insert(pod.uid.clone(), Deletion { since: now, expected });
    }

    /// The Pods as they are by now: what the cache shows, with own writes. Forgets those that the cache shows too.
    pub(super) fn view(&mut self, shown: Vec<Arc<Pod>>, version: Option<&str>, now: WallTime) -> Vec<Arc<Pod>> {
        if self.pods.is_empty() && self.deleted.is_empty() {
            return shown;
        }
        let mut pods: BTreeMap<Uid, Arc<Pod>> = shown.into_iter().map(|pod| (pod.uid.clone(), pod)).collect();
        let believed = |since: WallTime| now.signed_duration_since(since) < BELIEVED_FOR;
        self.pods
            .retain(|uid, own| own.holds(pods.get(uid), version) && (pods.contains_key(uid) || believed(own.since)));
        self.deleted.retain(|uid, deletion| {
            let unseen = pods.get(uid).is_some_and(|pod| !pod.deleting()) || self.pods.contains_key(uid);
            unseen && believed(deletion.since)
        });
        for (uid, own) in &self.pods {
            match &own.pod {
                Some(pod) => pods.insert(uid.clone(), pod.clone()),
                None => pods.remove(uid),
            };
        }
        for uid in self.deleted.keys() {
            if let Some(pod) = pods.get_mut(uid).filter(|pod| !pod.deleting()) {
                *pod = Arc::new(Pod { deletion_time: Some(now), ..(**pod).clone() });
            }
        }
        pods.into_values().collect()
    }

    /// Whether all Pods that were created or deleted for their number have been shown by the cache, as of the last [`Self::view`].
    pub(super) fn is_satisfied(&self) -> bool {
        self.pods.values().all(|own| own.over.is_some()) && self.deleted.values().all(|deletion| !deletion.expected)
    }

    /// Whether the caches may be behind what another process did to a Job whose status has been written: then Job and Pods are read
    /// from the server before anything is counted or created (rule `fresh-process-asks`).
    pub(super) fn is_fresh(&mut self, job: &BatchJob, version: Option<&str>) -> bool {
        if let Trust::Listed(listed) = &self.trust
            && version.and_then(|version| newer_version(version, listed)).is_some_and(|order| order != Ordering::Less)
        {
            self.trust = Trust::Settled;
        }
        self.trust != Trust::Settled && job.status.uncounted.is_some()
    }

    /// The server listed the Job's Pods at this version. The first list tells all that others did before.
    pub(super) fn on_listed(&mut self, version: Box<str>) {
        if self.trust == Trust::Fresh {
            self.trust = Trust::Listed(version);
        }
    }
}

impl OwnJob {
    fn is_newer_than(&self, cached: &BatchJob) -> bool {
        match newer_version(&self.job.resource_version, &cached.resource_version) {
            Some(order) => order == Ordering::Greater,
            // Versions that can't be ordered: newer only if the cache still shows what we wrote over.
            None => self.over.contains(&cached.resource_version),
        }
    }
}

impl OwnPod {
    /// Whether the cache, which shows `shown` and is complete up to `version`, is older than this write.
    fn holds(&self, shown: Option<&Arc<Pod>>, version: Option<&str>) -> bool {
        let own = self.pod.as_ref().map(|pod| &*pod.resource_version);
        match (shown, own) {
            (Some(_), None) => true,
            (Some(shown), Some(own)) => match newer_version(&shown.resource_version, own) {
                Some(order) => order == Ordering::Less,
                None => self.over.as_ref() == Some(&shown.resource_version),
            },
            // What the cache showed before and does not show any more is gone.
            (None, _) if self.over.is_some() => false,
            (None, own) => {
                let order = version.zip(own).and_then(|(version, own)| newer_version(version, own));
                order != Some(Ordering::Greater) && order != Some(Ordering::Equal)
            }
        }
    }
}

/// The answer to a status write brings the template again; keep one copy of it.
fn sharing_template(job: Arc<BatchJob>, base: &BatchJob) -> Arc<BatchJob> {
    if job.spec.template != base.spec.template || Arc::ptr_eq(&job.spec.template, &base.spec.template) {
        return job;
    }
    let mut job = Arc::unwrap_or_clone(job);
    job.spec.template = base.spec.template.clone();
    Arc::new(job)
}
