//! Whatever the objects hold and whatever the server answers: a step ends, within a bounded number of calls, without a panic, and
//! keeps its promises.

use std::sync::Arc;

use cronjob_controller::model::{
    CronJob, CronJobSpec, CronJobStatus, Finish, Flavor, Job, JobTemplate, ObjectKey, ObjectReference, OwnerReference,
    Policy, WallTime,
};
use cronjob_controller::reconcile::{Answer, Call, Memory, Next, Settings, Step, on_cronjob_updated};
use cronjob_controller::schedule::Zone;
use proptest::prelude::*;

use crate::model::{Cache, at, failure, job, owner};

const SCHEDULES: [&str; 12] = [
    "* * * * *",
    "0 * * * *",
    "0,1 0 * * *",
    "@every 90s",
    "@every 1h",
    "0 0 31 2 *",
    "0 0 29 2 *",
    "x",
    "",
    "TZ=UTC",
    "TZ=Pacific/Chatham 50 3 * * *",
    "59 23 31 12 *",
];

const ZONES: [&str; 7] = ["", "Local", "UTC", "Pacific/Chatham", "America/Havana", "No/Where", "../x"];

/// Instants near the fixture's, and at the edges of the calendar.
fn instant() -> impl Strategy<Value = WallTime> {
    prop_oneof![
        6 => (-3_000_i64..3_000).prop_map(at),
        1 => Just(WallTime::MIN_UTC),
        1 => Just(WallTime::MAX_UTC),
        1 => any::<i64>().prop_filter_map("out of range", |s| WallTime::from_timestamp(s / 1_000_000, 0)),
    ]
}

fn schedule() -> impl Strategy<Value = Box<str>> {
    prop_oneof![
        9 => prop::sample::select(&SCHEDULES[..]).prop_map(Into::into),
        1 => "[ -~]{0,20}".prop_map(Into::into),
    ]
}

fn deadline() -> impl Strategy<Value = Option<i64>> {
    prop::option::of(prop_oneof![
        Just(i64::MIN),
        Just(i64::MAX),
        Just(-1),
        Just(0),
        Just(1),
        Just(9_223_372_036),
        Just(9_223_372_037),
        any::<i64>(),
        1..100_000_i64
    ])
}

fn zone() -> impl Strategy<Value = Option<Box<str>>> {
    prop::option::of(prop::sample::select(&ZONES[..]).prop_map(Into::into))
}

fn a_job(flavor: Flavor) -> impl Strategy<Value = Job> {
    let finish = prop::option::of(prop::sample::select(&[Finish::Complete, Finish::Failed, Finish::Terminated][..]));
    let owner = prop_oneof![
        6 => Just(Some(owner(flavor))),
        1 => Just(None),
        1 => Just(Some(OwnerReference { uid: "else".into(), ..owner(flavor) })),
    ];
    (0..9_u8, finish, owner, prop::option::of(instant()), any::<bool>()).prop_map(
        move |(number, finish, controller, time, succeeded)| Job {
            controller,
            finish,
            succeeded,
            start_time: time,
            completion_time: time,
            ..job(flavor, &format!("cj-{number}"), time)
        },
    )
}

fn reference() -> impl Strategy<Value = ObjectReference> {
    (0..9_u8, prop::sample::select(&["", "ns", "other"][..])).prop_map(|(number, namespace)| ObjectReference {
        name: format!("cj-{number}").into(),
        namespace: namespace.into(),
        uid: format!("uid-of-cj-{number}").into(),
        ..ObjectReference::default()
    })
}

