//! What a step asks of the API server, what it is answered, and what it comes to in the end.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{ApiFailure, CronJob, CronJobStatus, Happening, Job, ObjectKey, Uid, WallTime};
use crate::schedule::MissedCount;

/// One request that a step wants sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// GET the CronJob itself, not from a cache. Answered by [`Answer::CronJob`].
    GetCronJob {
        /// Which one.
        key: ObjectKey,
    },
    /// GET a Job, not from a cache. Answered by [`Answer::Job`].
    GetJob {
        /// Which one.
        key: ObjectKey,
    },
    /// POST the Job of a due instant. Answered by [`Answer::Job`] with what the server stored.
    CreateJob {
        /// The copy of the CronJob that is decided on; its template makes the body.
        cronjob: Arc<CronJob>,
        /// Name of the Job.
        name: Box<str>,
        /// The due instant.
        at: WallTime,
        /// Offset of `spec.timeZone` at that instant (UTC when unset), seconds east of Greenwich: how the annotation shows it.
        offset_s: i32,
    },
    /// DELETE a Job, in the background, if it still is the one that is meant. Answered by [`Answer::Deleted`].
    DeleteJob {
        /// Which one.
        key: ObjectKey,
        /// Its uid: another Job under that name stays.
        uid: Uid,
    },
    /// PATCH the status of the CronJob. Answered by [`Answer::CronJob`] with what the server stored.
    PatchStatus {
        /// The copy of the CronJob that was decided on: its resource version makes the write conditional, its status is what the
        /// patch starts from.
        base: Arc<CronJob>,
        /// The status to write.
        status: CronJobStatus,
    },
}

/// The answer to a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To GetCronJob and PatchStatus.
    CronJob(Result<Arc<CronJob>, ApiFailure>),
    /// To GetJob and CreateJob.
    Job(Result<Arc<Job>, ApiFailure>),
    /// To DeleteJob.
    Deleted(Result<(), ApiFailure>),
}

/// What [`super::Step::advance`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// Send this and come back with the answer.
    Call(Call),
    /// The step is over.
    Done(Box<Outcome>),
}

/// What a step came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The delay after which the peers would look again: next due instant plus 100 ms, less now. `None` where they set no timer.
    pub requeue: Option<Duration>,
    /// The next due instant after what is pending now. A wake-up for it is armed whatever else the step returned (rule
    /// `never-asleep`). `None`: being deleted, zone or schedule unusable, or it never fires again.
    pub next_due: Option<WallTime>,
    /// What went wrong, if the step failed.
    pub error: Option<StepError>,
    /// A history deletion failed and may succeed later (rule `history-retried`): the step did not fail by it, but is to come again
    /// after the key's back-off.
    pub left_over: Option<StepError>,
    /// What is to be told to users, in order, unless it was [taken](super::Step::take_happenings) before.
    pub happenings: Vec<Happening>,
    /// Creation time on the server less due instant, for a Job created in this step, in seconds.
    pub skew_s: Option<i64>,
    /// What became of runs, in order, for the counter of runs by result.
    pub results: Vec<RunResult>,
    /// Runs that this step found to be lost for good; counted once per due instant.
    pub missed: Option<MissedCount>,
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// Its Job was created.
    Created,
    /// Forbid, and an earlier one is active.
    SkippedForbid,
    /// An active Job was deleted in its favour.
    Replaced,
    /// Found only after its deadline.
    MissedDeadline,
    /// A Job of its name existed.
    AlreadyExists,
    /// The server refused its Job.
    Failed,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct StepError {
    /// The peers' text.
    pub text: Box<str>,
    /// When to try again.
    pub retry: Retry,
    /// How long the server asked us to wait at least.
    pub retry_after: Option<Duration>,
}

/// When to try again after an error. The wake-up for the next due instant is armed in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After the key's back-off.
    BackOff,
    /// After the key's back-off; the copy decided on was stale, and a newer one is on its way.
    Conflict,
    /// Not before the next due instant: the namespace is terminating.
    NextDue,
    /// Not before somebody edits the object: its zone or schedule is unusable.
    NextEdit,
}

impl StepError {
    /// A failed call, tried again after a back-off.
    pub(super) fn of(failure: &ApiFailure) -> Self {
        let retry = if failure.is_conflict() { Retry::Conflict } else { Retry::BackOff };
        Self { text: failure.message.clone(), retry, retry_after: failure.retry_after }
    }

    pub(super) fn new(text: impl Into<Box<str>>, retry: Retry) -> Self {
        Self { text: text.into(), retry, retry_after: None }
    }
}
