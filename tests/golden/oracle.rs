//! A sync of the peers, written straight down after their specification, with each of our rules on or off. With none on it must
//! give what was recorded; with all on it is what our machine is compared with. Whether a rule touches a vector follows from
//! the vector's inputs alone: it does if switching it changes what happens here.

mod start;
mod upkeep;

use chrono::{DateTime, SecondsFormat};
use cronjob_controller::model::Flavor;
use cronjob_controller::reconcile::Rule;
use cronjob_controller::schedule::{Schedule, Zone};
use serde_json::{Value, json};

use crate::compare::{Account, Event};
use crate::peers::{Arithmetic, Rules, Time, effective};
use crate::server::{Server, text};

/// The inputs of one sync.
pub(crate) struct Inputs<'v> {
    pub(crate) flavor: Flavor,
    pub(crate) cronjob: &'v Value,
    pub(crate) jobs: &'v [Value],
    pub(crate) now: Time,
    pub(crate) local: Zone,
}

/// A copy of the CronJob with its status under edit.
#[derive(Clone)]
struct Copy {
    object: Value,
    active: Vec<Value>,
    last_schedule: Option<Time>,
    last_success: Option<Time>,
}

struct Oracle<'v, 's> {
    inputs: &'v Inputs<'v>,
    rules: &'v Rules,
    server: &'s mut Server<'v>,
    events: Vec<Event>,
    cj: Copy,
    /// The copy that is written, if not `cj`.
    stale: Option<Copy>,
    children: Vec<&'v Value>,
    changed: bool,
    dropped: Vec<String>,
    skew: Option<i64>,
    next_due: Option<Time>,
}

enum End {
    /// Neither delay nor error.
    Nothing,
    Delay,
    Error(String),
    Panic,
}

type Step = Result<(), End>;

pub(crate) fn time(value: &Value, path: &str) -> Option<Time> {
    DateTime::parse_from_rfc3339(text(value, path)).ok().map(|time| time.to_utc())
}

fn rfc3339(time: Time) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

fn controller(job: &Value) -> Option<&Value> {
    job.pointer("/metadata/ownerReferences")?.as_array()?.iter().find(|owner| owner["controller"] == true)
}

fn reason(status: &Value) -> &str {
    text(status, "/reason")
}

fn message(status: &Value) -> String {
    text(status, "/message").to_owned()
}

impl Copy {
    fn of(object: &Value) -> Self {
        Self {
            active: object.pointer("/status/active").and_then(Value::as_array).cloned().unwrap_or_default(),
            last_schedule: time(object, "/status/lastScheduleTime"),
            last_success: time(object, "/status/lastSuccessfulTime"),
            object: object.clone(),
        }
    }

    fn spec(&self, field: &str) -> &Value {
        &self.object["spec"][field]
    }

    fn has(&self, uid: &str) -> bool {
        self.active.iter().any(|entry| text(entry, "/uid") == uid)
    }

    fn status(&self) -> Value {
        json!({"active": self.active, "lastScheduleTime": self.last_schedule.map(rfc3339),
            "lastSuccessfulTime": self.last_success.map(rfc3339)})
    }
}

/// What a sync of `inputs` does, and the next due instant that is known at its end.
pub(crate) fn sync<'v>(inputs: &'v Inputs<'v>, rules: &'v Rules, server: &mut Server<'v>) -> (Account, Option<Time>) {
    let mut oracle = Oracle {
        inputs,
        rules,
        server,
        events: Vec::new(),
        cj: Copy::of(inputs.cronjob),
        stale: None,
        children: Vec::new(),
        changed: false,
        dropped: Vec::new(),
        skew: None,
        next_due: None,
    };
    if oracle.k() || !oracle.deleting() {
        oracle.drop_nameless();
    }
    let end = oracle.sync();
    oracle.account(end)
}