prop_compose! {
    fn a_cronjob()(
        schedule in schedule(),
        time_zone in zone(),
        starting_deadline_s in deadline(),
        policy in prop::sample::select(&[Policy::Allow, Policy::Forbid, Policy::Replace][..]),
        (suspend, deleting) in (prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
        limits in (prop::option::of(-1..3_i32), prop::option::of(-1..3_i32)),
        creation_time in prop::option::weighted(0.9, instant()),
        times in (prop::option::of(instant()), prop::option::of(instant())),
        active in prop::collection::vec(reference(), 0..5),
    ) -> CronJob {
        CronJob {
            key: ObjectKey::new("ns", "cj"),
            uid: "cj-uid".into(),
            resource_version: "7".into(),
            creation_time,
            deleting,
            spec: CronJobSpec {
                schedule, time_zone, starting_deadline_s, policy, suspend,
                successful_limit: limits.0,
                failed_limit: limits.1,
                template: Arc::new(JobTemplate::default()),
            },
            status: CronJobStatus { active, last_schedule_time: times.0, last_successful_time: times.1 },
        }
    }
}

/// An answer that fits the call or not, as `dice` says.
fn answer(dice: u8, call: &Call, live: &CronJob, jobs: &[Job]) -> Answer {
    let job = jobs.get(usize::from(dice) % jobs.len().max(1)).cloned().map(Arc::new);
    let refused = ["NotFound", "AlreadyExists", "Conflict", "Forbidden", ""][usize::from(dice) % 5];
    let failed = failure(if refused.is_empty() { 0 } else { 500 }, refused);
    match (dice / 64, call) {
        (0, Call::GetCronJob { .. } | Call::PatchStatus { .. }) => Answer::CronJob(Err(failed)),
        (0, Call::DeleteJob { .. }) => Answer::Deleted(Err(failed)),
        (0, _) => Answer::Job(Err(failed)),
        (_, Call::GetCronJob { .. } | Call::PatchStatus { .. }) => Answer::CronJob(Ok(Arc::new(live.clone()))),
        (_, Call::DeleteJob { .. }) if dice % 16 != 7 => Answer::Deleted(Ok(())),
        _ => job.map_or(Answer::Deleted(Ok(())), |job| Answer::Job(Ok(job))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_step_keeps_its_promises_on_any_input(
        (flavor, jobs) in prop::sample::select(&[Flavor::Kubernetes, Flavor::Volcano][..])
            .prop_flat_map(|flavor| (Just(flavor), prop::collection::vec(a_job(flavor), 0..6))),
        cronjob in a_cronjob(),
        live in a_cronjob(),
        now in instant(),
        dice in prop::collection::vec(any::<u8>(), 40),
    ) {
        let cache = Cache {
            cronjob: Arc::new(cronjob.clone()),
            jobs: jobs.iter().cloned().map(Arc::new).collect(),
            version: None,
        };
        let settings = Settings { flavor, local_zone: Zone::UTC };
        let mut memory = Memory::default();
        let mut step = Step::begin(settings, cache.cronjob.clone(), &cache, &mut memory, now);
        let bound = 3 * (jobs.len() + cronjob.status.active.len().max(live.status.active.len())) + 6;
        let (mut given, mut calls) = (None, 0);
        // lastScheduleTime of the copy that is decided on.
        let mut last = cronjob.status.last_schedule_time;
        let outcome = loop {
            match step.advance(given.take()) {
                Next::Done(outcome) => break outcome,
                Next::Call(call) => {
                    let dice = dice[calls % dice.len()];
                    calls += 1;
                    prop_assert!(calls <= bound, "no end: {calls} calls, {call:?}");
                    match &call {
                        Call::CreateJob { cronjob, at, .. } => {
                            prop_assert!(*at <= now, "a run from the future");
                            prop_assert!(!cronjob.deleting && !cronjob.spec.suspend);
                            prop_assert!(cronjob.status.last_schedule_time.is_none_or(|last| last < *at));
                            last = cronjob.status.last_schedule_time;
                        }
                        Call::PatchStatus { base, status } => {
                            prop_assert!(status.last_schedule_time >= base.status.last_schedule_time.min(last));
                            prop_assert!(status.last_schedule_time >= base.status.last_schedule_time, "it moved back");
                        }
                        _ => {}
                    }
                    given = Some(answer(dice, &call, &live, &jobs));
                }
            }
        };
        prop_assert!(step.pending_run().is_none());
        prop_assert!(outcome.error.is_none() || outcome.requeue.is_none());
        prop_assert!(outcome.next_due.is_none_or(|due| due > now || cronjob.creation_time.is_none_or(|created| created > now)
            || cronjob.status.last_schedule_time > Some(now) || live.status.last_schedule_time > Some(now)));
        let _ = on_cronjob_updated(settings, &cronjob, &live, now);
    }

    #[test]
    fn forbid_never_creates_beside_an_active_job(
        cronjob in a_cronjob(),
        live in a_cronjob(),
        jobs in prop::collection::vec(a_job(Flavor::Kubernetes), 0..6),
        minutes in 0..3_000_i64,
        dice in prop::collection::vec(any::<u8>(), 40),
    ) {
        let forbid = |cronjob: CronJob| CronJob {
            deleting: false,
            creation_time: Some(at(-10)),
            spec: CronJobSpec {
                policy: Policy::Forbid, suspend: false, schedule: "* * * * *".into(), starting_deadline_s: None, time_zone: None,
                ..cronjob.spec
            },
            ..cronjob
        };
        let (cronjob, live) = (forbid(cronjob), forbid(live));
        let cache = Cache {
            cronjob: Arc::new(cronjob.clone()),
            jobs: jobs.iter().cloned().map(Arc::new).collect(),
            version: None,
        };
        let settings = Settings { flavor: Flavor::Kubernetes, local_zone: Zone::UTC };
        let mut memory = Memory::default();
        let mut step = Step::begin(settings, cache.cronjob.clone(), &cache, &mut memory, at(minutes));
        let (mut given, mut calls) = (None, 0);
        // Entries of `active` that this step learnt to be over: deleted, finished, or not found on the server.
        let mut over: Vec<Box<str>> =
            jobs.iter().filter(|job| job.finish.is_some()).map(|job| (&*job.key.name).into()).collect();
        while let Next::Call(call) = step.advance(given.take()) {
            let dice = dice[calls % dice.len()];
            calls += 1;
            let reply = answer(dice, &call, &live, &jobs);
            match (&call, &reply) {
                (Call::CreateJob { cronjob, .. }, _) => {
                    for reference in &cronjob.status.active {
                        prop_assert!(over.contains(&reference.name), "{} is active", reference.name);
                    }
                }
                (Call::GetJob { key }, _) | (Call::DeleteJob { key, .. }, _) => over.push((&*key.name).into()),
                _ => {}
            }
            given = Some(reply);
        }
    }
}
