//! The flags of logging, for every command that logs.

use clap::Args;

use crate::clock::Clock;
use crate::telemetry::{self, LogError, LogFormat};

/// Flags of logging.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogArgs {
    /// Level (error, warn, info, debug, trace, off), or levels for parts of the program
    /// ("warn,cronjob_controller::cluster=debug").
    #[arg(long, value_name = "FILTER", default_value = "info", value_parser = parse_filter)]
    pub log_level: String,

    /// Form of a log line: text or json. Lines go to standard error.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub logging_format: LogFormat,
}

fn parse_filter(text: &str) -> Result<String, String> {
    let parsed = tracing_subscriber::EnvFilter::builder().parse(text);
    parsed.map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl LogArgs {
    /// Sets up logging for this process, stamped by `clock`; call once.
    ///
    /// # Errors
    /// The filter does not parse, or logging is set up already.
    pub fn init(&self, clock: &Clock) -> Result<(), LogError> {
        telemetry::init_logs(&self.log_level, self.logging_format, clock.clone())?;
        telemetry::log_panics();
        Ok(())
    }
}
