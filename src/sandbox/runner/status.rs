//! The statuses that the real Job controllers write, as merge patches.

use serde_json::{Value, json};

use super::view::JobView;
use crate::model::WallTime;

/// Why a batch/v1 Job fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Its Pods failed too often.
    Backoff,
    /// It ran longer than `activeDeadlineSeconds`.
    Deadline,
}

impl Failure {
    fn reason_and_message(self) -> (&'static str, &'static str) {
        match self {
            Self::Backoff => ("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
            Self::Deadline => ("DeadlineExceeded", "Job was active longer than specified deadline"),
        }
    }
}

pub(in crate::sandbox) fn timestamp(now: WallTime) -> String {
    now.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `conditions` with one set: replaced if its type is there, appended otherwise.
fn with_condition(conditions: &[Value], kind: &str, status: bool, why: (&str, &str), now: &str) -> Vec<Value> {
    let condition = json!({
        "type": kind,
        "status": if status { "True" } else { "False" },
        "reason": why.0,
        "message": why.1,
        "lastProbeTime": now,
        "lastTransitionTime": now,
    });
    let mut conditions = conditions.to_vec();
    match conditions.iter_mut().find(|other| other.get("type") == condition.get("type")) {
        Some(other) => *other = condition,
        None => conditions.push(condition),
    }
    conditions
}

/// batch/v1: Pods run.
pub(super) fn started(job: &JobView, active: i64, now: WallTime) -> Value {
    let now = timestamp(now);
    let mut status = json!({
        "startTime": now,
        "active": active,
        "ready": active,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    });
    if job.holds("Suspended") {
        let resumed = ("JobResumed", "Job resumed");
        status["conditions"] = with_condition(&job.status.conditions, "Suspended", false, resumed, &now).into();
    }
    json!({ "status": status })
}

/// batch/v1: `suspend` was set.
pub(super) fn suspended(job: &JobView, now: WallTime) -> Value {
    let why = ("JobSuspended", "Job suspended");
    let conditions = with_condition(&job.status.conditions, "Suspended", true, why, &timestamp(now));
    json!({ "status": { "startTime": null, "active": null, "ready": 0, "conditions": conditions } })
}

/// batch/v1: the end, as two writes: first the verdict with the counts, then the terminal condition.
pub(super) fn ended(job: &JobView, active: i64, failure: Option<Failure>, now: WallTime) -> [Value; 2] {
    let now = timestamp(now);
    let (verdict, end, why) = match failure {
        None => ("SuccessCriteriaMet", "Complete", ("CompletionsReached", "Reached expected number of succeeded pods")),
        Some(failure) => ("FailureTarget", "Failed", failure.reason_and_message()),
    };
    let counts = match failure {
        None => ("succeeded", job.spec.completions.unwrap_or(active)),
        Some(_) => ("failed", active.max(1)),
    };
    let first = with_condition(&job.status.conditions, verdict, true, why, &now);
    let second = with_condition(&first, end, true, why, &now);
    let mut interim = json!({ "active": null, "ready": 0, "terminating": 0, "conditions": first });
    interim[counts.0] = counts.1.into();
    let mut terminal = json!({ "conditions": second });
    if failure.is_none() {
        terminal["completionTime"] = now.into();
    }
    [json!({ "status": interim }), json!({ "status": terminal })]
}

/// Volcano: the phases of a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    Running,
    Completed,
    Failed,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
        }
    }
}

/// Volcano: the status of a phase. All Pods are in the same state.
pub(super) fn phase(job: &JobView, phase: Phase, pods: i64, now: WallTime) -> Value {
    let now = timestamp(now);
    let mut conditions = job.status.conditions.clone();
    conditions.push(json!({ "status": phase.name(), "lastTransitionTime": now }));
    let count = |of: Phase| if of == phase && pods > 0 { Value::from(pods) } else { Value::Null };
    json!({ "status": {
        "state": { "phase": phase.name(), "lastTransitionTime": now },
        "minAvailable": job.spec.min_available,
        "pending": count(Phase::Pending),
        "running": count(Phase::Running),
        "succeeded": count(Phase::Completed),
        "failed": count(Phase::Failed),
        "conditions": conditions,
    } })
}
