//! What differs between the two controllers, as data: one [`Profile`] each. The machine itself never asks which one it serves.

use crate::model::{EventType, Finish, Flavor, Job, ObjectReference, WallTime};
use crate::schedule::quote;

/// The stages before the decision whether to start, in the order in which a controller does them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Look at every child: note finished ones, or ask about unknown ones, or both in one pass.
    Children {
        /// Finished children leave `active` and set lastSuccessfulTime.
        finished: bool,
        /// Unfinished children missing from `active` are looked into.
        unknown: bool,
    },
    /// Delete finished children beyond the history limits.
    History,
    /// Entries of `active` without a child are checked.
    ActiveList,
}

/// One controller's ways and words. `%q` in the specification is [`quote`].
pub(super) struct Profile {
    /// `apiVersion` of CronJob and Job.
    pub api_version: &'static str,
    /// See [`Stage`].
    pub stages: &'static [Stage],
    /// An object being deleted still gets its history cleaned and its status kept; else a step does nothing at all.
    pub upkeep_while_deleting: bool,
    /// The zone is checked before `suspend`, so that a suspended object with a bad zone says so.
    pub zone_before_suspend: bool,
    /// A bad zone or schedule is an error of the step, not only an event.
    pub bad_input_is_error: bool,
    /// An entry of `active` without a child is looked up on the server, else in the Job cache.
    pub asks_live_about_active: bool,
    /// A Job that came back from creation without our owner reference is deleted again.
    pub checks_returned_owner: bool,
    /// An existing Job of ours is taken into `active` even if it has finished already.
    pub adopts_finished: bool,
    /// The time that orders history; absent is the newest.
    pub history_key: fn(&Job) -> Option<WallTime>,
    /// Reasons and messages.
    pub words: Words,
}

/// A reason and the message that goes with it.
pub(super) type Said = (&'static str, String);

/// Events that differ between the two. Those with equal words are written where they happen.
pub(super) struct Words {
    pub saw_completed: fn(&Job, Finish) -> String,
    pub unknown_job: fn(&Job) -> Said,
    /// Type and reason of the event when an entry of `active` is dropped.
    pub stale_entry: (EventType, &'static str),
    pub gone_from_active: fn(&ObjectReference) -> String,
    pub deleted: fn(name: &str) -> String,
    pub failed_delete: fn(name: &str, error: &str) -> String,
    pub bad_zone: fn(zone: &str, error: &str) -> Said,
    pub never_fires: fn(schedule: &str, error: &str) -> String,
    pub unsupported_schedule: fn(schedule: &str) -> String,
    /// Skipped by Forbid: whether a Warning, reason, message.
    pub forbidden: (bool, &'static str, &'static str),
    /// Said before active Jobs are replaced, if anything is.
    pub replacing: Option<(&'static str, &'static str)>,
    pub created: fn(namespace: &str, cronjob: &str, job: &str) -> String,
    pub failed_create: fn(error: &str) -> String,
    /// Said when the namespace is terminating, if anything is.
    pub namespace_terminating: Option<fn(namespace: &str) -> Said>,
    /// Text of the error when the existing Job of the name could not be fetched.
    pub existing_not_fetched: fn(not_found: bool, error: &str) -> String,
}

/// The row of a flavor.
pub(super) fn profile(flavor: Flavor) -> &'static Profile {
    match flavor {
        Flavor::Kubernetes => &KUBERNETES,
        Flavor::Volcano => &VOLCANO,
    }
}

static KUBERNETES: Profile = Profile {
    api_version: "batch/v1",
    stages: &[Stage::History, Stage::Children { finished: true, unknown: true }, Stage::ActiveList],
    upkeep_while_deleting: true,
    zone_before_suspend: true,
    bad_input_is_error: false,
    asks_live_about_active: true,
    checks_returned_owner: false,
    adopts_finished: true,
    history_key: |job| job.start_time,
    words: Words {
        saw_completed: |job, finish| {
            let condition = if finish == Finish::Complete { "Complete" } else { "Failed" };
            format!("Saw completed job: {}, condition: {condition}", job.key.name)
        },
        unknown_job: |job| {
            ("UnexpectedJob", format!("Saw a job that the controller did not create or forgot: {}", job.key.name))
        },
        stale_entry: (EventType::Normal, "MissingJob"),
        gone_from_active: |reference| format!("Active job went missing: {}", reference.name),
        deleted: |name| format!("Deleted job {name}"),
        failed_delete: |_, error| format!("Deleted job: {error}"),
        bad_zone: |zone, error| ("UnknownTimeZone", format!("invalid timeZone: {}: {error}", quote(zone))),
        never_fires: |schedule, error| format!("invalid schedule: {schedule} : {error}"),
        unsupported_schedule: |schedule| {
            format!(
                "CRON_TZ or TZ used in schedule {} is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
                quote(schedule)
            )
        },
        forbidden: (
            false,
            "JobAlreadyActive",
            "Not starting job because prior execution is running and concurrency policy is Forbid",
        ),
        replacing: None,
        created: |_, _, job| format!("Created job {job}"),
        failed_create: |error| format!("Error creating job: {error}"),
        namespace_terminating: None,
        existing_not_fetched: |_, error| error.to_owned(),
    },
};

static VOLCANO: Profile = Profile {
    api_version: "batch.volcano.sh/v1alpha1",
    stages: &[
        Stage::Children { finished: true, unknown: false },
        Stage::History,
        Stage::Children { finished: false, unknown: true },
        Stage::ActiveList,
    ],
    upkeep_while_deleting: false,
    zone_before_suspend: false,
    bad_input_is_error: true,
    asks_live_about_active: false,
    checks_returned_owner: true,
    adopts_finished: false,
    history_key: |job| job.creation_time,
    words: Words {
        saw_completed: |job, _| format!("Saw completed job: {} in active, remove", job.key.name),
        unknown_job: |job| {
            let message = format!(
                "Detected orphaned job forgotten or not managed by controller: {} (UID: {})",
                job.key.name, job.uid
            );
            ("OrphanedJob", message)
        },
        stale_entry: (EventType::Warning, "StaleReference"),
        gone_from_active: |reference| {
            format!("Active job {} no longer exists (UID: {})", quote(&reference.name), reference.uid)
        },
        deleted: |name| format!("Deleted job {}", quote(name)),
        failed_delete: |name, error| format!("Error deleting job {}: {error}", quote(name)),
        bad_zone: |zone, error| ("InvalidTimeZone", format!("Invalid time zone {}: {error}", quote(zone))),
        never_fires: |_, error| format!("Error getting schedule time: {error}"),
        unsupported_schedule: |schedule| {
            format!(
                "CRON_TZ or TZ in the schedule {} is not officially supported. If set, the TimeZone field will be \
                 ignored during execution.",
                quote(schedule)
            )
        },
        forbidden: (true, "ForbidConcurrent", "Skipping job creation because another job is already running"),
        replacing: Some(("ReplaceConcurrent", "Replacing active job for CronJob")),
        created: |namespace, cronjob, job| format!("Created job {job} for CronJob {namespace}/{cronjob}"),
        failed_create: |error| format!("Failed to create job: {error}"),
        namespace_terminating: Some(|namespace| {
            ("NamespaceTerminating", format!("Namespace {namespace} is terminating, skipping job creation"))
        }),
        existing_not_fetched: |not_found, error| {
            if not_found { error.to_owned() } else { format!("failed to fetch conflicting job: {error}") }
        },
    },
};
