//! `sandbox`: everything in one process, faster than time.

use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::controller::ControllerArgs;
use super::logging::LogArgs;
use super::manifests::{self, Manifest};
use super::process::{any_seed, stop_on_signals};
use super::samples;
use super::timeline::{print, timeline};
use super::values::parse_positive_duration;
use crate::clock::Clock;
use crate::cluster::{ApiClientOptions, Clients};
use crate::controllers::{Manager, Setup};
use crate::sandbox::resources::RESOURCES;
use crate::sandbox::runner::RunnerOptions;
use crate::sandbox::server::kubeconfig;
use crate::sandbox::{self, Sandbox};
use crate::telemetry::{Health, Registry};

/// First line of the kubeconfigs written here; what begins with it may be overwritten.
const MARK: &str = "# Written by cronjob-controller sandbox.\n";

/// How long steps in flight may take when the sandbox ends; its server answers at once.
const SHUTDOWN_BUDGET: Duration = Duration::from_secs(2);

/// Arguments of `sandbox`.
#[derive(Debug, Args)]
#[command(
    // The timeline on standard output is what people come for; logs are for those who ask.
    mut_arg("log_level", |arg| arg.env("RUST_LOG").default_value("warn")),
    after_help = "\
Examples:
  The samples, an hour in half a minute; a daily CronJob runs every 12 minutes:
    cronjob-controller sandbox
  Your own CronJobs, a day in half a minute, then stop:
    cronjob-controller sandbox -f cronjobs.yaml --speed 2880 --for 30s
  Look inside while it runs:
    cronjob-controller sandbox --port 6440 --kubeconfig /tmp/sandbox.yaml
    kubectl --kubeconfig /tmp/sandbox.yaml get jobs -A -w
  With our Job controller in the place of the stand-in, which then only plays the nodes:
    cronjob-controller sandbox --job-controller
  Only the API server, for the controllers in a process of their own:
    cronjob-controller sandbox --server-only --kubeconfig /tmp/sandbox.yaml
    cronjob-controller run --kubeconfig /tmp/sandbox.yaml

Annotations on metadata of a jobTemplate tell the stand-in how its Jobs go:
  sandbox.cronjob-controller.dev/duration: 90s       how long they run, in sandbox time
  sandbox.cronjob-controller.dev/outcome: complete   complete, fail or hang

Nothing is kept: when it ends, it is gone. Ctrl-C ends it with code 0."
)]
pub struct SandboxArgs {
    /// Manifest, or a directory of them, to create at the start; may be repeated. Default: the samples in config/samples.
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    pub files: Vec<PathBuf>,

    /// How many times faster than real time the sandbox's time runs, from the present on; at least 1.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub speed: u32,

    /// End after this much real time. Default: run until Ctrl-C.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_positive_duration)]
    pub run_for: Option<Duration>,

    /// Port of the API server on 127.0.0.1, plain HTTP; 0 takes any free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Where to write a kubeconfig for the sandbox; a file that is not one of a sandbox is left alone and ends this. Default: a file in the directory for temporary files, removed at the end.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Only the API server, for a controller in a process of its own: no controllers, nothing that runs Jobs, no samples; time as it is.
    #[arg(long, conflicts_with_all = ["speed", "controllers", "job_controller"])]
    pub server_only: bool,

    /// Changes of each kind that the server remembers for watches; one that goes on from before them is told 410, and lists anew.
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub watch_history: u32,

