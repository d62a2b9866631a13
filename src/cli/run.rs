//! `run`: the controllers against a cluster.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Config;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::controller::ControllerArgs;
use super::election::ElectionArgs;
use super::logging::LogArgs;
use super::process::{any_seed, stop_on_signals};
use super::serving::{ServingArgs, Shown};
use super::shadow::{self, ShadowArgs};
use super::values::Contradiction;
use crate::clock::Clock;
use crate::cluster::{self, ApiClientOptions, Protocol, RateLimit, Reviews, StackError};
use crate::controllers::{Manager, Registration, Setup};
use crate::schedule::TZDB_VERSION;
use crate::telemetry::{Flag, Health, Registry, Status};

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  In a cluster, as deploy/install.yaml starts it:
    cronjob-controller run --logging-format json
  From a workstation, with the current context of ~/.kube/config:
    cronjob-controller run --kubeconfig ~/.kube/config --log-level debug
  Only Volcano's CronJobs, zones as in Shanghai where none is given:
    cronjob-controller run --controllers volcano-cronjob --default-time-zone Asia/Shanghai
  With a configuration file (cronjob-controller config print-defaults writes one):
    cronjob-controller run --config config.yaml
  Beside the controller in charge, writing nothing but a report of what would change (docs/shadow.md):
    cronjob-controller run --shadow --shadow-report differences.jsonl

Each flag can also be set by an environment variable, CRONJOB_CONTROLLER_ and the flag in capitals
with _ for - (CRONJOB_CONTROLLER_KUBE_API_QPS), and by the configuration file. A flag goes before a
variable, a variable before the file. RUST_LOG counts as --log-level where nothing else sets it.

Switch the built-in controller off first (kube-controller-manager
--controllers=*,-cronjob-controller): two controllers do not start a run twice, since the name
of its Job follows from its time, but they fight over the status.

Ends on SIGTERM or SIGINT with code 0 after the steps in flight are done; code 1 when it cannot
run; 2 for invalid flags.")]
pub struct RunArgs {
    /// Configuration file, of apiVersion cronjob-controller.config/v1alpha1 and kind ControllerConfiguration. Default: none.
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    pub config: Option<PathBuf>,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// What to run.
    #[command(flatten)]
    pub controller: ControllerArgs,
    /// Whether and how replicas take turns.
    #[command(flatten)]
    pub election: ElectionArgs,
    /// Where operators look.
    #[command(flatten)]
    pub serving: ServingArgs,
    /// Whether to write at all.
    #[command(flatten)]
    pub shadow: ShadowArgs,
    /// What is logged.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Flags about the API server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Kubeconfig file; its current context is used. Default: the service account of the pod, else the file in KUBECONFIG, else
    /// ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Address of the API server, instead of the one in the kubeconfig ("https://10.0.0.1:6443").
    #[arg(long, value_name = "URL", value_parser = parse_server)]
    pub master: Option<http::Uri>,

    /// Most requests a second to the API server, not counting watches; 0 is no limit of ours: the server's priority and
    /// fairness rules decide, and its 429 answers are obeyed.
    #[arg(long, value_name = "QPS", default_value = "0", value_parser = parse_qps)]
    pub kube_api_qps: f32,

    /// Requests that may go at once before --kube-api-qps holds; at least 1. Without --kube-api-qps it means nothing.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub kube_api_burst: u32,
}

impl RunArgs {
    /// What is wrong with flags that are each sound by themselves.
    pub(super) fn contradictions(&self) -> Vec<Contradiction> {
        let mut found =
            [self.controller.contradictions(), self.election.contradictions(), self.serving.contradictions()].concat();
        if self.shadow.shadow && self.controller.runs_more_than_cronjobs() {
            let message = "decides on CronJobs only: --controllers must not name a controller of Jobs";
            found.push(Contradiction::new(&["shadow", "controllers"], message));
        }
        found
    }
}

