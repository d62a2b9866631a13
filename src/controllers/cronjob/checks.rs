//! What holds of every request of a step, whatever led to it: looked at once more right before it is sent. A breach is a mistake of
//! ours; it is counted and logged, and an alert may stand on the count. Nothing is held back and nothing panics: the decision
//! may be right all the same, and a run that does not start is the greater harm.
//!
//! It asks less than `reconcile` and shares nothing with it. docs/simulation.md has the invariants in full.

use crate::model::{CronJob, Finish, Job, Policy, WallTime, job_name};
use crate::reconcile::{CLOCKS_DIFFER_BY, Call};
use crate::telemetry::Breach;

/// What is wrong with `call`, if anything. `base` is the copy of the CronJob that the step decides on, `cached` looks a Job up in the
/// cache, `now` is the step's time, `started` the newest run that this actor started, perhaps under a clock that has gone back since.
pub(super) fn breach_of(
    call: &Call,
    base: &CronJob,
    cached: impl FnOnce(&crate::model::ObjectKey) -> Option<std::sync::Arc<Job>>,
    now: WallTime,
    started: Option<WallTime>,
) -> Option<Breach> {
    match call {
        Call::CreateJob { cronjob, at, .. } => {
            let spec = &cronjob.spec;
            let is_due = *at <= now && cronjob.status.last_schedule_time < Some(*at);
            (!is_due || spec.suspend || cronjob.deleting).then_some(Breach::CreatedNotDue)
        }
        Call::PatchStatus { base, status } => {
            let went_back = status.last_schedule_time < base.status.last_schedule_time
                || status.last_successful_time < base.status.last_successful_time;
            let latest = now.checked_add_signed(CLOCKS_DIFFER_BY);
            let ahead = status.last_schedule_time > base.status.last_schedule_time.max(started).max(latest);
            went_back.then_some(Breach::StatusWentBack).or(ahead.then_some(Breach::RecordedAhead))
        }
        Call::DeleteJob { key, uid } => deleted_too_early(cached(key).filter(|job| job.uid == *uid)?.as_ref(), base),
        Call::GetCronJob { .. } | Call::GetJob { .. } => None,
    }
}

fn deleted_too_early(job: &Job, base: &CronJob) -> Option<Breach> {
    // A Job that this CronJob does not control is deleted only right after its creation, if it came back without our reference: never
    // by Replace or history. The cache, which may be older, does not tell the two apart.
    job.controller.as_ref().filter(|owner| owner.uid == base.uid)?;
    let run = job.scheduled_time.filter(|at| job_name(&base.key.name, *at) == *job.key.name);
    match job.finish {
        None if base.spec.policy != Policy::Replace => Some(Breach::DeletedUnfinished),
        Some(Finish::Complete | Finish::Failed | Finish::Terminated)
            if run.is_some_and(|at| base.status.last_schedule_time < Some(at)) =>
        {
            Some(Breach::DeletedUnrecorded)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::{TimeDelta, TimeZone, Utc};

    use super::*;
    use crate::api::{decode_cronjob, decode_job};
    use crate::model::{CronJobStatus, Flavor};

    fn at(minute: u32) -> WallTime {
        Utc.with_ymd_and_hms(2026, 3, 1, 10, minute, 0).unwrap()
    }

    /// Last started at 10:05.
    fn base(spec: &str) -> Arc<CronJob> {
        let text = format!(
            r#"{{"metadata":{{"namespace":"n","name":"c","uid":"u","resourceVersion":"1","creationTimestamp":"2026-03-01T00:00:00Z"}},
            "spec":{{"schedule":"* * * * *","jobTemplate":{{}}{spec}}},"status":{{"lastScheduleTime":"2026-03-01T10:05:00Z"}}}}"#
        );
        Arc::new(decode_cronjob(Flavor::Kubernetes, &text).unwrap())
    }

    fn job(minute: u32, status: &str) -> Arc<Job> {
        let due = at(minute);
        let text = format!(
            r#"{{"metadata":{{"namespace":"n","name":"{}","uid":"j","ownerReferences":[{{"apiVersion":"batch/v1","kind":"CronJob",
            "name":"c","uid":"u","controller":true}}],"annotations":{{"batch.kubernetes.io/cronjob-scheduled-timestamp":"{}"}}}},
            "status":{status}}}"#,
            job_name("c", due),
            due.to_rfc3339()
        );
        Arc::new(decode_job(Flavor::Kubernetes, &text).unwrap())
    }

    const FINISHED: &str = r#"{"conditions":[{"type":"Complete","status":"True"}]}"#;

    fn create(spec: &str, minute: u32) -> Option<Breach> {
        let cronjob = base(spec);
        let call = Call::CreateJob { cronjob: cronjob.clone(), name: "x".into(), at: at(minute), offset_s: 0 };
        breach_of(&call, &cronjob, |_| None, at(6), None)
    }

    #[test]
    fn a_creation_is_of_an_instant_that_has_come_and_was_not_started() {
        assert_eq!(create("", 6), None);
        for (spec, minute) in [("", 7), ("", 5), (r#","suspend":true"#, 6)] {
            assert_eq!(create(spec, minute), Some(Breach::CreatedNotDue), "{spec} {minute}");
        }
    }

    #[test]
    fn a_status_only_goes_forward_and_not_beyond_what_has_come() {
        let base = base("");
        let patch_after = |started, last_schedule_time, last_successful_time| {
            let status = CronJobStatus { last_schedule_time, last_successful_time, ..CronJobStatus::default() };
            breach_of(&Call::PatchStatus { base: base.clone(), status }, &base, |_| None, at(6), started)
        };
        let patch =
            |last_schedule_time, last_successful_time| patch_after(None, last_schedule_time, last_successful_time);
        let ahead = Some(at(7) + CLOCKS_DIFFER_BY);
        assert_eq!(patch(ahead, None), Some(Breach::RecordedAhead));
        assert_eq!(patch_after(ahead, ahead, None), None, "its own, under a clock that has gone back");
        assert_eq!(patch(Some(at(5)), None), None);
        assert_eq!(patch(Some(at(5) + TimeDelta::minutes(1)), Some(at(1))), None);
        assert_eq!(patch(Some(at(4)), None), Some(Breach::StatusWentBack));
        assert_eq!(patch(None, Some(at(1))), Some(Breach::StatusWentBack));
    }

    #[test]
    fn a_job_is_deleted_after_its_run_was_recorded_and_unfinished_only_to_be_replaced() {
        let delete = |spec: &str, job: Arc<Job>| {
            breach_of(
                &Call::DeleteJob { key: job.key.clone(), uid: job.uid.clone() },
                &base(spec),
                |_| Some(job.clone()),
                at(9),
                None,
            )
        };
        assert_eq!(delete("", job(5, FINISHED)), None);
        assert_eq!(delete("", job(6, FINISHED)), Some(Breach::DeletedUnrecorded));
        assert_eq!(delete("", job(5, "{}")), Some(Breach::DeletedUnfinished));
        assert_eq!(delete(r#","concurrencyPolicy":"Replace""#, job(5, "{}")), None);
    }
}
