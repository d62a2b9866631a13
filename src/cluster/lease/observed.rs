//! What we last saw of the Lease, and since when it has looked like that.

use std::time::Duration;

use tokio::time::Instant;

use super::record::Lease;

/// A record and the moment at which we first saw it.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) lease: Lease,
    since: Instant,
}

impl Observed {
    /// Takes in what was seen at `now`: a record that has not changed keeps its moment. Whether it changed.
    pub(super) fn take_in(this: &mut Option<Self>, lease: Lease, now: Instant) -> bool {
        match this {
            Some(known) if !lease.differs_from(&known.lease) => {
                known.lease = lease;
                false
            }
            _ => {
                *this = Some(Self { lease, since: now });
                true
            }
        }
    }

    /// Whether somebody holds it.
    pub(super) fn is_held(&self) -> bool {
        !self.lease.holder().is_empty()
    }

    /// When it expires, unless it is renewed; a duration without end counts as a year.
    pub(super) fn expires_at(&self) -> Instant {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        self.since + self.lease.duration().min(YEAR)
    }

    /// Whether `identity` may claim it at `now`: it is free, or ours, or expired.
    pub(super) fn is_open_to(&self, identity: &str, now: Instant) -> bool {
        !self.is_held() || self.lease.holder() == identity || self.expires_at() <= now
    }
}
