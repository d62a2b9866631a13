//! The helper vectors: schedule arithmetic around one CronJob. As for the sync vectors, the record must be what the written-out
//! [arithmetic](crate::peers) says with no rule on, and ours what it says with all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronjob_controller::api;
use cronjob_controller::model::{Flavor, Job, ObjectKey, Uid, job_name};
use cronjob_controller::reconcile::{
    Call, JobCache, Memory, Next, Rule, Settings, Step, Timetable, WAKE_DELAY, effective_schedule,
};
use cronjob_controller::schedule::{Missed, MissedKind, NeverTwice, Schedule, Zone};
use serde::Deserialize;
use serde_json::json;

use crate::compare::Event;
use crate::loader::load;
use crate::peers::{Arithmetic, Recent, Rules, Time, effective};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Vector {
    id: String,
    now: Time,
    process_time_zone: String,
    schedule: String,
    time_zone: Option<String>,
    creation_timestamp: Time,
    last_schedule_time: Option<Time>,
    starting_deadline_seconds: Option<i64>,
    cron_job_name: String,
    expect: Expect,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expect {
    effective_schedule: String,
    format_event: Option<Event>,
    parse_error: Option<String>,
    next_after_now: Option<Time>,
    most_recent: Option<Found>,
    most_recent_with_deadline: Option<Found>,
    next_schedule_time_duration_ms: Option<i64>,
    next_schedule_time: Option<Time>,
    next_schedule_time_error: Option<String>,
    next_schedule_time_events: Option<Vec<Event>>,
    job_name: Option<String>,
    scheduled_timestamp_annotation: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Found {
    earliest: Time,
    most_recent: Option<Time>,
    missed: String,
    error: Option<String>,
}

const TOO_MANY: &str = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";

fn too_many() -> Event {
    Event { kind: "Warning".into(), reason: "TooManyMissedTimes".into(), message: TOO_MANY.into() }
}

fn no_jobs() -> impl JobCache {
    struct NoJobs;
    impl JobCache for NoJobs {
        fn children(&self, _: &Uid) -> Vec<Arc<Job>> {
            Vec::new()
        }
        fn get(&self, _: &ObjectKey) -> Option<Arc<Job>> {
            None
        }
    }
    NoJobs
}

/// The record cuts times to milliseconds.
fn in_ms(at: Time) -> Time {
    Time::from_timestamp_millis(at.timestamp_millis()).unwrap_or(at)
}

/// The results that rules can touch, in one comparable form.
#[derive(Clone, Debug, PartialEq)]
struct Results {
    pending: Result<(Time, Option<Time>, String), String>,
    due: Result<(Time, Option<Time>, String), String>,
    delay_ms: Option<i64>,
}

impl Results {
    fn recorded(expect: &Expect) -> Option<Self> {
        let found = |found: &Found| match &found.error {
            Some(error) => Err(error.clone()),
            None => Ok((found.earliest, found.most_recent, found.missed.clone())),
        };
        Some(Self {
            pending: found(expect.most_recent.as_ref()?),
            due: found(expect.most_recent_with_deadline.as_ref()?),
            delay_ms: expect.next_schedule_time_duration_ms,
        })
    }

    fn of_oracle(arithmetic: &Arithmetic<'_>) -> Self {
        let found = |recent: Result<Recent, &str>| match recent {
            Ok(recent) => Ok((in_ms(recent.earliest), recent.newest, recent.missed.to_owned())),
            Err(error) => Err(error.to_owned()),
        };
        Self {
            pending: found(arithmetic.most_recent(false)),
            due: found(arithmetic.most_recent(true)),
            delay_ms: arithmetic.delay_ms(),
        }
    }

    fn ours(timetable: &Timetable, now: Time) -> Self {
        let found = |since: Time, missed: Result<Missed, NeverTwice>| match missed {
            Ok(missed) => {
                let kind = match missed.kind {
                    MissedKind::None => "none",
                    MissedKind::Few => "few",
                    MissedKind::Many => "many",
                };
                Ok((in_ms(since), missed.newest, kind.to_owned()))
            }
            Err(never) => Err(never.to_string()),
        };
        Self {
            pending: found(timetable.since(None), timetable.pending()),
            due: found(timetable.since(timetable.window()), timetable.due()),
            delay_ms: timetable.next_due().map(|due| (due + WAKE_DELAY - now).num_milliseconds()),
        }
    }
}

impl Vector {
    fn local(&self) -> Zone {
        Zone::load(&self.process_time_zone, Zone::UTC).unwrap()
    }

    fn cronjob(&self) -> cronjob_controller::model::CronJob {
        let object = json!({
            "metadata": {"name": self.cron_job_name, "namespace": "ns", "uid": "u", "creationTimestamp": self.creation_timestamp},
            "spec": {"schedule": self.schedule, "timeZone": self.time_zone,
                "startingDeadlineSeconds": self.starting_deadline_seconds},
            "status": {"lastScheduleTime": self.last_schedule_time},
        });
        api::decode_cronjob(Flavor::Kubernetes, &object.to_string()).unwrap()
    }

    fn oracle(&self, rules: &Rules) -> Results {
        let parsed = effective(&self.schedule, self.time_zone.as_deref(), self.local());
        Results::of_oracle(&Arithmetic {
            schedule: Schedule::parse(&parsed).unwrap(),
            local: self.local(),
            anchor: self.last_schedule_time.unwrap_or(self.creation_timestamp),
            deadline_s: self.starting_deadline_seconds,
            now: self.now,
            last: self.last_schedule_time,
            rules,
        })
    }

    /// What a step says before it decides, and the creation it comes to.
    fn step(&self) -> (Vec<Event>, Option<(Time, String, String)>) {
        let settings = Settings { flavor: Flavor::Kubernetes, local_zone: self.local() };
        let (mut memory, jobs) = (Memory::default(), no_jobs());
        let mut step = Step::begin(settings, Arc::new(self.cronjob()), &jobs, &mut memory, self.now);
        let created = match step.advance(None) {
            Next::Call(Call::CreateJob { cronjob, at, name, offset_s }) => {
                let body = api::job_body(Flavor::Kubernetes, &cronjob, at, offset_s, None);
                let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
                let annotation = &body["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
                Some((at, name.into_string(), annotation.as_str().unwrap().to_owned()))
            }
            Next::Call(other) => panic!("{}: {other:?}", self.id),
            Next::Done(outcome) => {
                return (outcome.happenings.iter().map(Event::of).collect(), None);
            }
        };
        (step.take_happenings().iter().map(Event::of).collect(), created)
    }

    /// Problems, and the rules that touch the vector.
    fn check(&self) -> (Vec<String>, Vec<Rule>) {
        let mut wrong = Vec::new();
        let mut compare = |what: &str, ours: String, theirs: String| {
            if ours != theirs {
                wrong.push(format!("{} {what}: {ours}\n      not {theirs}", self.id));
            }
        };
        let cronjob = self.cronjob();
        let expect = &self.expect;
        compare(
            "effectiveSchedule",
            effective_schedule(&cronjob.spec, self.local()).into(),
            expect.effective_schedule.clone(),
        );
        let timetable = Timetable::new(&cronjob, cronjob.status.last_schedule_time, self.local(), None, self.now);
        let error = timetable.as_ref().err().map(ToString::to_string);
        compare("parseError", format!("{error:?}"), format!("{:?}", expect.parse_error));
        let Ok(timetable) = timetable else { return (wrong, Vec::new()) };
        let parsed = Schedule::parse(&expect.effective_schedule).unwrap();
        compare(
            "nextAfterNow",
            format!("{:?}", parsed.next(self.now, self.local())),
            format!("{:?}", expect.next_after_now),
        );

        let all: Rules = Rule::ALL.iter().copied().collect();
        let (theirs, wanted) = (self.oracle(&Rules::new()), self.oracle(&all));
        compare(
            "oracle and record",
            format!("{:?}", Some(&theirs)),
            format!("{:?}", Results::recorded(expect).as_ref()),
        );
        compare("ours", format!("{:?}", Results::ours(&timetable, self.now)), format!("{wanted:?}"));
        let touching: Vec<Rule> = if theirs == wanted {
            Vec::new()
        } else {
            let changes = |rule: &&Rule| {
                let others: Rules = all.iter().copied().filter(|other| other != *rule).collect();
                self.oracle(&[**rule].into()) != theirs || self.oracle(&others) != wanted
            };
            Rule::ALL.iter().filter(changes).copied().collect()
        };

        // What follows from the due instant: event, name, annotation. Only a usable zone gets that far in a step.
        let zone_is_usable = self.time_zone.as_deref().is_none_or(|zone| Zone::load(zone, self.local()).is_ok());
        if zone_is_usable {
            let (events, created) = self.step();
            let unsupported = events.iter().find(|event| event.reason == "UnsupportedSchedule").cloned();
            compare("formatEvent", format!("{unsupported:?}"), format!("{:?}", expect.format_event));
            let due = wanted.due.as_ref().ok().and_then(|(_, newest, _)| *newest);
            // Rule `minute-taken`.
            let minute = |at: &Time| at.timestamp().div_euclid(60);
            let run = due.filter(|at| self.last_schedule_time.as_ref().map(minute) != Some(minute(at)));
            compare("run", format!("{:?}", created.as_ref().map(|(at, ..)| *at)), format!("{run:?}"));
            let many = events.contains(&too_many());
            let wants_many = due.is_some() && wanted.due.as_ref().is_ok_and(|(_, _, missed)| missed == "many");
            compare("TooManyMissedTimes", many.to_string(), wants_many.to_string());
            if touching.is_empty() {
                compare("nextScheduleTime", format!("{due:?}"), format!("{:?}", expect.next_schedule_time));
                let events: Vec<Event> =
                    events.into_iter().filter(|event| event.reason == "TooManyMissedTimes").collect();
                compare(
                    "events",
                    format!("{events:?}"),
                    format!("{:?}", expect.next_schedule_time_events.clone().unwrap_or_default()),
                );
                let name = created.as_ref().map(|(_, name, _)| name);
                compare("jobName", format!("{name:?}"), format!("{:?}", expect.job_name.as_ref()));
                let annotation = created.as_ref().map(|(.., annotation)| annotation);
                let wanted = expect.scheduled_timestamp_annotation.as_ref();
                compare("annotation", format!("{annotation:?}"), format!("{wanted:?}"));
            }
        } else if let Some(at) = expect.next_schedule_time {
            compare("jobName", job_name(&self.cron_job_name, at), expect.job_name.clone().unwrap_or_default());
        }
        (wrong, touching)
    }
}

#[test]
fn schedule_arithmetic_agrees_on_every_vector() {
    let vectors: Vec<Vector> = load("k8s-helpers", 3_012);
    let mut wrong = Vec::new();
    let mut agree = 0;
    let mut by_rule: BTreeMap<&str, usize> = BTreeMap::new();
    for vector in &vectors {
        let (problems, touching) = vector.check();
        wrong.extend(problems);
        agree += usize::from(touching.is_empty());
        for rule in touching {
            *by_rule.entry(rule.name()).or_default() += 1;
        }
    }
    println!("k8s-helpers: {} vectors, {agree} in full agreement with the peer; touched by rules:", vectors.len());
    for (rule, count) in &by_rule {
        println!("  {rule:24} {count}");
    }
    assert!(wrong.is_empty(), "{} wrong, first {:#?}", wrong.len(), &wrong[..wrong.len().min(8)]);
}
