//! What should be started, and what was: every Job that ever existed, whatever became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::clock::Clock;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::watches::{Seen, follow};

/// `startingDeadlineSeconds` of every CronJob: a run that starts later than this is lost.
const DEADLINE_S: i64 = 20;

/// One CronJob of each second of the minute.
const EVERY: i64 = 60;

/// CronJobs that are due on the minute, all at once.
const PLAIN: i64 = 5;

/// Everything that was seen of one Job name: when, by uid.
type Sightings = BTreeMap<String, DateTime<Utc>>;

/// What should be started, and what was.
pub(crate) struct Ledger {
    client: Client,
    clock: Clock,
    /// By the name of the Job.
    jobs: Arc<Mutex<BTreeMap<String, Sightings>>>,
    deleted: Arc<Mutex<usize>>,
    /// Names of CronJobs, and an instant from which they are due every minute.
    due: Mutex<BTreeMap<String, DateTime<Utc>>>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl Ledger {
    /// Watches Jobs from now on, and finishes those of every other CronJob, whose history keeps none: so their names are free again,
    /// and whoever starts them a second time is found out.
    pub(crate) async fn start(client: &Client, clock: &Clock) -> Self {
        let (jobs, deleted) = (Arc::new(Mutex::new(BTreeMap::<String, Sightings>::new())), Arc::new(Mutex::new(0)));
        let (finish, finished) = mpsc::unbounded_channel();
        let (ready, begun) = oneshot::channel();
        let api: Api<Job> = Api::default_namespaced(client.clone());
        let tasks = TaskTracker::new();
        let seen_by = {
            let (jobs, deleted, clock) = (jobs.clone(), deleted.clone(), clock.clone());
            move |seen| match seen {
                Seen::Applied(job) => {
                    let job: Job = job;
                    let mut jobs = jobs.lock().unwrap();
                    let sightings = jobs.entry(job.name_any()).or_default();
                    let before = sightings.len();
                    sightings.entry(job.uid().unwrap()).or_insert_with(|| clock.wall());
                    if sightings.len() > before && job.name_any().starts_with("quick-") {
                        finish.send(job.name_any()).unwrap();
                    }
                }
                Seen::Deleted(_) => *deleted.lock().unwrap() += 1,
            }
        };
        let watching = tasks.spawn(follow(api.clone(), ready, seen_by));
        let finishing = tasks.spawn(finish_jobs(api, finished, clock.clone()));
        begun.await.unwrap();
        Self {
            client: client.clone(),
            clock: clock.clone(),
            jobs,
            deleted,
            due: Mutex::default(),
            _tasks: [watching, finishing].map(AbortOnDropHandle::new).into(),
        }
    }

    /// Makes the CronJobs: one that is due in each second of a minute, and some on the minute.
    pub(crate) async fn create_cronjobs(&self) {
        let first = self.clock.wall() + TimeDelta::seconds(5);
        let first = DateTime::from_timestamp(first.timestamp(), 0).unwrap();
        for second in 0..EVERY {
            let (kind, history) = if second % 2 == 0 { ("quick", 0) } else { ("every", 3) };
            let name = format!("{kind}-{second:02}");
            let due = first + TimeDelta::seconds(second);
            // The anchor of @every is the run before; as if it had been created that many seconds ago.
            self.create(&name, "@every 1m", history, Some(due - TimeDelta::seconds(60))).await;
            self.due.lock().unwrap().insert(name, due);
        }
        for n in 0..PLAIN {
            let name = format!("plain-{n}");
            let created = self.create(&name, "* * * * *", 3, None).await;
            let minute = DateTime::from_timestamp((created.timestamp() / 60 + 1) * 60, 0).unwrap();
            self.due.lock().unwrap().insert(name, minute);
        }
        assert!(self.clock.wall() < first, "the CronJobs took longer to create than planned");
    }

    async fn create(&self, name: &str, schedule: &str, history: i32, last: Option<DateTime<Utc>>) -> DateTime<Utc> {
        let api: Api<CronJob> = Api::default_namespaced(self.client.clone());
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example.com/c:1"}]});
        let cronjob = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            // Suspended until it has its anchor, so that none starts before.
            "spec": {
                "schedule": schedule, "startingDeadlineSeconds": DEADLINE_S, "successfulJobsHistoryLimit": history,
                "suspend": last.is_some(), "jobTemplate": {"spec": {"template": {"spec": pod}}},
            },
        });
        let created = api.create(&PostParams::default(), &serde_json::from_value(cronjob).unwrap()).await.unwrap();
        if let Some(last) = last {
            let status = json!({"status": {"lastScheduleTime": last.to_rfc3339()}});
            api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
            let wake = json!({"spec": {"suspend": false}});
            api.patch(name, &PatchParams::default(), &Patch::Merge(wake)).await.unwrap();
        }
        let text = serde_json::to_value(created.metadata.creation_timestamp.unwrap()).unwrap();
        text.as_str().unwrap().parse().unwrap()
    }

    /// Waits until everything due by now is started or lost, and says how it went.
    pub(crate) async fn close(&self) -> Outcome {
        let end = self.clock.wall();
        sleep(Duration::from_secs(DEADLINE_S.unsigned_abs() + 2)).await;
        let jobs = self.jobs.lock().unwrap().clone();
        let mut outcome = Outcome { deleted: *self.deleted.lock().unwrap(), ..Outcome::default() };
        let mut expected = BTreeSet::new();
        for (name, first) in &*self.due.lock().unwrap() {
            let instants = (0..).map(|n| *first + TimeDelta::minutes(n));
            for due in instants.take_while(|due| *due <= self.clock.wall()) {
                let job = format!("{name}-{}", due.timestamp() / 60);
                if due <= end {
                    outcome.on_due(&job, due, jobs.get(&job));
                }
                expected.insert(job);
            }
        }
        outcome.unexpected = jobs.keys().filter(|job| !expected.contains(*job)).cloned().collect();
        outcome
    }
}

