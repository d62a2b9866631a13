//! The flags of the controllers themselves, the same for `run` and `sandbox`. Names are kube-controller-manager's where the
//! meaning is the same.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::selection::{ControllerList, FeatureGates};
use super::values::{Contradiction, parse_manager, parse_zone};
use crate::controllers::{Gate, Options, REGISTRY, Registration, Serves};
use crate::jobs::Mandate;
use crate::jobs::names::MANAGED_BY_US;
use crate::schedule::Zone;
use crate::workqueue::RateLimiterConfig;

/// Flags of the controllers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Controllers")]
pub struct ControllerArgs {
    /// Controllers to run: "*" is all that are on by default, "NAME" enables one, "-NAME" disables one.
    ///
    /// Names: kubernetes-cronjob (CronJobs of batch/v1), volcano-cronjob (CronJobs of batch.volcano.sh/v1alpha1),
    /// cronjob-controller (both); off by default: kubernetes-job (Pods of Jobs of batch/v1), kubernetes-ttl-after-finished (deletes
    /// such Jobs ttlSecondsAfterFinished after their end). Of two entries for one controller the first decides. Without "*" only what is named runs:
    /// all but one is "*,-NAME".
    #[arg(long, value_name = "LIST", default_value = "*", allow_hyphen_values = true)]
    pub controllers: ControllerList,

    /// Features to switch, as NAME=true|false, comma-separated.
    ///
    /// VolcanoJobSupport, CronVolcanoJobSupport: with either one false, volcano-cronjob does not start. Both are true by default.
    #[arg(long, value_name = "GATES", default_value = "")]
    pub feature_gates: FeatureGates,

    /// CronJobs that each controller works on at the same time; 1 to 4096.
    ///
    /// Those with nothing left to do but record what was done do not count. Twice as many as requests may be in flight keep a herd's runs
    /// ahead of its records; fewer start fewer runs at once.
    #[arg(long, value_name = "N", default_value = "256", value_parser = parse_syncs, visible_alias = "worker-threads-for-cronjob")]
    pub concurrent_cron_job_syncs: usize,

    /// Zone of CronJobs without spec.timeZone, by its IANA name. Default: the variable TZ if it is an IANA name, else UTC.
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    pub default_time_zone: Option<Zone>,

    /// spec.managedBy of the Jobs that CronJobs of batch/v1 start, where their template has none; it says which controller runs their
    /// Pods. Default: none, which is the built-in one.
    #[arg(long, value_name = "NAME", value_parser = parse_manager)]
    pub job_managed_by: Option<Arc<str>>,

    /// Which Jobs kubernetes-job looks after.
    ///
    /// Any other Job is left alone. With "all" the Job controller of kube-controller-manager must be off.
    #[arg(long, value_name = "WHICH", value_enum, num_args = 0..=1, require_equals = true, default_value = "marked", default_missing_value = "all")]
    pub job_controller: JobScope,

    /// The name by which spec.managedBy gives a Job to kubernetes-job.
    #[arg(long, value_name = "NAME", default_value = MANAGED_BY_US, value_parser = parse_manager)]
    pub job_controller_name: Arc<str>,

    /// Jobs that kubernetes-job works on at the same time, and that kubernetes-ttl-after-finished deletes; 1 to 4096.
    #[arg(long, value_name = "N", default_value = "128", value_parser = parse_job_syncs)]
    pub concurrent_job_syncs: usize,

    /// How long a CronJob waits after an error.
    #[arg(long, value_name = "LIMITER", value_enum, default_value_t = RateLimiterChoice::Default)]
    pub queue_rate_limiter: RateLimiterChoice,
}

/// Each sync is a worker; no API server answers more requests at a time.
const MOST_SYNCS: usize = 4096;

/// Value of `--queue-rate-limiter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RateLimiterChoice {
    /// Each key by itself: 5 ms, doubling to 30 s, with jitter.
    Default,
    /// As the peers: each key 5 ms, doubling to 1000 s, and 10 a second (burst 100) for all keys together.
    Peers,
}

/// Value of `--job-controller`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JobScope {
    /// Jobs whose spec.managedBy is --job-controller-name.
    Marked,
    /// Those, and Jobs that the built-in controller would look after.
    All,
}

impl ControllerArgs {
    /// What is wrong when no controller is left to run.
    pub(super) fn contradictions(&self) -> Vec<Contradiction> {
        let asked_for: Vec<_> = REGISTRY.iter().filter(|controller| self.controllers.enables(controller)).collect();
        if asked_for.is_empty() {
            let message = format!("no controller runs with {}: write \"*,-NAME\" to run all but one", self.controllers);
            return vec![Contradiction::new(&["controllers"], message)];
        }
        if asked_for.iter().any(|controller| self.closed_gate(controller).is_none()) {
            return self.job_contradictions();
        }
        let names = asked_for.iter().map(|controller| controller.name).collect::<Vec<_>>().join(", ");
        let message =
            format!("no controller runs: the feature gates switch off all that --controllers names ({names})");
        vec![Contradiction::new(&["feature-gates", "controllers"], message)]
    }

    fn job_contradictions(&self) -> Vec<Contradiction> {
        if self.job_controller == JobScope::Marked || self.runs_jobs() {
            return Vec::new();
        }
        let message = "has no effect unless --controllers names kubernetes-job".to_owned();
        vec![Contradiction::new(&["job-controller", "controllers"], message)]
    }

