//! The controller that deletes `batch/v1` Jobs `ttlSecondsAfterFinished` after their end, whoever manages them.
//!
//! Invariants
//! - A Job is deleted only after the server itself showed that its time is over, and only if it still has the same uid.
//! - Only Jobs that have ended and name a time have an actor.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::controller::Controller;
use super::job::Calls;
use super::readiness::Readiness;
use super::reflectors::Source;
use super::requests::back_off;
use super::term::{Blueprint, EngineSetup, Term};
use super::{Counts, Deps, Options, Registration};
use crate::api::expired_delete_body;
use crate::clock::Clock;
use crate::cluster::{Change, Lane, Store};
use crate::engine::{Kind, Next, Retry, StepContext, Supervisor, Wake, stable_hash};
use crate::jobs::{Expiry, expiry};
use crate::model::{ApiFailure, BatchJob, ObjectKey, WallTime};
use crate::telemetry::JobMetrics;

/// All Jobs that have ended and will be deleted, as the engine sees them.
pub(super) struct ExpiredJobs {
    jobs: Store<BatchJob>,
    calls: Calls,
    clock: Clock,
    metrics: JobMetrics,
}

impl ExpiredJobs {
    /// Deletes the Job if the server, too, says that its time is over. When to look again; `None`: never.
    ///
    /// # Errors
    /// The server did not say, or refused.
    async fn delete(&self, cached: &BatchJob) -> Result<Option<WallTime>, ApiFailure> {
        let live = match self.calls.read(Lane::Delete, &cached.key).await {
            Err(failure) if failure.is_not_found() => return Ok(None),
            live => live?,
        };
        if live.uid != cached.uid {
            return Ok(None);
        }
        match due(&live, self.clock.wall()) {
            Some(at) if at <= self.clock.wall() => {
                let gone = self.calls.delete_job(&cached.key, expired_delete_body(live.uid.as_str())).await;
                // Gone, or another of its name: either way not to be deleted any more.
                gone.or_else(|failure| if failure.is_not_found() { Ok(()) } else { Err(failure) })?;
                let late = self.clock.wall().signed_duration_since(at);
                self.metrics.expired(late.to_std().unwrap_or_default());
                Ok(None)
            }
            later => Ok(later),
        }
    }
}

/// When the Job may be deleted; `None`: never. A Job that ended nobody knows when may not be, until it says when.
fn due(job: &BatchJob, now: WallTime) -> Option<WallTime> {
    match expiry(job, now) {
        Ok(Expiry::At(at) | Expiry::Since(at)) => Some(at),
        Ok(Expiry::Never) => None,
        Err(error) => {
            tracing::warn!(job = %job.key, %error, "not deleted after its end");
            None
        }
    }
}

impl Kind for ExpiredJobs {
    type Key = ObjectKey;
    /// When a step is wanted.
    type Message = Wake;
    type Mailbox = ();
    type Mail = ();
    type State = ();

    fn tenant(key: &ObjectKey) -> u64 {
        stable_hash(&*key.namespace)
    }

    fn fold(&self, _key: &ObjectKey, _mailbox: &mut (), wake: Wake, _now: WallTime) -> Wake {
        wake
    }

    fn collect(&self, _key: &ObjectKey, _mailbox: &()) {}

    fn due(&self, key: &ObjectKey, _mail: &(), now: WallTime) -> Option<WallTime> {
        due(&*self.jobs.get(key)?, now)
    }

    fn open(&self, _key: &ObjectKey) {}

    async fn step(&self, key: &ObjectKey, _state: &mut (), _mail: (), context: &StepContext) -> Next {
        let Some(job) = self.jobs.get(key) else { return Next::gone() };
        match due(&job, context.now) {
            Some(at) if at <= context.now => match self.delete(&job).await {
                Ok(later) => Next::done(later),
                Err(failure) => {
                    tracing::warn!(job = %key, error = %failure, "cannot be deleted after its end; trying again");
                    let retry = if failure.is_conflict() { Retry::Conflict } else { back_off(failure.retry_after) };
                    Next::failed(retry, None)
                }
            },
            later => Next::done(later),
        }
    }
}

