//! What the shadow reports: one [`Record`] for each due instant, and a [`Summary`] at the end. The JSON form is an interface:
//! `docs/shadow.md` explains each field.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::api::rfc3339;
use crate::model::WallTime;

/// `apiVersion` of everything that is reported.
pub const API_VERSION: &str = "cronjob-controller.shadow/v1alpha1";

/// The name in `rule` of a difference that no deviation rule explains.
pub const UNEXPLAINED: &str = "unexplained";

/// How the controller in charge did otherwise than we would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// It did not.
    None,
    /// It did the same, but more than 30 s after the time.
    Late,
    /// We would have started the run; it did not.
    NotStarted,
    /// We would have started the run; it started one of another instant.
    Elsewhere,
    /// It started a run that we would not have started.
    Started,
    /// It kept a Job that we would have deleted.
    Kept,
    /// A Job was deleted that we would have kept.
    Deleted,
}

impl Difference {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Late, Self::NotStarted, Self::Elsewhere, Self::Started, Self::Kept, Self::Deleted];

    /// Its name in records and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Late => "late",
            Self::NotStarted => "not-started",
            Self::Elsewhere => "elsewhere",
            Self::Started => "started",
            Self::Kept => "kept",
            Self::Deleted => "deleted",
        }
    }

    /// Whether it was decided otherwise; lateness is no decision.
    pub fn is_decision(self) -> bool {
        !matches!(self, Self::None | Self::Late)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What became of one due instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Instant`.
    pub kind: &'static str,
    /// Whose decisions are compared: `kubernetes-cronjob` or `volcano-cronjob`.
    pub controller: &'static str,
    /// Of the CronJob.
    pub namespace: String,
    /// Of the CronJob.
    pub name: String,
    /// Of the CronJob.
    pub uid: String,
    /// The due instant, RFC 3339 in UTC.
    pub due: String,
    /// What we would have done.
    pub planned: Planned,
    /// What was done.
    pub seen: Seen,
    /// In which way that differs.
    pub difference: Difference,
    /// The deviation rule that explains it, or `unexplained`; absent where nothing was decided otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// The same for people.
    pub message: String,
}

/// What we would have done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// What would become of the run: `start`, `replace`, `skip`, `missed`, `exists`, `suspended`, `invalid`, `none`.
    pub action: &'static str,
    /// Name of the Job to create.
    pub job: Option<String>,
    /// Names of Jobs to delete, for history or Replace.
    pub deletions: Vec<String>,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Name of the Job that was created.
    pub job: Option<String>,
    /// Its uid.
    pub uid: Option<String>,
    /// When it was created, by the server's clock; RFC 3339.
    pub at: Option<String>,
    /// Names of Jobs that were deleted.
    pub deletions: Vec<String>,
}

/// The last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Summary`.
    pub kind: &'static str,
    /// When watching began.
    pub from: String,
    /// When it ended.
    pub to: String,
    /// Records so far.
    pub records: u64,
    /// Records by difference, those that occurred.
    pub differences: BTreeMap<&'static str, u64>,
    /// Records that were decided otherwise, by rule, those that occurred.
    pub rules: BTreeMap<&'static str, u64>,
    /// Due instants that were still open at the end.
    pub open: usize,
}

/// Whoever takes the reports; must not block.
pub trait Report: Send + Sync {
    /// A record is complete.
    fn on_record(&self, record: &Record);
    /// The end.
    fn on_summary(&self, summary: &Summary);
}

/// An instant as records write it.
pub(super) fn time(at: WallTime) -> String {
    rfc3339(at, 0)
}
