//! The CronJobs, what happens to each, and which differences are expected under which rule.

use serde_json::{Value, json};

use crate::edits::Edit::{Beside, Create, Delete, DeleteJob, Finish, Patch, PatchStatus, Refused};
use crate::edits::{Edit, job, owned_by_it, pod};

/// One CronJob of the script.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Edits, with when they happen in seconds from the start of the first minute.
    pub(crate) edits: Vec<(u64, Edit)>,
    pub(crate) expected: Vec<Expected>,
}

/// Differences under one rule, as lines of the record with `*` for anything. Each must match a line that only one side has.
pub(crate) struct Expected {
    /// The rule's name in `docs/parity.md`.
    pub(crate) rule: &'static str,
    /// Lines that only the real controller has.
    pub(crate) theirs: &'static [&'static str],
    /// Lines that only ours has.
    pub(crate) ours: &'static [&'static str],
}

/// When everything is created.
const CREATE: u64 = 14;
/// In the middle of the minutes 0, 1, 2, 3.
const MID: [u64; 4] = [35, 90, 150, 210];

/// Every edit of every case in order of time.
pub(crate) fn timeline(cases: &[Case]) -> Vec<(u64, &str, &Edit)> {
    let mut all: Vec<(u64, &str, &Edit)> =
        cases.iter().flat_map(|case| case.edits.iter().map(|(at_s, edit)| (*at_s, case.name, edit))).collect();
    all.sort_by_key(|(at_s, _, _)| *at_s);
    all
}

/// A case without edits but its creation; `spec` is laid over a minimal one that starts each minute.
fn case(name: &'static str, spec: Value) -> Case {
    let mut full = json!({
        "schedule": "* * * * *",
        "jobTemplate": {
            "metadata": { "labels": { "edition": "1" }, "annotations": { "note": "from the template" } },
            "spec": { "template": { "spec": pod() } },
        },
    });
    for (field, value) in spec.as_object().unwrap() {
        full[field] = value.clone();
    }
    Case { name, edits: vec![(CREATE, Create(full))], expected: Vec::new() }
}

impl Case {
    fn edit(mut self, at_s: u64, edit: Edit) -> Self {
        self.edits.push((at_s, edit));
        self
    }