/// What its supervisors are made of.
struct ExpiryBlueprint {
    jobs: Store<BatchJob>,
    calls: Calls,
    clock: Clock,
    metrics: JobMetrics,
    engine: EngineSetup,
}

impl Blueprint for ExpiryBlueprint {
    type Kind = ExpiredJobs;

    fn supervisor(&self) -> Supervisor<ExpiredJobs> {
        let Self { jobs, calls, clock, metrics, engine } = self;
        let (jobs, calls) = (jobs.clone(), calls.clone());
        let kind = ExpiredJobs { jobs, calls, clock: clock.clone(), metrics: metrics.clone() };
        Supervisor::new(kind, engine.options())
    }

    fn refill(&self, _last: &Supervisor<ExpiredJobs>, next: &Supervisor<ExpiredJobs>) {
        for job in self.jobs.list().into_iter().filter(|job| will_go(job)) {
            next.send(job.key.clone(), Wake::Listed);
        }
    }
}

fn will_go(job: &BatchJob) -> bool {
    job.spec.ttl_after_finished_s.is_some() && job.finished()
}

/// The controller.
pub(super) struct ExpiryController {
    name: &'static str,
    jobs: Store<BatchJob>,
    term: Arc<Term<ExpiryBlueprint>>,
}

impl ExpiryController {
    /// Builds the controller. Nothing runs yet.
    pub(super) fn initialize(registration: &Registration, deps: &Deps, options: &Options) -> Self {
        let jobs = Store::default();
        let engine = EngineSetup::new(registration, deps, options).stepping(options.concurrent_job_syncs);
        let term = Term::new(ExpiryBlueprint {
            jobs: jobs.clone(),
            calls: Calls::new(deps.api.clone()),
            clock: deps.clock.clone(),
            metrics: deps.metrics.jobs.clone(),
            engine,
        });
        Self { name: registration.name, jobs, term: Arc::new(term) }
    }

    /// Never returns.
    async fn begin_when_synced(&self) {
        self.jobs.synced().await;
        tracing::info!(controller = self.name, jobs = self.jobs.len(), "caches have synced; work begins");
        self.term.begin();
        std::future::pending::<()>().await;
    }
}

fn on_job(term: &Term<ExpiryBlueprint>, change: Change<BatchJob>) {
    match change {
        Change::Applied { new, initial, .. } if will_go(&new) => {
            term.send(new.key.clone(), if initial { Wake::Listed } else { Wake::Now });
        }
        Change::Deleted { last } if will_go(&last) => term.send_gone(last.key.clone(), Wake::Now),
        _ => {}
    }
}

impl Controller for ExpiryController {
    fn name(&self) -> &'static str {
        self.name
    }

    fn watch(&self, deps: &Deps, tasks: &TaskTracker, stop: &CancellationToken) -> Readiness {
        let term = self.term.clone();
        let sink = move |change| on_job(&term, change);
        let jobs = Source::of(deps).batch_jobs(self.name, |_| false, &self.jobs, sink);
        let readiness = Readiness::new(&deps.clock).and("Jobs", &jobs);
        tasks.spawn(jobs.run(stop.clone()));
        readiness
    }

    fn stand_by(&self) {
        self.term.supervisor().stand_by();
    }

    fn end_term(&self) {
        self.term.replace();
    }

    fn work(&self, stop: CancellationToken, budget: Duration, cut: CancellationToken) -> BoxFuture<'_, ()> {
        let supervisor = self.term.supervisor();
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
        let engine = self.term.supervisor().debug_counts();
        Counts { engine, jobs: self.jobs.len(), ..Counts::default() }
    }
}
