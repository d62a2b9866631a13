//! What the controllers will make of one schedule: a pure computation.

use chrono::{DateTime, FixedOffset, TimeDelta};
use serde::Serialize;

use super::clock_change::{self, ClockChange, Place};
use crate::model::{CronJob, Flavor, WallTime};
use crate::schedule::{ParseError, Schedule, Timing, Zone, ZoneError, describe, next_start};

/// A change may lie this far from a start and still be told with it.
const A_DAY: TimeDelta = TimeDelta::days(1);

/// A schedule to look at.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Where it stands: `CronJob ns/name (group/version)`; none for a schedule from the command line.
    object: Option<Object>,
    schedule: String,
    time_zone: Option<String>,
    suspended: bool,
    /// From where `@every` counts, if the object says.
    anchor: Option<WallTime>,
}

/// The CronJob that a schedule stands in.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Object {
    /// `apiVersion`.
    pub(super) api_version: &'static str,
    /// `metadata.namespace`; `default` when the manifest leaves it to kubectl.
    pub(super) namespace: String,
    /// `metadata.name`.
    pub(super) name: String,
}

/// Why there is no forecast.
#[derive(Debug, thiserror::Error)]
pub(super) enum Invalid {
    /// The schedule does not parse.
    #[error("schedule {text:?} is not valid")]
    Schedule {
        /// As written.
        text: String,
        /// The peers' text.
        source: ParseError,
    },
    /// The zone is none.
    #[error("time zone {name:?} is not valid")]
    Zone {
        /// As written.
        name: String,
        /// The peers' text.
        source: ZoneError,
    },
}

/// What the controllers will make of one schedule.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Forecast {
    /// Where the schedule stands.
    #[serde(flatten)]
    pub(super) object: Option<Object>,
    /// The schedule as written.
    pub(super) schedule: String,
    /// The zone that it is read in.
    pub(super) time_zone: &'static str,
    /// The schedule in English.
    pub(super) description: String,
    /// `spec.suspend`: the starts below will not happen.
    pub(super) suspended: bool,
    /// Whether nothing starts within the five years that the controllers look ahead.
    pub(super) never: bool,
    /// The starts, in order.
    pub(super) starts: Vec<Start>,
    /// What the user should know.
    pub(super) notes: Vec<String>,
}

/// One start.
#[derive(Debug, Serialize)]
pub(super) struct Start {
    /// In the zone of the schedule.
    pub(super) local: DateTime<FixedOffset>,
    /// The same instant in UTC.
    pub(super) utc: WallTime,
    /// What is odd about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

impl Asked {
    /// A schedule from the command line.
    pub(super) fn bare(schedule: &str, time_zone: Option<&str>) -> Self {
        let time_zone = time_zone.map(ToOwned::to_owned);
        Self { object: None, schedule: schedule.to_owned(), time_zone, suspended: false, anchor: None }
    }

    /// The schedule of a CronJob.
    pub(super) fn of(flavor: Flavor, cronjob: &CronJob) -> Self {
        let namespace = if cronjob.key.namespace.is_empty() { "default" } else { &*cronjob.key.namespace };
        Self {
            object: Some(Object {
                api_version: crate::api::wire(flavor).api_version,
                namespace: namespace.to_owned(),
                name: cronjob.key.name.to_string(),
            }),
            schedule: cronjob.spec.schedule.to_string(),
            time_zone: cronjob.spec.time_zone.as_deref().map(ToOwned::to_owned),
            suspended: cronjob.spec.suspend,
            anchor: cronjob.status.last_schedule_time.or(cronjob.creation_time),
        }
    }

    /// `error` as a line that names the object.
    pub(super) fn complaint(&self, error: &Invalid) -> String {
        let cause = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
        match &self.object {
            Some(object) => format!("CronJob {}/{}: {error}{cause}", object.namespace, object.name),
            None => format!("{error}{cause}"),
        }
    }

    /// The zone first, then the schedule in it, as the controllers do (`docs/schedules.md`, "Zones"): a `TZ=` inside the
    /// schedule wins over `timeZone`.
    fn compile(&self) -> Result<(Schedule, Zone), Invalid> {
        let zone = match &self.time_zone {
            Some(name) => {
                Zone::load(name, Zone::utc()).map_err(|source| Invalid::Zone { name: name.clone(), source })?
            }
            None => Zone::utc(),
        };
        let text = match &self.time_zone {
            Some(name) if !self.schedule.contains("TZ") => format!("TZ={name} {}", self.schedule),
            _ => self.schedule.clone(),
        };
        let schedule =
            Schedule::parse(&text).map_err(|source| Invalid::Schedule { text: self.schedule.clone(), source })?;
        Ok((schedule, schedule.zone().unwrap_or(zone)))
    }
}

impl Forecast {
    /// The next `count` starts after `from`.
    pub(super) fn of(asked: &Asked, from: WallTime, count: usize) -> Result<Self, Invalid> {
        let (schedule, zone) = asked.compile()?;
        let base = base(&schedule, asked.anchor, from);
        let instants: Vec<WallTime> =
            std::iter::successors(next_start(&schedule, zone, base), |at| next_start(&schedule, zone, *at))
                .take(count)
                .collect();
        let until = instants.last().copied().unwrap_or(from) + A_DAY;
        let changes = clock_change::between(zone, from - A_DAY, until);
        let starts: Vec<Start> = instants.iter().map(|at| start(*at, zone, &changes)).collect();
        Ok(Self {
            object: asked.object.clone(),
            schedule: asked.schedule.clone(),
            time_zone: zone.name(),
            description: describe(&schedule, zone, from),
            suspended: asked.suspended,
            never: starts.is_empty(),
            starts,
            notes: remarks(asked, &schedule, base == from),
        })
    }
}

/// From where to ask: the last instant of an `@every` that is not after `from`, else `from`.
fn base(schedule: &Schedule, anchor: Option<WallTime>, from: WallTime) -> WallTime {
    let (Timing::Every { delay_s }, Some(anchor)) = (schedule.timing(), anchor) else { return from };
    let elapsed_s = from.timestamp().saturating_sub(anchor.timestamp());
    let passed_s = elapsed_s.max(0) / delay_s.max(1) * delay_s;
    anchor.checked_add_signed(TimeDelta::seconds(passed_s)).unwrap_or(from)
}

fn start(at: WallTime, zone: Zone, changes: &[ClockChange]) -> Start {
    let note = changes.iter().find_map(|change| match change.place_of(at)? {
        Place::First => Some("this local time comes twice; first".to_owned()),
        Place::Second => Some("this local time comes twice; second".to_owned()),
        Place::SameDay => Some(format!("clocks change this day: {change}")),
    });
    Start { local: at.with_timezone(&clock_change::offset(zone, at)), utc: at, note }
}

/// What there is to know of a schedule apart from clock changes.
fn remarks(asked: &Asked, schedule: &Schedule, from_now: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if asked.schedule.contains("TZ") {
        notes.push("the API server refuses TZ= and CRON_TZ= in new CronJobs; use spec.timeZone".to_owned());
    } else if asked.object.is_some() && asked.time_zone.is_none() && matches!(schedule.timing(), Timing::Fields(_)) {
        notes.push("spec.timeZone is not set: read in the controller's zone, here UTC".to_owned());
    }
    if matches!(schedule.timing(), Timing::Every { .. }) && from_now {
        notes.push(
            "@every counts from the last run, or from the creation before the first; here from the time asked"
                .to_owned(),
        );
    }
    notes
}
