//! Forecasts as text for people.

use std::fmt::Write;

use chrono::{SecondsFormat, TimeDelta};

use super::forecast::{Forecast, Start};
use crate::model::WallTime;

/// All forecasts, an empty line between two.
pub(super) fn render(forecasts: &[Forecast], from: WallTime) -> String {
    forecasts.iter().map(|forecast| one(forecast, from)).collect::<Vec<_>>().join("\n")
}

fn one(forecast: &Forecast, from: WallTime) -> String {
    let mut out = String::new();
    if let Some(object) = &forecast.object {
        line(&mut out, "CronJob", &format!("{}/{} ({})", object.namespace, object.name, object.api_version));
    }
    line(&mut out, "Schedule", &format!("{} in {}", forecast.schedule, forecast.time_zone));
    line(&mut out, "Meaning", &forecast.description);
    if forecast.suspended {
        line(&mut out, "Suspended", "nothing starts until spec.suspend is false");
    }
    if forecast.never {
        line(&mut out, "Starts", "none within the five years that the controllers look ahead");
    } else {
        starts(&mut out, forecast, from);
    }
    for note in &forecast.notes {
        line(&mut out, "Note", note);
    }
    out
}

fn line(out: &mut String, head: &str, text: &str) {
    out.push_str(&format!("{:<11}{text}", format!("{head}:")));
    out.push('\n');
}

fn starts(out: &mut String, forecast: &Forecast, from: WallTime) {
    let zone = forecast.time_zone.to_uppercase();
    let rows: Vec<[String; 4]> = std::iter::once([zone, "UTC".to_owned(), "IN".to_owned(), String::new()])
        .chain(forecast.starts.iter().map(|start| row(start, from)))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (local, utc, wait) = (width(0), width(1), width(2));
    for [a, b, c, note] in &rows {
        let text = format!("  {a:<local$}  {b:<utc$}  {c:<wait$}  {note}");
        // A String takes whatever is written to it.
        let _ = writeln!(out, "{}", text.trim_end());
    }
}

fn row(start: &Start, from: WallTime) -> [String; 4] {
    [
        start.local.format("%a %Y-%m-%d %H:%M:%S %:z").to_string(),
        start.utc.to_rfc3339_opts(SecondsFormat::Secs, true),
        wait(start.utc - from),
        start.note.clone().unwrap_or_default(),
    ]
}

/// A wait by its two largest units: `45s`, `3h20m`, `12d4h`.
fn wait(wait: TimeDelta) -> String {
    let seconds = wait.num_seconds().max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{}s", seconds % 60),
        (0, ..) => format!("{hours}h{minutes}m"),
        _ => format!("{days}d{hours}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_shows_its_two_largest_units() {
        for (seconds, expected) in [(45, "45s"), (61, "1m1s"), (12_000, "3h20m"), (1_051_200, "12d4h"), (-5, "0s")] {
            assert_eq!(wait(TimeDelta::seconds(seconds)), expected);
        }
    }
}
