//! The layers: flag, environment, file, default, the first that says something counts.
//!
//! The lower layers become the defaults of the flags before clap reads the command line, so there is no merging of ours.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};

use super::environment::Environment;
use super::fields::find;
use super::{Fault, Origin, Setting, bytes_of, read_file};
use crate::cli::values::Contradiction;
use crate::cli::{Args, Command as Chosen};
use crate::telemetry::Flag;

/// The command that has layers.
const RUN: &str = "run";

/// A command line with what lies below it.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// What to do.
    pub(crate) args: Args,
    /// The flags of `run` as they count, with their sources; empty for other commands.
    pub(crate) flags: Vec<Flag>,
    /// What is odd but no fault.
    pub(crate) warnings: Vec<String>,
}

/// Why there is nothing to do.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The command line is not valid, or asks for help only.
    CommandLine(clap::Error),
    /// The file cannot be read.
    Unreadable(anyhow::Error),
    /// What is wrong, all of it.
    Faults(Vec<Fault>),
}

impl LoadError {
    /// Tells the user; the exit code.
    pub(crate) fn tell(&self) -> ExitCode {
        match self {
            Self::CommandLine(error) => {
                // Whoever reads no output reads no error about that either.
                let _unread = error.print();
                u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
            }
            Self::Unreadable(error) => crate::cli::failed(error),
            Self::Faults(faults) => crate::cli::invalid(faults),
        }
    }
}

impl From<clap::Error> for LoadError {
    fn from(error: clap::Error) -> Self {
        Self::CommandLine(error)
    }
}

/// Reads a command line (the name of the program first), and for `run` what lies below it.
///
/// # Errors
/// See [`LoadError`].
pub(crate) fn load(line: &[OsString], environment: &Environment) -> Result<Loaded, LoadError> {
    let command = Args::command();
    let first = command.clone().try_get_matches_from(line)?;
    let Some((RUN, given)) = first.subcommand() else {
        let args = Args::from_arg_matches(&first)?;
        return Ok(Loaded { args, flags: Vec::new(), warnings: Vec::new() });
    };
    let mut layers = Layers::new(&command);
    let environment_settings = environment.settings(&layers.run);
    let told =
        environment_settings.iter().find(|setting| setting.flag == "config").map(|setting| setting.value.clone());
    if let Some(file) = given.get_one::<PathBuf>("config").cloned().or(told.map(PathBuf::from)) {
        layers.lay_file(&file, &bytes_of(&file).map_err(LoadError::Unreadable)?);
    }
    layers.lay(environment_settings);
    let (args, matches) = layers.read(command, line)?;
    let flags = match matches.subcommand() {
        Some((RUN, run)) => layers.effective(run),
        _ => Vec::new(),
    };
    let unknown = environment.unknown(&layers.run);
    let warnings = unknown.iter().map(|name| format!("{name} is the variable of no flag")).collect();
    Ok(Loaded { args, flags, warnings })
}

/// All that is wrong with a file, taken by itself.
///
/// # Errors
/// It cannot be read.
pub(super) fn validate(file: &Path) -> anyhow::Result<Vec<Fault>> {
    faults_of(file, &bytes_of(file)?)
}

/// All that is wrong with the bytes of the file at `path`.
///
/// # Errors
/// The command line itself is not sound.
pub(super) fn faults_of(path: &Path, bytes: &[u8]) -> anyhow::Result<Vec<Fault>> {
    let command = Args::command();
    let mut layers = Layers::new(&command);
    layers.lay_file(path, bytes);
    match layers.read(command, &["cronjob-controller".into(), RUN.into()]) {
        Ok(_) => Ok(Vec::new()),
        Err(LoadError::Faults(faults)) => Ok(faults),
        Err(LoadError::CommandLine(error)) => Err(error.into()),
        Err(LoadError::Unreadable(error)) => Err(error),
    }
}

/// What lies below the command line of `run`.
struct Layers {
    run: Command,
    /// By flag: of two layers the upper one.
    settings: BTreeMap<String, Setting>,
    faults: Vec<Fault>,
}

impl Layers {
    fn new(command: &Command) -> Self {
        let run = command.find_subcommand(RUN).cloned().unwrap_or_default();
        Self { run, settings: BTreeMap::new(), faults: Vec::new() }
    }

    fn lay_file(&mut self, path: &Path, bytes: &[u8]) {
        let (settings, faults) = read_file(path, bytes);
        self.faults.extend(faults);
        self.lay(settings);
    }

    /// Lays settings on top of those that are there; one that its flag refuses becomes a fault, also if another layer is to
    /// cover it.
    fn lay(&mut self, settings: Vec<Setting>) {
        for setting in settings {
            match refusal(&self.run, &setting.flag, &setting.value) {
                Some(message) => self.faults.push(Fault { origin: setting.origin, message }),
                None => {
                    self.settings.insert(setting.flag.clone(), setting);
                }
            }
        }
    }

    /// Reads the command line on top of all layers.
    fn read(&mut self, command: Command, line: &[OsString]) -> Result<(Args, ArgMatches), LoadError> {
        let settings = &self.settings;
        let command = command.mut_subcommand(RUN, |run| run.mut_args(|arg| over(arg, settings)));
        let matches = command.try_get_matches_from(line)?;
        let args = Args::from_arg_matches(&matches)?;
        if let Chosen::Run(run) = &args.command {
            for Contradiction { flags, message } in run.contradictions() {
                let origin = flags.iter().find_map(|flag| Some(self.settings.get(*flag)?.origin.clone()));
                let origin = origin.unwrap_or_else(|| Origin::Flag(flags.join(", --")));
                self.faults.push(Fault { origin, message });
            }
        }
        if self.faults.is_empty() { Ok((args, matches)) } else { Err(LoadError::Faults(self.faults.clone())) }
    }

    /// Each flag with its value and where that comes from.
    fn effective(&self, run: &ArgMatches) -> Vec<Flag> {
        let of_process = ["help", "version"];
        let args = self.run.get_arguments().filter(|arg| !of_process.contains(&arg.get_id().as_str()));
        let flag = |arg: &Arg| {
            let (id, name) = (arg.get_id().as_str(), arg.get_long()?.to_owned());
            let values = run.try_get_raw(id).ok().flatten().into_iter().flatten();
            let value = values.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(",");
            let source = match (run.value_source(id), self.settings.get(&name)) {
                (Some(ValueSource::CommandLine), _) => "flag".to_owned(),
                (_, Some(setting)) => setting.origin.to_string(),
                (_, None) => "default".to_owned(),
            };
            Some(Flag { name, value, source })
        };
        args.filter_map(flag).collect()
    }
}

/// The flag, with the setting of a lower layer as its default.
fn over(arg: Arg, settings: &BTreeMap<String, Setting>) -> Arg {
    match arg.get_long().and_then(|long| settings.get(long)) {
        Some(setting) => arg.default_value(clap::builder::OsStr::from(setting.value.clone())),
        None => arg,
    }
}

/// Why the flag refuses the value, in the flag's own words.
pub(super) fn refusal(run: &Command, flag: &str, value: &OsStr) -> Option<String> {
    find(run, flag)?;
    let mut given = OsString::from(format!("--{flag}="));
    given.push(value);
    let error = run.clone().try_get_matches_from([OsString::from(RUN), given]).err()?;
    Some(match std::error::Error::source(&error) {
        Some(source) => source.to_string(),
        None => {
            let text = error.to_string();
            let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
            lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
        }
    })
}

#[cfg(test)]
mod tests;
