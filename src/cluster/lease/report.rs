//! What others may know of an election: operators by metrics and the health check, the process by [`Leadership`].

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::telemetry::{Health, Scope};

/// Beyond the lease duration, as in kube-controller-manager.
const TOLERANCE: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    name: String,
}

/// Metrics of elections, with the peers' names; the default is registered nowhere. Clones share their values.
#[derive(Clone, Debug, Default)]
pub struct LeaderMetrics {
    master: Family<Labels, Gauge>,
    slow_path: Family<Labels, Counter>,
}

impl LeaderMetrics {
    /// Metrics that `registry` shows.
    pub fn register(registry: &mut Registry) -> Self {
        let it = Self::default();
        registry.register(
            "leader_election_master_status",
            "Whether this process leads in the election on the Lease of this name (1) or not (0)",
            it.master.clone(),
        );
        registry.register(
            "leader_election_slowpath",
            "Renewals for which the Lease had to be read first, by its name",
            it.slow_path.clone(),
        );
        it
    }

    /// Those of the election on the Lease `name`, which exist from now on.
    pub(super) fn of(&self, name: &str) -> OwnMetrics {
        let labels = Labels { name: name.to_owned() };
        OwnMetrics {
            master: self.master.get_or_create_owned(&labels),
            slow_path: self.slow_path.get_or_create_owned(&labels),
        }
    }
}

/// The metrics of one election.
#[derive(Clone, Debug)]
pub(super) struct OwnMetrics {
    pub(super) master: Gauge,
    pub(super) slow_path: Counter,
}

/// Who leads, as far as this process knows. Cheap to clone; clones show the same. Its `Display` is for people.
#[derive(Clone, Debug)]
pub struct Leadership {
    identity: Arc<str>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Holder in the record seen last.
    holder: String,
    /// When we sent the last renewal that succeeded, while we believe to lead.
    renewed: Option<Instant>,
}

impl Leadership {
    /// Nothing is known yet to the candidate `identity`.
    pub(super) fn of(identity: &str) -> Self {
        Self { identity: identity.into(), state: Arc::default() }
    }

    /// Whether this process believes to lead.
    pub fn is_ours(&self) -> bool {
        self.lock().renewed.is_some()
    }

    /// Identity of the holder that was seen last; empty when there is none.
    pub fn holder(&self) -> String {
        self.lock().holder.clone()
    }

    /// Adds the check `leaderElection`: it fails when we believe to lead and have not renewed for the lease duration and 20 s.
    pub fn check(&self, health: &Health, clock: &Clock, lease_duration: Duration) {
        let (this, clock) = (self.clone(), clock.clone());
        health.check("leaderElection", Scope::Live, move || {
            let Some(renewed) = this.lock().renewed else { return Ok(()) };
            let age = clock.mono().saturating_duration_since(renewed);
            if age <= lease_duration + TOLERANCE {
                return Ok(());
            }
            Err(format!("believes to lead, but renewed the Lease {} s ago", age.as_secs()))
        });
    }

    /// Notes a renewal; whether leadership began with it.
    pub(super) fn on_renewed(&self, at: Instant) -> bool {
        self.lock().renewed.replace(at).is_none()
    }

    /// Notes that we lead no more; whether we did.
    pub(super) fn on_ended(&self) -> bool {
        self.lock().renewed.take().is_some()
    }

    /// Notes who holds it; whether that is another than before.
    pub(super) fn on_holder(&self, holder: &str) -> bool {
        let mut state = self.lock();
        let another = state.holder != holder;
        if another {
            holder.clone_into(&mut state.holder);
        }
        another
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { holder, renewed } = &*self.lock();
        match holder.as_str() {
            _ if renewed.is_some() => write!(f, "this process, {}", self.identity),
            "" => f.write_str("nobody"),
            holder if holder == &*self.identity => {
                write!(f, "not known; this process, {holder}, led before and stands by")
            }
            holder => write!(f, "{holder}, this process stands by"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_lost_the_lease_does_not_name_itself_as_the_leader() {
        let leadership = Leadership::of("me");
        assert_eq!(leadership.to_string(), "nobody");
        leadership.on_holder("me");
        leadership.on_renewed(Clock::system().mono());
        assert_eq!(leadership.to_string(), "this process, me");
        leadership.on_ended();
        assert_eq!(leadership.to_string(), "not known; this process, me, led before and stands by");
        leadership.on_holder("other");
        assert_eq!(leadership.to_string(), "other, this process stands by");
    }
}
