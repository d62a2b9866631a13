//! A CronJob with a number of finished Jobs, and one step of it without a server.

use std::sync::Arc;

use chrono::TimeDelta;
use cronjob_controller::api;
use cronjob_controller::model::{CronJob, Flavor, Job, ObjectKey, Uid, WallTime, job_name};
use cronjob_controller::reconcile::{Answer, Call, JobCache, Memory, Next, Outcome, Settings, Step};
use cronjob_controller::schedule::Zone;

/// What is measured: whether the hour was recorded already, and how many Jobs the CronJob has.
pub(crate) const ROWS: [(&str, bool); 2] = [("nothing due", true), ("creation", false)];
pub(crate) const CHILDREN: [i64; 3] = [0, 4, 50];

/// What a CronJob with so many finished Jobs looks like, and its cache.
pub(crate) struct Scene {
    cronjob: Arc<CronJob>,
    jobs: Vec<Arc<Job>>,
    now: WallTime,
}

impl JobCache for Scene {
    fn children(&self, _: &Uid) -> Vec<Arc<Job>> {
        self.jobs.clone()
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<Job>> {
        self.jobs.iter().find(|job| job.key == *key).cloned()
    }
}

const KUBERNETES: Flavor = Flavor::Kubernetes;

fn due() -> WallTime {
    WallTime::from_timestamp(1_709_287_200, 0).unwrap_or_default()
}

impl Scene {
    /// The hour is due, or was recorded already.
    pub(crate) fn new(children: i64, recorded: bool) -> Self {
        let last = due() - TimeDelta::hours(i64::from(!recorded));
        let text = format!(
            r#"{{"metadata":{{"name":"train","namespace":"ml","uid":"u","resourceVersion":"7","creationTimestamp":"2024-01-01T00:00:00Z"}},
            "spec":{{"schedule":"0 * * * *","timeZone":"Europe/Berlin","concurrencyPolicy":"Forbid","jobTemplate":{{"spec":{{}}}},
            "successfulJobsHistoryLimit":100}},"status":{{"lastScheduleTime":"{}"}}}}"#,
            api::rfc3339(last, 0)
        );
        let cronjob = api::decode_cronjob(KUBERNETES, &text).unwrap_or_else(|error| panic!("{error}"));
        let jobs = (0..children).map(|hours| Arc::new(finished(last - TimeDelta::hours(hours)))).collect();
        Self { cronjob: Arc::new(cronjob), jobs, now: due() + TimeDelta::milliseconds(100) }
    }

    pub(crate) fn step(&self, memory: &mut Memory) -> Outcome {
        let settings = Settings { flavor: KUBERNETES, local_zone: Zone::UTC };
        let mut step = Step::begin(settings, self.cronjob.clone(), self, memory, self.now);
        let mut answer = None;
        loop {
            match step.advance(answer.take()) {
                Next::Call(Call::CreateJob { name, .. }) => answer = Some(Answer::Job(Ok(Arc::new(created(&name))))),
                Next::Call(_) => answer = Some(Answer::CronJob(Ok(self.cronjob.clone()))),
                Next::Done(outcome) => return *outcome,
            }
        }
    }
}

fn job(metadata: &str, status: &str) -> Job {
    let text = format!(
        r#"{{"metadata":{{{metadata},"namespace":"ml","resourceVersion":"5","ownerReferences":[{{"apiVersion":"batch/v1",
        "kind":"CronJob","name":"train","uid":"u","controller":true}}]}},"status":{status}}}"#
    );
    api::decode_job(KUBERNETES, &text).unwrap_or_else(|error| panic!("{error}"))
}

fn finished(at: WallTime) -> Job {
    let (name, time) = (job_name("train", at), api::rfc3339(at, 0));
    let status = format!(
        r#"{{"startTime":"{time}","completionTime":"{time}","conditions":[{{"type":"Complete","status":"True"}}]}}"#
    );
    job(&format!(r#""name":"{name}","uid":"{name}""#), &status)
}

fn created(name: &str) -> Job {
    job(&format!(r#""name":"{name}","uid":"{name}""#), "{}")
}
