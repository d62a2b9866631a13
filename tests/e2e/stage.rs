//! Where one scenario plays: a namespace of a cluster, and the hands and eyes of a user in it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use http::Method;
use serde_json::{Value, json};

use crate::api::{Api, Said};
use crate::cluster::{Cluster, Ending, request};
use crate::objects::{BY_HAND, job_name, rfc3339};
use crate::picture::Picture;

/// Between two looks; longer each time, so that many who wait do not load the server.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LAST_LOOK: Duration = Duration::from_secs(1);

pub(crate) struct Stage {
    pub(crate) cluster: Arc<dyn Cluster>,
    pub(crate) api: &'static Api,
    pub(crate) namespace: String,
    client: kube::Client,
    /// What was last seen to be as expected, by CronJob.
    settled: Mutex<BTreeMap<String, Picture>>,
}

impl Stage {
    /// A stage in a new namespace.
    pub(crate) async fn open(cluster: Arc<dyn Cluster>, api: &'static Api, namespace: String) -> anyhow::Result<Self> {
        let client = cluster.client();
        let this = Self { cluster, api, namespace, client, settled: Mutex::default() };
        let metadata = json!({"name": this.namespace});
        this.post("/api/v1/namespaces", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
            .await?;
        Ok(this)
    }

    // Time.

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.cluster.clock().wall()
    }

    pub(crate) fn this_minute(&self) -> DateTime<Utc> {
        self.now().duration_trunc(TimeDelta::minutes(1)).unwrap()
    }

    /// The first minute that begins in `seconds` or more: late enough to prepare something for it.
    pub(crate) fn coming_minute(&self, seconds: i64) -> DateTime<Utc> {
        let prepared = self.now() + TimeDelta::seconds(seconds);
        prepared.duration_trunc(TimeDelta::minutes(1)).unwrap() + TimeDelta::minutes(1)
    }

