//! How long a Job waits after failures before it makes Pods again: 10 s, doubled by each further failure, at most 10 minutes.

use std::sync::Arc;

use chrono::TimeDelta;

use super::classify::{count, finish_time};
use crate::model::{Pod, WallTime};

/// The wait after the first failure.
pub const FIRST_DELAY: TimeDelta = TimeDelta::seconds(10);
/// The longest wait.
pub const MAX_DELAY: TimeDelta = TimeDelta::minutes(10);

/// Failures of a Job since its last success. Only in memory, as in the peer: a new process begins without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackOff {
    /// How many.
    pub failures: i32,
    /// When the last of them ended.
    pub last_failure: Option<WallTime>,
}

impl BackOff {
    /// The record after these Pods ended. A success wipes out what failed before it. Ignored failures count here.
    #[must_use]
    pub fn after(self, succeeded: &[Arc<Pod>], failed: &[Arc<Pod>]) -> Self {
        let last_success = succeeded.iter().map(|pod| finish_time(pod)).max();
        let since: Vec<WallTime> = failed
            .iter()
            .map(|pod| finish_time(pod))
            .filter(|end| last_success.is_none_or(|success| *end > success))
            .collect();
        let before = if last_success.is_some() { Self::default() } else { self };
        Self {
            failures: before.failures.saturating_add(count(since.len())),
            last_failure: since.into_iter().max().or(before.last_failure),
        }
    }

    /// What is left of the wait.
    pub fn remaining(self, now: WallTime) -> TimeDelta {
        self.last_failure.map_or(TimeDelta::zero(), |last| remaining(self.failures, last, now))
    }
}

/// What is left at `now` of the wait after `failures`, the last of which ended at `last`.
pub(super) fn remaining(failures: i32, last: WallTime, now: WallTime) -> TimeDelta {
    (delay(failures) - now.signed_duration_since(last)).max(TimeDelta::zero())
}

fn delay(failures: i32) -> TimeDelta {
    // Six doublings pass the longest wait.
    let doublings = match failures {
        ..=0 => return TimeDelta::zero(),
        some => (some - 1).min(6),
    };
    (FIRST_DELAY * (1 << doublings)).min(MAX_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::{at, pod};

    fn ends(at_s: &[i64]) -> Vec<Arc<Pod>> {
        at_s.iter().map(|s| Arc::new(Pod { creation_time: Some(at(*s)), ..pod("a") })).collect()
    }

    #[test]
    fn it_doubles_up_to_ten_minutes() {
        let seconds = |failures| delay(failures).num_seconds();
        assert_eq!([-1, 0, 1, 2, 3, 6, 7, 8, i32::MAX].map(seconds), [0, 0, 10, 20, 40, 320, 600, 600, 600]);
    }

    #[test]
    fn time_since_the_failure_is_taken_off() {
        let left = |s| remaining(2, at(0), at(s)).num_seconds();
        assert_eq!([-5, 0, 15, 20, 99].map(left), [25, 20, 5, 0, 0]);
    }

    #[test]
    fn a_success_wipes_out_what_failed_before_it() {
        let before = BackOff { failures: 3, last_failure: Some(at(1)) };
        let record = |failures, last: Option<i64>| BackOff { failures, last_failure: last.map(at) };
        for (succeeded, failed, expected) in [
            (&[][..], &[][..], before),
            (&[], &[7, 9], record(5, Some(9))),
            (&[5], &[], record(0, None)),
            (&[5], &[4, 5], record(0, None)),
            (&[5, 2], &[4, 6, 8], record(2, Some(8))),
        ] {
            assert_eq!(before.after(&ends(succeeded), &ends(failed)), expected, "{succeeded:?} {failed:?}");
        }
    }
}
