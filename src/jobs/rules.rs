//! Every way in which the Job controller decides otherwise than its peer. Whatever is not here is parity; a new rule needs an ADR.
//! The part of `docs/parity.md` about Jobs has a row for each, and each has a test named after it in `tests/jobs` or
//! `tests/job_controller`.

use crate::model::named_rules;

named_rules! {
    ActiveInBackOff "active-in-back-off" "While replacements wait for the back-off, the true number of active Pods is written."
    ExpectationsByUid "expectations-by-uid" "What is remembered of own writes belongs to one uid; a Job recreated under its name begins anew."
    FirstVerdictHolds "first-verdict-holds" "A Pod recorded as succeeded or failed stays so, whatever its phase says later."
    CompletedWins "completed-wins" "An index that succeeded is not failed, whatever another Pod of it did."
    ConditionSetByType "condition-set-by-type" "A condition type stands once in the status, also where somebody else put one there."
    CompletionWaitsForExpectations "completion-waits-for-expectations" "A Job is complete only once all Pods that were created are visible."
    NoEndWithoutStart "no-end-without-start" "A suspended Job without a start time does not end, since the server refuses such a status."
    DeadlineWaitsForResume "deadline-waits-for-resume" "A Job that is being resumed is not judged by a start time of before."
    EndingNamespaceCreatesNothing "ending-namespace-creates-nothing" "A Pod refused because its namespace ends is neither active nor waited for."
    FailedCreationIsNone "failed-creation-is-none" "A creation that failed is counted as failed, not as succeeded too."
    DeletionsInPortions "deletions-in-portions" "At most 500 Pods are deleted at once, for whatever reason."
    FreshProcessAsks "fresh-process-asks" "A process that has not seen a Job before asks the server before it counts or creates."
    OrphanAsksServer "orphan-asks-server" "A Pod whose Job the cache lacks keeps its finalizer until the server, too, says that the Job is gone."
    SweepRetries "sweep-retries" "A finalizer of an orphan that could not be taken off is tried again."
    FinishedSweptAtStart "finished-swept-at-start" "Pods of Jobs that ended before this process began are looked at once."
    AdoptsOnlyWhatEnds "adopts-only-what-ends" "A Pod with restartPolicy Always is not adopted."
    UnreadableJobSpeaks "unreadable-job-speaks" "A Job that cannot be read is left alone and gets a Warning UnreadableObject."
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARITY: &str = include_str!("../../docs/parity.md");
    const TESTS: [&str; 2] =
        [include_str!("../../tests/jobs/rules.rs"), include_str!("../../tests/job_controller/lifecycle.rs")];

    #[test]
    fn every_rule_has_its_row_and_its_test() {
        let (_, rows) = PARITY.split_once("\n## Jobs\n").unwrap();
        for rule in Rule::ALL {
            assert!(rows.contains(&format!("| `{}` |", rule.name())), "no row for {}", rule.name());
            let test = format!("fn {}()", rule.name().replace('-', "_"));
            assert!(TESTS.iter().any(|tests| tests.contains(&test)), "no test for {}", rule.name());
        }
        assert_eq!(rows.lines().filter(|line| line.starts_with("| `")).count(), Rule::ALL.len());
    }
}
