//! How `run` is configured: a file below environment variables below flags, and the command `config` about the file.
//!
//! Invariants
//! - A setting is parsed, defaulted and judged in one place: by its flag. File and environment give texts for flags, which
//!   take the place of the flag's default; so what is on the command line goes first without a rule of its own.
//! - A fault names where its text stands: file, line and field; variable; or flag.
//! - All faults are told, not only the first.

mod environment;
mod fields;
mod layers;
mod read;
mod shape;

use std::ffi::OsString;
use std::fmt;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command, CommandFactory, Subcommand};

pub(crate) use self::environment::Environment;
use self::fields::{Place, default_of, find, places};
pub(crate) use self::layers::{Loaded, load};
use crate::file::read_regular;

/// Arguments of `config`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronjob-controller config print-defaults > config.yaml
  cronjob-controller config validate config.yaml
  cronjob-controller run --config config.yaml

Exit codes of validate: 0 valid, 1 the file cannot be read, 2 it is not valid.")]
pub struct ConfigArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// The commands about the configuration file.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write a configuration file that says what holds without one.
    PrintDefaults,
    /// Write the JSON Schema of the configuration file.
    PrintSchema,
    /// Say all that is wrong with a configuration file.
    Validate {
        /// The file.
        file: PathBuf,
    },
}

/// A text for a flag, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    flag: String,
    value: OsString,
    origin: Origin,
}

/// Where a setting stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// In the file.
    File { path: PathBuf, line: u64, field: String },
    /// In a variable.
    Environment(String),
    /// On the command line, or nowhere.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, field } => {
                path.display().fmt(f)?;
                if *line > 0 {
                    write!(f, ":{line}")?;
                }
                if field.is_empty() { Ok(()) } else { write!(f, ": {field}") }
            }
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag(flag) => write!(f, "--{flag}"),
        }
    }
}

/// Something wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    origin: Origin,
    message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What stands in a file must not reach a terminal as an order to it.
        for c in format!("{}: {}", self.origin, self.message).chars() {
            if c.is_control() { c.escape_default().fmt(f)? } else { f.write_char(c)? }
        }
        Ok(())
    }
}

/// Does what the command says.
pub fn execute(args: &ConfigArgs) -> ExitCode {
    match &args.command {
        ConfigCommand::PrintDefaults => print(&defaults(&run_command())),
        ConfigCommand::PrintSchema => print(&format!("{:#}\n", fields::schema(&run_command()))),
        ConfigCommand::Validate { file } => match layers::validate(file) {
            Ok(faults) if faults.is_empty() => print(&format!("{} is valid\n", file.display())),
            Ok(faults) => super::invalid(&faults),
            Err(error) => super::failed(&error),
        },
    }
}

/// The command `run` as clap knows it.
fn run_command() -> Command {
    super::Args::command().find_subcommand("run").cloned().unwrap_or_default()
}

/// A reader that has seen enough (`| head`) is no failure of ours.
fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => super::failed(&error.into()),
        _ => ExitCode::SUCCESS,
    }
}

/// All that is wrong with a configuration file of these bytes, a line each; `path` is what it is called.
///
/// # Errors
/// The flags of this program contradict each other.
pub fn check(path: &Path, bytes: &[u8]) -> anyhow::Result<Vec<String>> {
    Ok(layers::faults_of(path, bytes)?.iter().map(ToString::to_string).collect())
}

fn bytes_of(path: &Path) -> anyhow::Result<Vec<u8>> {
    read_regular(path).with_context(|| format!("cannot read {}", path.display()))
}

/// What the file at `path` sets, and what is wrong with its shape.
fn read_file(path: &Path, bytes: &[u8]) -> (Vec<Setting>, Vec<Fault>) {
    let run = run_command();
    let (found, wrong) = read::read(bytes, &|flag, value| layers::refusal(&run, flag, value.as_ref()).is_none());
    let origin = |line, field| Origin::File { path: path.to_owned(), line, field };
    let settings = found.into_iter().map(|found| Setting {
        flag: found.flag,
        value: found.value.into(),
        origin: origin(found.line, found.field),
    });
    let faults =
        wrong.into_iter().map(|wrong| Fault { origin: origin(wrong.line, wrong.field), message: wrong.message });
    (settings.collect(), faults.collect())
}

/// A file that sets every flag that has a default to it, and names the others.
fn defaults(run: &Command) -> String {
    let mut out = String::from("# What `cronjob-controller run` does without a file, variables or flags.\n");
    write_defaults(&mut out, run, 0, &places());
    out
}

fn write_defaults(out: &mut String, run: &Command, depth: usize, place: &Place) {
    let Place::Group(places) = place else { return };
    let indent = "  ".repeat(depth);
    // Version and kind first, as in every object.
    let (fixed, others): (Vec<_>, Vec<_>) = places.iter().partition(|(_, place)| matches!(place, Place::Fixed(_)));
    for (name, place) in fixed.into_iter().chain(others) {
        // Writing to a String does not fail.
        let _written = match place {
            Place::Fixed(text) => writeln!(out, "{indent}{name}: {text}"),
            Place::Group(_) => writeln!(out, "{indent}{name}:"),
            Place::Field(field) => {
                let arg = find(run, &field.flag);
                let help = arg.and_then(clap::Arg::get_help).map(ToString::to_string).unwrap_or_default();
                let value = arg.and_then(default_of).map(|default| field.form.write(default));
                match value {
                    Some(value) => writeln!(out, "{indent}# {help}\n{indent}{name}: {value}"),
                    None => writeln!(out, "{indent}# {help}\n{indent}# {name}:"),
                }
            }
        };
        write_defaults(out, run, depth + 1, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_a_valid_file_that_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, defaults(&run_command())).unwrap();
        assert_eq!(layers::validate(&file).unwrap(), []);
        let (settings, _) = read_file(&file, &bytes_of(&file).unwrap());
        let run = run_command();
        for setting in &settings {
            assert_eq!(default_of(find(&run, &setting.flag).unwrap()), setting.value.to_str(), "{}", setting.flag);
        }
        let with_default = run.get_arguments().filter(|arg| arg.get_long().is_some() && default_of(arg).is_some());
        assert_eq!(settings.len(), with_default.count());
    }

    #[test]
    fn what_a_fault_quotes_gives_no_orders_to_a_terminal() {
        let origin = Origin::File { path: "a.yaml".into(), line: 1, field: "b\u{1b}[31m\n".to_owned() };
        let fault = Fault { origin, message: "unrecognized: é\u{7}".to_owned() };
        assert_eq!(fault.to_string(), "a.yaml:1: b\\u{1b}[31m\\n: unrecognized: é\\u{7}");
    }
}
