//! What the supervisors of a CronJob controller are made of.

use super::actor::{CronJobs, News};
use super::calls::Calls;
use super::voice::Voice;
use crate::clock::Clock;
use crate::cluster::Store;
use crate::controllers::term::{self, EngineSetup};
use crate::controllers::{Deps, Options, Registration};
use crate::engine::{Supervisor, Wake};
use crate::model::{CronJob, Flavor, Job};
use crate::reconcile::Settings;

/// Everything that a supervisor of one controller is made of.
pub(super) struct Blueprint {
    pub(super) settings: Settings,
    pub(super) cronjobs: Store<CronJob>,
    pub(super) jobs: Store<Job>,
    pub(super) calls: Calls,
    pub(super) voice: Voice,
    pub(super) clock: Clock,
    pub(super) engine: EngineSetup,
}

impl Blueprint {
    pub(super) fn new(
        (registration, flavor): (&Registration, Flavor),
        deps: &Deps,
        options: &Options,
        (cronjobs, jobs): (Store<CronJob>, Store<Job>),
    ) -> Self {
        Self {
            settings: Settings { flavor, local_zone: options.local_zone },
            cronjobs,
            jobs,
            calls: Calls::new(deps.api.clone(), flavor, options.job_managed_by.clone()),
            voice: Voice::new(registration, flavor, deps),
            clock: deps.clock.clone(),
            engine: EngineSetup::new(registration, deps, options),
        }
    }
}

impl term::Blueprint for Blueprint {
    type Kind = CronJobs;

    fn supervisor(&self) -> Supervisor<CronJobs> {
        let (cronjobs, jobs) = (self.cronjobs.clone(), self.jobs.clone());
        let kind =
            CronJobs::new(self.settings, cronjobs, jobs, self.calls.clone(), self.voice.clone(), self.clock.clone());
        Supervisor::new(kind, self.engine.options())
    }

    /// Edits are facts about the objects and stay known.
    fn refill(&self, last: &Supervisor<CronJobs>, next: &Supervisor<CronJobs>) {
        self.voice.metrics().nobody_is_counted();
        for cronjob in self.cronjobs.list() {
            let edited = last.mail(&cronjob.key).flatten();
            next.send(cronjob.key.clone(), News { edited, wake: Wake::Listed });
        }
    }

    fn on_take_over(&self, supervisor: &Supervisor<CronJobs>) {
        supervisor.kind().on_take_over();
    }
}
