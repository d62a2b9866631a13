//! Every way in which this controller decides otherwise than the peers. Whatever is not here is parity; a new rule needs an ADR.
//! `docs/parity.md` has a row for each, and each has a test named after it in `rule_tests.rs` or `guard_tests.rs`.

use crate::model::named_rules;

named_rules! {
    ExactNewest "exact-newest" "The newest pending instant starts even where the peers' estimate jumps past it."
    GetInNamespace "get-in-namespace" "A Job whose name is taken is fetched from the CronJob's namespace, never from none."
    ForeignRequeues "foreign-requeues" "A taken name never leaves a CronJob without its timer; a foreign Job is named in a Warning ForeignJob."
    FreedNameWakes "freed-name-wakes" "When a foreign Job under a run's name is gone, the CronJob is looked at: the run may still be owed."
    OwnerByUid "owner-by-uid" "A Job is a child only if its controller has the CronJob's name, kind, group and uid."
    ConsistentLiveCopy "consistent-live-copy" "One copy of the CronJob is decided on and written; a live copy, once adopted, is that copy."
    SnapshotIteration "snapshot-iteration" "A loop over the active list runs over the list as it was at its start."
    NoParserPanic "no-parser-panic" "A schedule on which the peers' parser panics is a parse error."
    StatusAlwaysWritten "status-always-written" "A changed status is written after an error too, and a failed write is an error."
    SameNameOtherUid "same-name-other-uid" "An active entry whose name now belongs to another uid is dropped as missing."
    NamelessEntryDropped "nameless-entry-dropped" "An active entry without a name or a uid refers to nothing: it is dropped and told, without a request."
    OnlyOwnDeleted "only-own-deleted" "Replace deletes only a Job that this CronJob controls, in its namespace; every deletion names the uid it means."
    UnreadableJobStays "unreadable-job-stays" "An active entry whose Job cannot be read stays, with a Warning UnreadableObject, and the step goes on."
    OwnRunReadopted "own-run-readopted" "An unfinished run of ours that the status forgot goes back into active and raises lastScheduleTime."
    OwnRunRecorded "own-run-recorded" "A finished run of ours that the status forgot raises lastScheduleTime, before history may delete it."
    HistoryInPortions "history-in-portions" "One step deletes at most 50 Jobs for history, so that what is due does not wait; the next steps go on."
    HistoryRetried "history-retried" "A history deletion that failed and may succeed later is tried again after the back-off."
    DeadlineZero "deadline-zero" "startingDeadlineSeconds 0 is a window of one second."
    DeadlineSaturates "deadline-saturates" "A deadline too long for Go's Duration means never too late."
    EveryKeepsAnchor "every-keeps-anchor" "@every with a deadline stays on the grid of its last run or creation; the window only filters."
    MissSpeaks "miss-speaks" "Runs found only after the deadline give one Warning MissSchedule for the newest, and are counted."
    AheadSpeaks "ahead-speaks" "A lastScheduleTime more than a minute ahead of the clock, which holds back every run, is told in a Warning."
    BadScheduleSpeaks "bad-schedule-speaks" "A Volcano CronJob with an unparseable schedule gets UnparseableSchedule too."
    TerminatedIsFailed "terminated-is-failed" "A Volcano Job in phase Terminated counts as failed for the history limits."
    DeleteNotfoundOk "delete-notfound-ok" "A Job that is gone already counts as deleted, without an event."
    MinuteTaken "minute-taken" "An instant in the minute of lastScheduleTime, whose Job's name is taken by that run, is passed over; the reason is told once."
    StuckWalk "stuck-walk" "Where the search for the next instant stands still or goes back, it is asked again a minute later."
    EditFloor "edit-floor" "Nothing due at or before a change of schedule or zone starts, as far as this process saw the change."
    NeverAsleep "never-asleep" "Whatever a step returns, the next due instant is known to whoever arms timers."
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARITY: &str = include_str!("../../docs/parity.md");
    const TESTS: &str = concat!(include_str!("rule_tests.rs"), include_str!("guard_tests.rs"));

    #[test]
    fn every_rule_has_its_row_and_its_test() {
        let (rows, _) = PARITY.split_once("\n## Jobs\n").unwrap();
        for rule in Rule::ALL {
            assert!(rows.contains(&format!("| `{}` |", rule.name())), "no row for {}", rule.name());
            let test = format!("fn {}", rule.name().replace('-', "_"));
            assert!(TESTS.contains(&test), "no test for {}", rule.name());
        }
    }

    #[test]
    fn no_row_is_left_without_a_rule() {
        let (rows, _) = PARITY.split_once("\n## Jobs\n").unwrap();
        let rows = rows.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, Rule::ALL.len());
    }
}