impl<'v> Oracle<'v, '_> {
    fn on(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    fn k(&self) -> bool {
        self.inputs.flavor == Flavor::Kubernetes
    }

    fn pick<T>(&self, k: T, v: T) -> T {
        if self.k() { k } else { v }
    }

    fn say(&mut self, kind: &str, reason: &str, message: String) {
        self.events.push(Event { kind: kind.into(), reason: reason.into(), message });
    }

    fn key(&self) -> (String, String) {
        (text(&self.cj.object, "/metadata/namespace").to_owned(), name(&self.cj.object).to_owned())
    }

    fn sync(&mut self) -> Result<End, End> {
        if !self.k() && self.deleting() {
            return Ok(End::Nothing);
        }
        self.children = self.inputs.jobs.iter().filter(|job| self.is_child(job)).collect();
        let end = match self.upkeep().and_then(|()| self.gates()) {
            Err(End::Panic) => return Ok(End::Panic),
            Ok(()) => End::Nothing,
            Err(end) => end,
        };
        let lost = matches!(end, End::Error(_)) && !self.k() && !self.on(Rule::StatusAlwaysWritten);
        if self.changed && !lost {
            let written = self.stale.as_ref().unwrap_or(&self.cj);
            let mut object = written.object.clone();
            object["status"] = written.status();
            if let Err(status) = self.server.put_status(object) {
                return Ok(if self.k() || self.on(Rule::StatusAlwaysWritten) {
                    End::Error(message(&status))
                } else {
                    End::Nothing
                });
            }
        }
        Ok(end)
    }

    fn deleting(&self) -> bool {
        self.cj.object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
    }

    fn namespace_of(&self, entry: &Value) -> String {
        match text(entry, "/namespace") {
            "" if self.on(Rule::GetInNamespace) => self.key().0,
            namespace => namespace.to_owned(),
        }
    }

    fn arithmetic(&self) -> Option<Arithmetic<'v>> {
        let zone = self.cj.spec("timeZone").as_str();
        let parsed = effective(text(&self.cj.object, "/spec/schedule"), zone, self.inputs.local);
        Some(Arithmetic {
            schedule: Schedule::parse(&parsed).ok()?,
            local: self.inputs.local,
            anchor: self.cj.last_schedule.or(time(&self.cj.object, "/metadata/creationTimestamp"))?,
            deadline_s: self.cj.spec("startingDeadlineSeconds").as_i64(),
            now: self.inputs.now,
            last: self.cj.last_schedule,
            rules: self.rules,
        })
    }

    fn account(mut self, end: Result<End, End>) -> (Account, Option<Time>) {
        let arithmetic = self.arithmetic();
        let zone = self.cj.spec("timeZone").as_str();
        let zone_is_fine = zone.is_none_or(|zone| Zone::load(zone, self.inputs.local).is_ok());
        let usable = zone_is_fine && !self.deleting();
        self.next_due = arithmetic.as_ref().filter(|_| usable).and_then(Arithmetic::next_due);
        let (Ok(end) | Err(end)) = end;
        let put = self.server.put.as_ref();
        let account = Account {
            created: self.server.created.clone(),
            deleted: self.server.deleted.clone(),
            calls: self.server.calls.clone(),
            events: self.events,
            status_updated: put.is_some(),
            status: put.map_or_else(|| self.inputs.cronjob["status"].clone(), |put| put["status"].clone()),
            update_resource_version: put.map(|put| text(put, "/metadata/resourceVersion").to_owned()),
            requeue_after_ms: matches!(end, End::Delay).then(|| arithmetic.and_then(|a| a.delay_ms())).flatten(),
            error: matches!(end, End::Error(_)),
            panic: matches!(end, End::Panic).then(String::new),
            error_text: if let End::Error(text) = end { Some(text) } else { None },
            skew_seconds: self.skew,
        };
        (account, self.next_due)
    }
}

/// A Go slice from which entries are removed while it is ranged over: the range goes on over the array behind it.
struct InPlace {
    original: Vec<Value>,
    backing: Vec<Value>,
    len: usize,
}

impl InPlace {
    fn over(active: &[Value]) -> Self {
        Self { original: active.to_vec(), backing: active.to_vec(), len: active.len() }
    }

    fn remove(&mut self, uid: &str) {
        if let Some(at) = self.backing[..self.len].iter().position(|entry| text(entry, "/uid") == uid) {
            for index in at + 1..self.len {
                self.backing[index - 1] = self.backing[index].clone();
            }
            self.len -= 1;
        }
    }

    fn left(&self) -> Vec<Value> {
        self.backing[..self.len].to_vec()
    }
}
