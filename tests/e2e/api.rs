//! The two APIs: paths, and what their controllers say, word for word as users match on it.

use chrono::{DateTime, Utc};

/// Type, reason and message of an event.
pub(crate) type Said = (String, String, String);

/// One CronJob API.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Api {
    /// The first part of a scenario's name.
    pub(crate) name: &'static str,
    pub(crate) api_version: &'static str,
    /// The annotation of a Job that tells its due instant.
    pub(crate) annotation: &'static str,
    /// `source.component` of events.
    pub(crate) component: &'static str,
    /// Whether it is Volcano's.
    pub(crate) volcano: bool,
}

pub(crate) static K8S: Api = Api {
    name: "k8s",
    api_version: "batch/v1",
    annotation: "batch.kubernetes.io/cronjob-scheduled-timestamp",
    component: "cronjob-controller",
    volcano: false,
};

pub(crate) static VOLCANO: Api = Api {
    name: "volcano",
    api_version: "batch.volcano.sh/v1alpha1",
    annotation: "volcano.sh/cronjob-scheduled-timestamp",
    component: "vc-controller-manager",
    volcano: true,
};

pub(crate) fn normal(reason: &str, message: impl Into<String>) -> Said {
    ("Normal".into(), reason.into(), message.into())
}

pub(crate) fn warning(reason: &str, message: impl Into<String>) -> Said {
    ("Warning".into(), reason.into(), message.into())
}

impl Api {
    pub(crate) fn cronjobs(&self, namespace: &str) -> String {
        format!("/apis/{}/namespaces/{namespace}/cronjobs", self.api_version)
    }

    pub(crate) fn jobs(&self, namespace: &str) -> String {
        format!("/apis/{}/namespaces/{namespace}/jobs", self.api_version)
    }

    pub(crate) fn created(&self, namespace: &str, cronjob: &str, job: &str) -> Said {
        let more = if self.volcano { format!(" for CronJob {namespace}/{cronjob}") } else { String::new() };
        normal("SuccessfulCreate", format!("Created job {job}{more}"))
    }

    pub(crate) fn completed(&self, job: &str, condition: &str) -> Said {
        let how = if self.volcano { " in active, remove".to_owned() } else { format!(", condition: {condition}") };
        normal("SawCompletedJob", format!("Saw completed job: {job}{how}"))
    }

    pub(crate) fn deleted(&self, job: &str) -> Said {
        let name = if self.volcano { format!("{job:?}") } else { job.to_owned() };
        normal("SuccessfulDelete", format!("Deleted job {name}"))
    }

    pub(crate) fn forbidden(&self) -> Said {
        if self.volcano {
            warning("ForbidConcurrent", "Skipping job creation because another job is already running")
        } else {
            let text = "Not starting job because prior execution is running and concurrency policy is Forbid";
            normal("JobAlreadyActive", text)
        }
    }

    pub(crate) fn replacing(&self) -> Option<Said> {
        self.volcano.then(|| warning("ReplaceConcurrent", "Replacing active job for CronJob"))
    }

    pub(crate) fn missing(&self, job: &str, uid: &str) -> Said {
        if self.volcano {
            warning("StaleReference", format!("Active job {job:?} no longer exists (UID: {uid})"))
        } else {
            normal("MissingJob", format!("Active job went missing: {job}"))
        }
    }

    pub(crate) fn unknown(&self, job: &str, uid: &str) -> Said {
        if self.volcano {
            let text = "Detected orphaned job forgotten or not managed by controller";
            warning("OrphanedJob", format!("{text}: {job} (UID: {uid})"))
        } else {
            warning("UnexpectedJob", format!("Saw a job that the controller did not create or forgot: {job}"))
        }
    }

    pub(crate) fn not_created(&self, error: &str) -> Said {
        let what = if self.volcano { "Failed to create job" } else { "Error creating job" };
        warning("FailedCreate", format!("{what}: {error}"))
    }

    pub(crate) fn foreign(&self, job: &str, owner: &str) -> Said {
        let text = format!("Job {job} exists but is not owned by this CronJob (current owner: {owner})");
        warning("ForeignJob", text)
    }

    pub(crate) fn missed(&self, at: DateTime<Utc>) -> Said {
        let at = at.format("%a, %d %b %Y %H:%M:%S +0000");
        warning("MissSchedule", format!("Missed scheduled time to start a job: {at}"))
    }

    pub(crate) fn unparseable(&self, schedule: &str, error: &str) -> Said {
        warning("UnparseableSchedule", format!("unparseable schedule: {schedule:?} : {error}"))
    }

    pub(crate) fn unparseable_edit(&self, schedule: &str) -> Said {
        warning("UnParseableCronJobSchedule", format!("unparseable schedule for cronjob: {schedule}"))
    }

    pub(crate) fn never_fires(&self, schedule: &str) -> Said {
        let error = "time difference between two schedules is less than 1 second";
        if self.volcano {
            warning("InvalidSchedule", format!("Error getting schedule time: {error}"))
        } else {
            warning("InvalidSchedule", format!("invalid schedule: {schedule} : {error}"))
        }
    }

    pub(crate) fn bad_zone(&self, zone: &str) -> Said {
        if self.volcano {
            warning("InvalidTimeZone", format!("Invalid time zone {zone:?}: unknown time zone {zone}"))
        } else {
            warning("UnknownTimeZone", format!("invalid timeZone: {zone:?}: unknown time zone {zone}"))
        }
    }
}
