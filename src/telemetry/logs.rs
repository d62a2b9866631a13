//! Logs: lines of text or JSON on standard error, filtered by level and target, stamped by our own clock.

use std::fmt;
use std::str::FromStr;

use chrono::SecondsFormat;
use thiserror::Error;
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::clock::Clock;

/// Form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, fields at its top level.
    Json,
}

impl FromStr for LogFormat {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Self, LogError> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(LogError::Format(text.to_owned())),
        }
    }
}

/// Why logs could not be set up.
#[derive(Debug, Error)]
pub enum LogError {
    /// The filter does not parse.
    #[error("{filter:?} is not a log filter such as \"info\" or \"warn,cronjob_controller=debug\"")]
    Filter {
        /// What was given.
        filter: String,
        /// What is wrong with it.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Neither `text` nor `json`.
    #[error("{0:?} is not a log format: text or json")]
    Format(String),
    /// This process has a subscriber already.
    #[error("logging is set up already")]
    Twice(#[from] tracing::subscriber::SetGlobalDefaultError),
}

/// Sets up logging to standard error for the whole process; call once. `filter` is a level (`info`) or a list of
/// `target=level` in the form of `RUST_LOG`.
///
/// # Errors
/// The filter does not parse, or logging is set up already.
pub fn init(filter: &str, format: LogFormat, clock: Clock) -> Result<(), LogError> {
    tracing::subscriber::set_global_default(subscriber(filter, format, clock, std::io::stderr)?)?;
    Ok(())
}

/// The subscriber that [`init`] installs, writing to `writer`.
///
/// # Errors
/// The filter does not parse.
pub fn subscriber<W>(
    filter: &str,
    format: LogFormat,
    clock: Clock,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, LogError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let parsed =
        EnvFilter::builder().parse(filter).map_err(|source| LogError::Filter { filter: filter.to_owned(), source })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(writer)
        .with_timer(Stamp(clock))
        .with_ansi(false)
        // Where nobody reads the lines any more, saying so to the same nobody would panic.
        .log_internal_errors(false);
    Ok(match format {
        LogFormat::Text => Box::new(builder.finish()),
        LogFormat::Json => Box::new(builder.json().flatten_event(true).finish()),
    })
}

/// From now on a panic is a log line of level ERROR, in the form of all others, instead of Rust's own text.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text =
            payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let what = text.unwrap_or("panic without a text");
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(panic = what, at, "panicked");
    }));
}

/// Stamps lines with wall time in UTC, in milliseconds: in the sandbox that is the sandbox's time.
struct Stamp(Clock);

impl FormatTime for Stamp {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        writer.write_str(&self.0.wall().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeZone;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn written(filter: &str, format: LogFormat) -> String {
        let page = Page::default();
        let writer = page.clone();
        let clock = Clock::starting_at(chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap());
        let subscriber = subscriber(filter, format, clock, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(namespace = "ml", name = "train", "created Job");
            tracing::debug!("a detail");
        });
        let bytes = page.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn text_lines_carry_our_time_and_the_fields() {
        let line = written("info", LogFormat::Text);
        assert!(line.starts_with("2026-03-08T12:00:00.000Z  INFO "), "{line}");
        assert!(line.ends_with("created Job namespace=\"ml\" name=\"train\"\n"), "{line}");
    }

    #[tokio::test(start_paused = true)]
    async fn json_lines_hold_the_fields_at_their_top_level() {
        let line: serde_json::Value = serde_json::from_str(&written("info", LogFormat::Json)).unwrap();
        assert_eq!(line["timestamp"], "2026-03-08T12:00:00.000Z");
        assert_eq!(
            (&line["level"], &line["message"], &line["name"]),
            (&"INFO".into(), &"created Job".into(), &"train".into())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_filter_decides_what_is_written() {
        assert_eq!(written("debug", LogFormat::Text).lines().count(), 2);
        assert_eq!(written("off", LogFormat::Text), "");
        let clock = Clock::system();
        let error = subscriber("in fo=loud", LogFormat::Text, clock, std::io::stderr).map(drop).unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"in fo=loud\" is not a log filter such as \"info\" or \"warn,cronjob_controller=debug\""
        );
    }
}
