//! Everything that users see of a CronJob's runs, as one value to compare.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::api::Said;
use crate::objects::rfc3339;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Picture {
    /// Names of the Jobs whose controller is the CronJob.
    pub(crate) jobs: BTreeSet<String>,
    /// Names in `status.active`.
    pub(crate) active: BTreeSet<String>,
    /// `status.lastScheduleTime`.
    pub(crate) last: Option<String>,
    /// Whether there is a `status.lastSuccessfulTime`.
    pub(crate) succeeded: bool,
    /// Every event about the CronJob.
    pub(crate) events: BTreeSet<Said>,
}

impl Picture {
    /// Of a CronJob that was last due at `last`, without Jobs.
    pub(crate) fn last(last: DateTime<Utc>) -> Self {
        Self { last: Some(rfc3339(last)), ..Self::default() }
    }

    pub(crate) fn jobs<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        Self { jobs: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// These Jobs stand, and no others, and all are active.
    pub(crate) fn running<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        let jobs: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        Self { active: jobs.clone(), jobs, ..self }
    }

    pub(crate) fn active<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        Self { active: names.into_iter().map(Into::into).collect(), ..self }
    }

    pub(crate) fn succeeded(self) -> Self {
        Self { succeeded: true, ..self }
    }

    /// These events as well.
    pub(crate) fn said(mut self, events: impl IntoIterator<Item = Said>) -> Self {
        self.events.extend(events);
        self
    }
}
