//! The sync vectors: what a sync of each peer did, against a step of ours.
//!
//! Three accounts of each vector are compared. What was recorded must be what the [`crate::oracle`] says with no rule on, which shows that
//! the oracle is the peers. What our machine does must be what the oracle says with all rules on. Where these two are the same
//! no rule touches the vector, and ours agrees with the record in every field; where they differ, some rule does, and every field is
//! still compared, with what the rules demand.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronjob_controller::api;
use cronjob_controller::model::{ApiFailure, CronJob, Flavor, Job, ObjectKey, Uid};
use cronjob_controller::reconcile::{Answer, Call, JobCache, Memory, Next, Outcome, Rule, Settings, Step};
use cronjob_controller::schedule::Zone;
use serde::Deserialize;
use serde_json::Value;

use crate::compare::{Account, Event};
use crate::loader::load;
use crate::oracle::{self, Inputs};
use crate::peers::{Rules, Time};
use crate::server::{Api, Server, text};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vector {
    id: String,
    now: Time,
    process_time_zone: String,
    cron_job: Option<Value>,
    jobs: Vec<Value>,
    api: Api,
    expect: Account,
}

/// The cache of Jobs: the vector's, in list order.
struct Cache(Vec<Arc<Job>>);

impl JobCache for Cache {
    fn children(&self, owner: &Uid) -> Vec<Arc<Job>> {
        let owned = |job: &&Arc<Job>| job.controller.as_ref().is_some_and(|controller| controller.uid == *owner);
        self.0.iter().filter(owned).cloned().collect()
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<Job>> {
        self.0.iter().find(|job| job.key == *key).cloned()
    }
}

fn refused(status: Value) -> ApiFailure {
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default();
    ApiFailure::from_status(code, status.to_string().as_bytes())
}

/// The shim around the machine: what `controllers` does over HTTP, over the tiny server.
struct Shim<'a, 'v> {
    flavor: Flavor,
    server: &'a mut Server<'v>,
    /// Every copy of the CronJob that was seen on the wire; a patch applies to the one whose version it carries.
    copies: Vec<Value>,
}

impl Shim<'_, '_> {
    fn decode_cronjob(&mut self, object: Value) -> Arc<CronJob> {
        let cronjob = api::decode_cronjob(self.flavor, &object.to_string()).unwrap();
        self.copies.push(object);
        Arc::new(cronjob)
    }

    fn decode_job(&self, object: &Value) -> Arc<Job> {
        Arc::new(api::decode_job(self.flavor, &object.to_string()).unwrap())
    }

    fn send(&mut self, call: &Call) -> Answer {
        match call {
            Call::GetCronJob { key } => {
                let answer = self.server.get_cronjob(&key.namespace, &key.name);
                Answer::CronJob(answer.map(|object| self.decode_cronjob(object)).map_err(refused))
            }
            Call::GetJob { key } => {
                let answer = self.server.get_job(&key.namespace, &key.name);
                Answer::Job(answer.map(|object| self.decode_job(&object)).map_err(refused))
            }
            Call::CreateJob { cronjob, name, at, offset_s } => {
                let body: Value =
                    serde_json::from_slice(&api::job_body(self.flavor, cronjob, *at, *offset_s, None)).unwrap();
                assert_eq!(text(&body, "/metadata/name"), &**name);
                assert_eq!(text(&body, "/kind"), "Job");
                assert_eq!(text(&body, "/apiVersion"), api::wire(self.flavor).api_version);
                let answer = self.server.create_job(&cronjob.key.namespace, &body);
                Answer::Job(answer.map(|object| self.decode_job(&object)).map_err(refused))
            }
            Call::DeleteJob { key, .. } => {
                Answer::Deleted(self.server.delete_job(&key.namespace, &key.name).map_err(refused))
            }
            Call::PatchStatus { base, status } => {
                let version = &base.resource_version;
                let patch = api::status_patch(&base.status, status, version);
                let patch: Value = serde_json::from_slice(&patch).unwrap();
                let of_version = |copy: &&Value| text(copy, "/metadata/resourceVersion") == &**version;
                let mut object = self.copies.iter().find(of_version).unwrap().clone();
                merge(&mut object, &patch);
                let answer = self.server.put_status(object);
                Answer::CronJob(answer.map(|object| self.decode_cronjob(object)).map_err(refused))
            }
        }
    }
}

/// RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

impl Vector {
    fn local(&self) -> Zone {
        Zone::load(&self.process_time_zone, Zone::UTC).unwrap()
    }

    fn server(&self, flavor: Flavor, cronjob: &Value) -> Server<'_> {
        let now = self.now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        Server::new(flavor, &self.api, cronjob, &self.jobs, now)
    }

    fn oracle(&self, flavor: Flavor, cronjob: &Value, rules: &Rules) -> (Account, Option<Time>) {
        let inputs = Inputs { flavor, cronjob, jobs: &self.jobs, now: self.now, local: self.local() };
        // The borrows of one run end with it.
        let mut server = self.server(flavor, cronjob);
        oracle::sync(&inputs, rules, &mut server)
    }

