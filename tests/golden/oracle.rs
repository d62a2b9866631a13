//! A sync of the peers, written straight down after their specification, with each of our rules on or off. With none on it must
//! give what was recorded; with all on it is what our machine is compared with. Whether a rule touches a vector follows from
//! the vector's inputs alone: it does if switching it changes what happens here.

use chrono::{DateTime, SecondsFormat};
use cronjob_controller::model::Flavor;
use cronjob_controller::reconcile::Rule;
use cronjob_controller::schedule::{Schedule, Zone, quote};
use serde_json::{Value, json};

use crate::compare::{Account, Event};
use crate::peers::{Arithmetic, Rules, Time, effective, panics};
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

    fn upkeep(&mut self) -> Step {
        if self.k() {
            self.history();
            for child in self.children.clone() {
                self.unknown(child)?;
                self.finished(child);
            }
        } else {
            for child in self.children.clone() {
                self.finished(child);
            }
            self.history();
            let before = self.cj.clone();
            for child in self.children.clone() {
                self.unknown(child)?;
            }
            self.references()?;
            if !self.on(Rule::ConsistentLiveCopy) && self.cj.object != before.object {
                self.cj = before;
            }
            return Ok(());
        }
        self.references()
    }

    fn deleting(&self) -> bool {
        self.cj.object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
    }

    fn is_child(&self, job: &Value) -> bool {
        let (namespace, cronjob) = self.key();
        let Some(owner) = controller(job) else { return false };
        let same_uid = text(owner, "/uid") == uid(&self.cj.object);
        let same_kind = owner["kind"] == "CronJob";
        let group = |value: &Value| text(value, "/apiVersion").split('/').next().unwrap_or_default().to_owned();
        let same_group = group(owner) == self.pick("batch", "batch.volcano.sh");
        text(job, "/metadata/namespace") == namespace
            && text(owner, "/name") == cronjob
            && if self.on(Rule::OwnerByUid) {
                same_uid && same_kind && same_group
            } else {
                self.k() || same_uid && same_kind
            }
    }

    /// Complete, Failed or Terminated.
    fn outcome(&self, job: &'v Value) -> Option<&'v str> {
        if !self.k() {
            return match text(job, "/status/state/phase") {
                "Completed" => Some("Complete"),
                "Failed" => Some("Failed"),
                "Terminated" => Some("Terminated"),
                _ => None,
            };
        }
        let conditions = job.pointer("/status/conditions")?.as_array()?;
        let ended =
            conditions.iter().find(|c| (c["type"] == "Complete" || c["type"] == "Failed") && c["status"] == "True")?;
        ended["type"].as_str()
    }

    fn succeeded(&self, job: &'v Value) -> bool {
        if !self.k() {
            return self.outcome(job) == Some("Complete");
        }
        let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
        conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Complete" && c["status"] == "True"))
    }

    fn drop(&mut self, uid: &str) {
        self.cj.active.retain(|entry| text(entry, "/uid") != uid);
        self.dropped.push(uid.to_owned());
        self.changed = true;
    }

    fn history(&mut self) {
        for (field, kinds) in
            [("successfulJobsHistoryLimit", vec!["Complete"]), ("failedJobsHistoryLimit", self.failures())]
        {
            let Some(limit) = self.cj.spec(field).as_i64() else { continue };
            let mut jobs: Vec<&Value> = self.children.clone();
            jobs.retain(|job| self.outcome(job).is_some_and(|outcome| kinds.contains(&outcome)));
            let excess = jobs.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
            let order = self.pick("/status/startTime", "/metadata/creationTimestamp");
            jobs.sort_by_key(|job| (time(job, order).is_none(), time(job, order), name(job)));
            let recorded = Copy::of(&self.cj.object).last_schedule;
            for job in jobs.into_iter().take(excess) {
                if self.on(Rule::OwnRunRecorded) && self.own_run(job).is_some_and(|at| recorded < Some(at)) {
                    continue;
                }
                let _ = self.delete(job);
            }
        }
    }

    fn failures(&self) -> Vec<&'static str> {
        if self.on(Rule::TerminatedIsFailed) { vec!["Failed", "Terminated"] } else { vec!["Failed"] }
    }

    fn delete(&mut self, job: &Value) -> Result<(), ()> {
        let job_name = name(job).to_owned();
        let quoted = quote(&job_name);
        match self.server.delete_job(text(job, "/metadata/namespace"), &job_name) {
            Err(status) if !(reason(&status) == "NotFound" && self.on(Rule::DeleteNotfoundOk)) => {
                let text = message(&status);
                let said = self.pick(format!("Deleted job: {text}"), format!("Error deleting job {quoted}: {text}"));
                self.say("Warning", "FailedDelete", said);
                return Err(());
            }
            Err(_) => {}
            Ok(()) => {
                let said = self.pick(format!("Deleted job {job_name}"), format!("Deleted job {quoted}"));
                self.say("Normal", "SuccessfulDelete", said);
            }
        }
        self.drop(uid(job));
        Ok(())
    }

    fn finished(&mut self, job: &'v Value) {
        let Some(outcome) = self.outcome(job) else { return };
        if self.cj.has(uid(job)) {
            self.drop(uid(job));
            let name = name(job);
            let said = self.pick(
                format!("Saw completed job: {name}, condition: {outcome}"),
                format!("Saw completed job: {name} in active, remove"),
            );
            self.say("Normal", "SawCompletedJob", said);
        }
        let unrecorded = self.own_run(job).filter(|at| self.cj.last_schedule < Some(*at));
        if let (Some(at), true) = (unrecorded, self.on(Rule::OwnRunRecorded)) {
            self.cj.last_schedule = Some(at);
            self.changed = true;
        }
        if self.succeeded(job) {
            let ended = time(job, self.pick("/status/completionTime", "/status/state/lastTransitionTime"));
            if self.cj.last_success.is_none() || ended > self.cj.last_success {
                self.cj.last_success = ended;
                self.changed = true;
            }
        }
    }

    fn unknown(&mut self, job: &'v Value) -> Step {
        if self.outcome(job).is_some() || self.cj.has(uid(job)) {
            return Ok(());
        }
        let (namespace, cronjob) = self.key();
        let live = self.server.get_cronjob(&namespace, &cronjob).map_err(|status| End::Error(message(&status)))?;
        let live = Copy::of(&live);
        let own = self.own_run(job);
        if live.has(uid(job)) {
            self.adopt(live);
        } else if let (Some(at), true) = (own, self.on(Rule::OwnRunReadopted)) {
            self.take(job, self.cj.last_schedule.map_or(at, |last| last.max(at)));
        } else {
            let name = name(job);
            let reason = self.pick("UnexpectedJob", "OrphanedJob");
            let said = self.pick(
                format!("Saw a job that the controller did not create or forgot: {name}"),
                format!("Detected orphaned job forgotten or not managed by controller: {name} (UID: {})", uid(job)),
            );
            self.say("Warning", reason, said);
        }
        Ok(())
    }

    /// The instant of a Job whose annotation gives the minute in its name.
    fn own_run(&self, job: &Value) -> Option<Time> {
        let annotation = self.pick(
            "/metadata/annotations/batch.kubernetes.io~1cronjob-scheduled-timestamp",
            "/metadata/annotations/volcano.sh~1cronjob-scheduled-timestamp",
        );
        time(job, annotation).filter(|at| name(job) == format!("{}-{}", self.key().1, at.timestamp() / 60))
    }

    fn adopt(&mut self, mut live: Copy) {
        if self.on(Rule::ConsistentLiveCopy) {
            live.active.retain(|entry| !self.dropped.iter().any(|uid| uid == text(entry, "/uid")));
            live.last_success = live.last_success.max(self.cj.last_success);
            let original = Copy::of(&self.cj.object);
            if self.cj.last_schedule > original.last_schedule {
                live.last_schedule = live.last_schedule.max(self.cj.last_schedule);
            }
            for added in self.cj.active.iter().filter(|entry| !original.has(text(entry, "/uid"))) {
                if !live.has(text(added, "/uid")) {
                    live.active.push(added.clone());
                }
            }
        } else if self.k() && self.stale.is_none() {
            self.stale = Some(self.cj.clone());
        }
        self.cj = live;
    }

    fn references(&mut self) -> Step {
        let child = |children: &[&Value], entry: &Value| children.iter().any(|job| uid(job) == text(entry, "/uid"));
        if self.k() || self.on(Rule::SnapshotIteration) {
            for entry in self.cj.active.clone() {
                if !child(&self.children, &entry) {
                    self.reference(&entry)?;
                }
            }
            return Ok(());
        }
        let mut in_place = InPlace::over(&self.cj.active);
        for at in 0..in_place.backing.len() {
            let entry = in_place.backing[at].clone();
            if !child(&self.children, &entry) && self.reference_is_stale(&entry) {
                in_place.remove(text(&entry, "/uid"));
                self.dropped.push(text(&entry, "/uid").to_owned());
                self.changed = true;
            }
        }
        self.cj.active = in_place.left();
        Ok(())
    }

    fn reference(&mut self, entry: &Value) -> Step {
        if !self.k() {
            if self.reference_is_stale(entry) {
                self.drop(text(entry, "/uid"));
            }
            return Ok(());
        }
        let namespace = self.namespace_of(entry);
        let gone = match self.server.get_job(&namespace, text(entry, "/name")) {
            Ok(job) => self.on(Rule::SameNameOtherUid) && uid(&job) != text(entry, "/uid"),
            Err(status) if reason(&status) == "NotFound" => true,
            Err(status) => return Err(End::Error(message(&status))),
        };
        if gone {
            self.say("Normal", "MissingJob", format!("Active job went missing: {}", text(entry, "/name")));
            self.drop(text(entry, "/uid"));
        }
        Ok(())
    }

    fn reference_is_stale(&mut self, entry: &Value) -> bool {
        let of_name = |job: &&Value| {
            name(job) == text(entry, "/name") && text(job, "/metadata/namespace") == text(entry, "/namespace")
        };
        let (name, wanted) = (quote(text(entry, "/name")), text(entry, "/uid"));
        let said = match self.inputs.jobs.iter().find(of_name).map(uid) {
            Some(actual) if actual == wanted => return false,
            Some(actual) => {
                format!("Active job reference {name} points to a different UID (expected: {wanted}, actual: {actual})")
            }
            None => format!("Active job {name} no longer exists (UID: {wanted})"),
        };
        self.say("Warning", "StaleReference", said);
        true
    }

    fn namespace_of(&self, entry: &Value) -> String {
        match text(entry, "/namespace") {
            "" if self.on(Rule::GetInNamespace) => self.key().0,
            namespace => namespace.to_owned(),
        }
    }

    fn zone(&mut self) -> Step {
        let Some(zone) = self.cj.spec("timeZone").as_str() else { return Ok(()) };
        let Err(error) = Zone::load(zone, self.inputs.local) else { return Ok(()) };
        let zone = quote(zone);
        let said =
            self.pick(format!("invalid timeZone: {zone}: {error}"), format!("Invalid time zone {zone}: {error}"));
        self.say("Warning", self.pick("UnknownTimeZone", "InvalidTimeZone"), said);
        Err(self.pick(End::Nothing, End::Error(error.to_string())))
    }

    fn suspend(&self) -> Step {
        if self.cj.spec("suspend") == true { Err(End::Nothing) } else { Ok(()) }
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
            rules: self.rules,
        })
    }

    fn gates(&mut self) -> Step {
        if (self.k() || self.on(Rule::ConsistentLiveCopy)) && self.deleting() {
            return Err(End::Nothing);
        }
        if self.k() {
            self.zone()?;
            self.suspend()?;
        } else {
            self.suspend()?;
            self.zone()?;
        }
        let schedule = text(&self.cj.object, "/spec/schedule").to_owned();
        let quoted = quote(&schedule);
        if schedule.contains("TZ") {
            let said = self.pick(
                format!("CRON_TZ or TZ used in schedule {quoted} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"),
                format!("CRON_TZ or TZ in the schedule {quoted} is not officially supported. If set, the TimeZone field will be ignored during execution."),
            );
            self.say("Warning", "UnsupportedSchedule", said);
        }
        let parsed = effective(&schedule, self.cj.spec("timeZone").as_str(), self.inputs.local);
        if let Err(error) = Schedule::parse(&parsed) {
            if !self.k() && panics(&parsed) && !self.on(Rule::NoParserPanic) {
                return Err(End::Panic);
            }
            if self.k() || self.on(Rule::BadScheduleSpeaks) {
                self.say("Warning", "UnparseableSchedule", format!("unparseable schedule: {quoted} : {error}"));
            }
            return Err(self.pick(End::Nothing, End::Error(error.to_string())));
        }
        let Some(arithmetic) = self.arithmetic() else { return Err(End::Nothing) };
        let recent = arithmetic.most_recent(true).map_err(|error| {
            let said = self.pick(
                format!("invalid schedule: {schedule} : {error}"),
                format!("Error getting schedule time: {error}"),
            );
            self.say("Warning", "InvalidSchedule", said);
            self.pick(End::Nothing, End::Error(error.to_owned()))
        })?;
        let Some(at) = recent.newest else {
            let pending = arithmetic.most_recent(false).ok().and_then(|pending| pending.newest);
            if let (Some(missed), true) = (pending, self.on(Rule::MissSpeaks)) {
                let said = missed.format("Missed scheduled time to start a job: %a, %d %b %Y %H:%M:%S +0000");
                self.say("Warning", "MissSchedule", said.to_string());
            }
            return Err(End::Delay);
        };
        if recent.missed == "many" {
            let said = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            self.say("Warning", "TooManyMissedTimes", said.to_owned());
        }
        self.start(at)
    }

    fn start(&mut self, at: Time) -> Step {
        let (namespace, cronjob) = self.key();
        let job_name = format!("{cronjob}-{}", at.timestamp() / 60);
        let recorded = |entry: &Value| text(entry, "/name") == job_name && text(entry, "/namespace") == namespace;
        if self.cj.active.iter().any(recorded) || self.cj.last_schedule == Some(at) {
            return Err(End::Delay);
        }
        match self.cj.spec("concurrencyPolicy").as_str() {
            Some("Forbid") if !self.cj.active.is_empty() => {
                let said = self.pick(
                    "Not starting job because prior execution is running and concurrency policy is Forbid",
                    "Skipping job creation because another job is already running",
                );
                self.say(
                    self.pick("Normal", "Warning"),
                    self.pick("JobAlreadyActive", "ForbidConcurrent"),
                    said.to_owned(),
                );
                return Err(End::Delay);
            }
            Some("Replace") => self.replace()?,
            _ => {}
        }
        self.create(at, &job_name)
    }

    fn replace(&mut self) -> Step {
        if !self.k() && !self.cj.active.is_empty() {
            self.say("Warning", "ReplaceConcurrent", "Replacing active job for CronJob".to_owned());
        }
        let mut in_place = InPlace::over(&self.cj.active);
        let snapshot = self.k() || self.on(Rule::SnapshotIteration);
        for at in 0..in_place.backing.len() {
            let entry = if snapshot { in_place.original[at].clone() } else { in_place.backing[at].clone() };
            let namespace = self.namespace_of(&entry);
            let job = self.server.get_job(&namespace, text(&entry, "/name")).map_err(|status| {
                self.say("Warning", "FailedGet", format!("Get job: {}", message(&status)));
                End::Error(message(&status))
            })?;
            self.delete(&job).map_err(|()| {
                End::Error(format!("could not replace job {}/{}", text(&job, "/metadata/namespace"), name(&job)))
            })?;
            in_place.remove(uid(&job));
        }
        Ok(())
    }

    fn body(&self, at: Time, job_name: &str) -> Value {
        let template = self.cj.spec("jobTemplate");
        let zone = self.cj.spec("timeZone").as_str().and_then(|zone| Zone::load(zone, self.inputs.local).ok());
        let offset_s = zone.map_or(0, |zone| zone.offset_s(at));
        let shown = chrono::FixedOffset::east_opt(offset_s).map(|offset| at.with_timezone(&offset));
        let shown = shown.map(|shown| shown.to_rfc3339_opts(SecondsFormat::Secs, true));
        let mut annotations = template["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        let annotation =
            self.pick("batch.kubernetes.io/cronjob-scheduled-timestamp", "volcano.sh/cronjob-scheduled-timestamp");
        annotations.insert(annotation.to_owned(), json!(shown));
        json!({
            "metadata": {
                "name": job_name,
                "labels": template["metadata"]["labels"],
                "annotations": annotations,
                "creationTimestamp": if self.k() { json!(rfc3339(at)) } else { Value::Null },
                "ownerReferences": [{"apiVersion": self.pick("batch/v1", "batch.volcano.sh/v1alpha1"), "kind": "CronJob",
                    "name": name(&self.cj.object), "uid": uid(&self.cj.object), "controller": true, "blockOwnerDeletion": true}],
            },
            "spec": template["spec"],
        })
    }

    fn create(&mut self, at: Time, job_name: &str) -> Step {
        let (namespace, cronjob) = self.key();
        let body = self.body(at, job_name);
        match self.server.create_job(&namespace, &body) {
            Ok(job) => {
                if !self.k() && !self.controls(&job) {
                    let _ = self.server.delete_job(&namespace, job_name);
                    return Err(End::Error("created job missing owner reference".to_owned()));
                }
                let created = time(&job, "/metadata/creationTimestamp").unwrap_or_default();
                self.skew = self.k().then(|| (created - at).num_seconds());
                let said = self.pick(
                    format!("Created job {job_name}"),
                    format!("Created job {job_name} for CronJob {namespace}/{cronjob}"),
                );
                self.say("Normal", "SuccessfulCreate", said);
                self.take(&job, at);
                Err(End::Delay)
            }
            Err(status) if terminating(&status) => {
                if !self.k() {
                    let said = format!("Namespace {namespace} is terminating, skipping job creation");
                    self.say("Warning", "NamespaceTerminating", said);
                }
                Err(End::Error(message(&status)))
            }
            Err(status) if reason(&status) == "AlreadyExists" => self.existing(at, job_name),
            Err(status) => {
                let text = message(&status);
                let said = self.pick(format!("Error creating job: {text}"), format!("Failed to create job: {text}"));
                self.say("Warning", "FailedCreate", said);
                Err(End::Error(text))
            }
        }
    }

    fn controls(&self, job: &Value) -> bool {
        controller(job).is_some_and(|owner| text(owner, "/uid") == uid(&self.cj.object))
    }

    fn existing(&mut self, at: Time, job_name: &str) -> Step {
        let namespace = if self.on(Rule::GetInNamespace) { self.key().0 } else { String::new() };
        let job = self.server.get_job(&namespace, job_name).map_err(|status| {
            let text = message(&status);
            let verbatim = self.k() || reason(&status) == "NotFound";
            End::Error(if verbatim { text } else { format!("failed to fetch conflicting job: {text}") })
        })?;
        let quiet = self.k() && !self.on(Rule::ForeignRequeues);
        if !self.controls(&job) {
            if !quiet {
                let owner = controller(&job).map_or("none", |owner| text(owner, "/name"));
                let said = format!("Job {job_name} exists but is not owned by this CronJob (current owner: {owner})");
                self.say("Warning", "ForeignJob", said);
            }
            return Err(if quiet { End::Nothing } else { End::Delay });
        }
        let finished = match self.k() {
            true => false,
            false => ["Completed", "Failed", "Terminated"].contains(&text(&job, "/status/state/phase")),
        };
        if finished {
            return Err(End::Delay);
        }
        if self.cj.has(uid(&job)) {
            return Err(if quiet { End::Nothing } else { End::Delay });
        }
        self.take(&job, at);
        Err(End::Delay)
    }

    fn take(&mut self, job: &Value, at: Time) {
        self.cj.active.push(json!({
            "kind": "Job", "apiVersion": self.pick("batch/v1", "batch.volcano.sh/v1alpha1"),
            "namespace": text(job, "/metadata/namespace"), "name": name(job), "uid": uid(job),
            "resourceVersion": text(job, "/metadata/resourceVersion"),
        }));
        self.cj.last_schedule = Some(at);
        self.changed = true;
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

fn terminating(status: &Value) -> bool {
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    causes.is_some_and(|causes| causes.iter().any(|cause| cause["reason"] == "NamespaceTerminating"))
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
