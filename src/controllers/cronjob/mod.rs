//! The CronJob controller of one API: two reflectors feed a supervisor, whose actors step through `reconcile`.
//!
//! Invariants
//! - The reflectors live as long as the process, a supervisor as long as a term of leadership.
//! - No step runs before both caches have synced; a kind that the server does not know is waited for, and found when it appears.
//! - What a watch event means is decided in `reconcile::watch`, what a step does in `reconcile::step`; here is only the wiring.
//! - Everything said about a CronJob goes through [`voice::Voice`], everything sent through [`calls::Calls`].

mod actor;
mod caches;
mod calls;
mod checks;
mod term;
mod voice;

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::caches::Feed;
pub(super) use self::calls::Calls;
use self::term::Blueprint;
use super::controller::Controller;
use super::readiness::Readiness;
use super::term::Term;
use super::{Counts, Deps, Options, Registration};
use crate::cluster::Store;
use crate::model::{CronJob, Flavor, Job};

/// One CronJob controller.
pub(super) struct CronJobController {
    name: &'static str,
    feed: Feed,
}

impl CronJobController {
    /// Builds the controller. Nothing runs yet.
    pub(super) fn initialize(registration: &Registration, flavor: Flavor, deps: &Deps, options: &Options) -> Self {
        let (cronjobs, jobs): (Store<CronJob>, Store<Job>) = Default::default();
        let blueprint = Blueprint::new((registration, flavor), deps, options, (cronjobs.clone(), jobs.clone()));
        let (settings, voice) = (blueprint.settings, blueprint.voice.clone());
        let term = Term::new(blueprint);
        Self { name: registration.name, feed: Feed { settings, term, voice, cronjobs, jobs } }
    }

    /// Never returns.
    async fn begin_when_synced(&self) {
        let Feed { cronjobs, jobs, term, .. } = &self.feed;
        cronjobs.synced().await;
        jobs.synced().await;
        let (cronjobs, jobs) = (cronjobs.len(), jobs.len());
        tracing::info!(controller = self.name, cronjobs, jobs, "caches have synced; work begins");
        term.begin();
        std::future::pending::<()>().await;
    }
}

impl Controller for CronJobController {
    fn name(&self) -> &'static str {
        self.name
    }

    fn watch(&self, deps: &Deps, tasks: &TaskTracker, stop: &CancellationToken) -> Readiness {
        let cronjobs = self.feed.cronjob_reflector(deps);
        let jobs = self.feed.job_reflector(deps);
        let readiness = Readiness::new(&deps.clock).and("CronJobs", &cronjobs).and("Jobs", &jobs);
        tasks.spawn(cronjobs.run(stop.clone()));
        tasks.spawn(jobs.run(stop.clone()));
        readiness
    }

    fn stand_by(&self) {
        self.feed.term.supervisor().stand_by();
    }

    fn end_term(&self) {
        self.feed.term.replace();
    }

    fn work(&self, stop: CancellationToken, budget: Duration, cut: CancellationToken) -> BoxFuture<'_, ()> {
        let supervisor = self.feed.term.supervisor();
        async move {
            tokio::select! {
                biased;
                cut_off = supervisor.run_until_cut(stop, budget, cut) => {
                    tracing::info!(controller = self.name, cut_off, "stopped");
                }
                () = self.begin_when_synced() => {}
            }
        }
        .boxed()
    }

    fn counts(&self) -> Counts {
        Counts {
            engine: self.feed.term.supervisor().debug_counts(),
            cronjobs: self.feed.cronjobs.len(),
            jobs: self.feed.jobs.len(),
            pods: 0,
            owners: self.feed.jobs.owners(),
        }
    }
}