/// Runs the controllers until the process is told to end. `flags` is what `/flagz` shows, `warnings` what is logged first.
///
/// # Errors
/// The configuration cannot be read, a port is taken, or the credentials or certificates are unusable.
pub(super) async fn execute(args: RunArgs, flags: Vec<Flag>, warnings: Vec<String>) -> anyhow::Result<()> {
    let RunArgs { config: _, cluster, controller, election, serving, shadow, log } = args;
    let clock = Clock::system();
    log.init(&clock)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let stop = stop_on_signals()?;
    let config = cluster.config().await?;
    let election = if shadow.shadow { None } else { election.election(&config.default_namespace)? };
    let clients = cluster::clients(config, Protocol::default())?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), tzdb = TZDB_VERSION, server = clients.host, "starting");
    let (registry, health, status) = (Registry::new(), Health::default(), Status::new(&clock));
    registry.register_process(&clock, TZDB_VERSION);
    let reviewer = Arc::new(Reviews::new(clients.requests.clone()));
    let setup = Setup {
        clients,
        client_options: ApiClientOptions { rate: cluster.rate(), ..ApiClientOptions::default() },
        clock: clock.clone(),
        seed: any_seed(),
        registry: registry.clone(),
        health: health.clone(),
        observer: None,
        election,
    };
    let (options, selected) = (controller.options(serving.shutdown_budget), controller.selected());
    let working: BoxFuture<'_, anyhow::Result<()>> = if shadow.shadow {
        status.line("Shadow mode", || "writes nothing".to_owned());
        Box::pin(shadow::prepare(&shadow.shadow_report, setup, options, &selected, &stop)?)
    } else {
        let manager = Manager::new(setup, options, &selected);
        tell_status(&status, &manager, &selected);
        Box::pin(manager.run(stop).map(Ok))
    };
    let (ports, closing) = (TaskTracker::new(), CancellationToken::new());
    serving.open(&ports, Shown { clock, registry, health, status, flags, reviewer }, &closing).await?;
    working.await?;
    // Last, so that probes and a last scrape are answered while the steps in flight end.
    closing.cancel();
    ports.close();
    ports.wait().await;
    tracing::info!("ended");
    Ok(())
}

/// Adds to `/statusz` who leads and what the controllers hold.
fn tell_status(status: &Status, manager: &Manager, selected: &[&Registration]) {
    status.line("Time zone data", || TZDB_VERSION.to_owned());
    let leadership = manager.leadership();
    status.line("Leader", move || match &leadership {
        None => "this process, without election".to_owned(),
        Some(leadership) => leadership.to_string(),
    });
    let counts = Arc::new(manager.counter());
    for (at, controller) in selected.iter().enumerate() {
        let counts = counts.clone();
        status.line(controller.name, move || counts().get(at).map(ToString::to_string).unwrap_or_default());
    }
}

impl ClusterArgs {
    /// The configuration of the cluster, by the rule in the help of `--kubeconfig`.
    async fn config(&self) -> Result<Config, StackError> {
        let mut config = cluster::load_config(self.kubeconfig.as_deref()).await?;
        if let Some(server) = &self.master {
            config.cluster_url = server.clone();
        }
        Ok(config)
    }

    fn rate(&self) -> Option<RateLimit> {
        (self.kube_api_qps > 0.0).then(|| RateLimit { qps: self.kube_api_qps.into(), burst: self.kube_api_burst })
    }
}

fn parse_server(text: &str) -> Result<http::Uri, String> {
    let wrong = || format!("{text:?} is not an address such as https://10.0.0.1:6443");
    let uri: http::Uri = text.parse().map_err(|_| wrong())?;
    let sound = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
    // Flags are shown to operators, so none may hold a secret.
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("must not hold a user or password: those stand in the kubeconfig".to_owned());
    }
    sound.then_some(uri).ok_or_else(wrong)
}

