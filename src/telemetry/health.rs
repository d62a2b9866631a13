//! Health: named checks, and what `/livez`, `/readyz` and `/healthz` say of them, in the text form of Kubernetes'
//! components. Unlike theirs, a failed check tells its reason: the port speaks to the cluster's operators only.
//!
//! Live means "a restart would not help": the process answers and its loops move. It does not mean that the API server
//! answers. Ready means that the controllers work on synced caches.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;

/// Which probes a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `/livez`, `/healthz` and `/readyz`: what is not live is not ready.
    Live,
    /// `/readyz` only.
    Ready,
}

type CheckFn = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

struct Check {
    name: &'static str,
    scope: Scope,
    run: CheckFn,
}

/// The named checks of one process. Cheap to clone; clones share the checks.
#[derive(Clone)]
pub struct Health {
    checks: Arc<Mutex<Vec<Check>>>,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(checks.iter().map(|check| check.name)).finish()
    }
}

impl Default for Health {
    /// The check `ping` alone, which always succeeds.
    fn default() -> Self {
        let health = Self { checks: Arc::default() };
        health.check("ping", Scope::Live, || Ok(()));
        health
    }
}

impl Health {
    /// Adds a check, told in order of addition; of two with one name the later replaces the earlier. `run` must not block.
    pub fn check(
        &self,
        name: &'static str,
        scope: Scope,
        run: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.retain(|check| check.name != name);
        checks.push(Check { name, scope, run: Box::new(run) });
    }

    /// Adds a check that fails when nobody has called [`Heartbeat::beat`] for longer than `limit`.
    pub fn heartbeat(&self, name: &'static str, scope: Scope, clock: &Clock, limit: Duration) -> Heartbeat {
        let heartbeat = Heartbeat { clock: clock.clone(), last: Arc::new(Mutex::new(clock.mono())) };
        let watched = heartbeat.clone();
        self.check(name, scope, move || {
            let silent = watched.silent_for();
            if silent <= limit { Ok(()) } else { Err(format!("no sign of life for {} s", silent.as_secs())) }
        });
        heartbeat
    }

    /// Answers `/livez` or `/healthz` (`Scope::Live`) or `/readyz` (`Scope::Ready`). `probe` is the word without the slash;
    /// checks named in `exclude` are not run.
    pub(super) fn probe(&self, probe: &str, scope: Scope, exclude: &BTreeSet<String>) -> Report {
        let mut lines = String::new();
        let mut failed = false;
        let mut unknown: BTreeSet<&str> = exclude.iter().map(String::as_str).collect();
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        for check in checks.iter().filter(|check| check.asked_by(scope)) {
            let line = if unknown.remove(check.name) {
                format!("[+]{} excluded: ok\n", check.name)
            } else {
                match (check.run)() {
                    Ok(()) => format!("[+]{} ok\n", check.name),
                    Err(reason) => {
                        failed = true;
                        format!("[-]{} failed: {reason}\n", check.name)
                    }
                }
            };
            lines.push_str(&line);
        }
        if !unknown.is_empty() {
            let names: Vec<String> = unknown.iter().map(|name| format!("{name:?}")).collect();
            lines.push_str(&format!(
                "warn: some health checks cannot be excluded: no matches for {}\n",
                names.join(", ")
            ));
        }
        let verdict = if failed { "failed" } else { "passed" };
        lines.push_str(&format!("{probe} check {verdict}\n"));
        Report { ok: !failed, verbose: lines }
    }

    /// What the check `name` of `/livez` says now; `None` when there is none.
    #[cfg(test)]
    pub(crate) fn one_live(&self, name: &str) -> Option<Result<(), String>> {
        self.one(Scope::Live, name)
    }

    /// Answers `/livez/NAME` and its like; `None` when the probe has no such check.
    pub(super) fn one(&self, scope: Scope, name: &str) -> Option<Result<(), String>> {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.iter().find(|check| check.name == name && check.asked_by(scope)).map(|check| (check.run)())
    }
}

impl Check {
    fn asked_by(&self, scope: Scope) -> bool {
        scope == Scope::Ready || self.scope == Scope::Live
    }
}

/// What a probe found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// Whether every check succeeded.
    pub(super) ok: bool,
    /// A line for each check and the verdict.
    pub(super) verbose: String,
}

/// Proves that a loop moves. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    clock: Clock,
    last: Arc<Mutex<Instant>>,
}

impl Heartbeat {
    /// A sign of life.
    pub fn beat(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = self.clock.mono();
    }

    fn silent_for(&self) -> Duration {
        self.clock.mono().saturating_duration_since(*self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> BTreeSet<String> {
        BTreeSet::new()
    }

    #[test]
    fn a_fresh_process_is_live() {
        let report = Health::default().probe("healthz", Scope::Live, &none());
        assert_eq!(report, Report { ok: true, verbose: "[+]ping ok\nhealthz check passed\n".to_owned() });
    }

    #[test]
    fn a_failed_check_fails_its_probe_with_its_reason_and_leaves_liveness_alone() {
        let health = Health::default();
        let state = Arc::new(Mutex::new(Err("not listed yet".to_owned())));
        let asked = state.clone();
        health.check("caches", Scope::Ready, move || asked.lock().unwrap().clone());
        let report = health.probe("readyz", Scope::Ready, &none());
        assert!(!report.ok);
        assert_eq!(report.verbose, "[+]ping ok\n[-]caches failed: not listed yet\nreadyz check failed\n");
        assert!(health.probe("livez", Scope::Live, &none()).ok);
        *state.lock().unwrap() = Ok(());
        assert!(health.probe("readyz", Scope::Ready, &none()).ok);
        *state.lock().unwrap() = Err("lost".to_owned());
        assert_eq!(health.one(Scope::Ready, "caches"), Some(Err("lost".to_owned())));
    }

    #[test]
    fn what_is_not_live_is_not_ready() {
        let health = Health::default();
        health.check("loop", Scope::Live, || Err("stuck".to_owned()));
        assert!(!health.probe("readyz", Scope::Ready, &none()).ok);
    }

    #[test]
    fn an_excluded_check_is_not_run_and_an_unknown_name_is_told() {
        let health = Health::default();
        health.check("caches", Scope::Ready, || Err("not listed yet".to_owned()));
        let exclude = BTreeSet::from(["caches".to_owned(), "cashes".to_owned()]);
        let report = health.probe("readyz", Scope::Ready, &exclude);
        assert!(report.ok);
        assert_eq!(
            report.verbose,
            "[+]ping ok\n[+]caches excluded: ok\nwarn: some health checks cannot be excluded: no matches for \"cashes\"\nreadyz check passed\n"
        );
    }

    #[test]
    fn a_check_is_asked_only_by_its_own_probe() {
        let health = Health::default();
        health.check("caches", Scope::Ready, || Err("not listed yet".to_owned()));
        assert_eq!(health.one(Scope::Live, "caches"), None);
        assert_eq!(health.one(Scope::Live, "ping"), Some(Ok(())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stands_still_is_found_out() {
        let health = Health::default();
        let clock = Clock::system();
        let heartbeat = health.heartbeat("loop", Scope::Live, &clock, Duration::from_secs(30));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(health.one(Scope::Live, "loop"), Some(Ok(())));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(health.one(Scope::Live, "loop"), Some(Err("no sign of life for 31 s".to_owned())));
        heartbeat.beat();
        assert_eq!(health.one(Scope::Live, "loop"), Some(Ok(())));
    }
}
