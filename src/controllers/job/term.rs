//! What the supervisors of the Job controller are made of: one steps Jobs, one frees Pods that lost theirs.

use super::actor::BatchJobs;
use super::calls::Calls;
use super::orphans::Orphans;
use super::voice::Voice;
use crate::clock::Clock;
use crate::cluster::Store;
use crate::controllers::term::{Blueprint, EngineSetup};
use crate::engine::{Supervisor, Wake};
use crate::jobs::Mandate;
use crate::model::{BatchJob, Pod};

/// What both have in common.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) mandate: Mandate,
    pub(super) jobs: Store<BatchJob>,
    pub(super) pods: Store<Pod>,
    pub(super) calls: Calls,
    pub(super) voice: Voice,
    pub(super) clock: Clock,
    pub(super) engine: EngineSetup,
}

/// For the supervisor of Jobs.
pub(super) struct JobBlueprint(pub(super) Parts);

impl Blueprint for JobBlueprint {
    type Kind = BatchJobs;

    fn supervisor(&self) -> Supervisor<BatchJobs> {
        let Parts { mandate, jobs, pods, calls, voice, clock, engine } = self.0.clone();
        let options = engine.options();
        Supervisor::new(BatchJobs { mandate, jobs, pods, calls, voice, clock }, options)
    }

    fn refill(&self, _last: &Supervisor<BatchJobs>, next: &Supervisor<BatchJobs>) {
        for job in self.0.jobs.list().into_iter().filter(|job| self.0.mandate.covers(job)) {
            next.send(job.key.clone(), Wake::Listed);
        }
    }
}

/// For the supervisor of Pods that may have lost their Job.
pub(super) struct OrphanBlueprint(pub(super) Parts);

impl Blueprint for OrphanBlueprint {
    type Kind = Orphans;

    fn supervisor(&self) -> Supervisor<Orphans> {
        let Parts { mandate, jobs, pods, calls, voice, clock: _, engine } = self.0.clone();
        let options = engine.options();
        Supervisor::new(Orphans { mandate, jobs, pods, calls, voice }, options)
    }

    /// Nobody is suspected while standing by; see [`super::caches::Feed::suspect_all`].
    fn refill(&self, _last: &Supervisor<Orphans>, _next: &Supervisor<Orphans>) {}
}