    fn expect(mut self, rule: &'static str, theirs: &'static [&'static str], ours: &'static [&'static str]) -> Self {
        self.expected.push(Expected { rule, theirs, ours });
        self
    }
}

pub(crate) fn all() -> Vec<Case> {
    let mut all = alike();
    all.extend(by_rule());
    all
}

/// Both controllers do the same.
fn alike() -> Vec<Case> {
    vec![
        case("allow", json!({})),
        case("forbid", json!({ "concurrencyPolicy": "Forbid" })),
        case("replace", json!({ "concurrencyPolicy": "Replace" })),
        case("completes", json!({ "successfulJobsHistoryLimit": 1 }))
            .edit(MID[1], Finish(1, true))
            .edit(MID[2], Finish(2, true))
            .edit(MID[3], Finish(3, true)),
        case("fails", json!({ "failedJobsHistoryLimit": 1 }))
            .edit(MID[1], Finish(1, false))
            .edit(MID[2], Finish(2, false))
            .edit(MID[3], Finish(3, false)),
        case("keeps-none", json!({ "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0 }))
            .edit(MID[1], Finish(1, true))
            .edit(MID[2], Finish(2, false)),
        case("forbid-catches-up", json!({ "concurrencyPolicy": "Forbid" })).edit(MID[2], Finish(1, true)),
        case("replace-finished", json!({ "concurrencyPolicy": "Replace" })).edit(MID[1], Finish(1, true)),
        case("resumed", json!({ "suspend": true })).edit(MID[2], Patch(json!({ "spec": { "suspend": false } }))),
        case("suspended", json!({})).edit(MID[1], Patch(json!({ "spec": { "suspend": true } }))),
        case("suspended-and-resumed", json!({}))
            .edit(MID[1], Patch(json!({ "spec": { "suspend": true } })))
            .edit(MID[3], Patch(json!({ "spec": { "suspend": false } }))),
        case("sooner", json!({ "schedule": "0 0 1 1 *" }))
            .edit(MID[1], Patch(json!({ "spec": { "schedule": "* * * * *" } }))),
        case("later", json!({})).edit(MID[1], Patch(json!({ "spec": { "schedule": "0 0 1 1 *" } }))),
        case("moves", json!({ "timeZone": "Etc/UTC" }))
            .edit(MID[1], Patch(json!({ "spec": { "timeZone": "Asia/Tokyo" } }))),
        case("half-hour-zone", json!({ "timeZone": "Asia/Kolkata" })),
        case("new-template", json!({})).edit(
            MID[1],
            Patch(json!({ "spec": { "jobTemplate": { "metadata": { "labels": { "edition": "2" } } } } })),
        ),
        case("policy-changes", json!({})).edit(MID[1], Patch(json!({ "spec": { "concurrencyPolicy": "Replace" } }))),
        case("deadline", json!({ "startingDeadlineSeconds": 45 })),
        case("every", json!({ "schedule": "@every 1m" })),
        case("hourly", json!({ "schedule": "@hourly" })),
        case("never", json!({ "schedule": "0 0 31 2 *" })),
        case("loses-its-job", json!({ "concurrencyPolicy": "Forbid" })).edit(MID[1], DeleteJob(1)),
        case("goes-alone", json!({})).edit(MID[1], Delete("Orphan")),
        case("goes-with-all", json!({})).edit(MID[1], Delete("Background")),
        case("goes-last", json!({})).edit(MID[1], Delete("Foreground")),
        case("long-ago", json!({ "schedule": "*/1 * * * *", "suspend": true }))
            .edit(20, PatchStatus(json!({ "status": { "lastScheduleTime": "<time -180>" } })))
            .edit(MID[1], Patch(json!({ "spec": { "suspend": false } }))),
        case("long-ago-with-deadline", json!({ "startingDeadlineSeconds": 120, "suspend": true }))
            .edit(20, PatchStatus(json!({ "status": { "lastScheduleTime": "<time -180>" } })))
            .edit(MID[1], Patch(json!({ "spec": { "suspend": false } }))),
        case("manual", json!({ "concurrencyPolicy": "Forbid", "schedule": "0 0 1 1 *" })).edit(
            MID[0],
            Beside(
                "jobs",
                job(
                    "manual-by-hand",
                    json!({
                        "ownerReferences": owned_by_it("manual"),
                        "annotations": { "cronjob.kubernetes.io/instantiate": "manual" },
                    }),
                ),
            ),
        ),
        case("metadata-edits", json!({}))
            .edit(MID[1], Patch(json!({ "metadata": { "labels": { "a": "b" }, "annotations": { "c": "d" } } }))),
        case("refusals", json!({ "schedule": "0 0 1 1 *" }))
            .edit(MID[0], Refused(json!({ "timeZone": "Mars/Olympus" }), "unknown time zone Mars/Olympus"))
            .edit(MID[0], Refused(json!({ "schedule": "TZ=UTC * * * * *" }), "cannot use TZ or CRON_TZ in schedule"))
            .edit(MID[0], Refused(json!({ "schedule": "x" }), "expected exactly 5 fields, found 1: [x]")),
    ]
}

/// The controllers differ, each time under a rule.
fn by_rule() -> Vec<Case> {
    vec![
        case("edited-and-touched", json!({ "schedule": "0 0 1 1 *" }))
            .edit(MID[1], Patch(json!({ "spec": { "schedule": "* * * * *" } })))
            .edit(MID[1] + 8, Patch(json!({ "metadata": { "labels": { "touched": "yes" } } })))
            .expect("edit-floor", &["created *-+1 *", "left *-+1 *", "event Normal SuccessfulCreate *-+1 *", "status active *"], &["status active *"]),
        case("deadline-zero", json!({ "startingDeadlineSeconds": 0 })).expect("deadline-zero", &["status active *", "status lastScheduleTime none"], &[
            "created *",
            "left *",
            "event Normal SuccessfulCreate *",
            "status active *",
            "status lastScheduleTime *",
        ]),
        case("every-with-deadline", json!({ "schedule": "@every 1m", "startingDeadlineSeconds": 40 })).expect(
            "every-keeps-anchor",
            &["status active *", "status lastScheduleTime none"],
            &["created *", "left *", "event Normal SuccessfulCreate *", "status active *", "status lastScheduleTime *"],
        ),
        case("missed", json!({ "startingDeadlineSeconds": 12, "suspend": true }))
            .edit(MID[1], Patch(json!({ "spec": { "suspend": false } })))
            .expect("miss-speaks", &[], &["event Warning MissSchedule *"]),
        case("two-minutes-only", json!({ "schedule": "<mm +1>,<mm +2> * * * *", "suspend": true }))
            .edit(MID[3], Patch(json!({ "spec": { "suspend": false } })))
            .expect(
                "exact-newest",
                &["status active *", "status lastScheduleTime none"],
                &[
                    "created *-+2 *",
                    "left *-+2 *",
                    "event Normal SuccessfulCreate *-+2 *",
                    "status active *",
                    "status lastScheduleTime +2 *",
                ],
            ),
        case("taken-name", json!({}))
            .edit(MID[0], Beside("jobs", job("taken-name-<+1>", json!({}))))
            .expect("foreign-requeues", &[], &["event Warning ForeignJob *"]),
        case("forgotten-run", json!({ "concurrencyPolicy": "Forbid" }))
            .edit(MID[1], PatchStatus(json!({ "status": { "active": [] } })))
            .expect(
                "own-run-readopted",
                &["event Warning UnexpectedJob *", "created *", "left *", "event Normal SuccessfulCreate *", "status active *", "status lastScheduleTime *"],
                &["status active *", "status lastScheduleTime *"],
            ),
        case("early", json!({}))
            .edit(
                MID[1],
                Beside(
                    "jobs",
                    job(
                        "early-<+2>",
                        json!({
                            "ownerReferences": owned_by_it("early"),
                            "annotations": { "batch.kubernetes.io/cronjob-scheduled-timestamp": "<time +2>" },
                        }),
                    ),
                ),
            )
            .expect("own-run-readopted", &["event Warning UnexpectedJob *", "status active *"], &["status active *"]),
        case("deadline-huge", json!({ "startingDeadlineSeconds": 10_000_000_000_u64 })).expect(
            "deadline-saturates",
            &["status active *", "status lastScheduleTime none"],
            &["created *", "left *", "event Normal SuccessfulCreate *", "status active *", "status lastScheduleTime *"],
        ),
        case("swapped", json!({ "suspend": true }))
            .edit(MID[0], Beside("jobs", job("swapped-by-hand", json!({}))))
            .edit(
                MID[1],
                PatchStatus(json!({ "status": { "active": [{
                    "apiVersion": "batch/v1", "kind": "Job", "namespace": "side-by-side", "name": "swapped-by-hand",
                    "uid": "11111111-1111-4111-8111-111111111111",
                }] } })),
            )
            .expect("same-name-other-uid", &["status active *"], &["event Normal MissingJob *", "status active *"]),
        case("namesake", json!({ "schedule": "0 0 1 1 *" }))
            .edit(20, Beside("configmaps", json!({ "metadata": { "name": "namesake" } })))
            .edit(
                MID[0],
                Beside("jobs", job("namesake-of-another", json!({ "ownerReferences": [{
                    "apiVersion": "v1", "kind": "ConfigMap", "name": "namesake", "uid": "<uid of namesake>", "controller": true,
                }] }))),
            )
            .edit(MID[1], Patch(json!({ "metadata": { "labels": { "look": "again" } } })))
            .expect("owner-by-uid", &["event Warning UnexpectedJob *"], &[]),
    ]
}
