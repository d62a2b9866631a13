//! The actor of one CronJob: its memory between steps, and the loop that drives a step.

use std::sync::{Arc, OnceLock};

use chrono::TimeDelta;

use super::calls::Calls;
use super::checks::breach_of;
use super::voice::{Voice, invalid_by};
use crate::clock::Clock;
use crate::cluster::Store;
use crate::controllers::requests::back_off;
use crate::engine::{Kind, Next, Retry, StepContext, Wake, stable_hash};
use crate::model::{ApiFailure, CronJob, Job, ObjectKey, Uid, WallTime};
use crate::reconcile::{self, Answer, Call, Memory, Outcome, Settings, Step, StepError, Timetable, WAKE_DELAY};
use crate::telemetry::{CROWD, CronMetrics, InvalidReason};

/// All CronJobs of one API, as the engine sees them.
pub(super) struct CronJobs {
    settings: Settings,
    cronjobs: Store<CronJob>,
    jobs: Store<Job>,
    calls: Calls,
    voice: Voice,
    clock: Clock,
    /// When these actors took over from another leader, if they did.
    taken_over: OnceLock<WallTime>,
}

/// News about a CronJob or one of its Jobs.
pub(super) struct News {
    /// Schedule or zone changed, seen at this instant.
    pub(super) edited: Option<WallTime>,
    /// When a step is wanted for it.
    pub(super) wake: Wake,
}

/// What an actor knows by itself.
#[derive(Default)]
pub(super) struct Actor {
    memory: Memory,
    /// The CronJob of which is known how a leader before us left it; see [`CronJobs::catch_up`].
    caught_up: Option<Uid>,
    /// The version that the cache showed when the server refused a status as based on an old one; see [`CronJobs::see_newer`].
    outdated: Option<Box<str>>,
    /// Under which reason this CronJob is counted as one that cannot run.
    invalid: Option<InvalidReason>,
    /// Whether this CronJob is counted as one with very many active Jobs.
    crowded: bool,
}

impl Actor {
    /// Counts the CronJob anew: why it cannot run, if so, and whether it has very many active Jobs.
    fn recount(&mut self, metrics: &CronMetrics, invalid: Option<InvalidReason>, crowded: bool) {
        metrics.validity_changed(std::mem::replace(&mut self.invalid, invalid), invalid);
        metrics.crowding_changed(std::mem::replace(&mut self.crowded, crowded), crowded);
    }
}

impl CronJobs {
    pub(super) fn new(
        settings: Settings,
        cronjobs: Store<CronJob>,
        jobs: Store<Job>,
        calls: Calls,
        voice: Voice,
        clock: Clock,
    ) -> Self {
        Self { settings, cronjobs, jobs, calls, voice, clock, taken_over: OnceLock::new() }
    }

    /// From now on these actors work where another leader has worked until now.
    pub(super) fn on_take_over(&self) {
        // Only the first call counts: a term begins once.
        let _known = self.taken_over.set(self.clock.wall());
    }

    /// Finds out how the leader before us left `cached`. It may have started the run that is pending, and even have cleaned its Job
    /// away, without our caches showing it yet. The record is on the server (a run is recorded before its Job may be deleted), so a
    /// read settles it, remembered until the cache is as new. Needed once for each CronJob, as soon as the cache shows something due
    /// before we took over: an old cache may still show it suspended, or its predecessor of the same name.
    ///
    /// # Errors
    /// The server did not say.
    async fn catch_up(
        &self,
        cached: &Arc<CronJob>,
        actor: &mut Actor,
        edited: &Option<WallTime>,
    ) -> Result<(), ApiFailure> {
        let is_unknown = actor.caught_up.as_ref() != Some(&cached.uid);
        let Some(taken_over) = self.taken_over.get().filter(|_| is_unknown) else { return Ok(()) };
        let pending = self.first_due(cached, edited, *taken_over).filter(|due| due <= taken_over);
        if pending.is_some() && self.read(cached, &mut actor.memory, pending).await? {
            actor.caught_up = Some(cached.uid.clone());
        }
        Ok(())
    }

    /// After a status was refused as based on an old version, reads `cached` once, unless the cache has become newer meanwhile: to
    /// decide on the same copy again would cost all its requests again, and be refused again.
    ///
    /// # Errors
    /// The server did not say.
    async fn see_newer(&self, cached: &Arc<CronJob>, actor: &mut Actor) -> Result<(), ApiFailure> {
        if actor.outdated.as_ref() == Some(&cached.resource_version) {
            self.read(cached, &mut actor.memory, None).await?;
        }
        actor.outdated = None;
        Ok(())
    }

    /// Reads the CronJob that `cached` shows, in the lane of its `pending` run, and remembers what the server shows until the cache is
    /// as new. Whether it is still there.
    ///
    /// # Errors
    /// The server did not say.
    async fn read(
        &self,
        cached: &Arc<CronJob>,
        memory: &mut Memory,
        pending: Option<WallTime>,
    ) -> Result<bool, ApiFailure> {
        let call = Call::GetCronJob { key: cached.key.clone() };
        let Answer::CronJob(live) = self.calls.perform(&cached.key.namespace, pending, &call).await else {
            return Ok(false);
        };
        match live {
            Ok(live) if live.uid == cached.uid => {
                memory.on_read(cached, live);
                return Ok(true);
            }
            // The cache will show its end, or its successor of the same name.
            Ok(_) => memory.on_gone(cached, self.clock.wall()),
            Err(failure) if failure.is_not_found() => memory.on_gone(cached, self.clock.wall()),
            Err(failure) => return Err(failure),
        }
        Ok(false)
    }

