//! `run`: the controllers against a cluster.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use kube::Config;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::controller::ControllerArgs;
use super::election::ElectionArgs;
use super::logging::LogArgs;
use super::process::{any_seed, stop_on_signals};
use super::values::{BindAddress, parse_duration};
use crate::clock::Clock;
use crate::cluster::{self, ApiClientOptions, Protocol, RateLimit, StackError};
use crate::controllers::{Manager, Setup};
use crate::schedule::TZDB_VERSION;
use crate::telemetry::{Health, Registry, health_router, metrics_router, serve};

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

Switch the built-in controller off first (kube-controller-manager
--controllers=*,-cronjob-controller): two controllers do not start a run twice, since the name
of its Job follows from its time, but they fight over the status.

Ends on SIGTERM or SIGINT with code 0 after the steps in flight are done; code 1 when it cannot
run; 2 for invalid flags.")]
pub struct RunArgs {
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

/// Flags about the ports and the end of the process.
#[derive(Debug, Args)]
#[command(next_help_heading = "Operation")]
pub struct ServingArgs {
    /// Where /metrics is served, plain HTTP: ":PORT" is every address, 0 is off. May equal --health-probe-bind-address.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub metrics_bind_address: BindAddress,

    /// Where /healthz, /livez and /readyz are served, plain HTTP; 0 is off.
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: BindAddress,

    /// How long steps in flight may take after SIGTERM before they are cut off. Keep it below the pod's
    /// terminationGracePeriodSeconds.
    #[arg(long, value_name = "DURATION", default_value = "25s", value_parser = parse_duration)]
    pub shutdown_budget: Duration,
}

/// Runs the controllers until the process is told to end.
///
/// # Errors
/// The configuration cannot be read, a port is taken, or the credentials are unusable.
pub async fn execute(args: RunArgs) -> anyhow::Result<()> {
    let RunArgs { cluster, controller, election, serving, log } = args;
    let clock = Clock::system();
    log.init(&clock)?;
    let stop = stop_on_signals()?;
    let config = cluster.config().await?;
    let election = election.election(&config.default_namespace)?;
    let clients = cluster::clients(config, Protocol::default())?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), tzdb = TZDB_VERSION, server = clients.host, "starting");
    let (registry, health) = (Registry::new(), Health::default());
    registry.register_process(&clock, TZDB_VERSION);
    let setup = Setup {
        clients,
        client_options: ApiClientOptions { rate: cluster.rate(), ..ApiClientOptions::default() },
        clock,
        seed: any_seed(),
        registry: registry.clone(),
        health: health.clone(),
        observer: None,
        election,
    };
    let manager = Manager::new(setup, controller.options(serving.shutdown_budget), &controller.selected());
    let (ports, closing) = (TaskTracker::new(), CancellationToken::new());
    serving.open(&ports, registry, health, &closing).await?;
    manager.run(stop).await;
    // Last, so that probes and a last scrape are answered while the steps in flight end.
    closing.cancel();
    ports.close();
    ports.wait().await;
    tracing::info!("ended");
    Ok(())
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

impl ServingArgs {
    /// Listens on both ports, or on one if they are the same, and answers until `closing`.
    async fn open(
        &self,
        tasks: &TaskTracker,
        registry: Registry,
        health: Health,
        closing: &CancellationToken,
    ) -> anyhow::Result<()> {
        let (metrics, probes) = (metrics_router(registry), health_router(health));
        let addresses = (self.metrics_bind_address, self.health_probe_bind_address);
        let served = if addresses.0 == addresses.1 {
            vec![(addresses.0, metrics.merge(probes), "--metrics-bind-address")]
        } else {
            vec![(addresses.0, metrics, "--metrics-bind-address"), (addresses.1, probes, "--health-probe-bind-address")]
        };
        for (address, router, flag) in served {
            let listener = address.bind().await.with_context(|| format!("cannot listen on {address} ({flag})"))?;
            if let Some(listener) = listener {
                let closing = closing.clone();
                tasks.spawn(async move {
                    if let Err(error) = serve(listener, router, closing).await {
                        tracing::error!(%error, flag, "a port is not served any more");
                    }
                });
            }
        }
        Ok(())
    }
}

fn parse_server(text: &str) -> Result<http::Uri, String> {
    let wrong = || format!("{text:?} is not an address such as https://10.0.0.1:6443");
    let uri: http::Uri = text.parse().map_err(|_| wrong())?;
    let sound = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
    sound.then_some(uri).ok_or_else(wrong)
}

fn parse_qps(text: &str) -> Result<f32, String> {
    let qps: f32 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    (qps.is_finite() && qps >= 0.0).then_some(qps).ok_or_else(|| "must be 0 or a positive number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Args as CommandLine, Command};
    use crate::controllers::{Gate, REGISTRY};
    use clap::Parser;

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
        assert_eq!(args.controller.concurrent_cron_job_syncs, 128);
        assert_eq!(args.controller.controllers.to_string(), "*");
        assert_eq!(args.cluster.kube_api_qps, 0.0);
        assert_eq!(args.serving.metrics_bind_address.to_string(), ":8080");
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
            "--shutdown-budget=5",
            "--controllers=gardener",
            "--logging-format=xml",
        ] {
            assert_eq!(parse(&[flag]).unwrap_err().exit_code(), 2, "{flag}");
        }
    }

    #[test]
    fn the_file_of_defaults_lists_each_flag_with_its_default() {
        use clap::CommandFactory;
        let text = include_str!("../../config/default.yaml");
        let written: std::collections::BTreeMap<String, String> = serde_saphyr::from_str(text).unwrap();
        let command = CommandLine::command();
        let run = command.find_subcommand("run").unwrap();
        let defaults = run.get_arguments().filter_map(|arg| {
            let default = arg.get_default_values().first()?.to_str()?.to_owned();
            Some((arg.get_long()?.to_owned(), default))
        });
        assert_eq!(written, defaults.collect());
    }
}