    /// Seed of everything that is drawn at random. Default: another one each time, printed at the start.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// What to run.
    #[command(flatten)]
    pub controller: ControllerArgs,
    /// What is logged.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Runs the sandbox until its time is over or the process is told to end.
///
/// # Errors
/// A manifest cannot be read, every object is refused, or a port is taken.
pub async fn execute(args: SandboxArgs) -> anyhow::Result<()> {
    let clock = if args.server_only { Clock::system() } else { Clock::scaled(args.speed) };
    args.log.init(&clock)?;
    let manifests = if args.server_only && args.files.is_empty() { Vec::new() } else { read_manifests(&args.files)? };
    let stop = stop_on_signals()?;
    let seed = args.seed.unwrap_or_else(any_seed);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .await
        .with_context(|| format!("cannot listen on port {} of 127.0.0.1 (--port)", args.port))?;
    let address = listener.local_addr()?;
    let kubeconfig = Kubeconfig::write(args.kubeconfig.as_deref(), address)?;
    let pace = if args.server_only { 1 } else { args.speed };
    say(format_args!("API server at http://{address}, time runs {pace} times faster, seed {seed}"));
    say(format_args!("  kubectl --kubeconfig {} get cronjobs,jobs,pods -A", kubeconfig.path.display()));

    let cluster = Sandbox::new(clock.clone(), seed, options(&args));
    let (tasks, closing) = (TaskTracker::new(), CancellationToken::new());
    start_server(&cluster, listener, &tasks, &closing);
    if !manifests.is_empty() {
        create_all(&cluster, &manifests).await?;
    }
    end_after(args.run_for, &stop, &tasks);
    if args.server_only {
        stop.cancelled().await;
    } else {
        start_jobs(&cluster, seed, args.controller.runs_jobs_in_sandbox(), &tasks, &closing);
        manager(&cluster, &args.controller, (clock, seed, address), &tasks).run(stop).await;
    }
    closing.cancel();
    tasks.close();
    tasks.wait().await;
    Ok(())
}

fn options(args: &SandboxArgs) -> sandbox::Options {
    // What does not fit is more than there will ever be.
    let log_limit = usize::try_from(args.watch_history).unwrap_or(usize::MAX);
    sandbox::Options { log_limit, ..sandbox::Options::default() }
}

/// The controllers on the server in this process, telling what they do.
fn manager(
    cluster: &Sandbox,
    controller: &ControllerArgs,
    (clock, seed, address): (Clock, u64, SocketAddr),
    tasks: &TaskTracker,
) -> Manager {
    let (observer, lines) = timeline();
    tasks.spawn(print(lines));
    let client = cluster.client();
    let setup = Setup {
        clients: Clients {
            requests: client.clone(),
            watches: client.clone(),
            leases: client,
            host: address.to_string(),
        },
        client_options: ApiClientOptions::default(),
        clock,
        seed,
        registry: Registry::new(),
        health: Health::default(),
        observer: Some(Arc::new(observer)),
        election: None,
    };
    Manager::new(setup, controller.options(SHUTDOWN_BUDGET), &controller.selected_in_sandbox())
}

/// Says a line. Whoever reads no further (`| head -1`) still has the server.
fn say(line: fmt::Arguments<'_>) {
    let _unread = writeln!(io::stdout().lock(), "{line}");
}

fn read_manifests(files: &[PathBuf]) -> anyhow::Result<Vec<Manifest>> {
    if files.is_empty() {
        return samples::read();
    }
    let mut all = Vec::new();
    for file in files {
        all.extend(manifests::read(file)?);
    }
    Ok(all)
}

/// Starts the server and what it does in the background.
fn start_server(cluster: &Sandbox, listener: TcpListener, tasks: &TaskTracker, closing: &CancellationToken) {
    let (server, end) = (cluster.clone(), closing.clone());
    tasks.spawn(async move { server.serve(listener, end).await });
    let (server, end) = (cluster.clone(), closing.clone());
    tasks.spawn(async move { server.run_background(end).await });
}

/// Starts the stand-in that runs the Jobs, or with a Job controller their Pods.
fn start_jobs(cluster: &Sandbox, seed: u64, job_controller: bool, tasks: &TaskTracker, closing: &CancellationToken) {
    let (server, end) = (cluster.clone(), closing.clone());
    let options = RunnerOptions { pods: true, job_controller, ..RunnerOptions::default() };
    tasks.spawn(async move { server.run_jobs(options, seed, end).await });
}

fn end_after(run_for: Option<Duration>, stop: &CancellationToken, tasks: &TaskTracker) {
    let Some(run_for) = run_for else { return };
    let stop = stop.clone();
    tasks.spawn(async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = tokio::time::sleep(run_for) => stop.cancel(),
        }
    });
}

/// Creates what the manifests hold, namespaces that only objects name included, and says what is refused.
async fn create_all(cluster: &Sandbox, manifests: &[Manifest]) -> anyhow::Result<()> {
    let client = cluster.client();
    let mut created = 0;
    for manifest in manifests {
        let what = Described(&manifest.object);
        match create(&client, &manifest.object).await {
            Ok(()) => created += 1,
            Err(why) => say(format_args!("refused  {what} of {}: {why}", manifest.path.display())),
        }
    }
    anyhow::ensure!(created > 0, "nothing was created: there was no object, or each was refused");
    say(format_args!("created {created} of {} objects\n", manifests.len()));
    Ok(())
}

