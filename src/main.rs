//! The binary: hands the command line to [`cronjob_controller::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    cronjob_controller::cli::main()
}
