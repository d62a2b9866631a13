//! The commands: what they accept, and which room does the work.
//!
//! One file for each command; `values` and `selection` hold the types of flags that more than one command reads. Exit codes:
//! 0 done, 1 failed, 2 the input (command line, file, expression) is not valid.

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{Parser, Subcommand};

use self::config::{Environment, Loaded};
use crate::schedule::TZDB_VERSION;

pub mod completions;
pub mod config;
pub mod controller;
pub mod election;
pub mod logging;
pub mod manifests;
pub mod next;
mod process;
pub mod run;
#[cfg(feature = "sandbox")]
mod samples;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod selection;
pub mod serving;
pub mod shadow;
#[cfg(feature = "sandbox")]
mod timeline;
pub mod values;

/// Exit code of invalid input, as clap's own.
const INVALID_INPUT: u8 = 2;

/// Version of the crate and of the time zone data in it.
static VERSION: LazyLock<String> = LazyLock::new(|| format!("{} (tzdb {TZDB_VERSION})", env!("CARGO_PKG_VERSION")));

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "cronjob-controller",
    version = VERSION.as_str(),
    about = "Starts the Jobs of CronJobs, of batch/v1 and of batch.volcano.sh/v1alpha1, at the second they are due",
    after_help = "Try it without a cluster:\n  cronjob-controller sandbox\nAsk when a schedule comes due:\n  cronjob-controller next --schedule '30 2 * * *' --time-zone Europe/Berlin",
    max_term_width = 120,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the controllers against a cluster.
    Run(Box<run::RunArgs>),
    /// Run an API server, the controllers and a stand-in for the kubelet in this process, faster than time.
    #[cfg(feature = "sandbox")]
    Sandbox(Box<sandbox::SandboxArgs>),
    /// Say when a schedule, or the CronJobs in a file, start next, and what daylight saving does to them.
    Next(next::NextArgs),
    /// Write or check a configuration file of `run`.
    Config(config::ConfigArgs),
    /// Write a completion script for a shell to standard output.
    Completions(completions::CompletionsArgs),
}

/// Reads the command line of this process and does what it says.
pub fn main() -> ExitCode {
    let line: Vec<_> = std::env::args_os().collect();
    let Loaded { args, flags, warnings } = match config::load(&line, &Environment::of_process()) {
        Ok(loaded) => loaded,
        Err(error) => return error.tell(),
    };
    match args.command {
        Command::Run(args) => on_runtime(run::execute(*args, flags, warnings)),
        #[cfg(feature = "sandbox")]
        Command::Sandbox(args) => on_runtime(sandbox::execute(*args)),
        Command::Next(args) => next::execute(&args),
        Command::Config(args) => config::execute(&args),
        Command::Completions(args) => completions::execute(&args),
    }
}

/// Drives a command that needs the runtime to its end.
fn on_runtime(command: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::Error::new(error).context("cannot start the runtime")),
    };
    match runtime.block_on(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// Tells what is wrong with the input, a line each.
fn invalid<T: std::fmt::Display>(faults: &[T]) -> ExitCode {
    for fault in faults {
        eprintln!("error: {fault}");
    }
    ExitCode::from(INVALID_INPUT)
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {}", with_causes(error));
    ExitCode::FAILURE
}

/// An error and its causes in one line. Wrappers often repeat what they wrap; each cause is told once.
fn with_causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match &*told {
        "" => cause,
        known if known.contains(&cause) => told,
        _ => format!("{told}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_flag_explains_itself() {
        for command in Args::command().get_subcommands() {
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{} {} has no help", command.get_name(), arg.get_id());
            }
        }
    }

    #[test]
    fn an_error_names_each_cause_once() {
        let cause = std::io::Error::from_raw_os_error(2);
        let wrapped = crate::telemetry::CertificateError::Read { path: "/c".into(), source: cause };
        let error = anyhow::Error::new(wrapped).context("no certificate");
        assert_eq!(with_causes(&error), "no certificate: cannot read /c: No such file or directory (os error 2)");
        let parted = anyhow::anyhow!("b").context("a");
        assert_eq!(with_causes(&parted), "a: b");
    }

    #[test]
    fn the_version_names_the_zone_data() {
        let version = Args::command().render_version();
        assert_eq!(version, format!("cronjob-controller {} (tzdb {TZDB_VERSION})\n", env!("CARGO_PKG_VERSION")));
    }
}
