//! What a server is filled with: namespaces, CronJobs, and the Jobs that they have finished.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use bytes::Bytes;
use chrono::TimeDelta;
use cronjob_controller::api::{self, rfc3339};
use cronjob_controller::model::{Flavor, WallTime, job_name};
use http::Method;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::progress::bar;

/// Requests in flight while a server is filled.
const IN_FLIGHT: usize = 64;

/// CronJobs of one kind.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// Beginning of their names and of those of their namespaces.
    pub(crate) name: &'static str,
    pub(crate) cronjobs: usize,
    pub(crate) namespaces: usize,
    /// Finished Jobs of each.
    pub(crate) history: usize,
    pub(crate) schedule: Schedule,
}

/// When the CronJobs of a world are due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Schedule {
    /// All at this minute of this day, and then not for a year.
    At(WallTime),
    /// Each so many seconds after its creation, and so on.
    EverySeconds(u32),
    /// CronJob number n at minute n modulo 60 of each hour, last recorded three hours ago.
    Overdue,
    /// In half a year.
    Far(WallTime),
}

impl World {
    /// Creates all of it; `bar` says what for.
    pub(crate) async fn create(&self, client: &Client, what: &str) -> anyhow::Result<()> {
        self.create_namespaces(client).await?;
        let bar = bar(&format!("{what}: filling the server"), self.cronjobs);
        let created = each(self.cronjobs, IN_FLIGHT, |number| {
            let (world, client, bar) = (self.clone(), client.clone(), bar.clone());
            async move {
                world.create_one(&client, number).await?;
                bar.inc(1);
                Ok(())
            }
        });
        created.await?;
        bar.finish_and_clear();
        Ok(())
    }

    pub(crate) async fn create_namespaces(&self, client: &Client) -> anyhow::Result<()> {
        for number in 0..self.namespaces {
            let name = self.namespace(number);
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            send(client, Method::POST, "/api/v1/namespaces", JSON, body.to_string()).await?;
        }
        Ok(())
    }

    pub(crate) fn namespace(&self, number: usize) -> String {
        format!("{}-{}", self.name, number % self.namespaces)
    }

    /// What is POSTed to start the run at `at` of CronJob `number`: path and body, as the controller makes them.
    pub(crate) fn start(&self, number: usize, at: WallTime) -> anyhow::Result<(String, Bytes)> {
        let mut object = self.cronjob(number);
        object["metadata"]["uid"] = format!("00000000-0000-4000-8000-{number:012}").into();
        let cronjob = api::decode_cronjob(Flavor::Kubernetes, &object.to_string())?;
        let path = api::wire(Flavor::Kubernetes).jobs_path(Some(&self.namespace(number)));
        Ok((path, api::job_body(Flavor::Kubernetes, &cronjob, at, 0, None).into()))
    }

    fn cronjob(&self, number: usize) -> Value {
        let schedule = match self.schedule {
            Schedule::At(at) => at.format("%-M %-H %-d %-m *").to_string(),
            Schedule::Far(now) => (now + TimeDelta::days(182)).format("%-M %-H %-d %-m *").to_string(),
            Schedule::EverySeconds(seconds) => format!("@every {seconds}s"),
            Schedule::Overdue => format!("{} * * * *", number % 60),
        };
        let name = self.cronjob_name(number);
        let container = json!({
            "name": "work", "image": "registry.example/team/nightly-report:1.4.2", "command": ["/bin/report", "--all"],
            "env": [{"name": "REGION", "value": "eu-central-1"}, {"name": "LOG_LEVEL", "value": "info"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        });
        let labels = json!({"app.kubernetes.io/name": "report", "app.kubernetes.io/instance": name});
        json!({
            "apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": name, "namespace": self.namespace(number), "labels": labels},
            "spec": {
                "schedule": schedule,
                "successfulJobsHistoryLimit": 10,
                "jobTemplate": {
                    "metadata": {"labels": labels},
                    "spec": {"backoffLimit": 2, "template": {
                        "metadata": {"labels": labels},
                        "spec": {"restartPolicy": "Never", "containers": [container]},
                    }},
                },
            },
        })
    }

    pub(crate) fn cronjob_name(&self, number: usize) -> String {
        format!("{}-{number:06}", self.name)
    }

    pub(crate) async fn create_one(&self, client: &Client, number: usize) -> anyhow::Result<()> {
        let path = format!("/apis/batch/v1/namespaces/{}/cronjobs", self.namespace(number));
        let created = send(client, Method::POST, &path, JSON, self.cronjob(number).to_string()).await?;
        let overdue = matches!(self.schedule, Schedule::Overdue);
        if self.history == 0 && !overdue {
            return Ok(());
        }
        let created: Value = serde_json::from_slice(&created)?;
        let text = |field: &str| created["metadata"][field].as_str().unwrap_or_default().to_owned();
        let now: WallTime = text("creationTimestamp").parse()?;
        let last = now - TimeDelta::hours(3);
        for back in 0..self.history {
            self.create_finished(client, number, &text("uid"), last - TimeDelta::hours(back as i64)).await?;
        }
        let status = json!({"status": {"lastScheduleTime": rfc3339(last, 0), "lastSuccessfulTime": rfc3339(last, 0)}});
        let path = format!("{path}/{}/status", self.cronjob_name(number));
        send(client, Method::PATCH, &path, MERGE, status.to_string()).await?;
        Ok(())
    }

    /// A Job that ended well at `at`.
    async fn create_finished(&self, client: &Client, number: usize, owner: &str, at: WallTime) -> anyhow::Result<()> {
        let mut object = self.cronjob(number);
        object["metadata"]["uid"] = owner.into();
        let cronjob = api::decode_cronjob(Flavor::Kubernetes, &object.to_string())?;
        let path = api::wire(Flavor::Kubernetes).jobs_path(Some(&self.namespace(number)));
        let body = api::job_body(Flavor::Kubernetes, &cronjob, at, 0, None);
        send(client, Method::POST, &path, JSON, body).await?;
        let time = rfc3339(at, 0);
        let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "CompletionsReached", "lastProbeTime": time, "lastTransitionTime": time});
        let status = json!({"status": {
            "startTime": time, "completionTime": time, "succeeded": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        }});
        let path = format!("{path}/{}/status", job_name(&self.cronjob_name(number), at));
        send(client, Method::PATCH, &path, MERGE, status.to_string()).await?;
        Ok(())
    }
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// Sends one request and returns the whole answer.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    content: &str,
    body: impl Into<Bytes>,
) -> anyhow::Result<Bytes> {
    let request = http::Request::builder().method(method).uri(path).header("content-type", content);
    let response = client.send(request.body(Body::from(body.into()))?).await?;
    let code = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    anyhow::ensure!(code.is_success(), "{path}: {code}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}

/// Does `work` for the numbers below `count`, so many at a time; ends with the first failure.
pub(crate) async fn each<F, W>(count: usize, at_a_time: usize, work: W) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
    W: Fn(usize) -> F + Send + Sync,
{
    let next = Arc::new(AtomicUsize::new(0));
    let lines = (0..at_a_time).map(|_| async {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            // On a task of its own, so that all cores work.
            TaskTracker::new().spawn(work(number)).await.context("a worker panicked")??;
        }
    });
    futures::future::try_join_all(lines).await.map(drop)
}
