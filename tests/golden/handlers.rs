//! The handler vectors: what each peer's watch handlers put into the queue, against ours.

use std::collections::BTreeMap;

use cronjob_controller::api;
use cronjob_controller::model::{CronJob, Flavor, Job, ObjectKey, Uid};
use cronjob_controller::reconcile::{
    Operation, Reaction, Rule, Settings, on_cronjob_updated, on_job_added, on_job_deleted, on_job_updated,
};
use cronjob_controller::schedule::{Schedule, Zone};
use serde::Deserialize;
use serde_json::Value;

use crate::compare::Event;
use crate::loader::load;
use crate::oracle::time;
use crate::peers::{Arithmetic, Rules, Time, effective, panics};
use crate::server::text;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vector {
    id: String,
    kind: String,
    now: Time,
    process_time_zone: String,
    old: Option<Value>,
    new: Value,
    cached_cron_jobs: Vec<Value>,
    expect: Expect,
}

#[derive(Deserialize)]
struct Expect {
    queue: Vec<Queued>,
    events: Vec<Event>,
    panic: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Queued {
    op: String,
    key: String,
    delay_ms: Option<i64>,
}

impl Queued {
    fn of(operation: &Operation) -> Self {
        let (op, key, delay_ms) = match operation {
            Operation::Add(key) => ("add", key, None),
            Operation::AddAfter(key, delay) => ("addAfter", key, Some(i64::try_from(delay.as_millis()).unwrap())),
        };
        Self { op: op.to_owned(), key: key.to_string(), delay_ms }
    }

    /// The saturated negative delay of a schedule that never fires means at once.
    fn at_once_if_negative(mut self) -> Self {
        self.delay_ms = self.delay_ms.map(|delay| delay.max(0));
        self
    }
}

impl Vector {
    fn local(&self) -> Zone {
        Zone::load(&self.process_time_zone, Zone::UTC).unwrap()
    }

    fn cronjob(flavor: Flavor, object: &Value) -> CronJob {
        api::decode_cronjob(flavor, &object.to_string()).unwrap()
    }

    fn job(flavor: Flavor, object: Option<&Value>) -> Job {
        api::decode_job(flavor, &object.unwrap().to_string()).unwrap()
    }

    fn ours(&self, flavor: Flavor) -> Reaction {
        let cached: BTreeMap<ObjectKey, Uid> =
            self.cached_cron_jobs.iter().map(|object| Self::cronjob(flavor, object)).map(|c| (c.key, c.uid)).collect();
        let owners = |key: &ObjectKey| cached.get(key).cloned();
        let (old, new) = (self.old.as_ref(), Some(&self.new));
        match self.kind.as_str() {
            "updateCronJob" => {
                let settings = Settings { flavor, local_zone: self.local() };
                let old = Self::cronjob(flavor, old.unwrap());
                on_cronjob_updated(settings, &old, &Self::cronjob(flavor, &self.new), self.now)
            }
            "addJob" => on_job_added(flavor, &Self::job(flavor, new), &owners),
            "updateJob" => on_job_updated(flavor, &Self::job(flavor, old), &Self::job(flavor, new), &owners),
            "deleteJob" | "deleteJobTombstone" => on_job_deleted(flavor, &Self::job(flavor, new), &owners),
            other => panic!("unknown kind {other}"),
        }
    }

    fn schedule(&self, object: &Value) -> String {
        effective(text(object, "/spec/schedule"), object["spec"]["timeZone"].as_str(), self.local())
    }

    /// The delay after an edit, with rules; `None` if it was no edit of a schedule that parses.
    fn delay_ms(&self, rules: &Rules) -> Option<i64> {
        if self.kind != "updateCronJob" || self.schedule(self.old.as_ref()?) == self.schedule(&self.new) {
            return None;
        }
        let arithmetic = Arithmetic {
            schedule: Schedule::parse(&self.schedule(&self.new)).ok()?,
            local: self.local(),
            anchor: time(&self.new, "/status/lastScheduleTime").or(time(&self.new, "/metadata/creationTimestamp"))?,
            deadline_s: None,
            now: self.now,
            last: time(&self.new, "/status/lastScheduleTime"),
            rules,
        };
        Some(arithmetic.delay_ms().unwrap_or(0).max(0))
    }

    /// What the record demands of us, and the rule that touches it, if one does.
    fn wanted(&self, flavor: Flavor) -> (Vec<Queued>, Vec<Event>, Option<Rule>) {
        let mut queue: Vec<Queued> = self.expect.queue.iter().cloned().map(Queued::at_once_if_negative).collect();
        let edited =
            self.kind == "updateCronJob" && self.old.as_ref().is_some_and(|old| old["spec"] != self.new["spec"]);
        if flavor == Flavor::Volcano && edited && panics(&self.schedule(&self.new)) {
            assert!(self.expect.panic.is_some(), "{}: the parser of the peer panics", self.id);
            let message = format!("unparseable schedule for cronjob: {}", text(&self.new, "/spec/schedule"));
            let event = Event { kind: "Warning".into(), reason: "UnParseableCronJobSchedule".into(), message };
            return (queue, vec![event], Some(Rule::NoParserPanic));
        }
        assert_eq!(self.expect.panic, None, "{}", self.id);
        let all: Rules = Rule::ALL.iter().copied().collect();
        let (theirs, demanded) = (self.delay_ms(&Rules::new()), self.delay_ms(&all));
        let rule = (theirs != demanded).then_some(Rule::ExactNewest);
        if let (Some(_), [queued]) = (rule, &mut queue[..]) {
            queued.delay_ms = demanded;
        }
        (queue, self.expect.events.clone(), rule)
    }
}

fn check_file(name: &str, total: usize, flavor: Flavor) {
    let vectors: Vec<Vector> = load(name, total);
    let mut wrong = Vec::new();
    let mut by_rule: BTreeMap<&str, usize> = BTreeMap::new();
    for vector in &vectors {
        let reaction = vector.ours(flavor);
        let ours: (Vec<_>, Vec<_>) =
            (reaction.operations.iter().map(Queued::of).collect(), reaction.happenings.iter().map(Event::of).collect());
        let (queue, events, rule) = vector.wanted(flavor);
        if let Some(rule) = rule {
            *by_rule.entry(rule.name()).or_default() += 1;
        }
        if ours != (queue.clone(), events.clone()) {
            wrong.push(format!("{}: {ours:?}\n      not {queue:?} {events:?}", vector.id));
        }
    }
    let touched: usize = by_rule.values().sum();
    println!(
        "{name}: {} vectors, {} in full agreement with the peer, by rules {by_rule:?}",
        vectors.len(),
        vectors.len() - touched
    );
    assert!(wrong.is_empty(), "{name}: {} wrong, first {:#?}", wrong.len(), &wrong[..wrong.len().min(8)]);
}

#[test]
fn kubernetes_watch_events_agree_on_every_vector() {
    check_file("k8s-handlers", 500, Flavor::Kubernetes);
}

#[test]
fn volcano_watch_events_agree_on_every_vector() {
    check_file("volcano-handlers", 300, Flavor::Volcano);
}
