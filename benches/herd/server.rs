//! The API server of one measurement, in processes of its own (or somebody else's, by its URL).

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use cronjob_controller::cluster::{Clients, Protocol, clients, load_config};
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::args::{Args, Choice, Scenario};
use super::counts::Counts;
use super::process::{Process, Usage, usage};
use super::support::controlplane::{ControlPlane, Options};

/// The binary under test, of the profile of this benchmark.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_cronjob-controller");

/// Where deploy/install.yaml installs, and the name of the account there.
const ACCOUNT: &str = "cronjob-controller";

/// Changes that the sandbox remembers where it is to forget them.
pub(crate) const WATCH_HISTORY: usize = 1_000;

pub(crate) struct Server {
    kind: Kind,
    folder: TempDir,
    /// Of an administrator.
    admin: PathBuf,
    /// Of whom subjects and floor act as.
    actor: PathBuf,
}

enum Kind {
    Sandbox(Process),
    Real(Box<ControlPlane>),
    Given,
}

impl Server {
    /// A fresh one (that of a URL is as it is).
    pub(crate) async fn start(args: &Args) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("herd-").tempdir()?;
        let (kind, admin) = match &args.server {
            Choice::Sandbox => {
                let kubeconfig = folder.path().join("kubeconfig");
                let mut command = Command::new(BINARY);
                command.args(["sandbox", "--server-only", "--kubeconfig"]).arg(&kubeconfig).stdout(Stdio::piped());
                if args.scenario == Scenario::Memory {
                    command.arg(format!("--watch-history={WATCH_HISTORY}"));
                }
                let mut process = Process::start("sandbox", &mut command)?;
                process.first_line()?;
                (Kind::Sandbox(process), kubeconfig)
            }
            Choice::Real => {
                let plane = ControlPlane::start("the benchmark", Options::default()).await;
                let plane = plane.context("--server real needs etcd, kube-apiserver and kubectl")?;
                let kubeconfig = plane.admin_kubeconfig();
                (Kind::Real(Box::new(plane)), kubeconfig)
            }
            Choice::Url(url) => (Kind::Given, given(folder.path(), url, args.kubeconfig.as_deref())?),
        };
        let actor = match (&kind, args.service_account) {
            (_, false) => admin.clone(),
            (Kind::Real(plane), true) => account(plane),
            _ => bail!("--service-account needs --server real"),
        };
        Ok(Self { kind, folder, admin, actor })
    }

    /// The kubeconfig of subjects.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.actor
    }

    /// A kubeconfig for the same server by way of a port on loopback; plain HTTP only.
    pub(crate) async fn kubeconfig_through(&self, port: u16) -> anyhow::Result<PathBuf> {
        given(self.folder.path(), &format!("http://127.0.0.1:{port}"), None)
    }

    /// Host and port.
    pub(crate) async fn address(&self) -> anyhow::Result<String> {
        Ok(self.admin_clients().await?.host)
    }

    /// Clients with the production transport, of an administrator: each call makes new connections.
    pub(crate) async fn admin_clients(&self) -> anyhow::Result<Clients> {
        Ok(clients(load_config(Some(&self.admin)).await?, Protocol::default())?)
    }

    /// The same, of whom subjects act as.
    pub(crate) async fn clients(&self) -> anyhow::Result<Clients> {
        Ok(clients(load_config(Some(&self.actor)).await?, Protocol::default())?)
    }

    /// Its processes; none where it is somebody else's.
    pub(crate) fn pids(&self) -> Vec<u32> {
        match &self.kind {
            Kind::Sandbox(process) => vec![process.pid()],
            Kind::Real(plane) => plane.pids(),
            Kind::Given => Vec::new(),
        }
    }

    /// CPU and memory of its processes together.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        usage(&self.pids())
    }

    /// Waits until the counts of requests stand still for two seconds, and returns them.
    pub(crate) async fn quiet(&self, client: &Client, patience: Duration) -> anyhow::Result<Counts> {
        let mut before = Counts::of(client).await?;
        for _ in 0..patience.as_secs() / 2 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let now = Counts::of(client).await?;
            if now == before {
                return Ok(now);
            }
            before = now;
        }
        bail!("requests did not end within {patience:?}")
    }
}

/// Installs the rights of deploy/install.yaml, and a kubeconfig with a token of the account that has them.
fn account(plane: &ControlPlane) -> PathBuf {
    let install = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/install.yaml");
    plane.kubectl_ok(&["apply", "-f", &install.display().to_string()]);
    plane.service_account_kubeconfig("account", ACCOUNT, ACCOUNT)
}

/// A kubeconfig for `url`: that at `like`, with another server, or one without credentials.
fn given(folder: &Path, url: &str, like: Option<&Path>) -> anyhow::Result<PathBuf> {
    let mut config = match like {
        Some(path) => serde_saphyr::from_str::<Value>(&std::fs::read_to_string(path)?)?,
        None => json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {}}], "users": [{"name": "it", "user": {}}],
        }),
    };
    for cluster in config["clusters"].as_array_mut().into_iter().flatten() {
        cluster["cluster"]["server"] = url.into();
    }
    let port = url.rsplit(':').next().unwrap_or_default().trim_end_matches('/');
    let path = folder.join(format!("given-{}.kubeconfig", port.replace('/', "-")));
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    ensure!(port > 0, "no free port");
    Ok(port)
}
