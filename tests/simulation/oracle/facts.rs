//! The stored objects, read again from their JSON for the oracle alone.

use std::collections::BTreeMap;
use std::rc::Rc;

use chrono::{DateTime, FixedOffset};
use cronjob_controller::sandbox::store::Object;
use cronjob_controller::schedule::{Schedule, Zone};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::history::text_of;
use crate::plan::{Api, Ms};

/// Whole milliseconds since 1970.
pub(super) type Wall = i64;

/// `concurrencyPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Allow,
    Forbid,
    Replace,
}

/// A version of a CronJob.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) uid: String,
    pub(super) created: Wall,
    pub(super) deleting: bool,
    /// The whole of it, as stored.
    spec: Rc<str>,
    /// Schedule and zone as written.
    pub(super) timetable: (String, Option<String>),
    /// Compiled; `None` if it cannot be.
    pub(super) schedule: Option<Schedule>,
    pub(super) policy: Policy,
    pub(super) suspend: bool,
    /// Of the window in which a run may start; `None` for ever.
    pub(super) deadline_s: Option<i64>,
    pub(super) success_limit: Option<usize>,
    pub(super) failure_limit: Option<usize>,
    pub(super) active: Vec<String>,
    pub(super) last_schedule: Option<Wall>,
    pub(super) last_success: Option<Wall>,
}

/// A place in the order of history.
pub(super) type Order = (bool, Option<Wall>, String);

/// How a Job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Succeeded,
    Failed,
}

/// A version of a Job.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) uid: String,
    pub(super) deleting: bool,
    /// Uid of the controller reference.
    pub(super) owner: Option<String>,
    /// The due instant that its annotation tells.
    pub(super) due: Option<Wall>,
    pub(super) end: Option<End>,
    /// By what history is ordered: batch/v1 its start, Volcano its creation.
    since: Option<Wall>,
    pub(super) completed: Option<Wall>,
    /// When the store first showed its end.
    pub(super) ended_at: Option<Ms>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    uid: String,
    creation_timestamp: Option<DateTime<FixedOffset>>,
    deletion_timestamp: Option<String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    owner_references: Vec<Owner>,
}

#[derive(Deserialize)]
struct Owner {
    uid: String,
    #[serde(default)]
    controller: bool,
}

