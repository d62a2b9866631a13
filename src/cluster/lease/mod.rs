//! The election of a leader on a Lease, with the peers' record, durations and rules for expiry.
//!
//! Invariants
//! - A Lease is written only with the version that was read: of several who claim it one succeeds, and who comes late erases nothing.
//! - Expiry is measured on our monotonic clock from the moment *we* first saw a record, for the duration that the record names.
//!   Nobody's time stamps are compared with anybody's clock.
//! - We believe to lead no longer than [`Validity`] says, which ends a margin before others may take over.
//! - When we stop leading, writing has ended before the Lease is given away, and it is given away only while it shows our identity.
//!
//! What differs from client-go's election, and why: `docs/adr/0029-own-election.md`.

mod elector;
mod observed;
mod record;
mod report;
mod requests;
mod standby;
#[cfg(test)]
mod tests;

use std::time::Duration;

use kube::Client;
use thiserror::Error;

pub use self::elector::{Elector, Lost};
pub use self::report::{LeaderMetrics, Leadership};
use super::events::EventRecorder;
use super::metrics::RequestMetrics;
use super::validity::Validity;
use crate::clock::Clock;

/// What an election is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are; different for every process that ever runs.
    pub identity: String,
    /// Its durations.
    pub timing: Timing,
}

/// The durations of an election; the default is the peers'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Others wait for this long after the last renewal that they saw before they take over.
    pub lease_duration: Duration,
    /// A leader that cannot renew gives up after this long.
    pub renew_deadline: Duration,
    /// Between two renewals, and between two tries.
    pub retry_period: Duration,
}

/// Why durations, or an identity, cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ElectionError {
    /// The record holds whole seconds, in 32 bits with a sign.
    #[error("the lease duration must be a whole number of seconds, at least 1 and at most 2147483647")]
    LeaseDuration,
    /// A leader must give up before others take over.
    #[error("the lease duration must be greater than the renew deadline")]
    RenewDeadline,
    /// There must be time for a second try.
    #[error("the renew deadline must be greater than the retry period times 1.2")]
    RetryPeriod,
    /// It would never stop trying.
    #[error("the retry period must be greater than 0")]
    NoRetryPeriod,
    /// The peers' rule.
    #[error("the identity must not be empty")]
    Identity,
    /// It would be another path on the server.
    #[error("name and namespace of the Lease must consist of lower case letters, digits, '-' and '.'")]
    Name,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// The peers' factor: waits of the acquisition are lengthened by up to this much of a retry period.
const JITTER: f64 = 1.2;

impl Timing {
    /// Checks the durations against each other.
    ///
    /// # Errors
    /// The first rule that they break.
    pub fn check(&self) -> Result<(), ElectionError> {
        let Self { lease_duration, renew_deadline, retry_period } = *self;
        let in_record =
            i32::try_from(lease_duration.as_secs()).is_ok_and(|s| s > 0) && lease_duration.subsec_nanos() == 0;
        if !in_record {
            Err(ElectionError::LeaseDuration)
        } else if lease_duration <= renew_deadline {
            Err(ElectionError::RenewDeadline)
        } else if retry_period.is_zero() {
            Err(ElectionError::NoRetryPeriod)
        } else if renew_deadline <= retry_period.mul_f64(JITTER) {
            Err(ElectionError::RetryPeriod)
        } else {
            Ok(())
        }
    }

    /// How long a leader may write after the sending of its last renewal: the lease duration less a tenth, for clocks that run at
    /// different rates and for requests that are on their way when it ends.
    pub fn validity(&self) -> Duration {
        self.lease_duration * 9 / 10
    }

    /// How long a leader goes on trying after the sending of its last renewal. The peers try for the renew deadline, from one
    /// retry period after it on; here it is never longer than the validity.
    pub fn patience(&self) -> Duration {
        self.retry_period.saturating_add(self.renew_deadline).min(self.validity())
    }

    /// How long one request may take.
    pub fn request_deadline(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }
}

impl Election {
    /// Checks what can be known to be wrong.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self) -> Result<(), ElectionError> {
        let sound = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'.';
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(sound);
        if self.identity.is_empty() {
            Err(ElectionError::Identity)
        } else if !is_name(&self.namespace) || !is_name(&self.name) {
            Err(ElectionError::Name)
        } else {
            self.timing.check()
        }
    }
}

/// What an elector needs.
pub struct ElectorSetup {
    /// A client that nothing else uses.
    pub client: Client,
    /// Host and port of the server, for the metrics' label.
    pub host: String,
    /// Both clocks.
    pub clock: Clock,
    /// Seed of the jitter.
    pub seed: u64,
    /// What it is about.
    pub election: Election,
    /// What the leader's writes ask.
    pub validity: Validity,
    /// Says who leads, as events about the Lease.
    pub recorder: EventRecorder,
    /// Where requests are counted.
    pub requests: RequestMetrics,
    /// Where leading is shown.
    pub metrics: LeaderMetrics,
}