    pub(crate) async fn until(&self, at: DateTime<Utc>) {
        tokio::time::sleep(self.cluster.clock().until(at)).await;
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    // Requests.

    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, Value> {
        request(&self.client, method, path, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::GET, path, &Value::Null).await.map_err(refused("GET", path))
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> anyhow::Result<Value> {
        self.send(Method::POST, path, object).await.map_err(refused("POST", path))
    }

    pub(crate) async fn patch(&self, path: &str, patch: &Value) -> anyhow::Result<Value> {
        self.send(Method::PATCH, path, patch).await.map_err(refused("PATCH", path))
    }

    /// Deletes with this propagation policy.
    pub(crate) async fn delete(&self, path: &str, propagation: &str) -> anyhow::Result<Value> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation});
        self.send(Method::DELETE, path, &options).await.map_err(refused("DELETE", path))
    }

    /// Whether an object is there.
    pub(crate) async fn exists(&self, path: &str) -> anyhow::Result<bool> {
        match self.send(Method::GET, path, &Value::Null).await {
            Ok(_) => Ok(true),
            Err(status) if status["code"] == 404 => Ok(false),
            Err(status) => bail!("GET {path}: {status}"),
        }
    }

    pub(crate) fn cronjob_path(&self, name: &str) -> String {
        format!("{}/{name}", self.api.cronjobs(&self.namespace))
    }

    pub(crate) fn job_path(&self, name: &str) -> String {
        format!("{}/{name}", self.api.jobs(&self.namespace))
    }

    /// Path of a core kind's objects here.
    pub(crate) fn core(&self, plural: &str) -> String {
        format!("/api/v1/namespaces/{}/{plural}", self.namespace)
    }

    pub(crate) async fn create_cronjob(&self, object: &Value) -> anyhow::Result<Value> {
        self.post(&self.api.cronjobs(&self.namespace), object).await
    }

    pub(crate) async fn create_job(&self, object: &Value) -> anyhow::Result<Value> {
        self.post(&self.api.jobs(&self.namespace), object).await
    }

    pub(crate) async fn patch_cronjob(&self, name: &str, spec: &Value) -> anyhow::Result<Value> {
        self.patch(&self.cronjob_path(name), &json!({"spec": spec})).await
    }

    pub(crate) async fn patch_status(&self, name: &str, status: &Value) -> anyhow::Result<Value> {
        self.patch(&format!("{}/status", self.cronjob_path(name)), &json!({"status": status})).await
    }

    /// Creates a CronJob as one that was last due at `last`, suspended, so that the controller does nothing yet.
    pub(crate) async fn create_suspended(&self, mut object: Value, last: DateTime<Utc>) -> anyhow::Result<Value> {
        object["spec"]["suspend"] = true.into();
        let created = self.create_cronjob(&object).await?;
        let name = created["metadata"]["name"].as_str().context("a name")?;
        self.patch_status(name, &json!({"lastScheduleTime": rfc3339(last)})).await
    }

    pub(crate) async fn resume(&self, name: &str) -> anyhow::Result<Value> {
        self.patch_cronjob(name, &json!({"suspend": false})).await
    }

    /// Creates a CronJob as one that was last due at `last` and has run since: what has been due since then is due at once.
    pub(crate) async fn create_overdue(&self, object: Value, last: DateTime<Utc>) -> anyhow::Result<Value> {
        let created = self.create_suspended(object, last).await?;
        self.resume(created["metadata"]["name"].as_str().context("a name")?).await
    }

    /// Lets a running Job end, and waits until it has.
    pub(crate) async fn end_job(&self, job: &str, ending: Ending) -> anyhow::Result<()> {
        self.until_true(&format!("{job} runs"), async || self.has_started(job).await).await?;
        self.cluster.end_job(self.api, &self.namespace, job, ending).await?;
        self.until_true(&format!("{job} ends"), async || {
            // A CronJob without history deletes it at once.
            Ok(!self.exists(&self.job_path(job)).await? || has_ended(&self.get(&self.job_path(job)).await?))
        })
        .await
    }

    /// Waits until a Job runs.
    pub(crate) async fn job_started(&self, job: &str) -> anyhow::Result<()> {
        self.until_true(&format!("{job} runs"), async || self.has_started(job).await).await
    }

    async fn has_started(&self, job: &str) -> anyhow::Result<bool> {
        let started = !self.get(&self.job_path(job)).await?["status"]["startTime"].is_null();
        Ok(self.api.volcano || started)
    }

    /// Pods of a Job.
    pub(crate) async fn pods_of(&self, job: &str) -> anyhow::Result<usize> {
        let path = format!("{}?labelSelector=batch.kubernetes.io/job-name%3D{job}", self.core("pods"));
        Ok(self.get(&path).await?["items"].as_array().map_or(0, Vec::len))
    }

    // Looks.

    /// Waits until `holds`.
    pub(crate) async fn until_true(
        &self,
        what: &str,
        holds: impl AsyncFn() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let until = self.cluster.clock().mono() + self.cluster.patience();
        let mut pause = FIRST_LOOK;
        while !holds().await? {
            ensure!(self.cluster.clock().mono() < until, "{}: does not come about: {what}", self.namespace);
            tokio::time::sleep(pause).await;
            pause = LAST_LOOK.min(pause.mul_f64(1.5));
        }
        Ok(())
    }

    /// Waits until users see `expected` of the CronJob, in all its parts.
    pub(crate) async fn expect(&self, cronjob: &str, expected: Picture) -> anyhow::Result<()> {
        let seen = Mutex::new(Picture::default());
        let come_about = self.until_true("the picture", async || {
            let picture = self.picture(cronjob).await?;
            let holds = picture == expected;
            *seen.lock().unwrap() = picture;
            Ok(holds)
        });
        if let Err(error) = come_about.await {
            let seen = seen.lock().unwrap().clone();
            bail!("{}/{cronjob}: {error:#}\nexpected {expected:#?}\nseen {seen:#?}", self.namespace);
        }
        self.settled.lock().unwrap().insert(cronjob.to_owned(), expected);
        Ok(())
    }

    /// The CronJob will be another one, or none: what was seen of it need not last.
    pub(crate) fn forget(&self, cronjob: &str) {
        self.settled.lock().unwrap().remove(cronjob);
    }

    /// Whatever was last expected of each CronJob is still so.
    pub(crate) async fn check_that_it_lasts(&self) -> anyhow::Result<()> {
        let settled = self.settled.lock().unwrap().clone();
        for (cronjob, expected) in settled {
            let seen = self.picture(&cronjob).await?;
            ensure!(
                seen == expected,
                "{}/{cronjob} did not last\nexpected {expected:#?}\nseen {seen:#?}",
                self.namespace
            );
        }
        Ok(())
    }

    /// What users see of a CronJob. Each Job that the controller made is checked on the way: name, annotation, owner.
    pub(crate) async fn picture(&self, name: &str) -> anyhow::Result<Picture> {
        let cronjob = self.get(&self.cronjob_path(name)).await?;
        let mut picture = Picture::default();
        for job in self.jobs().await? {
            let owners = job["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            if owners.iter().any(|owner| owner["uid"] == cronjob["metadata"]["uid"] && owner["controller"] == true) {
                if job["metadata"]["labels"][BY_HAND].is_null() {
                    self.check_job(&cronjob, &job)?;
                }
                picture.jobs.insert(text(&job["metadata"]["name"]));
            }
        }
        let status = &cronjob["status"];
        for reference in status["active"].as_array().into_iter().flatten() {
            ensure!(reference["kind"] == "Job" && reference["apiVersion"] == self.api.api_version, "{reference}");
            ensure!(reference["namespace"] == self.namespace && reference["uid"].is_string(), "{reference}");
            picture.active.insert(text(&reference["name"]));
        }
        picture.last = status["lastScheduleTime"].as_str().map(str::to_owned);
        picture.succeeded = !status["lastSuccessfulTime"].is_null();
        picture.events = self.events(&cronjob).await?.into_iter().map(|(said, _count)| said).collect();
        Ok(picture)
    }

    pub(crate) async fn jobs(&self) -> anyhow::Result<Vec<Value>> {
        let list = self.get(&self.api.jobs(&self.namespace)).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Events about a CronJob with how often each happened.
    pub(crate) async fn events(&self, cronjob: &Value) -> anyhow::Result<Vec<(Said, i64)>> {
        let selector = format!(
            "involvedObject.uid%3D{},involvedObject.kind%3DCronJob",
            cronjob["metadata"]["uid"].as_str().unwrap_or_default()
        );
        let list = self.get(&format!("{}?fieldSelector={selector}", self.core("events"))).await?;
        let mut events = Vec::new();
        for event in list["items"].as_array().into_iter().flatten() {
            ensure!(event["source"]["component"] == self.api.component, "said by another: {event}");
            let said = (text(&event["type"]), text(&event["reason"]), text(&event["message"]));
            events.push((said, event["count"].as_i64().unwrap_or(1)));
        }
        Ok(events)
    }

    fn check_job(&self, cronjob: &Value, job: &Value) -> anyhow::Result<()> {
        let (metadata, owner) = (&job["metadata"], &cronjob["metadata"]);
        let scheduled = metadata["annotations"][self.api.annotation].as_str().context("the annotation is missing")?;
        let at = DateTime::parse_from_rfc3339(scheduled)?.to_utc();
        let name = job_name(owner["name"].as_str().unwrap_or_default(), at);
        ensure!(metadata["name"] == name.as_str(), "{name} for {scheduled}: {metadata}");
        let reference = json!([{
            "apiVersion": self.api.api_version, "kind": "CronJob", "name": owner["name"], "uid": owner["uid"],
            "controller": true, "blockOwnerDeletion": true,
        }]);
        ensure!(metadata["ownerReferences"] == reference, "owners of {name}: {}", metadata["ownerReferences"]);
        Ok(())
    }
}

/// Whether the Job's own controller calls it over.
fn has_ended(job: &Value) -> bool {
    let phase = job["status"]["state"]["phase"].as_str().unwrap_or_default();
    let over = |condition: &Value| {
        condition["status"] == "True" && (condition["type"] == "Complete" || condition["type"] == "Failed")
    };
    ["Completed", "Failed"].contains(&phase)
        || job["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(over))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn refused(verb: &'static str, path: &str) -> impl FnOnce(Value) -> anyhow::Error {
    let path = path.to_owned();
    move |status| anyhow::anyhow!("{verb} {path}: {status}")
}
