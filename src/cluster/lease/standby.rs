//! Standing by: when to try next. A watch of the Lease says it; where there is none, every retry period.
//!
//! Invariants
//! - An expired Lease is tried at its expiry plus up to half a second, so that not all who wait come at once; a free one at once.
//! - Nothing is tried more than twice in a row without a wait.
//! - A watch that was silent while its holder renewed the Lease is given up for another; that somebody else was quicker at an
//!   expiry says nothing about the watch. One that is refused or ends at once is tried again
//!   after a lease duration; meanwhile the Lease is read every retry period, with jitter.

use std::cmp::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::elector::{Attempt, Elector};
use super::record::Lease;
use super::requests::LeaseWatch;
use crate::model::newer_version;

/// All who stand by try within this time after the expiry.
const SPREAD: Duration = Duration::from_millis(500);

/// A watch that ends sooner has failed.
const TOO_SHORT: Duration = Duration::from_secs(1);

/// Why it is worth a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chance {
    /// Nobody holds the Lease.
    Free,
    /// As far as we saw it was not renewed.
    Expired,
    /// No watch tells.
    Unknown,
}

/// What those who stand by know beside the record.
struct Lookout {
    watch: Option<LeaseWatch>,
    opened: Instant,
    /// Not before this another watch is opened.
    reopen_at: Instant,
    /// Whether the last try followed the one before without a wait.
    rushed: bool,
}

impl Elector {
    /// Returns once the Lease is ours.
    pub async fn acquire(&mut self) {
        let now = self.api.clock.mono();
        let mut lookout = Lookout { watch: None, opened: now, reopen_at: now, rushed: false };
        let mut chance = Chance::Unknown;
        loop {
            let holder_before = self.holder_seen();
            match self.attempt().await {
                Attempt::Won => return,
                Attempt::Failed(failure) => {
                    tracing::warn!(error = %failure, "cannot stand for election");
                    let again_at = self.api.clock.mono() + self.pause();
                    sleep_until(again_at).await;
                }
                Attempt::Held { changed } => {
                    if changed && chance == Chance::Expired && holder_before == self.holder_seen() {
                        lookout.give_up(self.api.clock.mono());
                    }
                    chance = self.stand_by(&mut lookout).await;
                }
            }
        }
    }

    /// Waits for the next chance.
    async fn stand_by(&mut self, lookout: &mut Lookout) -> Chance {
        if let Some(chance) = self.chance_at_once() {
            // Another was quicker, most likely, and the next read shows it. If that happens again, something else is wrong.
            if lookout.rushed {
                let again_at = self.api.clock.mono() + self.pause();
                sleep_until(again_at).await;
            }
            lookout.rushed = !lookout.rushed;
            return chance;
        }
        lookout.rushed = false;
        if lookout.watch.is_none() && lookout.reopen_at <= self.api.clock.mono() {
            self.open(lookout).await;
        }
        let poll_at = self.api.clock.mono() + self.pause();
        let spread = self.part_of(SPREAD);
        loop {
            let held = self.observed.as_ref().filter(|observed| observed.is_held());
            let Some(try_at) = held.map(|held| held.expires_at() + spread) else { return Chance::Free };
            let Some(watch) = &mut lookout.watch else {
                sleep_until(try_at.min(poll_at)).await;
                return Chance::Unknown;
            };
            let seen = tokio::select! {
                biased;
                seen = watch.next() => seen,
                () = sleep_until(try_at) => return Chance::Expired,
            };
            match seen {
                Ok(Some(lease)) if self.is_old(&lease) => {}
                Ok(Some(lease)) => {
                    self.observe(lease);
                }
                Ok(None) => return Chance::Free,
                Err(why) => lookout.on_end(&why, self.api.clock.mono()),
            }
        }
    }

    /// What there is to try without waiting for anything.
    fn chance_at_once(&self) -> Option<Chance> {
        let Some(held) = self.observed.as_ref().filter(|observed| observed.is_held()) else {
            return Some(Chance::Free);
        };
        (held.expires_at() <= self.api.clock.mono()).then_some(Chance::Expired)
    }

    fn holder_seen(&self) -> Option<String> {
        self.observed.as_ref().map(|observed| observed.lease.holder().to_owned())
    }

    /// Whether a read has shown something newer already.
    fn is_old(&self, lease: &Lease) -> bool {
        let known = self.observed.as_ref().map(|observed| observed.lease.version());
        known.and_then(|known| newer_version(lease.version(), known)) == Some(Ordering::Less)
    }

    async fn open(&mut self, lookout: &mut Lookout) {
        let Some(version) = self.observed.as_ref().map(|observed| observed.lease.version().to_owned()) else { return };
        lookout.opened = self.api.clock.mono();
        lookout.reopen_at = lookout.opened + self.election.timing.lease_duration;
        match self.api.watch(&version, self.election.timing.request_deadline()).await {
            Ok(watch) => lookout.watch = Some(watch),
            Err(failure) => {
                tracing::info!(error = %failure, "the Lease cannot be watched; it is read every now and then")
            }
        }
    }
}

impl Lookout {
    /// The watch is over.
    fn on_end(&mut self, why: &str, now: Instant) {
        tracing::debug!(why, "the watch of the Lease ended");
        self.watch = None;
        if now.saturating_duration_since(self.opened) >= TOO_SHORT {
            self.reopen_at = now;
        }
    }

    /// The watch was silent, though there was something to show.
    fn give_up(&mut self, now: Instant) {
        if self.watch.take().is_some() {
            tracing::info!("the watch of the Lease fell silent; another is opened");
            self.reopen_at = now;
        }
    }
}
