//! Whether the caches of a controller can be worked on, and whether what fills them moves.

use std::sync::Arc;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::cluster::{Cached, Reflector, ReflectorHealth, Sink};

/// The caches of one controller.
#[derive(Clone)]
pub(super) struct Readiness {
    clock: Clock,
    caches: Vec<Cache>,
}

#[derive(Clone)]
struct Cache {
    /// What it holds, in words for people.
    what: &'static str,
    synced: Arc<dyn Fn() -> bool + Send + Sync>,
    health: ReflectorHealth,
}

impl Readiness {
    /// No caches yet.
    pub(super) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), caches: Vec::new() }
    }

    /// One more: that which `reflector` fills.
    pub(super) fn and<T: Cached, S: Sink<T>>(mut self, what: &'static str, reflector: &Reflector<T, S>) -> Self {
        let store = reflector.store();
        let synced = Arc::new(move || store.has_synced());
        self.caches.push(Cache { what, synced, health: reflector.health() });
        self
    }

    /// Fails with what they still wait for.
    pub(super) fn check(&self) -> Result<(), String> {
        self.caches.iter().try_for_each(|cache| is_ready(cache.what, (cache.synced)(), &cache.health))
    }

    /// Fails when what fills one of the caches has come to a standstill.
    pub(super) fn check_that_they_move(&self) -> Result<(), String> {
        let now = self.clock.mono();
        self.caches.iter().try_for_each(|cache| moves(cache.what, &cache.health, now))
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
    use std::time::Duration;

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
