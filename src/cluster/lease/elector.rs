//! One candidate: claims the Lease, renews it, gives it back.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::observed::Observed;
use super::record::Lease;
use super::report::{Leadership, OwnMetrics};
use super::requests::LeaseApi;
use super::{Election, ElectorSetup, JITTER, Timing};
use crate::cluster::events::EventRecorder;
use crate::cluster::validity::{Moment, Validity};
use crate::model::{ApiFailure, EventType, Happening};

/// `source.component` of the events about the Lease.
const COMPONENT: &str = "cronjob-controller";

/// A wall clock that is ahead of the monotonic one by more than this has jumped; less is the slow steering of NTP.
const JUMP: Duration = Duration::from_millis(100);

/// A candidate in an election: [`Elector::acquire`], then [`Elector::hold`] for as long as it lasts, then [`Elector::release`].
/// Each may be dropped at any await.
pub struct Elector {
    pub(super) api: LeaseApi,
    pub(super) election: Election,
    validity: Validity,
    recorder: EventRecorder,
    leadership: Leadership,
    metrics: OwnMetrics,
    rng: StdRng,
    pub(super) observed: Option<Observed>,
    /// Whether the Lease may carry our identity: a claim was sent, and nothing said that it failed or that another holds it.
    may_hold: bool,
    /// Before the last successful renewal was sent.
    renewed: Moment,
}

/// Why a leader leads no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Another holds the Lease.
    #[error("{0} holds the Lease")]
    To(String),
    /// It could not be renewed in time.
    #[error("the Lease was not renewed in time")]
    Unrenewed,
}

/// What came of one try.
#[derive(Debug)]
pub(super) enum Attempt {
    /// The Lease is ours, and was renewed just now.
    Won,
    /// Another holds it, or was quicker; whether a read showed another record than the one we knew.
    Held { changed: bool },
    /// Nobody knows.
    Failed(ApiFailure),
}

impl Elector {
    /// A candidate that has done nothing yet.
    pub fn new(setup: ElectorSetup) -> Self {
        let ElectorSetup { client, host, clock, seed, election, validity, recorder, requests, metrics } = setup;
        let renewed = validity.moment();
        let (namespace, name) = (election.namespace.clone(), election.name.clone());
        Self {
            metrics: metrics.of(&name),
            api: LeaseApi { client, clock, host, metrics: requests, namespace, name },
            leadership: Leadership::of(&election.identity),
            election,
            validity,
            recorder,
            rng: StdRng::seed_from_u64(seed),
            observed: None,
            may_hold: false,
            renewed,
        }
    }

    /// Who leads, as far as we know.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Says in the log who takes part in which election.
    pub fn announce(&self) {
        let Election { namespace, name, identity, timing } = &self.election;
        let Timing { lease_duration, renew_deadline, retry_period } = timing;
        tracing::info!(
            identity,
            namespace,
            lease = name,
            lease_duration_s = lease_duration.as_secs_f64(),
            renew_deadline_s = renew_deadline.as_secs_f64(),
            retry_period_s = retry_period.as_secs_f64(),
            "takes part in the election of a leader"
        );
    }

    /// One try to become the leader: reads, and claims what is free, ours or expired.
    pub(super) async fn attempt(&mut self) -> Attempt {
        let deadline = self.election.timing.request_deadline();
        let lease = match self.api.get(deadline).await {
            Ok(lease) => lease,
            Err(failure) if failure.is_not_found() => {
                self.observed = None;
                let lease = Lease::new(&self.api.namespace, &self.api.name);
                return self.claim(&lease, deadline, true).await;
            }
            Err(failure) => return Attempt::Failed(failure),
        };
        let changed = self.observe(lease);
        let now = self.api.clock.mono();
        match &self.observed {
            Some(observed) if observed.is_open_to(&self.election.identity, now) => {
                let lease = observed.lease.clone();
                self.claim(&lease, deadline, false).await
            }
            _ => Attempt::Held { changed },
        }
    }

    /// Writes our identity and the time of renewal into `lease`.
    async fn claim(&mut self, lease: &Lease, deadline: Duration, is_new: bool) -> Attempt {
        let Election { identity, timing, .. } = &self.election;
        let claimed = lease.claimed(identity, timing.lease_duration, self.api.clock.wall());
        let sent = self.validity.moment();
        self.may_hold = true;
        let answer =
            if is_new { self.api.create(&claimed, deadline).await } else { self.api.update(&claimed, deadline).await };
        match answer {
            Ok(stored) => {
                self.observe(stored);
                self.on_renewed(sent);
                Attempt::Won
            }
            Err(failure) if failure.is_conflict() || failure.is_already_exists() => Attempt::Held { changed: false },
            Err(failure) => Attempt::Failed(failure),
        }
    }

    fn on_renewed(&mut self, sent: Moment) {
        self.validity.extend(sent, self.election.timing.validity());
        self.renewed = sent;
        if self.leadership.on_renewed(sent.mono) {
            self.metrics.master.set(1);
            self.tell("became leader");
        }
    }

    /// Renews until that has become impossible. On return nothing may be written any more.
    pub async fn hold(&mut self) -> Lost {
        let lost = self.renew_on().await;
        self.end_leading();
        lost
    }

    async fn renew_on(&mut self) -> Lost {
        let timing = self.election.timing;
        loop {
            let give_up = self.renewed.mono + timing.patience();
            self.wait_for_renewal(give_up).await;
            loop {
                let left = give_up.saturating_duration_since(self.api.clock.mono());
                if left.is_zero() {
                    return Lost::Unrenewed;
                }
                match self.renew(timing.request_deadline().min(left)).await {
                    Attempt::Won => break,
                    Attempt::Held { .. } if self.is_held_by_another() => return Lost::To(self.leadership.holder()),
                    Attempt::Held { .. } => tracing::debug!("somebody edits the Lease"),
                    Attempt::Failed(failure) => tracing::warn!(error = %failure, "the Lease was not renewed"),
                }
                sleep_until(give_up.min(self.api.clock.mono() + timing.retry_period)).await;
            }
        }
    }