    /// When `cronjob` is due, or has been due since, going by its own status.
    fn first_due(&self, cronjob: &CronJob, edited: &Option<WallTime>, now: WallTime) -> Option<WallTime> {
        if cronjob.spec.suspend || cronjob.deleting {
            return None;
        }
        let floor = edited.filter(|edited| *edited <= now);
        let last = cronjob.status.last_schedule_time;
        Timetable::new(cronjob, last, self.settings.local_zone, floor, now).ok()?.first_due()
    }

    /// Drives one step of `cronjob` to its end, saying what there is to say as it comes. Also why the CronJob cannot run, if so.
    async fn drive(
        &self,
        cronjob: &Arc<CronJob>,
        memory: &mut Memory,
        context: &StepContext,
    ) -> (Outcome, Option<InvalidReason>) {
        let (now, started) = (context.now, memory.started());
        let mut step = Step::begin(self.settings, cronjob.clone(), &self.jobs, memory, now);
        let (mut answer, mut invalid) = (None, None);
        loop {
            let next = step.advance(answer.take());
            let happenings = match &next {
                reconcile::Next::Call(_) => step.take_happenings(),
                reconcile::Next::Done(outcome) => outcome.happenings.clone(),
            };
            invalid = happenings.iter().find_map(invalid_by).or(invalid);
            self.voice.say_all(cronjob, &happenings);
            match next {
                reconcile::Next::Call(call) => {
                    if let Some(breach) = breach_of(&call, step.base(), |key| self.jobs.get(key), now, started) {
                        self.voice.report_breach(cronjob, breach, &call);
                    }
                    let pending = step.pending_run();
                    if pending.is_none() {
                        context.give_way();
                    }
                    let reply = self.calls.perform(&cronjob.key.namespace, pending, &call).await;
                    self.note_start(&call, &reply);
                    answer = Some(reply);
                }
                reconcile::Next::Done(outcome) => return (*outcome, invalid),
            }
        }
    }

    /// Records how long after its due instant a Job was there.
    fn note_start(&self, call: &Call, reply: &Answer) {
        if let (Call::CreateJob { at, .. }, Answer::Job(Ok(_))) = (call, reply) {
            let lag = self.clock.wall().signed_duration_since(*at);
            self.voice.metrics().lag(lag.max(TimeDelta::zero()).to_std().unwrap_or_default());
        }
    }
}

impl Kind for CronJobs {
    type Key = ObjectKey;
    type Message = News;
    /// When schedule or zone were last seen to change.
    type Mailbox = Option<WallTime>;
    type Mail = Option<WallTime>;
    type State = Actor;

    fn tenant(key: &ObjectKey) -> u64 {
        stable_hash(&*key.namespace)
    }

    fn fold(&self, _key: &ObjectKey, edited: &mut Option<WallTime>, news: News, _now: WallTime) -> Wake {
        *edited = (*edited).max(news.edited);
        news.wake
    }

    fn collect(&self, _key: &ObjectKey, edited: &Option<WallTime>) -> Option<WallTime> {
        *edited
    }

    fn due(&self, key: &ObjectKey, edited: &Option<WallTime>, now: WallTime) -> Option<WallTime> {
        self.first_due(&*self.cronjobs.get(key)?, edited, now)?.checked_add_signed(WAKE_DELAY)
    }

    fn open(&self, _key: &ObjectKey) -> Actor {
        Actor::default()
    }

    async fn step(&self, key: &ObjectKey, actor: &mut Actor, edited: Option<WallTime>, context: &StepContext) -> Next {
        let Some(cronjob) = self.cronjobs.get(key) else {
            actor.recount(self.voice.metrics(), None, false);
            return Next::gone();
        };
        if let Some(edited) = edited {
            actor.memory.raise_floor(edited);
        }
        if let Err(failure) = self.catch_up(&cronjob, actor, &edited).await {
            tracing::warn!(cronjob = %key, error = %failure, "cannot see what the leader before did; trying again");
            return Next::failed(back_off(failure.retry_after), None);
        }
        if let Err(failure) = self.see_newer(&cronjob, actor).await {
            tracing::debug!(cronjob = %key, error = %failure, "cannot see what changed; trying again");
            return Next::failed(back_off(failure.retry_after), None);
        }
        let (outcome, invalid) = self.drive(&cronjob, &mut actor.memory, context).await;
        actor.recount(self.voice.metrics(), invalid, cronjob.status.active.len() > CROWD);
        self.voice.report(&cronjob, &outcome);
        let conflict = outcome.error.as_ref().is_some_and(|error| error.retry == reconcile::Retry::Conflict);
        actor.outdated = conflict.then(|| cronjob.resource_version.clone());
        next_of(&outcome)
    }
}

/// What the engine is told: the wake-up for the next due instant always, and how to go on after an error.
fn next_of(outcome: &Outcome) -> Next {
    let due = outcome.next_due.and_then(|due| due.checked_add_signed(WAKE_DELAY));
    let Some(error) = &outcome.error else {
        // Rule `history-retried`.
        let again = |left: &StepError| Next::failed(back_off(left.retry_after), due);
        return outcome.left_over.as_ref().map_or(Next::done(due), again);
    };
    match error.retry {
        // Only an edit helps, and an edit wakes by itself.
        reconcile::Retry::NextEdit => Next::done(due),
        reconcile::Retry::NextDue => Next::failed(Retry::AtNextDue, due),
        reconcile::Retry::Conflict => Next::failed(Retry::Conflict, due),
        reconcile::Retry::BackOff => Next::failed(back_off(error.retry_after), due),
    }
}
