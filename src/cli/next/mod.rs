//! `next`: when a schedule, or the CronJobs in a file, start next. It asks the same code as the controllers do.

mod clock_change;
mod forecast;
mod table;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::manifests::{self, Manifest};
use super::with_causes;
use crate::api::decode_cronjob;
use crate::clock::Clock;
use crate::model::{CronJob, Flavor, WallTime};
use forecast::{Asked, Forecast};

/// Years that `--from` may lie in.
const YEARS: std::ops::RangeInclusive<i32> = 1..=9998;

/// Arguments of `next`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  What does half past two mean where the clocks change?
    cronjob-controller next --schedule '30 2 * * *' --time-zone America/New_York --from 2026-03-07
  Every CronJob in a file (both APIs, several documents, lists), as data:
    cronjob-controller next -f cronjobs.yaml -o json
  Of a cluster:
    kubectl get cronjobs -A -o yaml | cronjob-controller next -f -

The answers are those of the controllers: what robfig/cron's Next gives, its habits at clock
changes included. For @every the count starts at the last run or the creation of the CronJob
where the file has them, else at --from.

Ends with code 2 if a schedule, a zone or a file is not valid; the message is that of the
controllers' events.")]
pub struct NextArgs {
    /// Schedule: five fields (minute, hour, day of month, month, day of week), or @hourly, @daily, @weekly, @monthly, @yearly,
    /// "@every 90m".
    #[arg(
        long,
        short = 's',
        value_name = "SCHEDULE",
        required_unless_present = "filename",
        conflicts_with = "filename"
    )]
    schedule: Option<String>,

    /// Zone of --schedule, by its IANA name. Default: UTC.
    #[arg(long, short = 'z', value_name = "ZONE", conflicts_with = "filename")]
    time_zone: Option<String>,

    /// Manifest with CronJobs, a directory of such, or - for standard input. Other objects in it are passed over.
    #[arg(short = 'f', long, value_name = "FILE")]
    filename: Option<PathBuf>,

    /// Starts after this instant: RFC 3339 ("2026-03-07T18:00:00-05:00"), or a date, meaning its midnight UTC. Default: now.
    #[arg(long, value_name = "TIME", value_parser = parse_instant)]
    from: Option<WallTime>,

    /// How many starts to list.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,

    /// Form of the answer. json and yaml are a list with one entry for each schedule.
    #[arg(long, short = 'o', value_name = "FORM", value_enum, default_value_t = Form::Table)]
    output: Form,
}

/// Value of `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people.
    Table,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Prints the forecasts to standard output and what is not valid to standard error.
pub fn execute(args: &NextArgs) -> ExitCode {
    let from = args.from.unwrap_or_else(|| Clock::system().wall());
    let (text, complaints) = answer(args, from);
    if let Err(error) = io::stdout().write_all(text.as_bytes())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        return super::failed(&error.into());
    }
    for complaint in &complaints {
        eprintln!("error: {complaint}");
    }
    if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(super::INVALID_INPUT) }
}

/// What to print, and a complaint for each schedule that is not valid.
fn answer(args: &NextArgs, from: WallTime) -> (String, Vec<String>) {
    let (asked, mut complaints) = asked(args);
    let mut forecasts = Vec::new();
    for asked in asked {
        match Forecast::of(&asked, from, usize::from(args.count)) {
            Ok(forecast) => forecasts.push(forecast),
            Err(error) => complaints.push(asked.complaint(&error)),
        }
    }
    if forecasts.is_empty() && !complaints.is_empty() {
        return (String::new(), complaints);
    }
    let text = match args.output {
        Form::Table => Ok(table::render(&forecasts, from)),
        Form::Json => {
            serde_json::to_string_pretty(&forecasts).map(|json| json + "\n").map_err(|error| error.to_string())
        }
        Form::Yaml => serde_saphyr::to_string(&forecasts).map_err(|error| error.to_string()),
    };
    match text {
        Ok(text) => (text, complaints),
        Err(error) => (String::new(), vec![error]),
    }
}

/// The schedules asked about, and what could not even be read.
fn asked(args: &NextArgs) -> (Vec<Asked>, Vec<String>) {
    let Some(path) = &args.filename else {
        let schedule = args.schedule.as_deref().unwrap_or_default();
        return (vec![Asked::bare(schedule, args.time_zone.as_deref())], Vec::new());
    };
    let manifests = match manifests::read(path) {
        Ok(manifests) => manifests,
        Err(error) => return (Vec::new(), vec![with_causes(&anyhow::Error::new(error))]),
    };
    let (mut asked, mut complaints) = (Vec::new(), Vec::new());
    for manifest in &manifests {
        match cronjob(manifest) {
            Some(Ok((flavor, cronjob))) => asked.push(Asked::of(flavor, &cronjob)),
            Some(Err(complaint)) => complaints.push(complaint),
            None => {}
        }
    }
    if asked.is_empty() && complaints.is_empty() {
        complaints.push(format!("{} holds no CronJob of batch/v1 or batch.volcano.sh/v1alpha1", path.display()));
    }
    (asked, complaints)
}

/// The CronJob that a manifest is; `None` for other objects.
fn cronjob(manifest: &Manifest) -> Option<Result<(Flavor, CronJob), String>> {
    let object = &manifest.object;
    if object.get("kind").and_then(Value::as_str) != Some("CronJob") {
        return None;
    }
    let flavor = match object.get("apiVersion").and_then(Value::as_str) {
        Some("batch/v1") => Flavor::Kubernetes,
        Some("batch.volcano.sh/v1alpha1") => Flavor::Volcano,
        _ => return None,
    };
    let decoded = decode_cronjob(flavor, &object.to_string()).map_err(|error| {
        let text = with_causes(&anyhow::Error::new(error));
        // The position is one in the JSON made above, not in the file.
        let text = text.split(" at line ").next().unwrap_or_default();
        format!("{}: {text}", manifest.path.display())
    });
    Some(decoded.map(|cronjob| (flavor, cronjob)))
}

fn parse_instant(text: &str) -> Result<WallTime, String> {
    let instant = DateTime::parse_from_rfc3339(text).map(|instant| instant.with_timezone(&Utc)).ok();
    let midnight = || text.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0).map(|midnight| midnight.and_utc());
    // Far from the edges of what a time can be, so that no sum overflows.
    let sound = instant.or_else(midnight).filter(|instant| YEARS.contains(&instant.year()));
    sound.ok_or_else(|| {
        format!("{text:?} is neither a time such as 2026-03-07T18:00:00-05:00 nor a date such as 2026-03-07")
    })
}

#[cfg(test)]
mod tests;
