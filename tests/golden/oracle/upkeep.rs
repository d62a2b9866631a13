//! History, children and the entries of `active`.

use cronjob_controller::reconcile::Rule;
use cronjob_controller::schedule::quote;
use serde_json::Value;

use super::{Copy, End, InPlace, Oracle, Step, controller, message, name, reason, time, uid};
use crate::peers::Time;
use crate::server::text;

impl<'v> Oracle<'v, '_> {
    pub(super) fn upkeep(&mut self) -> Step {
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

    pub(super) fn is_child(&self, job: &Value) -> bool {
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

    pub(super) fn drop(&mut self, uid: &str) {
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
                if self.on(Rule::OwnRunRecorded) && self.named_run(job).is_some_and(|at| recorded < Some(at)) {
                    continue;
                }
                let _ = self.delete(job);
            }
        }
    }

    fn failures(&self) -> Vec<&'static str> {
        if self.on(Rule::TerminatedIsFailed) { vec!["Failed", "Terminated"] } else { vec!["Failed"] }
    }

    pub(super) fn delete(&mut self, job: &Value) -> Result<(), ()> {
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
    fn named_run(&self, job: &Value) -> Option<Time> {
        let annotation = self.pick(
            "/metadata/annotations/batch.kubernetes.io~1cronjob-scheduled-timestamp",
            "/metadata/annotations/volcano.sh~1cronjob-scheduled-timestamp",
        );
        time(job, annotation).filter(|at| name(job) == format!("{}-{}", self.key().1, at.timestamp() / 60))
    }

    /// The same, if it is an instant that a clock may have shown: three hours ahead at most.
    fn own_run(&self, job: &Value) -> Option<Time> {
        self.named_run(job).filter(|at| (*at - self.inputs.now).num_minutes() <= 180)
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

    pub(super) fn drop_nameless(&mut self) {
        let refers = |entry: &Value| !text(entry, "/name").is_empty() && !text(entry, "/uid").is_empty();
        if self.on(Rule::NamelessEntryDropped) && !self.cj.active.iter().all(refers) {
            let (named, nameless) = std::mem::take(&mut self.cj.active).into_iter().partition(refers);
            self.cj.active = named;
            self.changed = true;
            for entry in Vec::<Value>::from_iter(nameless) {
                self.say_gone(&entry);
            }
        }
    }

    fn say_gone(&mut self, entry: &Value) {
        let (name, wanted) = (text(entry, "/name"), text(entry, "/uid"));
        let said = self.pick(
            format!("Active job went missing: {name}"),
            format!("Active job {} no longer exists (UID: {wanted})", quote(name)),
        );
        self.say(self.pick("Normal", "Warning"), self.pick("MissingJob", "StaleReference"), said);
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
            self.say_gone(entry);
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
}
