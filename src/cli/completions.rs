//! `completions`: a completion script for a shell.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example, for this session of bash:\n  source <(cronjob-controller completions bash)")]
pub struct CompletionsArgs {
    /// The shell to write for.
    pub shell: Shell,
}

/// Writes the script to standard output.
pub fn execute(args: &CompletionsArgs) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Args::command(), "cronjob-controller", &mut script);
    // A reader that has seen enough (`| head`) is no failure of ours.
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => super::failed(&error.into()),
        _ => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut super::super::Args::command(), "cronjob-controller", &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("completions") && script.contains("time-zone"), "{shell}");
        }
    }
}
