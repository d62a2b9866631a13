//! Objects as stored, of both APIs: decoded, looked at when the watch brings them, decided on in a whole step, and the status
//! that comes of it encoded and decoded again.
//!
//! Input, by lines: a head (`k` or `v` for the API, the instant of the step in UTC seconds, and digits that choose how each call is
//! answered, in turn), the CronJob, the CronJob as it was before, and any number of Jobs.

use std::sync::Arc;

use chrono::{DateTime, Datelike, Utc};
use cronjob_controller::api::{DecodeError, decode_cronjob, decode_job, delete_body, job_body, status_patch, wire};
use cronjob_controller::model::{ApiFailure, CronJob, CronJobStatus, Flavor, Job, ObjectKey, Policy, Uid};
use cronjob_controller::reconcile::{
    Answer, Call, JobCache, Memory, Next, Settings, Step, on_cronjob_added, on_cronjob_updated, on_job_added,
    on_job_updated,
};
use cronjob_controller::schedule::Zone;
use serde_json::Value;

/// Runs one input.
pub fn run(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let mut lines = text.split('\n');
    let Some((settings, now, fates)) = lines.next().and_then(head) else { return };
    let flavor = settings.flavor;
    let Some(cronjob) = lines.next().and_then(|line| sound(decode_cronjob(flavor, line))) else { return };
    let before = lines.next().and_then(|line| sound(decode_cronjob(flavor, line)));
    let jobs: Vec<_> = lines.filter_map(|line| sound(decode_job(flavor, line))).map(Arc::new).collect();
    let mut scene = Scene { flavor, cronjob: Arc::new(cronjob), jobs, fates: fates.bytes().collect() };
    scene.announce(settings, before.as_ref(), now);
    let mut memory = Memory::default();
    if before.is_some() {
        memory.raise_floor(now);
    }
    for _step in 0..2 {
        scene.step(settings, &mut memory, now);
    }
}

fn head(line: &str) -> Option<(Settings, DateTime<Utc>, &str)> {
    let mut words = line.split(' ');
    let flavor = match words.next()? {
        "k" => Flavor::Kubernetes,
        "v" => Flavor::Volcano,
        _ => return None,
    };
    // Beyond it the API has no times to write.
    let now = DateTime::from_timestamp(words.next()?.parse().ok()?, 0).filter(|now| now.year() < 9990)?;
    Some((Settings { flavor, local_zone: Zone::UTC }, now, words.next().unwrap_or_default()))
}

/// What could be read. What could not says which object and which field.
fn sound<T>(decoded: Result<T, DecodeError>) -> Option<T> {
    decoded.map_err(|error| assert!(error.to_string().contains(": field ") && !error.field.is_empty(), "{error}")).ok()
}

struct Scene {
    flavor: Flavor,
    cronjob: Arc<CronJob>,
    jobs: Vec<Arc<Job>>,
    /// How each call is answered, the next one last.
    fates: Vec<u8>,
}

impl JobCache for Scene {
    fn children(&self, owner: &Uid) -> Vec<Arc<Job>> {
        let owned = |job: &&Arc<Job>| job.controller.as_ref().is_some_and(|controller| controller.uid == *owner);
        self.jobs.iter().filter(owned).cloned().collect()
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<Job>> {
        self.jobs.iter().find(|job| job.key == *key).cloned()
    }
}

impl Scene {
    /// The watch brings everything.
    fn announce(&self, settings: Settings, before: Option<&CronJob>, now: DateTime<Utc>) {
        let _added = on_cronjob_added(&self.cronjob);
        if let Some(before) = before {
            let _updated = on_cronjob_updated(settings, before, &self.cronjob, now);
        }
        let owners = |key: &ObjectKey| (*key == self.cronjob.key).then(|| self.cronjob.uid.clone());
        for pair in self.jobs.windows(2) {
            if let [old, new] = pair {
                let _job = (on_job_added(self.flavor, old, &owners), on_job_updated(self.flavor, old, new, &owners));
            }
        }
    }

    /// One step, to its end, within the calls that a step may make.
    fn step(&mut self, settings: Settings, memory: &mut Memory, now: DateTime<Utc>) {
        let mut fates = std::mem::take(&mut self.fates);
        let (mut written, mut calls) = (None, 0);
        {
            let mut step = Step::begin(settings, self.cronjob.clone(), &*self, memory, now);
            let mut answer = None;
            while let Next::Call(call) = step.advance(answer.take()) {
                calls += 1;
                assert!(calls <= self.most_calls(), "{calls} calls");
                self.judge(&call, step.base());
                if let Call::PatchStatus { base, status } = &call {
                    written = Some(self.stored(base, status));
                }
                answer = Some(self.answer(&call, fates.pop().unwrap_or(b'0')));
            }
        }
        self.fates = std::mem::take(&mut fates);
        if let Some(written) = written {
            self.cronjob = Arc::new(written);
        }
    }

    /// Three for each child and each entry of `active`, and a handful.
    fn most_calls(&self) -> usize {
        3 * (self.jobs.len() + self.cronjob.status.active.len() + 1) + 8
    }

