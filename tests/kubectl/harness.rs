//! A sandbox on a free port of the loopback address, and the real kubectl pointed at it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use cronjob_controller::clock::Clock;
use cronjob_controller::sandbox::runner::RunnerOptions;
use cronjob_controller::sandbox::server::kubeconfig;
use cronjob_controller::sandbox::{Options, Sandbox};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// One sandbox with everything that runs in it. Dropping it ends all of it.
pub(crate) struct Cluster {
    pub(crate) sandbox: Sandbox,
    home: TempDir,
    shutdown: CancellationToken,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// What a finished kubectl has left.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Standard output of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert!(self.ok, "kubectl failed: {}{}", self.out, self.err);
        self.out
    }

    /// Standard error of a command that must have failed.
    #[track_caller]
    pub(crate) fn bad(self) -> String {
        assert!(!self.ok, "kubectl succeeded: {}{}", self.out, self.err);
        self.err
    }
}

/// The program, from `CRONJOB_KUBECTL` or `PATH`.
fn program() -> String {
    std::env::var("CRONJOB_KUBECTL").unwrap_or_else(|_| "kubectl".to_owned())
}

/// Whether kubectl can be run. Its absence is a skip that says so, or a failure with `CRONJOB_REQUIRE_KUBECTL=1`.
fn kubectl_is_there() -> bool {
    let there =
        Command::new(program()).args(["version", "--client"]).output().is_ok_and(|output| output.status.success());
    let required = std::env::var("CRONJOB_REQUIRE_KUBECTL").is_ok_and(|value| value == "1");
    assert!(there || !required, "CRONJOB_REQUIRE_KUBECTL=1, but `{}` cannot be run", program());
    if !there {
        eprintln!("SKIPPED: `{}` cannot be run, so the sandbox was not tried with it", program());
    }
    there
}

impl Cluster {
    /// A sandbox whose Jobs run as long as their annotation says (a second if they do not say); `None` without kubectl.
    pub(crate) async fn start() -> Option<Self> {
        if !kubectl_is_there() {
            return None;
        }
        let sandbox = Sandbox::new(Clock::system(), 7, Options::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config"), kubeconfig(listener.local_addr().unwrap())).unwrap();
        let shutdown = CancellationToken::new();
        let tasks = TaskTracker::new();
        let (server, runner, background) = (sandbox.clone(), sandbox.clone(), sandbox.clone());
        let token = shutdown.clone();
        tasks.spawn(async move { server.serve(listener, token).await });
        let options =
            RunnerOptions { pods: true, duration: std::time::Duration::from_secs(1), ..RunnerOptions::default() };
        let token = shutdown.clone();
        tasks.spawn(async move { runner.run_jobs(options, 7, token).await });
        let token = shutdown.clone();
        tasks.spawn(async move { background.run_background(token).await });
        Some(Self { sandbox, home, shutdown })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).env("HOME", self.home.path()).env("TMPDIR", self.home.path());
        command.env("KUBECONFIG", self.home.path().join("config"));
        command.env_remove("KUBECACHEDIR").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs kubectl to its end.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> Said {
        self.kubectl_with("", arguments).await
    }

    /// Runs kubectl to its end, with `input` as its standard input.
    pub(crate) async fn kubectl_with(&self, input: &str, arguments: &[&str]) -> Said {
        finish(self.command(arguments), input.to_owned()).await
    }

    /// Runs kubectl to its end, with one more variable in its environment.
    pub(crate) async fn kubectl_in(&self, variable: &str, value: &str, arguments: &[&str]) -> Said {
        let mut command = self.command(arguments);
        command.env(variable, value);
        finish(command, String::new()).await
    }

    /// Starts a kubectl that goes on, to be read line by line.
    pub(crate) fn follow(&self, arguments: &[&str]) -> Follow {
        let mut child = self.command(arguments).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Follow { child, lines }
    }
}

async fn finish(mut command: Command, input: String) -> Said {
    let output: Output = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    })
    .await
    .unwrap();
    Said {
        ok: output.status.success(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A kubectl that goes on.
pub(crate) struct Follow {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Follow {
    /// Its next line, in columns.
    pub(crate) fn next(&mut self) -> Vec<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        columns(&line)
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The columns of one line: kubectl pads them with at least three blanks.
pub(crate) fn columns(line: &str) -> Vec<String> {
    line.trim().split("   ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
}

/// All lines of a table in columns, without the last column (the age) if `ageless`.
pub(crate) fn table(text: &str, ageless: bool) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = text.lines().map(columns).collect();
    if ageless {
        rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    rows
}
