//! One control plane with the controller under comparison.

use std::process::Command;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, SecondsFormat, TimeDelta, Timelike, Utc};
use futures::StreamExt;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::{Value, json};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::edits::Edit;
use crate::record::{Record, normal};
use crate::support::controlplane::{ControlPlane, Options};

const NAMESPACE: &str = "side-by-side";
/// Instances of their controller are slowed by its own limits, which are no matter of this comparison.
const THEIR_FLAGS: [&str; 3] = ["--kube-api-qps=200", "--kube-api-burst=400", "--concurrent-cron-job-syncs=20"];

pub(crate) struct Plane {
    plane: ControlPlane,
    client: Client,
    start: DateTime<Utc>,
    /// Jobs that came and went, in order: the type of the watch event and the Job.
    seen: Arc<Mutex<Vec<(&'static str, Value)>>>,
    watch: Option<AbortOnDropHandle<()>>,
}

impl Plane {
    /// A fresh one without controllers; `None` after `test` has named itself as skipped.
    pub(crate) async fn start(test: &str) -> Option<Self> {
        let plane = ControlPlane::start(test, Options::default()).await?;
        let client = plane.client().await;
        Some(Self { plane, client, start: DateTime::UNIX_EPOCH, seen: Arc::default(), watch: None })
    }

    pub(crate) fn run_their_controller(&mut self, test: &str) -> Option<()> {
        self.plane.start_controller_manager(test, "cronjob-controller,garbage-collector-controller", &THEIR_FLAGS)
    }

    pub(crate) fn run_our_controller(&mut self, test: &str) -> Option<()> {
        self.plane.start_controller_manager(test, "garbage-collector-controller", &THEIR_FLAGS)?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
        command.arg("run").arg(format!("--kubeconfig={}", self.plane.admin_kubeconfig().display()));
        command.args(["--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"]);
        self.plane.spawn("ours", &mut command);
        Some(())
    }