    /// The promises about a call.
    fn judge(&self, call: &Call, base: &CronJob) {
        match call {
            Call::CreateJob { cronjob, at, offset_s, .. } => {
                let blocked = base.spec.policy == Policy::Forbid && self.runs_as_recorded(base);
                assert!(!blocked, "Forbid, and a run starts beside another");
                assert!(!base.spec.suspend && !base.deleting, "nothing starts here");
                let body = job_body(self.flavor, cronjob, *at, *offset_s, None);
                let made = str::from_utf8(&body).ok().and_then(|text| sound(decode_job(self.flavor, text)));
                assert!(made.is_some_and(|job| self.is_own(&job)), "a Job without its owner");
            }
            Call::DeleteJob { uid, .. } => drop(delete_body(self.flavor, uid.as_str())),
            Call::PatchStatus { base, status } => {
                assert!(status.last_schedule_time >= base.status.last_schedule_time, "lastScheduleTime moved back");
            }
            Call::GetCronJob { .. } | Call::GetJob { .. } => {}
        }
    }

    /// Whether a Job runs that is ours in every respect, and that the status names.
    fn runs_as_recorded(&self, base: &CronJob) -> bool {
        let group = wire(self.flavor).group;
        let is_child = |job: &Job| {
            let owner = job.controller.clone().unwrap_or_default();
            job.key.namespace == base.key.namespace
                && owner.uid == base.uid
                && *owner.name == *base.key.name
                && &*owner.kind == "CronJob"
                && owner.api_version.rsplit_once('/').is_some_and(|(owning, _)| owning == group)
        };
        let named = |job: &Job| base.status.active.iter().any(|reference| reference.uid == job.uid);
        let mut uids = std::collections::BTreeSet::new();
        let told_apart = self.jobs.iter().all(|job| uids.insert(&job.uid));
        told_apart && self.jobs.iter().any(|job| job.finish.is_none() && is_child(job) && named(job))
    }

    fn is_own(&self, job: &Job) -> bool {
        job.controller.as_ref().is_some_and(|owner| owner.uid == self.cronjob.uid)
    }

    /// The CronJob as the server stores it: the patch laid over what was there, read back. It must hold the status that was
    /// to be written, as far as whole seconds go.
    fn stored(&self, base: &CronJob, status: &CronJobStatus) -> CronJob {
        let patch = status_patch(&base.status, status, &base.resource_version);
        let patch: Value = serde_json::from_slice(&patch).unwrap_or_default();
        let object = serde_json::json!({ "status": patch["status"] });
        let read = sound(decode_cronjob(self.flavor, &object.to_string()));
        let Some(CronJob { status: read, .. }) = read else { panic!("our own status cannot be read: {patch}") };
        if status.active != base.status.active {
            assert_eq!(read.active, status.active);
        }
        let seconds = |at: Option<DateTime<Utc>>| at.map(|at| at.timestamp());
        if status.last_schedule_time != base.status.last_schedule_time {
            assert_eq!(seconds(read.last_schedule_time), seconds(status.last_schedule_time));
        }
        if status.last_successful_time != base.status.last_successful_time {
            assert_eq!(seconds(read.last_successful_time), seconds(status.last_successful_time));
        }
        CronJob { status: status.clone(), ..base.clone() }
    }

    fn answer(&self, call: &Call, fate: u8) -> Answer {
        let failure = match fate {
            b'0'..=b'4' => None,
            b'5' => Some((0, "")),
            b'6' => Some((404, "NotFound")),
            b'7' => Some((409, "AlreadyExists")),
            b'8' => Some((409, "Conflict")),
            _ => Some((500, "InternalError")),
        };
        let refused = failure.map(|(code, reason)| ApiFailure {
            code,
            reason: reason.into(),
            namespace_terminating: fate == b'9',
            ..ApiFailure::default()
        });
        let job = |found: Option<Arc<Job>>| {
            found.ok_or_else(|| ApiFailure { code: 404, reason: "NotFound".into(), ..ApiFailure::default() })
        };
        match (call, refused) {
            (Call::GetCronJob { .. } | Call::PatchStatus { .. }, Some(failure)) => Answer::CronJob(Err(failure)),
            (Call::GetJob { .. } | Call::CreateJob { .. }, Some(failure)) => Answer::Job(Err(failure)),
            (Call::DeleteJob { .. }, failure) => Answer::Deleted(failure.map_or(Ok(()), Err)),
            (Call::GetCronJob { .. }, None) => Answer::CronJob(Ok(self.cronjob.clone())),
            (Call::PatchStatus { base, status }, None) => {
                Answer::CronJob(Ok(Arc::new(CronJob { status: status.clone(), ..(**base).clone() })))
            }
            (Call::GetJob { key }, None) => Answer::Job(job(self.get(key))),
            // The server stores what it is sent, or shows another Job of that name.
            (Call::CreateJob { cronjob, at, offset_s, .. }, None) => {
                let body = job_body(self.flavor, cronjob, *at, *offset_s, None);
                let made = str::from_utf8(&body).ok().and_then(|text| decode_job(self.flavor, text).ok());
                Answer::Job(job(if fate == b'4' { self.jobs.first().cloned() } else { made.map(Arc::new) }))
            }
        }
    }
}
