//! What is compared of one CronJob, as lines. Equal lines are equal behaviour.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, FixedOffset};
use serde_json::Value;

use crate::plane::without_identity;

/// Events whose number depends on how often a controller looks, and whether its cache is stale then, not on what it does
/// (`docs/parity.md`, Repeats). Ours are not to be more.
const REPEATED: [&str; 6] =
    ["UnexpectedJob", "ForeignJob", "SawCompletedJob", "JobAlreadyActive", "MissingJob", "TooManyMissedTimes"];

/// Everything seen of one CronJob.
pub(crate) struct Record {
    name: String,
    /// The minute of the start, as Jobs are named by it.
    zero: i64,
    lines: BTreeSet<String>,
    events: BTreeMap<String, i64>,
}

impl Record {
    pub(crate) fn new(name: &str, zero: i64) -> Self {
        Self { name: name.to_owned(), zero, lines: BTreeSet::new(), events: BTreeMap::new() }
    }

    /// A Job came or went.
    pub(crate) fn change(&mut self, what: &str, job: &Value) {
        let name = normal(job["metadata"]["name"].as_str().unwrap(), self.zero);
        self.lines.insert(match what {
            "came" => format!("created {name} {}", without_identity(job, self.zero)),
            _ => format!("deleted {name}"),
        });
    }

    /// A Job is there in the end.
    pub(crate) fn left(&mut self, job: &Value) {
        let owners = job["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len);
        let name = normal(job["metadata"]["name"].as_str().unwrap(), self.zero);
        self.lines.insert(format!("left {name} with {owners} owners"));
    }

    pub(crate) fn event(&mut self, event: &Value) {
        let about = &event["involvedObject"];
        if about["kind"] != "CronJob" || about["name"] != self.name.as_str() {
            return;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let component = text(&event["source"]["component"]);
        let message = normal(&text(&event["message"]), self.zero);
        let line = format!("event {} {} {message} from {component}", text(&event["type"]), text(&event["reason"]));
        *self.events.entry(line).or_default() += event["count"].as_i64().unwrap_or(1).max(1);
    }

    pub(crate) fn status(&mut self, cronjob: Option<&Value>) {
        let Some(cronjob) = cronjob else {
            self.lines.insert("gone".to_owned());
            return;
        };
        let status = &cronjob["status"];
        let active = status["active"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut names: Vec<String> = active
            .iter()
            .map(|entry| {
                let kind = format!("{} {}", entry["apiVersion"], entry["kind"]);
                format!("{kind} {}", normal(entry["name"].as_str().unwrap_or_default(), self.zero))
            })
            .collect();
        names.sort();
        self.lines.insert(format!("status active {names:?}"));
        for field in ["lastScheduleTime", "lastSuccessfulTime"] {
            let value = status[field].as_str().map_or_else(|| "none".to_owned(), |text| normal(text, self.zero));
            self.lines.insert(format!("status {field} {value}"));
        }
        self.lines.insert(format!("generation {}", cronjob["metadata"]["generation"]));
    }

    /// All of it.
    pub(crate) fn lines(&self) -> BTreeSet<String> {
        let events = self.events.iter();
        let events =
            events.map(|(line, count)| if is_repeated(line) { line.clone() } else { format!("{line} x{count}") });
        self.lines.iter().cloned().chain(events).collect()
    }

    /// Repeated events that both have, of which `other` has fewer.
    pub(crate) fn said_more_often_than(&self, other: &Self) -> Vec<String> {
        let repeated = self.events.iter().filter(|(line, _)| is_repeated(line));
        let more = repeated.filter_map(|(line, count)| {
            let theirs = other.events.get(line)?;
            (count > theirs).then(|| format!("{line}: {count} times, not {theirs}"))
        });
        more.collect()
    }
}

fn is_repeated(line: &str) -> bool {
    REPEATED.iter().any(|reason| line.contains(reason))
}

/// A text in which minutes near the start, as numbers or as instants, are counted from the start.
pub(crate) fn normal(text: &str, zero: i64) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, length) = instant(rest, zero)
            .or_else(|| minute(rest, zero))
            .unwrap_or_else(|| rest.chars().next().map_or((String::new(), 1), |c| (c.to_string(), c.len_utf8())));
        out.push_str(&piece);
        rest = &rest[length..];
    }
    out
}

/// The eight digits that Jobs are named by.
fn minute(text: &str, zero: i64) -> Option<(String, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: i64 = text.get(..digits)?.parse().ok()?;
    (digits == 8 && (number - zero).abs() < 1000).then(|| (format!("{:+}", number - zero), digits))
}

/// An RFC 3339 instant: its minute from the start, and its offset. Seconds are those of the creation with `@every`, else 0.
fn instant(text: &str, zero: i64) -> Option<(String, usize)> {
    if !text.starts_with("20") {
        return None;
    }
    let length = [25, 20].into_iter().find(|length| {
        text.get(..*length).is_some_and(|text| DateTime::<FixedOffset>::parse_from_rfc3339(text).is_ok())
    })?;
    let at = DateTime::<FixedOffset>::parse_from_rfc3339(&text[..length]).ok()?;
    let offset = at.timestamp() / 60 - zero;
    (offset.abs() < 1000).then(|| (format!("{offset:+} {}", &text[19..length]), length))
}
