//! `run --shadow`: its flags, and the file that its records go to.
//!
//! Invariant: a judgement never waits for whoever reads the report; lines go through a channel to the one thread that writes.

use std::convert::Infallible;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use clap::{ArgAction, Args};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::controllers::shadow::{Record, Report, Shadow, Summary};
use crate::controllers::{Options, Registration, Setup};

/// Lines that wait for a slow reader; some 50 MB. Beyond, records are dropped and counted.
const MOST_WAITING: usize = 100_000;

/// Flags of shadow mode.
#[derive(Debug, Args)]
#[command(next_help_heading = "Shadow mode")]
pub struct ShadowArgs {
    /// Watch and decide, but write nothing, and report where the controller in charge does otherwise than this one would.
    ///
    /// Needs no rights but get, list and watch on CronJobs and Jobs. There is no leader election.
    #[arg(long, value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    pub shadow: bool,

    /// Where the records of --shadow go, one JSON object a line: a file that is appended to, or "-" for standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub shadow_report: Destination,
}

/// Value of `--shadow-report`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output; logs go to standard error.
    Stdout,
    /// This file, appended to.
    File(PathBuf),
}

impl FromStr for Destination {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "-" { Self::Stdout } else { Self::File(text.into()) })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("-"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Destination {
    fn open(&self) -> anyhow::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Self::Stdout => Box::new(io::stdout()),
            Self::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                Box::new(file.with_context(|| format!("cannot open {} (--shadow-report)", path.display()))?)
            }
        })
    }
}

/// Turns reports into lines.
struct Lines {
    lines: mpsc::Sender<Vec<u8>>,
    dropped: AtomicU64,
}

impl Lines {
    fn put(&self, report: &impl Serialize) {
        let Ok(mut line) = serde_json::to_vec(report) else { return };
        line.push(b'\n');
        if self.lines.try_send(line).is_err() && self.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::error!("the report is not read fast enough, or not at all: records are dropped");
        }
    }
}

impl Report for Lines {
    fn on_record(&self, record: &Record) {
        self.put(record);
    }

    fn on_summary(&self, summary: &Summary) {
        let dropped = self.dropped.load(Ordering::Relaxed);
        tracing::info!(records = summary.records, differences = %json!(summary.differences), rules = %json!(summary.rules), dropped, "summary");
        self.put(summary);
    }
}

/// The shadows, ready to run until `stop`, or until the report cannot be written, which is then the error.
///
/// # Errors
/// The report cannot be opened.
pub(super) fn prepare(
    to: &Destination,
    setup: Setup,
    options: Options,
    controllers: &[&Registration],
    stop: &CancellationToken,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>> + use<>> {
    let (lines, waiting) = mpsc::channel(MOST_WAITING);
    let (stop, out, to) = (stop.child_token(), to.open()?, to.to_string());
    let unwritable = stop.clone();
    let writer: JoinHandle<io::Result<()>> =
        tokio::task::spawn_blocking(move || write(out, waiting).inspect_err(|_| unwritable.cancel()));
    tracing::info!(to, "shadow mode: nothing is written to the cluster; records go to the report");
    let report = Arc::new(Lines { lines, dropped: AtomicU64::new(0) });
    let shadow = Shadow::new(setup, options, controllers, report);
    Ok(async move {
        // The report, and with it the channel, goes when this has ended.
        shadow.run(stop).await;
        writer
            .await
            .context("the writer of the report ended")?
            .with_context(|| format!("cannot write to {to} (--shadow-report)"))
    })
}

/// Writes lines until there are no more; flushes whenever nothing waits.
fn write(out: impl Write, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    while let Some(line) = lines.blocking_recv() {
        out.write_all(&line)?;
        if lines.is_empty() {
            out.flush()?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_goes_to_standard_output_or_to_a_file() {
        assert_eq!("-".parse(), Ok(Destination::Stdout));
        assert_eq!("/tmp/r.jsonl".parse(), Ok(Destination::File("/tmp/r.jsonl".into())));
        assert_eq!(Destination::Stdout.to_string(), "-");
        let nowhere = Destination::File("/nonexistent/folder/r.jsonl".into());
        let error = nowhere.open().err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("cannot open /nonexistent/folder/r.jsonl (--shadow-report)"));
    }

    #[tokio::test]
    async fn a_reader_that_is_too_slow_costs_records_and_not_memory() {
        let (lines, waiting) = mpsc::channel(1);
        let report = Lines { lines, dropped: AtomicU64::new(0) };
        (0..3).for_each(|number| report.put(&number));
        assert_eq!(report.dropped.load(Ordering::Relaxed), 2);
        drop(report);
        let mut out = Vec::new();
        let written = tokio::task::spawn_blocking(move || write(&mut out, waiting).map(|()| out));
        assert_eq!(written.await.unwrap().unwrap(), b"0\n");
    }
}
