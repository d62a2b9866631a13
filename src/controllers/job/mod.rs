//! The controller of `batch/v1` Jobs: two reflectors, of Jobs and of Pods, feed a supervisor whose actors step through `jobs`, and a
//! second one that frees Pods which lost their Job.
//!
//! Invariants
//! - The reflectors live as long as the process, the supervisors as long as a term of leadership.
//! - No step runs before both caches have synced.
//! - What a watch event means is decided in `jobs::watch`, what a step does in `jobs::step`; here is only the wiring.
//! - Only Jobs that the mandate covers have an actor, and the step looks once more.

mod actor;
mod caches;
mod calls;
mod orphans;
mod term;
mod voice;

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::caches::Feed;
pub(super) use self::calls::Calls;
use self::term::{JobBlueprint, OrphanBlueprint, Parts};
use self::voice::Voice;
use super::controller::Controller;
use super::readiness::Readiness;
use super::term::{EngineSetup, Term};
use super::{Counts, Deps, Options, Registration};
use crate::workqueue::RateLimiterConfig;

/// Name of the second queue; the peer's is `job_orphan_pod`.
const ORPHANS: &str = "kubernetes-job-orphan-pod";

/// The Job controller.
pub(super) struct JobController {
    name: &'static str,
    feed: Feed,
}

impl JobController {
    /// Builds the controller. Nothing runs yet.
    pub(super) fn initialize(registration: &Registration, deps: &Deps, options: &Options) -> Self {
        let name = registration.name;
        let engine = EngineSetup::new(registration, deps, options)
            .limited_by(RateLimiterConfig::Job)
            .stepping(options.concurrent_job_syncs);
        let parts = Parts {
            mandate: options.mandate.clone(),
            jobs: Default::default(),
            pods: Default::default(),
            calls: Calls::new(deps.api.clone()),
            voice: Voice::new(name, deps),
            clock: deps.clock.clone(),
            engine,
        };
        let of_orphans = Parts { engine: parts.engine.clone().named(ORPHANS), ..parts.clone() };
        let Parts { mandate, jobs, pods, voice, .. } = parts.clone();
        let (term, orphans) = (Term::new(JobBlueprint(parts)), Term::new(OrphanBlueprint(of_orphans)));
        Self { name, feed: Feed { mandate, term, orphans, voice, jobs, pods } }
    }

    /// Never returns.
    async fn begin_when_synced(&self) {
        let Feed { jobs, pods, term, orphans, .. } = &self.feed;
        jobs.synced().await;
        pods.synced().await;
        tracing::info!(controller = self.name, jobs = jobs.len(), pods = pods.len(), "caches have synced; work begins");
        let took_over = orphans.is_standing_by();
        term.begin();
        orphans.begin();
        if took_over {
            self.feed.suspect_all();
        }
        std::future::pending::<()>().await;
    }
}

impl Controller for JobController {
    fn name(&self) -> &'static str {
        self.name
    }

    fn watch(&self, deps: &Deps, tasks: &TaskTracker, stop: &CancellationToken) -> Readiness {
        let jobs = self.feed.job_reflector(self.name, deps);
        let pods = self.feed.pod_reflector(deps);
        let readiness = Readiness::new(&deps.clock).and("Jobs", &jobs).and("Pods", &pods);
        tasks.spawn(jobs.run(stop.clone()));
        tasks.spawn(pods.run(stop.clone()));
        readiness
    }

    fn stand_by(&self) {
        self.feed.term.supervisor().stand_by();
        self.feed.orphans.supervisor().stand_by();
    }

    fn end_term(&self) {
        self.feed.term.replace();
        self.feed.orphans.replace();
    }

    fn work(&self, stop: CancellationToken, budget: Duration, cut: CancellationToken) -> BoxFuture<'_, ()> {
        let (jobs, orphans) = (self.feed.term.supervisor(), self.feed.orphans.supervisor());
        async move {
            let stopped = async {
                let all = tokio::join!(
                    jobs.run_until_cut(stop.clone(), budget, cut.clone()),
                    orphans.run_until_cut(stop, budget, cut)
                );
                tracing::info!(controller = self.name, cut_off = all.0 + all.1, "stopped");
            };
            tokio::select! {
                biased;
                () = stopped => {}
                () = self.begin_when_synced() => {}
            }
        }
        .boxed()
    }

    fn counts(&self) -> Counts {
        let orphans = self.feed.orphans.supervisor().debug_counts();
        Counts {
            engine: self.feed.term.supervisor().debug_counts() + orphans,
            cronjobs: 0,
            jobs: self.feed.jobs.len(),
            pods: self.feed.pods.len(),
            owners: self.feed.pods.owners(),
        }
    }
}
