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

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::caches::Feed;
pub(super) use self::calls::Calls;
use self::term::{Blueprint, Term};
use super::{Counts, Deps, Options, Registration};
use crate::clock::Clock;
use crate::cluster::{ReflectorHealth, Store};
use crate::model::{CronJob, Job};
use crate::telemetry::Scope;

/// One CronJob controller.
#[derive(Clone)]
pub(super) struct CronJobController {
    name: &'static str,
    feed: Feed,
}

impl CronJobController {
    /// Builds the controller. Nothing runs yet.
    pub(super) fn initialize(registration: &Registration, deps: &Deps, options: &Options) -> Self {
        let (cronjobs, jobs): (Store<CronJob>, Store<Job>) = Default::default();
        let blueprint = Blueprint::new(registration, deps, options, (cronjobs.clone(), jobs.clone()));
        let (settings, voice) = (blueprint.settings, blueprint.voice.clone());
        let term = Term::new(blueprint);
        Self { name: registration.name, feed: Feed { settings, term, voice, cronjobs, jobs } }
    }

    /// Fills the caches from now on, as a task of `tasks`, until `stop`; what is returned tells when they can be worked on.
    pub(super) fn watch(&self, deps: &Deps, tasks: &TaskTracker, stop: &CancellationToken) -> Readiness {
        let cronjobs = self.feed.cronjob_reflector(deps);
        let jobs = self.feed.job_reflector(deps);
        let readiness = Readiness {
            feed: self.feed.clone(),
            clock: deps.clock.clone(),
            cronjobs: cronjobs.health(),
            jobs: jobs.health(),
        };
        let asked = readiness.clone();
        deps.health.check(self.name, Scope::Ready, move || asked.check());
        tasks.spawn(cronjobs.run(stop.clone()));
        tasks.spawn(jobs.run(stop.clone()));
        readiness
    }

    /// Lets the actors of the first term stand by; to be called before [`CronJobController::watch`].
    pub(super) fn stand_by(&self) {
        self.feed.term.supervisor().stand_by();
    }

    /// Drops the term that has ended; its successor stands by.
    pub(super) fn end_term(&self) {
        self.feed.term.replace();
    }

    /// Steps the actors of the term once both caches have synced, until `stop`; then gives the steps in flight `budget`. `cut` ends
    /// everything at once.
    pub(super) async fn work(&self, stop: CancellationToken, budget: Duration, cut: CancellationToken) {
        let supervisor = self.feed.term.supervisor();
        tokio::select! {
            biased;
            cut_off = supervisor.run_until_cut(stop, budget, cut) => {
                tracing::info!(controller = self.name, cut_off, "stopped");
            }
            () = self.begin_when_synced() => {}
        }
    }

    /// What is held in memory.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            engine: self.feed.term.supervisor().debug_counts(),
            cronjobs: self.feed.cronjobs.len(),
            jobs: self.feed.jobs.len(),
            owners: self.feed.jobs.owners(),
        }
    }

    /// Never returns.
    async fn begin_when_synced(&self) {
        let Feed { cronjobs, jobs, term, .. } = &self.feed;
        cronjobs.synced().await;
        jobs.synced().await;
        let (cronjobs, jobs) = (cronjobs.len(), jobs.len());
        tracing::info!(controller = self.name, cronjobs, jobs, "caches have synced; work begins");
        let supervisor = term.supervisor();
        if supervisor.is_standing_by() {
            supervisor.kind().on_take_over();
            supervisor.take_over();
        } else {
            supervisor.open();
        }
        std::future::pending::<()>().await;
    }
}

/// Whether the caches of a controller can be worked on.
#[derive(Clone)]
pub(super) struct Readiness {
    feed: Feed,
    clock: Clock,
    cronjobs: ReflectorHealth,
    jobs: ReflectorHealth,
}

impl Readiness {
    /// Fails with what they still wait for.
    pub(super) fn check(&self) -> Result<(), String> {
        is_ready("CronJobs", self.feed.cronjobs.has_synced(), &self.cronjobs)?;
        is_ready("Jobs", self.feed.jobs.has_synced(), &self.jobs)
    }

    /// Fails when what fills one of the caches has come to a standstill.
    pub(super) fn check_that_they_move(&self) -> Result<(), String> {
        let now = self.clock.mono();
        moves("CronJobs", &self.cronjobs, now)?;
        moves("Jobs", &self.jobs, now)
    }
}

/// A watch that fails again and again still moves: a restart would not mend the server or the way to it (ADR 0056).
fn moves(what: &str, health: &ReflectorHealth, now: Instant) -> Result<(), String> {
    let late = now.saturating_duration_since(health.report().moves_by);
    if late.is_zero() { Ok(()) } else { Err(format!("the watch of {what} should have moved {} s ago", late.as_secs())) }
}

/// A cache is ready when it has synced, or when the server does not know the kind, which is no fault of ours; nor is it that
/// the server cannot be asked again for a while.
pub(super) fn is_ready(what: &str, synced: bool, health: &ReflectorHealth) -> Result<(), String> {
    let report = health.report();
    if synced || report.absent {
        return Ok(());
    }
    Err(format!("{what} have not synced: {}", report.trouble.as_deref().unwrap_or("the list is not complete")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Phase;

    #[tokio::test(start_paused = true)]
    async fn an_outage_unreadies_neither_a_synced_cache_nor_one_of_an_absent_kind() {
        let now = Clock::system().mono();
        let health = ReflectorHealth::new(now);
        health.on_trouble(Phase::Pausing, "Connection refused".into(), now, Duration::ZERO);
        let told = is_ready("CronJobs", false, &health);
        assert_eq!(told, Err("CronJobs have not synced: Connection refused".to_owned()));
        assert_eq!(is_ready("CronJobs", true, &health), Ok(()));
        health.on_trouble(Phase::Absent, "the server does not know this kind".into(), now, Duration::ZERO);
        assert_eq!(is_ready("CronJobs", false, &health), Ok(()));
        health.on_trouble(Phase::Pausing, "Connection refused".into(), now, Duration::ZERO);
        assert_eq!(is_ready("CronJobs", false, &health), Ok(()), "still absent, as far as anyone knows");
        health.on_progress(Phase::Listing, now);
        assert!(is_ready("CronJobs", false, &health).is_err(), "it has appeared and is not listed yet");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_only_fails_moves_and_one_that_does_nothing_at_all_does_not() {
        let clock = Clock::system();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let health = ReflectorHealth::new(clock.mono());
        for _attempt in 0..10 {
            health.on_trouble(Phase::Pausing, "no answer".into(), clock.mono(), minutes(5));
            tokio::time::advance(minutes(20)).await;
            assert_eq!(moves("Jobs", &health, clock.mono()), Ok(()));
        }
        tokio::time::advance(minutes(1)).await;
        let told = moves("Jobs", &health, clock.mono());
        assert_eq!(told, Err("the watch of Jobs should have moved 60 s ago".to_owned()));
        health.on_progress(Phase::Watching, clock.mono());
        assert_eq!(moves("Jobs", &health, clock.mono()), Ok(()));
    }
}