    fn closed_gate(&self, controller: &Registration) -> Option<Gate> {
        controller.gates.iter().copied().find(|gate| !self.feature_gates.enabled(*gate))
    }

    /// The controllers to start; one that is asked for but has a gate closed is told in the log instead. There may be none where
    /// other things run as well.
    pub fn selected(&self) -> Vec<&'static Registration> {
        let asked_for = REGISTRY.iter().filter(|controller| self.controllers.enables(controller));
        let may_start = |controller: &&'static Registration| {
            let closed = self.closed_gate(controller);
            if let Some(gate) = closed {
                let (controller, gate) = (controller.name, gate.name());
                tracing::warn!(controller, gate, "not started: its feature gate is off");
            }
            closed.is_none()
        };
        let selected: Vec<_> = asked_for.filter(may_start).collect();
        if selected.is_empty() {
            let controllers = self.controllers.to_string();
            tracing::warn!(controllers, "no controller runs: write \"*,-NAME\" to run all but one");
        }
        selected
    }

    /// How the controllers work; tells in the log which zone schedules without one mean.
    pub fn options(&self, shutdown_budget: Duration) -> Options {
        let local_zone = self.local_zone(std::env::var("TZ").ok().as_deref());
        tracing::info!(zone = local_zone.name(), "zone of CronJobs without spec.timeZone");
        let options = Options {
            concurrent_syncs: self.concurrent_cron_job_syncs,
            local_zone,
            shutdown_budget,
            job_managed_by: self.job_managed_by.clone(),
            mandate: self.mandate(),
            concurrent_job_syncs: self.concurrent_job_syncs,
            ..Options::default()
        };
        match self.queue_rate_limiter {
            RateLimiterChoice::Default => options,
            // The peers' bucket is one for all keys of a controller, so there is one queue.
            RateLimiterChoice::Peers => Options { rate_limiter: RateLimiterConfig::Peers, shards: 1, ..options },
        }
    }

    fn mandate(&self) -> Mandate {
        let name = self.job_controller_name.clone();
        match self.job_controller {
            JobScope::Marked => Mandate::marked(name),
            JobScope::All => Mandate::all(name),
        }
    }

    /// Whether Jobs are looked after.
    pub(super) fn runs_jobs(&self) -> bool {
        self.asks_for(Serves::Jobs)
    }

    /// In the sandbox `--job-controller` is enough: there is no built-in controller beside.
    #[cfg(feature = "sandbox")]
    pub(super) fn runs_jobs_in_sandbox(&self) -> bool {
        self.runs_jobs() || self.job_controller == JobScope::All
    }

    /// The controllers to start in the sandbox.
    #[cfg(feature = "sandbox")]
    pub(super) fn selected_in_sandbox(&self) -> Vec<&'static Registration> {
        let mut selected = self.selected();
        if self.runs_jobs_in_sandbox() {
            let about_jobs = |it: &&Registration| matches!(it.serves, Serves::Jobs | Serves::ExpiredJobs);
            selected.retain(|controller| !about_jobs(controller));
            selected.extend(REGISTRY.iter().filter(about_jobs));
        }
        selected
    }

    /// Whether a controller that does not serve CronJobs is asked for.
    pub(super) fn runs_more_than_cronjobs(&self) -> bool {
        self.asks_for(Serves::Jobs) || self.asks_for(Serves::ExpiredJobs)
    }

    /// Whether a controller that does this is asked for.
    fn asks_for(&self, serves: Serves) -> bool {
        REGISTRY.iter().any(|controller| controller.serves == serves && self.controllers.enables(controller))
    }

    /// The zone of CronJobs without one: the flag, else `tz` (the variable `TZ`) if it is an IANA name, else UTC.
    pub fn local_zone(&self, tz: Option<&str>) -> Zone {
        let from_environment = || tz.filter(|name| !name.is_empty()).and_then(|name| parse_zone(name).ok());
        self.default_time_zone.or_else(from_environment).unwrap_or(Zone::utc())
    }
}

fn parse_syncs(text: &str) -> Result<usize, String> {
    parse_count("concurrent-cron-job-syncs", text)
}

fn parse_job_syncs(text: &str) -> Result<usize, String> {
    parse_count("concurrent-job-syncs", text)
}

fn parse_count(flag: &str, text: &str) -> Result<usize, String> {
    let count: i64 = text.parse().map_err(|_| format!("{text:?} is not a whole number"))?;
    // The peers' text.
    let refused = || format!("{flag} must be greater than 0, but got {count}");
    let syncs = usize::try_from(count).ok().filter(|count| *count > 0).ok_or_else(refused)?;
    if syncs > MOST_SYNCS { Err(format!("at most {MOST_SYNCS}, but got {count}")) } else { Ok(syncs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_one_sync_is_refused_with_the_peers_text() {
        assert_eq!(parse_syncs("0"), Err("concurrent-cron-job-syncs must be greater than 0, but got 0".to_owned()));
        assert_eq!(parse_syncs("-3"), Err("concurrent-cron-job-syncs must be greater than 0, but got -3".to_owned()));
        assert_eq!(parse_syncs("1"), Ok(1));
        assert_eq!(parse_syncs("99999999999"), Err("at most 4096, but got 99999999999".to_owned()));
    }
}
