//! `ttlSecondsAfterFinished`: when a Job that ended is deleted. Decided on the cached Job, and once more on the live one before it is
//! deleted, in the foreground and only if it has the same uid; the time may have been changed meanwhile.

use chrono::TimeDelta;

use super::names::condition;
use crate::model::{BatchJob, WallTime};

/// What becomes of a Job for its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It stays: it has not ended, has no limit, or is being deleted already.
    Never,
    /// It is looked at again then.
    At(WallTime),
    /// It is deleted now; it could have been since then.
    Since(WallTime),
}

/// A Job that ended, nobody knows when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unable to find the time when the Job finished")]
pub struct NoFinishTime;

/// What becomes of the Job at `now`.
///
/// # Errors
/// When it has ended and its condition has no time.
pub fn expiry(job: &BatchJob, now: WallTime) -> Result<Expiry, NoFinishTime> {
    let Some(ttl_s) = job.spec.ttl_after_finished_s.filter(|_| job.finished() && !job.deleting()) else {
        return Ok(Expiry::Never);
    };
    let is_last = |name: &str| name == condition::COMPLETE || name == condition::FAILED;
    let mut ends = job.status.conditions.iter().filter(|found| is_last(&found.condition_type));
    let end = ends.find(|found| found.status == crate::model::ConditionStatus::True);
    let finish = end.and_then(|end| end.last_transition_time).ok_or(NoFinishTime)?;
    let at = finish + TimeDelta::seconds(i64::from(ttl_s));
    Ok(if at <= now { Expiry::Since(at) } else { Expiry::At(at) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::{at, finished, job};

    fn with_ttl(ttl_s: Option<i32>, mut job: BatchJob) -> BatchJob {
        job.spec.ttl_after_finished_s = ttl_s;
        job
    }

    #[test]
    fn a_job_goes_so_long_after_its_end() {
        let ended = with_ttl(Some(10), finished(job()));
        assert_eq!(expiry(&ended, at(9)), Ok(Expiry::At(at(10))));
        assert_eq!(expiry(&ended, at(12)), Ok(Expiry::Since(at(10))));
        assert_eq!(expiry(&with_ttl(Some(0), finished(job())), at(0)), Ok(Expiry::Since(at(0))));
        assert_eq!(expiry(&ended, at(-99)), Ok(Expiry::At(at(10))), "an end in the future is waited for");
    }

    #[test]
    fn others_stay() {
        let deleting = BatchJob { deletion_time: Some(at(0)), ..finished(job()) };
        for stays in [with_ttl(None, finished(job())), with_ttl(Some(0), job()), with_ttl(Some(0), deleting)] {
            assert_eq!(expiry(&stays, at(99)), Ok(Expiry::Never));
        }
    }

    #[test]
    fn an_end_without_a_time_is_an_error() {
        let mut ended = with_ttl(Some(0), finished(job()));
        ended.status.conditions[0].last_transition_time = None;
        assert_eq!(expiry(&ended, at(99)), Err(NoFinishTime));
    }
}
