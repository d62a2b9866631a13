//! Who is measured: the release binary of ours, or kube-controller-manager with nothing but its CronJob controller.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use cronjob_controller::clock::Clock;

use super::args::Args;
use super::process::{Process, Usage, calm, usage};
use super::server::{BINARY, Server, free_port};
use super::support::web::get_plain;

/// Longest time that caches may take to fill.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) struct Subject {
    processes: Vec<Process>,
    /// Of the probes of each process; the peer has none.
    probes: Vec<u16>,
}

impl Subject {
    /// Starts our `run`, as many processes as were asked for.
    pub(crate) fn ours(args: &Args, kubeconfig: &Path) -> anyhow::Result<Self> {
        let (mut processes, mut probes) = (Vec::new(), Vec::new());
        for _ in 0..args.replicas {
            let port = free_port()?;
            let mut command = Command::new(BINARY);
            command.args(["run", "--controllers=kubernetes-cronjob", "--metrics-bind-address=0", "--log-level=info"]);
            command.arg(format!("--leader-elect={}", args.replicas > 1));
            command.arg(format!("--health-probe-bind-address=127.0.0.1:{port}"));
            command.arg("--kubeconfig").arg(kubeconfig).stdout(Stdio::null());
            processes.push(Process::start("ours", &mut command)?);
            probes.push(port);
        }
        Ok(Self { processes, probes })
    }

    /// Starts the peer without a limit of its client, with 64 workers.
    pub(crate) fn peer(program: &Path, server: &Server) -> anyhow::Result<Self> {
        let kubeconfig = server.kubeconfig().display();
        let mut command = Command::new(program);
        command.args(["--controllers=cronjob-controller", "--concurrent-cron-job-syncs=64", "--leader-elect=false"]);
        command.args(["--kube-api-qps=1000000", "--kube-api-burst=1000000", "--secure-port=0"]);
        command.args(["--use-service-account-credentials=false".to_owned(), format!("--kubeconfig={kubeconfig}")]);
        command.arg(format!("--authentication-kubeconfig={kubeconfig}"));
        command.arg(format!("--authorization-kubeconfig={kubeconfig}"));
        Ok(Self { processes: vec![Process::start("peer", command.stdout(Stdio::null()))?], probes: Vec::new() })
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(Process::pid).collect()
    }

    /// CPU and memory of all processes together.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        usage(&self.pids())
    }

    /// The first of its processes.
    pub(crate) fn process(&self) -> anyhow::Result<&Process> {
        self.processes.first().context("a subject is a process")
    }

    /// Waits until the caches are filled: its readiness says so, and it has nothing to do any more.
    pub(crate) async fn settled(&mut self) -> anyhow::Result<()> {
        self.ready().await?;
        self.calm().await
    }

    /// Waits until it has nothing to do.
    pub(crate) async fn calm(&mut self) -> anyhow::Result<()> {
        let settled = calm(&self.pids(), PATIENCE).await?;
        self.check()?;
        ensure!(settled, "it has not come to rest after {PATIENCE:?}");
        Ok(())
    }

    /// Waits until every process says that it is ready; the peer does not say.
    pub(crate) async fn ready(&mut self) -> anyhow::Result<()> {
        let clock = Clock::system();
        let until = clock.mono() + PATIENCE;
        for port in self.probes.clone() {
            while !matches!(get_plain(port, "/readyz").await, Ok((200, _))) {
                self.check()?;
                ensure!(clock.mono() < until, "not ready after {PATIENCE:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        Ok(())
    }

    /// Fails when a process has ended; keeps the logs if that was asked for.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        self.processes.iter_mut().try_for_each(Process::check)
    }

    pub(crate) fn keep_logs(&self, args: &Args) -> anyhow::Result<()> {
        let Some(folder) = &args.logs else { return Ok(()) };
        self.processes.iter().try_for_each(|process| process.keep_log(folder))
    }
}