fn parse_qps(text: &str) -> Result<f32, String> {
    let qps: f32 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    (qps.is_finite() && qps >= 0.0).then_some(qps).ok_or_else(|| "must be 0 or a positive number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::values::BindAddress;
    use crate::cli::{Args as CommandLine, Command};
    use crate::controllers::{Gate, REGISTRY};
    use clap::Parser;
    use std::time::Duration;

    fn parse(flags: &[&str]) -> Result<RunArgs, clap::Error> {
        let line = ["cronjob-controller", "run"].iter().chain(flags);
        match CommandLine::try_parse_from(line)?.command {
            Command::Run(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_flags_the_defaults_are_those_of_the_help() {
        let args = parse(&[]).unwrap();
        assert_eq!(args.controller.concurrent_cron_job_syncs, 256);
        assert_eq!(args.controller.controllers.to_string(), "*");
        assert_eq!(args.cluster.kube_api_qps, 0.0);
        assert_eq!(args.serving.metrics_bind_address.to_string(), ":8443");
        assert!(args.serving.metrics_secure);
        assert_eq!(args.serving.health_probe_bind_address.to_string(), ":8081");
        assert_eq!(args.serving.shutdown_budget, Duration::from_secs(25));
        assert!(args.controller.feature_gates.enabled(Gate::VolcanoJobSupport));
    }

    #[test]
    fn flags_are_read_into_their_types() {
        let args = parse(&[
            "--controllers=-volcano-cronjob,*",
            "--feature-gates=CronVolcanoJobSupport=false",
            "--worker-threads-for-cronjob=7",
            "--default-time-zone=Asia/Shanghai",
            "--kube-api-qps=20.5",
            "--master=http://127.0.0.1:8001",
            "--metrics-bind-address=0",
            "--shutdown-budget=1m30s",
        ])
        .unwrap();
        assert!(!args.controller.controllers.enables(&REGISTRY[1]));
        assert!(!args.controller.feature_gates.enabled(Gate::CronVolcanoJobSupport));
        assert_eq!(args.controller.concurrent_cron_job_syncs, 7);
        assert_eq!(args.controller.local_zone(Some("Europe/Berlin")).name(), "Asia/Shanghai");
        assert_eq!(args.cluster.master.unwrap().host(), Some("127.0.0.1"));
        assert_eq!(args.serving.metrics_bind_address, BindAddress::Off);
        assert_eq!(args.serving.shutdown_budget, Duration::from_secs(90));
    }

    #[test]
    fn the_zone_of_the_process_is_taken_only_if_it_is_a_name() {
        let args = parse(&[]).unwrap();
        assert_eq!(args.controller.local_zone(Some("Europe/Berlin")).name(), "Europe/Berlin");
        assert_eq!(args.controller.local_zone(Some(":/etc/localtime")).name(), "UTC");
        assert_eq!(args.controller.local_zone(None).name(), "UTC");
    }

    #[test]
    fn what_makes_no_sense_is_refused_before_anything_starts() {
        for flag in [
            "--concurrent-cron-job-syncs=0",
            "--default-time-zone=Mars/Olympus",
            "--kube-api-qps=-1",
            "--kube-api-burst=0",
            "--master=10.0.0.1",
            "--master=https://admin:secret@10.0.0.1:6443",
            "--metrics-secure=maybe",
            "--shutdown-budget=5",
            "--controllers=gardener",
            "--logging-format=xml",
        ] {
            assert_eq!(parse(&[flag]).unwrap_err().exit_code(), 2, "{flag}");
        }
    }
    #[test]
    fn flags_that_contradict_each_other_are_told() {
        let told = |flags: &[&str]| {
            let found = parse(flags).unwrap().contradictions();
            found.into_iter().map(|found| found.flags[0]).collect::<Vec<_>>()
        };
        assert_eq!(told(&[]), [""; 0]);
        assert_eq!(told(&["--tls-cert-file=x"]), ["tls-cert-file"]);
        assert_eq!(told(&["--tls-private-key-file=x"]), ["tls-private-key-file"]);
        assert_eq!(told(&["--tls-cert-file=x", "--tls-private-key-file=y"]), [""; 0]);
        assert_eq!(told(&["--health-probe-bind-address=:8443"]), ["metrics-bind-address"]);
        assert_eq!(told(&["--health-probe-bind-address=:8443", "--metrics-secure=false"]), [""; 0]);
        assert_eq!(told(&["--leader-elect-retry-period=10s"]), ["leader-elect-renew-deadline"]);
        assert_eq!(told(&["--leader-elect-retry-period=10s", "--leader-elect=false"]), [""; 0]);
        assert_eq!(told(&["--health-probe-bind-address=0", "--metrics-bind-address=0"]), [""; 0]);
        assert_eq!(told(&["--controllers=-volcano-cronjob"]), ["controllers"]);
        assert_eq!(told(&["--controllers=*,-cronjob-controller"]), ["controllers"]);
        assert_eq!(told(&["--controllers=*,-volcano-cronjob"]), [""; 0]);
        assert_eq!(told(&["--job-controller=all"]), ["job-controller"]);
        assert_eq!(told(&["--job-controller", "--controllers=kubernetes-job"]), [""; 0]);
        assert_eq!(told(&["--controllers=*,kubernetes-job", "--shadow"]), ["shadow"]);
        assert_eq!(told(&["--feature-gates=VolcanoJobSupport=false"]), [""; 0]);
        let gated = ["--controllers=volcano-cronjob", "--feature-gates=CronVolcanoJobSupport=false"];
        assert_eq!(told(&gated), ["feature-gates"]);
    }
}