    /// Waits for the time of the next renewal, or until time was lost: then writing may have ended, and only a renewal tells
    /// whether we still lead.
    async fn wait_for_renewal(&self, give_up: Instant) {
        let clock = &self.api.clock;
        let jumped = Notify::new();
        let compare = || {
            if self.validity.unseen_since(self.renewed) > JUMP {
                jumped.notify_one();
            }
        };
        tokio::select! {
            biased;
            () = jumped.notified() => {}
            () = clock.watch_steps(compare) => {}
            () = sleep_until(give_up.min(clock.mono() + self.election.timing.retry_period)) => {}
        }
    }

    fn is_held_by_another(&self) -> bool {
        self.observed.as_ref().is_some_and(|seen| seen.is_held() && seen.lease.holder() != self.election.identity)
    }

    /// One renewal: a PUT on what we know; if the server knows better, a read first.
    async fn renew(&mut self, deadline: Duration) -> Attempt {
        let until = self.api.clock.mono() + deadline;
        if let Some(lease) = self.observed.as_ref().map(|observed| observed.lease.clone()) {
            match self.claim(&lease, deadline, false).await {
                Attempt::Won => return Attempt::Won,
                Attempt::Failed(failure) if !is_answer_about_the_lease(&failure) => return Attempt::Failed(failure),
                Attempt::Failed(_) | Attempt::Held { .. } => {}
            }
        }
        self.metrics.slow_path.inc();
        let left = until.saturating_duration_since(self.api.clock.mono());
        match timeout(left, self.reread_and_claim(left)).await {
            Ok(attempt) => attempt,
            Err(_late) => Attempt::Failed(crate::cluster::failure::too_late(deadline)),
        }
    }

    async fn reread_and_claim(&mut self, deadline: Duration) -> Attempt {
        let lease = match self.api.get(deadline).await {
            Ok(lease) => lease,
            Err(failure) if failure.is_not_found() => {
                let lease = Lease::new(&self.api.namespace, &self.api.name);
                return self.claim(&lease, deadline, true).await;
            }
            Err(failure) => return Attempt::Failed(failure),
        };
        let changed = self.observe(lease.clone());
        if lease.holder().is_empty() || lease.holder() == self.election.identity {
            return self.claim(&lease, deadline, false).await;
        }
        Attempt::Held { changed }
    }

    /// Gives the Lease back if it is ours, so that another may take it at once. Nothing may be written any more from here on.
    pub async fn release(&mut self) {
        self.end_leading();
        if !self.may_hold {
            return;
        }
        // The process is about to end, and what orders that has a limit of its own.
        let limit = self.election.timing.request_deadline();
        match timeout(limit, self.try_release()).await {
            Ok(Ok(())) => self.may_hold = false,
            Ok(Err(failure)) => tracing::warn!(error = %failure, "the Lease was not released; it will expire"),
            Err(_late) => tracing::warn!("the Lease was not released in time; it will expire"),
        }
    }

    async fn try_release(&mut self) -> Result<(), ApiFailure> {
        let deadline = self.election.timing.request_deadline();
        // Read anew: what we knew may be a successor's by now. Should it become so in between, the version saves it.
        let lease = match self.api.get(deadline).await {
            Err(failure) if failure.is_not_found() => return Ok(()),
            lease => lease?,
        };
        if lease.holder() != self.election.identity {
            return Ok(());
        }
        match self.api.update(&lease.released(self.api.clock.wall()), deadline).await {
            Err(failure) if failure.is_conflict() => Ok(()),
            answer => answer.map(drop),
        }
    }

    fn end_leading(&mut self) {
        self.validity.revoke();
        if self.leadership.on_ended() {
            self.metrics.master.set(0);
            self.tell("stopped leading");
        }
    }

    /// Takes in what the server shows; whether the record changed.
    pub(super) fn observe(&mut self, lease: Lease) -> bool {
        if self.leadership.on_holder(lease.holder()) {
            tracing::info!(holder = lease.holder(), lease = %self.api.name, "the holder of the Lease changed");
        }
        self.may_hold &= lease.holder() == self.election.identity;
        Observed::take_in(&mut self.observed, lease, self.api.clock.mono())
    }

    fn tell(&self, what: &str) {
        let identity = &self.election.identity;
        tracing::info!(identity, "{what}");
        let Some(observed) = &self.observed else { return };
        let happening = Happening {
            event_type: EventType::Normal,
            reason: "LeaderElection",
            message: format!("{identity} {what}"),
            due_minutes: None,
        };
        self.recorder.record(COMPONENT, observed.lease.reference(), happening);
    }

    /// A wait between two tries: the retry period and up to 1.2 times as long again.
    pub(super) fn pause(&mut self) -> Duration {
        let retry = self.election.timing.retry_period;
        retry + retry.mul_f64(JITTER * self.rng.random::<f64>())
    }

    /// A random part of `longest`.
    pub(super) fn part_of(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(self.rng.random::<f64>())
    }
}

/// Whether a refused renewal says something about the Lease: that it was changed, or is gone. Anything else (no answer, an
/// overloaded server) leaves open what is stored, and the same write is tried again.
fn is_answer_about_the_lease(failure: &ApiFailure) -> bool {
    (400..500).contains(&failure.code) && failure.code != 429
}
