//! A child process: started, asked by way of /proc, and ended with this value or with us.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use tempfile::TempDir;

use super::support::guardian::Guardian;

/// Ticks of the CPU times in /proc; Linux shows them at this rate on every machine.
const TICKS_PER_S: f64 = 100.0;

/// What the kernel says of processes at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// User and system time since they began.
    pub(crate) cpu_s: f64,
    /// Resident now.
    pub(crate) resident_mib: f64,
    /// Resident at most so far.
    pub(crate) peak_mib: f64,
}

/// A process of ours with a folder of its own.
pub(crate) struct Process {
    name: String,
    child: Child,
    folder: TempDir,
    _guardian: Guardian,
}

impl Process {
    /// Starts `command`; what it logs goes to a file in its folder.
    pub(crate) fn start(name: &str, command: &mut Command) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("herd-").tempdir()?;
        let mut guardian = Guardian::new(folder.path());
        let log = File::create(folder.path().join("log"))?;
        let child =
            command.stdin(Stdio::null()).stderr(log).spawn().with_context(|| format!("{name} does not start"))?;
        guardian.guard(&child);
        Ok(Self { name: name.to_owned(), child, folder, _guardian: guardian })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The first line on its standard output, which must have been piped.
    pub(crate) fn first_line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if let Some(out) = self.child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        ensure!(!line.is_empty(), "{} says nothing: {}", self.name, self.log());
        Ok(line)
    }

    /// Fails when it has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait()?;
        ensure!(ended.is_none(), "{} has ended: {}", self.name, self.log());
        Ok(())
    }

    /// The end of what it logged.
    fn log(&self) -> String {
        let text = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Copies its log to `folder`.
    pub(crate) fn keep_log(&self, folder: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(folder)?;
        let to = folder.join(format!("{}-{}.log", self.name, self.pid()));
        std::fs::copy(self.folder.path().join("log"), to)?;
        Ok(())
    }

    /// Lets the greatest resident size count from now on.
    pub(crate) fn forget_peak(&self) -> anyhow::Result<()> {
        Ok(std::fs::write(format!("/proc/{}/clear_refs", self.pid()), "5")?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.child.kill();
        let _code = self.child.wait();
    }
}

/// The sum over `pids`.
pub(crate) fn usage(pids: &[u32]) -> anyhow::Result<Usage> {
    let mut sum = Usage::default();
    for pid in pids {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        sum.cpu_s += cpu_s(&stat).context("an unknown form of /proc/PID/stat")?;
        sum.resident_mib += mib(&status, "VmRSS:").unwrap_or_default();
        sum.peak_mib += mib(&status, "VmHWM:").unwrap_or_default();
    }
    Ok(sum)
}

fn cpu_s(stat: &str) -> Option<f64> {
    // The name in parentheses may hold anything; the fields after it are plain: state is the third, times the 14th and 15th.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok());
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_S)
}

fn mib(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kib| kib / 1024.0)
}

/// Waits until `pids` together use less than a twentieth of a core for two seconds; at most `patience`. Whether they did.
pub(crate) async fn calm(pids: &[u32], patience: Duration) -> anyhow::Result<bool> {
    let mut before = usage(pids)?.cpu_s;
    let mut calm = 0;
    for _ in 0..patience.as_secs() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = usage(pids)?.cpu_s;
        calm = if now - before < 0.05 { calm + 1 } else { 0 };
        before = now;
        if calm == 2 {
            return Ok(true);
        }
    }
    Ok(false)
}