/// Marks Jobs as complete, as their controller would.
async fn finish_jobs(api: Api<Job>, mut names: mpsc::UnboundedReceiver<String>, clock: Clock) {
    while let Some(name) = names.recv().await {
        let now = clock.wall().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let condition =
            |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now});
        let status: Value = json!({"status": {
            "startTime": now, "completionTime": now, "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        }});
        if let Err(error) = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await {
            panic!("{name} cannot be finished: {error}");
        }
    }
}

/// How it went.
#[derive(Default)]
pub(crate) struct Outcome {
    due: usize,
    deleted: usize,
    lags_ms: Vec<i64>,
    lost: Vec<String>,
    repeated: Vec<String>,
    unexpected: Vec<String>,
}

impl Outcome {
    fn on_due(&mut self, job: &str, due: DateTime<Utc>, seen: Option<&Sightings>) {
        self.due += 1;
        let Some(first) = seen.and_then(|seen| seen.values().min()) else { return self.lost.push(job.to_owned()) };
        let lag = first.signed_duration_since(due);
        self.lags_ms.push(lag.num_milliseconds());
        if lag > TimeDelta::seconds(DEADLINE_S) {
            self.lost.push(format!("{job} ({lag} late)"));
        }
        if seen.is_some_and(|seen| seen.len() > 1) {
            self.repeated.push(job.to_owned());
        }
    }

    pub(crate) fn check(&self) {
        assert!(self.due > 0 && self.deleted > 0, "nothing was due, or nothing cleaned away");
        assert_eq!(self.lost, [""; 0], "lost");
        assert_eq!(self.repeated, [""; 0], "started more than once");
        assert_eq!(self.unexpected, [""; 0], "started though not due");
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lags = self.lags_ms.clone();
        lags.sort_unstable();
        let at = |percent: usize| lags.get((lags.len().saturating_sub(1)) * percent / 100).copied().unwrap_or_default();
        write!(
            f,
            "{} due instants: {} lost, {} started more than once, {} Jobs that were not due; {} Jobs deleted meanwhile\n\
             from the due instant until its Job was seen: median {} ms, 95 % {} ms, at most {} ms",
            self.due,
            self.lost.len(),
            self.repeated.len(),
            self.unexpected.len(),
            self.deleted,
            at(50),
            at(95),
            at(100)
        )
    }
}