    /// One step of our machine on a fresh memory.
    fn ours(&self, flavor: Flavor, cronjob: &Value) -> (Account, Outcome) {
        let mut server = self.server(flavor, cronjob);
        let mut shim = Shim { flavor, server: &mut server, copies: Vec::new() };
        let jobs = Cache(self.jobs.iter().map(|job| shim.decode_job(job)).collect());
        let cached = shim.decode_cronjob(cronjob.clone());
        let settings = Settings { flavor, local_zone: self.local() };
        let mut memory = Memory::default();
        let mut step = Step::begin(settings, cached, &jobs, &mut memory, self.now);
        let mut answer = None;
        let outcome = loop {
            match step.advance(answer.take()) {
                Next::Call(call) => answer = Some(shim.send(&call)),
                Next::Done(outcome) => break *outcome,
            }
        };
        let bodies = server.created.iter().cloned().map(without_type).collect();
        let put = server.put.as_ref();
        let account = Account {
            created: bodies,
            deleted: server.deleted.clone(),
            calls: server.calls.clone(),
            events: outcome.happenings.iter().map(Event::of).collect(),
            status_updated: put.is_some(),
            status: put.map_or_else(|| cronjob["status"].clone(), |put| put["status"].clone()),
            update_resource_version: put.map(|put| text(put, "/metadata/resourceVersion").to_owned()),
            requeue_after_ms: outcome.requeue.map(|delay| i64::try_from(delay.as_millis()).unwrap()),
            error: outcome.error.is_some(),
            error_text: outcome.error.as_ref().map(|error| error.text.to_string()),
            panic: None,
            // Only the Kubernetes peer observes it.
            skew_seconds: outcome.skew_s.filter(|_| flavor == Flavor::Kubernetes),
        };
        (account, outcome)
    }
}

/// The record leaves out what the client writes into every body.
fn without_type(mut body: Value) -> Value {
    if let Value::Object(body) = &mut body {
        body.remove("apiVersion");
        body.remove("kind");
    }
    body
}

/// What came of a file.
#[derive(Default)]
struct Tally {
    agree: usize,
    by_rule: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
}

impl Tally {
    fn check(&mut self, flavor: Flavor, vector: &Vector) {
        let Some(cronjob) = &vector.cron_job else {
            // No object, no actor, no step: the peers do nothing either.
            let nothing = Account { status: Value::Null, ..Account::default() };
            return self.conclude(vector, &[("recorded", nothing.differences(&vector.expect))], Vec::new());
        };
        let none = Rules::new();
        let all: Rules = Rule::ALL.iter().copied().collect();
        let (theirs, _) = vector.oracle(flavor, cronjob, &none);
        let (wanted, next_due) = vector.oracle(flavor, cronjob, &all);
        let (ours, outcome) = vector.ours(flavor, cronjob);
        let mut touching = Vec::new();
        if !wanted.differences(&theirs).is_empty() || theirs.panic.is_some() {
            for rule in Rule::ALL {
                let alone = vector.oracle(flavor, cronjob, &[*rule].into()).0;
                let mut others = all.clone();
                others.remove(rule);
                let without = vector.oracle(flavor, cronjob, &others).0;
                if !alone.differences(&theirs).is_empty() || !without.differences(&wanted).is_empty() {
                    touching.push(*rule);
                }
            }
        }
        // Rule never-asleep: whatever else came out, the next due instant is known.
        let mut asleep = Vec::new();
        if outcome.next_due != next_due {
            asleep.push(format!("next due: {:?}\n      not {next_due:?}", outcome.next_due));
        }
        if theirs.requeue_after_ms.is_none() && !theirs.error && outcome.next_due.is_some() {
            touching.push(Rule::NeverAsleep);
        }
        let mut record = theirs.differences(&vector.expect);
        if theirs.panic.is_some() != vector.expect.panic.is_some() {
            record.push("panic".to_owned());
        }
        self.conclude(
            vector,
            &[("oracle and record", record), ("ours", ours.differences(&wanted)), ("ours", asleep)],
            touching,
        );
    }

    fn conclude(&mut self, vector: &Vector, results: &[(&str, Vec<String>)], touching: Vec<Rule>) {
        for (which, differences) in results {
            for difference in differences {
                self.wrong.push(format!("{} ({which}) {difference}", vector.id));
            }
        }
        if touching.is_empty() {
            self.agree += 1;
        }
        for rule in touching {
            *self.by_rule.entry(rule.name()).or_default() += 1;
        }
    }
}

fn check_file(name: &str, total: usize, flavor: Flavor) {
    let vectors: Vec<Vector> = load(name, total);
    let mut tally = Tally::default();
    for vector in &vectors {
        tally.check(flavor, vector);
    }
    println!("{name}: {} vectors, {} in full agreement with the peer; touched by rules:", vectors.len(), tally.agree);
    for (rule, count) in &tally.by_rule {
        println!("  {rule:24} {count}");
    }
    let first: Vec<_> = tally.wrong.iter().take(12).collect();
    assert!(tally.wrong.is_empty(), "{name}: {} fields are wrong, first\n{first:#?}", tally.wrong.len());
}

#[test]
fn kubernetes_steps_agree_on_every_vector() {
    check_file("k8s-sync", 2_260, Flavor::Kubernetes);
}

#[test]
fn volcano_steps_agree_on_every_vector() {
    check_file("volcano-sync", 1_480, Flavor::Volcano);
}