#[derive(Deserialize)]
struct WireCron {
    metadata: Meta,
    spec: Box<RawValue>,
    #[serde(default)]
    status: WireStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSpec {
    schedule: String,
    time_zone: Option<String>,
    concurrency_policy: Option<String>,
    suspend: Option<bool>,
    starting_deadline_seconds: Option<i64>,
    successful_jobs_history_limit: Option<usize>,
    failed_jobs_history_limit: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireStatus {
    active: Vec<Reference>,
    last_schedule_time: Option<DateTime<FixedOffset>>,
    last_successful_time: Option<DateTime<FixedOffset>>,
}

#[derive(Deserialize)]
struct Reference {
    uid: String,
}

#[derive(Deserialize)]
struct WireJob {
    metadata: Meta,
    #[serde(default)]
    status: JobStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JobStatus {
    start_time: Option<DateTime<FixedOffset>>,
    completion_time: Option<DateTime<FixedOffset>>,
    conditions: Vec<Condition>,
    state: State,
}

/// Of a Volcano Job's condition nothing is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct State {
    phase: String,
    last_transition_time: Option<DateTime<FixedOffset>>,
}

fn wall(at: Option<DateTime<FixedOffset>>) -> Option<Wall> {
    at.map(|at| at.timestamp_millis())
}

impl Version {
    pub(super) fn read(object: &Object) -> Self {
        let WireCron { metadata, spec: whole, status } = serde_json::from_slice(&object.bytes).unwrap();
        let spec: WireSpec = serde_json::from_str(whole.get()).unwrap();
        let text = match &spec.time_zone {
            Some(zone) => format!("TZ={zone} {}", spec.schedule),
            None => spec.schedule.clone(),
        };
        Self {
            uid: metadata.uid,
            created: wall(metadata.creation_timestamp).unwrap(),
            deleting: metadata.deletion_timestamp.is_some(),
            spec: whole.get().into(),
            timetable: (spec.schedule, spec.time_zone),
            schedule: Schedule::parse(&text).ok(),
            policy: match spec.concurrency_policy.as_deref() {
                Some("Forbid") => Policy::Forbid,
                Some("Replace") => Policy::Replace,
                _ => Policy::Allow,
            },
            suspend: spec.suspend.unwrap_or_default(),
            // `deadline-zero`: a window of one second.
            deadline_s: spec.starting_deadline_seconds.map(|seconds| seconds.max(1)),
            success_limit: spec.successful_jobs_history_limit,
            failure_limit: spec.failed_jobs_history_limit,
            active: status.active.into_iter().map(|reference| reference.uid).collect(),
            last_schedule: wall(status.last_schedule_time),
            last_success: wall(status.last_successful_time),
        }
    }

    pub(super) fn spec(&self) -> Value {
        serde_json::from_str(&self.spec).unwrap()
    }

    pub(super) fn has_spec_of(&self, other: &Self) -> bool {
        self.spec == other.spec || self.spec() == other.spec()
    }

    /// What is pending lies after this.
    pub(super) fn base(&self) -> Wall {
        self.last_schedule.unwrap_or(self.created)
    }

    pub(super) fn limit(&self, end: End) -> Option<usize> {
        match end {
            End::Succeeded => self.success_limit,
            End::Failed => self.failure_limit,
        }
    }
}

impl Job {
    pub(super) fn read(api: Api, object: &Object) -> Self {
        let WireJob { metadata, status } = serde_json::from_slice(&object.bytes).unwrap();
        let annotation = match api {
            Api::Kubernetes => "batch.kubernetes.io/cronjob-scheduled-timestamp",
            Api::Volcano => "volcano.sh/cronjob-scheduled-timestamp",
        };
        let due = metadata.annotations.get(annotation).and_then(|text| DateTime::parse_from_rfc3339(text).ok());
        let (end, completed) = match api {
            Api::Kubernetes => (end_of_conditions(&status.conditions), wall(status.completion_time)),
            Api::Volcano => (end_of_phase(&status.state.phase), wall(status.state.last_transition_time)),
        };
        let since = match api {
            Api::Kubernetes => status.start_time,
            Api::Volcano => metadata.creation_timestamp,
        };
        Self {
            uid: metadata.uid,
            since: wall(since),
            deleting: metadata.deletion_timestamp.is_some(),
            owner: metadata.owner_references.into_iter().find(|owner| owner.controller).map(|owner| owner.uid),
            due: wall(due),
            end,
            completed,
            ended_at: None,
        }
    }

    /// The older, the less; one without the time is the newest.
    pub(super) fn order(&self, name: &str) -> Order {
        (self.since.is_none(), self.since, name.to_owned())
    }
}

fn end_of_conditions(conditions: &[Condition]) -> Option<End> {
    conditions.iter().filter(|condition| condition.status == "True").find_map(|condition| match &*condition.r#type {
        "Complete" => Some(End::Succeeded),
        "Failed" => Some(End::Failed),
        _ => None,
    })
}

fn end_of_phase(phase: &str) -> Option<End> {
    match phase {
        "Completed" => Some(End::Succeeded),
        "Failed" | "Terminated" => Some(End::Failed),
        _ => None,
    }
}

/// The name of the Job of a run.
pub(super) fn job_name(cron: &str, due: Wall) -> String {
    format!("{cron}-{}", due / 60_000)
}

/// `None` beyond what a calendar holds.
fn instant(at: Wall) -> Option<DateTime<chrono::Utc>> {
    DateTime::from_timestamp_millis(at)
}

/// An instant as text.
pub(super) fn text(at: Wall) -> String {
    instant(at).map_or_else(|| format!("{at} ms"), text_of)
}

/// The newest due instant after `base` and not after `now`.
pub(super) fn newest(schedule: &Schedule, base: Wall, now: Wall) -> Option<Wall> {
    let missed = cronjob_controller::schedule::missed_since(schedule, Zone::UTC, instant(base)?, instant(now)?).ok()?;
    missed.newest.map(|at| at.timestamp_millis())
}

/// The first due instant after `base`.
pub(super) fn next(schedule: &Schedule, base: Wall) -> Option<Wall> {
    cronjob_controller::schedule::next_start(schedule, Zone::UTC, instant(base)?).map(|at| at.timestamp_millis())
}

/// Whether an instant belongs to the chain from `base`.
pub(super) fn is_due(schedule: &Schedule, base: Wall, at: Wall) -> bool {
    at > base && newest(schedule, base, at) == Some(at)
}