    /// The end of what our controller has logged.
    pub(crate) fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(self.plane.log("ours")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Makes the namespace and begins to watch its Jobs.
    pub(crate) async fn begin(&mut self, start: DateTime<Utc>) {
        self.start = start;
        self.send("POST", "/api/v1/namespaces", &json!({ "metadata": { "name": NAMESPACE } })).await.unwrap();
        let (client, seen) = (self.client.clone(), self.seen.clone());
        let path = format!("{}?watch=true&timeoutSeconds=900&resourceVersion=0", path("jobs"));
        let request = Request::get(path).body(Vec::new()).unwrap();
        let mut events = Box::pin(client.request_events::<Value>(request).await.unwrap());
        let task = TaskTracker::new().spawn(async move {
            while let Some(event) = events.next().await {
                let event = match event.unwrap() {
                    WatchEvent::Added(job) => ("came", job),
                    WatchEvent::Deleted(job) => ("went", job),
                    _ => continue,
                };
                seen.lock().unwrap().push(event);
            }
        });
        self.watch = Some(AbortOnDropHandle::new(task));
    }

    /// Does one edit for the CronJob `name`.
    pub(crate) async fn apply(&self, name: &str, edit: &Edit) {
        let (cronjobs, jobs) = (path("cronjobs"), path("jobs"));
        let minute = |offset: i64| self.minute(offset);
        let done = match edit {
            Edit::Create(spec) => {
                let object = json!({ "metadata": { "name": name }, "spec": spec });
                self.send("POST", &cronjobs, &self.filled(name, &object).await).await
            }
            Edit::Patch(patch) => self.send("PATCH", &format!("{cronjobs}/{name}"), patch).await,
            Edit::PatchStatus(patch) => {
                self.send("PATCH", &format!("{cronjobs}/{name}/status"), &self.filled(name, patch).await).await
            }
            Edit::Beside(kind, object) => self.send("POST", &path(kind), &self.filled(name, object).await).await,
            Edit::Finish(offset, well) => {
                let job = format!("{jobs}/{name}-{}/status", minute(*offset));
                self.send("PATCH", &job, &finished(*offset, *well)).await
            }
            Edit::DeleteJob(offset) => {
                let options = json!({ "propagationPolicy": "Background" });
                self.send("DELETE", &format!("{jobs}/{name}-{}", minute(*offset)), &options).await
            }
            Edit::Delete(policy) => {
                let options = json!({ "propagationPolicy": policy });
                self.send("DELETE", &format!("{cronjobs}/{name}"), &options).await
            }
            Edit::Refused(spec, text) => {
                let mut full = json!({ "schedule": "* * * * *", "jobTemplate": { "spec": { "template": { "spec": crate::edits::pod() } } } });
                for (field, value) in spec.as_object().unwrap() {
                    full[field] = value.clone();
                }
                let object = json!({ "metadata": { "name": "refused" }, "spec": full });
                let refusal = self.send("POST", &cronjobs, &object).await.unwrap_err();
                assert!(refusal.contains(text), "{name}: {refusal}");
                Ok(Value::Null)
            }
        };
        done.unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// All that is to be compared of one CronJob and what is around it.
    pub(crate) async fn record(&self, name: &str) -> Record {
        let cronjob = self.send("GET", &format!("{}/{name}", path("cronjobs")), &Value::Null).await.ok();
        let jobs = self.list(&path("jobs")).await;
        let events = self.list(&format!("/api/v1/namespaces/{NAMESPACE}/events")).await;
        let mut record = Record::new(name, self.minute(0));
        for (what, job) in self.seen.lock().unwrap().iter().filter(|(_, job)| is_of(job, name)) {
            record.change(what, job);
        }
        jobs.iter().filter(|job| is_of(job, name)).for_each(|job| record.left(job));
        events.iter().for_each(|event| record.event(event));
        record.status(cronjob.as_ref());
        record
    }

    fn minute(&self, offset: i64) -> i64 {
        self.start.timestamp() / 60 + offset
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let mut list = self.send("GET", path, &Value::Null).await.unwrap();
        list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    /// `object` with what stands in angle brackets filled in.
    async fn filled(&self, name: &str, object: &Value) -> Value {
        let mut text = object.to_string();
        while let Some((head, rest)) = text.split_once('<') {
            let (slot, tail) = rest.split_once('>').unwrap();
            let (word, offset) = slot.split_once(' ').unwrap_or(("", slot));
            let number: i64 = offset.trim_start_matches('+').parse().unwrap_or_default();
            let at = self.start + TimeDelta::minutes(number);
            let value = match word {
                "mm" => at.minute().to_string(),
                "time" => at.to_rfc3339_opts(SecondsFormat::Secs, true),
                "uid" => self.uid(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{}", &slot[7..])).await,
                _ if slot == "uid" => self.uid(&format!("{}/{name}", path("cronjobs"))).await,
                _ => self.minute(number).to_string(),
            };
            text = format!("{head}{value}{tail}");
        }
        serde_json::from_str(&text).unwrap()
    }

    async fn uid(&self, path: &str) -> String {
        self.send("GET", path, &Value::Null).await.unwrap()["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", kind).body(body).unwrap();
        self.client.request::<Value>(request).await.map_err(|error| error.to_string())
    }
}

fn path(plural: &str) -> String {
    let root = if plural == "configmaps" { "/api/v1" } else { "/apis/batch/v1" };
    format!("{root}/namespaces/{NAMESPACE}/{plural}")
}

/// Whether a Job has to do with the CronJob `name`: by its name.
fn is_of(job: &Value, name: &str) -> bool {
    let rest = job["metadata"]["name"].as_str().and_then(|job| job.strip_prefix(name)?.strip_prefix('-'));
    rest.is_some_and(|rest| {
        rest.bytes().all(|b| b.is_ascii_digit()) || rest.starts_with("by-hand") || rest.starts_with("of-")
    })
}

/// The status of a Job that has ended. Its times are the script's own, in the order of the minutes.
fn finished(offset: i64, well: bool) -> Value {
    let at = |seconds: u32| format!("2020-01-01T00:{offset:02}:{seconds:02}Z");
    let holds =
        |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": at(30), "lastProbeTime": at(30) });
    if well {
        json!({ "status": { "startTime": at(0), "completionTime": at(30), "succeeded": 1,
            "conditions": [holds("SuccessCriteriaMet"), holds("Complete")] } })
    } else {
        json!({ "status": { "startTime": at(0), "failed": 1, "conditions": [holds("FailureTarget"), holds("Failed")] } })
    }
}

/// So that both sides spell a Job alike.
pub(crate) fn without_identity(job: &Value, zero: i64) -> Value {
    let mut job = job.clone();
    let own = job["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let metadata = job["metadata"].as_object_mut().unwrap();
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        metadata.remove(field);
    }
    for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
        owner["uid"] = "<owner>".into();
    }
    job.as_object_mut().unwrap().remove("status");
    serde_json::from_str(&normal(&job.to_string().replace(&own, "<own>"), zero)).unwrap()
}
