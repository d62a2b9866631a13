//! `sandbox`: everything in one process, faster than time.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::controller::ControllerArgs;
use super::logging::LogArgs;
use super::values::parse_positive_duration;

/// Arguments of `sandbox`.
#[derive(Debug, Args)]
#[command(
    // The timeline on standard output is what people come for; logs are for those who ask.
    mut_arg("log_level", |arg| arg.default_value("warn")),
    after_help = "\
Examples:
  The samples, an hour in a minute; a daily CronJob runs every 24 minutes:
    cronjob-controller sandbox
  Your own CronJobs, a day in half a minute, then stop:
    cronjob-controller sandbox -f cronjobs.yaml --speed 2880 --for 30s
  Look inside while it runs:
    cronjob-controller sandbox --port 6440 --kubeconfig /tmp/sandbox.yaml
    kubectl --kubeconfig /tmp/sandbox.yaml get cronjobs,jobs -A -w

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
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub speed: u32,

    /// End after this much real time. Default: run until Ctrl-C.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_positive_duration)]
    pub run_for: Option<Duration>,

    /// Port of the API server on 127.0.0.1, plain HTTP; 0 takes any free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Where to write a kubeconfig for the sandbox. Default: a file in the directory for temporary files, removed at the end.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

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
/// A manifest cannot be read or is refused, or a port is taken.
pub async fn execute(args: SandboxArgs) -> anyhow::Result<()> {
    drop(args);
    anyhow::bail!("not wired yet")
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
    fn time_that_stands_still_or_an_empty_run_is_refused() {
        for flag in ["--speed=0", "--for=0s", "--port=70000"] {
            assert_eq!(parse(&[flag]).unwrap_err().exit_code(), 2, "{flag}");
        }
    }
}