async fn create(client: &kube::Client, object: &Value) -> Result<(), String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("/apiVersion");
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let served = RESOURCES.iter().find(|r| (r.group, r.version, r.kind) == (group, version, text("/kind")));
    let resource = served.ok_or_else(|| format!("the sandbox does not serve {} of {api_version}", text("/kind")))?;
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    if !resource.namespaced {
        return post(client, format!("{root}/{}", resource.plural), object).await;
    }
    let namespace = Some(text("/metadata/namespace")).filter(|name| !name.is_empty()).unwrap_or("default");
    // Already there, mostly; if the name is no name, the object itself is refused with the reason.
    let _exists = post(client, "/api/v1/namespaces".into(), &namespace_called(namespace)).await;
    post(client, format!("{root}/namespaces/{namespace}/{}", resource.plural), object).await
}

fn namespace_called(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Sends an object; the error is the server's message.
async fn post(client: &kube::Client, path: String, object: &Value) -> Result<(), String> {
    let body = serde_json::to_vec(object).map_err(|error| error.to_string())?;
    let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json").body(body);
    match client.request::<Value>(request.map_err(|error| error.to_string())?).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => Err(error.to_string()),
    }
}

/// An object in words: kind, namespace and name.
struct Described<'a>(&'a Value);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |pointer: &str| self.0.pointer(pointer).and_then(Value::as_str);
        let namespace = text("/metadata/namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
        write!(f, "{} {namespace}{}", text("/kind").unwrap_or("object"), text("/metadata/name").unwrap_or("?"))
    }
}

/// A kubeconfig on disk; removed when dropped, unless the user said where to write it.
struct Kubeconfig {
    path: PathBuf,
    temporary: bool,
}

impl Kubeconfig {
    fn write(path: Option<&Path>, address: SocketAddr) -> anyhow::Result<Self> {
        let own = || std::env::temp_dir().join(format!("cronjob-controller-sandbox-{}.yaml", address.port()));
        let written = Self { path: path.map_or_else(own, Path::to_owned), temporary: path.is_none() };
        if let Ok(present) = std::fs::read_to_string(&written.path) {
            // `run` reads a file under the same flag: a slip must not cost somebody the credentials of a cluster.
            anyhow::ensure!(
                present.starts_with(MARK),
                "{} exists and is no kubeconfig of a sandbox; it is left as it is (--kubeconfig)",
                written.path.display()
            );
        }
        std::fs::write(&written.path, format!("{MARK}{}", kubeconfig(address)))
            .with_context(|| format!("cannot write the kubeconfig {}", written.path.display()))?;
        Ok(written)
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if self.temporary {
            // A file left behind in the folder of temporary files does no harm.
            let _removed = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Args as CommandLine, Command};
    use clap::Parser;

    fn parse(flags: &[&str]) -> Result<SandboxArgs, clap::Error> {
        let line = ["cronjob-controller", "sandbox"].iter().chain(flags);
        match CommandLine::try_parse_from(line)?.command {
            Command::Sandbox(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_may_be_repeated_and_time_is_typed() {
        let args = parse(&["-f", "a.yaml", "-f", "dir", "--speed", "3600", "--for", "1m", "--port", "6440"]).unwrap();
        assert_eq!(args.files, [PathBuf::from("a.yaml"), PathBuf::from("dir")]);
        assert_eq!((args.speed, args.run_for, args.port), (3600, Some(Duration::from_secs(60)), 6440));
        assert_eq!(args.log.log_level, "warn");
    }

    #[test]
    fn a_server_alone_has_no_controllers_and_no_time_of_its_own() {
        assert!(parse(&["--server-only"]).unwrap().server_only);
        for flag in ["--speed=2", "--controllers=*"] {
            assert_eq!(parse(&["--server-only", flag]).unwrap_err().exit_code(), 2, "{flag}");
        }
    }

    #[test]
    fn time_that_stands_still_or_an_empty_run_is_refused() {
        for flag in ["--speed=0", "--for=0s", "--port=70000"] {
            assert_eq!(parse(&[flag]).unwrap_err().exit_code(), 2, "{flag}");
        }
    }
}
