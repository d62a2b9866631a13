//! How long this process may still write: the gate that a leader's requests pass.
//!
//! Invariants
//! - It is computed here: from the moment before a renewal was sent that the server has confirmed. No clock of anybody else's counts.
//! - Time that passed on the wall clock alone counts as passed: on a machine that was suspended the monotonic clock stood still,
//!   others' did not. A wall clock that was set forward costs a moment of writing, until the next renewal.
//! - Once passed or revoked it stays so until it is extended by another confirmed renewal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::Instant;

use crate::clock::Clock;

/// Until when this process may write. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct Validity {
    clock: Clock,
    /// Written by the elector, read before each write; `None` while we do not lead.
    grant: Arc<Mutex<Option<Grant>>>,
}

/// Where both clocks stood at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) mono: Instant,
    drift: TimeDelta,
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    since: Moment,
    lasts: Duration,
}

impl Validity {
    /// One that has not begun.
    pub fn new(clock: Clock) -> Self {
        Self { clock, grant: Arc::default() }
    }

    /// How much is left of it; `None` when nothing may be written.
    pub fn remaining(&self) -> Option<Duration> {
        let Grant { since, lasts } = (*self.grant.lock().unwrap_or_else(PoisonError::into_inner))?;
        let passed = self.clock.mono().saturating_duration_since(since.mono);
        let passed = passed.saturating_add(self.unseen_since(since));
        lasts.checked_sub(passed).filter(|left| !left.is_zero())
    }

    /// Now, to be taken before a renewal is sent.
    pub(crate) fn moment(&self) -> Moment {
        Moment { mono: self.clock.mono(), drift: self.clock.drift() }
    }

    /// How much time passed since `since` that only the wall clock saw.
    pub(crate) fn unseen_since(&self, since: Moment) -> Duration {
        (self.clock.drift() - since.drift).to_std().unwrap_or_default()
    }

    /// From now on it lasts until `lasts` after `since`.
    pub(crate) fn extend(&self, since: Moment, lasts: Duration) {
        self.set(Some(Grant { since, lasts }));
    }

    /// Ends it now.
    pub(crate) fn revoke(&self) {
        self.set(None);
    }

    fn set(&self, grant: Option<Grant>) {
        *self.grant.lock().unwrap_or_else(PoisonError::into_inner) = grant;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeZone;

    const LASTS: Duration = Duration::from_secs(10);

    fn validity() -> (Clock, Validity) {
        let clock = Clock::starting_at(chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap());
        let validity = Validity::new(clock.clone());
        validity.extend(validity.moment(), LASTS);
        (clock, validity)
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_by_itself_and_when_revoked() {
        let (_clock, validity) = validity();
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(validity.remaining(), Some(Duration::from_secs(6)));
        validity.revoke();
        assert_eq!(validity.remaining(), None);
        validity.extend(validity.moment(), LASTS);
        tokio::time::advance(LASTS).await;
        assert_eq!(validity.remaining(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn time_slept_through_counts_as_passed() {
        let (clock, validity) = validity();
        // The wall clock went on by 4 s while the monotonic one stood still.
        clock.step(TimeDelta::seconds(4));
        assert_eq!(validity.remaining(), Some(Duration::from_secs(6)));
        clock.step(TimeDelta::seconds(3600));
        assert_eq!(validity.remaining(), None);
        validity.extend(validity.moment(), LASTS);
        assert_eq!(validity.remaining(), Some(LASTS));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_set_back_gives_no_time() {
        let (clock, validity) = validity();
        clock.step(TimeDelta::hours(-1));
        assert_eq!(validity.remaining(), Some(LASTS));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_between_sending_and_answer_is_lost() {
        let (_clock, validity) = validity();
        let sent = validity.moment();
        tokio::time::advance(Duration::from_secs(3)).await;
        validity.extend(sent, LASTS);
        assert_eq!(validity.remaining(), Some(Duration::from_secs(7)));
    }
}
