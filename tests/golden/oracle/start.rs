//! The gates, and what follows when they are open.

use chrono::SecondsFormat;
use cronjob_controller::reconcile::Rule;
use cronjob_controller::schedule::{Schedule, Timing, Zone, quote};
use serde_json::{Value, json};

use super::{End, InPlace, Oracle, Step, controller, message, name, reason, rfc3339, time, uid};
use crate::peers::{Time, effective, panics};
use crate::server::text;

impl Oracle<'_, '_> {
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

    pub(super) fn gates(&mut self) -> Step {
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
        if let Some(last) = self.cj.last_schedule
            && (last - self.inputs.now).num_milliseconds() > 60_000
            && self.on(Rule::AheadSpeaks)
        {
            let said = "Nothing starts before status.lastScheduleTime, which lies ahead of the clock:";
            self.say("Warning", "LastScheduleTimeAhead", format!("{said} {}", rfc3339(last)));
        }
        if let (Timing::Every { delay_s }, true) = (arithmetic.schedule.timing(), self.on(Rule::MinuteTaken))
            && delay_s < 60
        {
            let why = "a Job is named after its minute: one run starts in a minute, the others do not";
            self.say("Warning", "MinuteTaken", format!("The schedule comes every {delay_s} s, but {why}"));
        }
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
        let minute = |at: Time| at.timestamp().div_euclid(60);
        let taken = self.on(Rule::MinuteTaken) && self.cj.last_schedule.map(minute) == Some(minute(at));
        if self.cj.active.iter().any(recorded) || self.cj.last_schedule == Some(at) || taken {
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
            let ours = text(&job, "/metadata/namespace") == self.key().0 && self.controls(&job);
            if !ours && self.on(Rule::OnlyOwnDeleted) {
                let job = format!("{}/{}", text(&job, "/metadata/namespace"), name(&job));
                let said = format!("Active job {job} is not of this CronJob, and not replaced");
                self.say(self.pick("Normal", "Warning"), self.pick("MissingJob", "StaleReference"), said);
                self.drop(text(&entry, "/uid"));
                continue;
            }
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

    pub(super) fn take(&mut self, job: &Value, at: Time) {
        self.cj.active.push(json!({
            "kind": "Job", "apiVersion": self.pick("batch/v1", "batch.volcano.sh/v1alpha1"),
            "namespace": text(job, "/metadata/namespace"), "name": name(job), "uid": uid(job),
            "resourceVersion": text(job, "/metadata/resourceVersion"),
        }));
        self.cj.last_schedule = Some(at);
        self.changed = true;
    }
}

fn terminating(status: &Value) -> bool {
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    causes.is_some_and(|causes| causes.iter().any(|cause| cause["reason"] == "NamespaceTerminating"))
}
