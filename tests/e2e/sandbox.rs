//! The cluster in the process, on paused time: the sandbox with the production controllers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use cronjob_controller::clock::Clock;
use cronjob_controller::cluster::{ApiClientOptions, Clients};
use cronjob_controller::controllers::{Manager, Options, Registration, Setup};
use cronjob_controller::sandbox::resources::find;
use cronjob_controller::sandbox::runner::{Outcome, RunnerOptions};
use cronjob_controller::sandbox::{self, Sandbox};
use cronjob_controller::telemetry::{Health, Registry};
use futures::future::BoxFuture;
use http::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::Api;
use crate::cluster::{Cluster, Ending, request};

pub(crate) struct InProcess {
    sandbox: Sandbox,
    clock: Clock,
    stop: CancellationToken,
    tasks: TaskTracker,
    empties_namespaces: Arc<AtomicBool>,
}

impl InProcess {
    /// A cluster whose clock shows `start`, without the controllers under test.
    pub(crate) fn new(start: &str) -> Arc<Self> {
        let clock = Clock::starting_at(start.parse::<DateTime<Utc>>().unwrap());
        let sandbox = Sandbox::new(clock.clone(), 7, sandbox::Options::default());
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let empties_namespaces = Arc::new(AtomicBool::new(false));
        let (server, cancel) = (sandbox.clone(), stop.clone());
        let options = RunnerOptions { outcome: Outcome::Hang, pods: true, ..Default::default() };
        tasks.spawn(async move { server.run_jobs(options, 5, cancel).await });
        let (server, cancel, empties) = (sandbox.clone(), stop.clone(), empties_namespaces.clone());
        tasks.spawn(async move { cancel.run_until_cancelled(collect_garbage(server, empties)).await });
        Arc::new(Self { sandbox, clock, stop, tasks, empties_namespaces })
    }

    pub(crate) fn start_controllers(&self) {
        let client = self.sandbox.client();
        let setup = Setup {
            clients: Clients {
                requests: client.clone(),
                watches: client.clone(),
                leases: client,
                host: "sandbox".into(),
            },
            client_options: ApiClientOptions::default(),
            clock: self.clock.clone(),
            seed: 11,
            registry: Registry::new(),
            health: Health::default(),
            observer: None,
            election: None,
        };
        let controllers = Registration::by_default();
        let manager = Manager::new(setup, Options::default(), &controllers);
        self.tasks.spawn(manager.run(self.stop.clone()));
    }

    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn collect_garbage(server: Sandbox, empties_namespaces: Arc<AtomicBool>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        while server.gc_step() > 0 {
            tokio::task::yield_now().await;
        }
        if empties_namespaces.load(Ordering::Relaxed) {
            server.namespace_step();
        }
    }
}

impl Cluster for InProcess {
    fn client(&self) -> kube::Client {
        self.sandbox.client()
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn end_job<'a>(
        &'a self,
        api: &'static Api,
        namespace: &'a str,
        job: &'a str,
        ending: Ending,
    ) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let path = format!("{}/{job}/status", api.jobs(namespace));
            let patch = if api.volcano { volcano_status(&self.clock, ending) } else { status(&self.clock, ending) };
            let answer = request(&self.client(), Method::PATCH, &path, &patch).await;
            answer.map(drop).map_err(|status| anyhow::anyhow!("{status}"))
        })
    }

    fn store_unvalidated<'a>(&'a self, api: &'static Api, object: &'a Value) -> BoxFuture<'a, anyhow::Result<()>> {
        let (group, version) = api.api_version.split_once('/').unwrap();
        let resource = find(group, version, "cronjobs").unwrap();
        let stored = self.sandbox.store_unvalidated(resource, object);
        Box::pin(async move { if stored { Ok(()) } else { anyhow::bail!("no such object: {object}") } })
    }

    fn empty_namespaces(&self) {
        self.empties_namespaces.store(true, Ordering::Relaxed);
    }

    fn prunes_pod_templates(&self) -> bool {
        true
    }
}

fn now(clock: &Clock) -> String {
    clock.wall().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// What the Job controller writes when a Job ends.
fn status(clock: &Clock, ending: Ending) -> Value {
    let now = now(clock);
    // The verdict stands beside the end.
    let (conditions, counts) = match ending {
        Ending::Complete => (["SuccessCriteriaMet", "Complete"], json!({"succeeded": 1, "completionTime": now})),
        Ending::Fail => (["FailureTarget", "Failed"], json!({"failed": 1})),
    };
    let mut status = counts;
    status["active"] = Value::Null;
    status["ready"] = 0.into();
    status["conditions"] =
        conditions.map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": now})).to_vec().into();
    json!({"status": status})
}

/// What Volcano's Job controller writes when a Job ends.
pub(crate) fn volcano_status(clock: &Clock, ending: Ending) -> Value {
    let phase = match ending {
        Ending::Complete => "Completed",
        Ending::Fail => "Failed",
    };
    json!({"status": {"state": {"phase": phase, "lastTransitionTime": now(clock)}}})
}
