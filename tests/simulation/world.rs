//! The stage of a run: the server, the replicas, their clocks; and what users do there.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use cronjob_controller::clock::Clock;
use cronjob_controller::cluster::{ApiClientOptions, Clients, Election};
use cronjob_controller::controllers::{Counts, Manager, Options, Registration, Setup};
use cronjob_controller::sandbox::resources::{Resource, find};
use cronjob_controller::sandbox::runner::RunnerOptions;
use cronjob_controller::sandbox::service::SandboxService;
use cronjob_controller::sandbox::{self, Sandbox};
use cronjob_controller::telemetry::{Exposition, Health, Registry};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::history::{Ear, Recorder, What};
use crate::line::{Switch, line};
use crate::people::{job_manifest, manifest};
use crate::plan::{Api, Named, Plan};

/// One replica: a place in which one process after the other runs.
pub(crate) struct Replica {
    pub(crate) clock: Clock,
    pub(crate) off_ms: i64,
    /// Processes so far.
    pub(crate) processes: u32,
    pub(crate) running: Option<Running>,
}

/// A process of a replica.
pub(crate) struct Running {
    pub(crate) switch: Switch,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    counter: Box<dyn Fn() -> Vec<Counts> + Send + Sync>,
    registry: Registry,
}

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) server_clock: Clock,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) recorder: Recorder,
    pub(crate) blown: mpsc::UnboundedSender<(usize, u32)>,
    users: SandboxService,
    background: CancellationToken,
    tasks: TaskTracker,
    timing: Option<cronjob_controller::cluster::Timing>,
    seed: u64,
}

pub(crate) fn cronjobs(api: Api) -> &'static Resource {
    match api {
        Api::Kubernetes => find("batch", "v1", "cronjobs").unwrap(),
        Api::Volcano => find("batch.volcano.sh", "v1alpha1", "cronjobs").unwrap(),
    }
}

pub(crate) fn jobs(api: Api) -> &'static Resource {
    match api {
        Api::Kubernetes => find("batch", "v1", "jobs").unwrap(),
        Api::Volcano => find("batch.volcano.sh", "v1alpha1", "jobs").unwrap(),
    }
}

impl World {
    /// A server, with nobody there yet.
    pub(crate) fn new(plan: &Plan, blown: mpsc::UnboundedSender<(usize, u32)>) -> Self {
        let server_clock = Clock::starting_at(plan.start);
        let options = sandbox::Options {
            namespaces: plan.namespaces.clone(),
            gc_every: Duration::from_secs(7),
            log_limit: 4000,
            ..Default::default()
        };
        let sandbox = Sandbox::new(server_clock.clone(), plan.seed, options);
        let recorder = Recorder::new(server_clock.clone());
        assert!(sandbox.listen(Arc::new(recorder.clone())));
        let (background, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (server, cancel) = (sandbox.clone(), background.clone());
        tasks.spawn(async move { server.run_background(cancel).await });
        let (server, cancel, seed) = (sandbox.clone(), background.clone(), plan.seed);
        let running = RunnerOptions { spread: Duration::from_secs(2), failure_percent: 10, ..RunnerOptions::default() };
        tasks.spawn(async move { server.run_jobs(running, seed, cancel).await });
        let replica = |_| Replica { clock: Clock::starting_at(plan.start), off_ms: 0, processes: 0, running: None };
        Self {
            users: sandbox.service_without_faults("users"),
            replicas: (0..plan.replicas).map(replica).collect(),
            sandbox,
            server_clock,
            recorder,
            blown,
            background,
            tasks,
            timing: plan.timing,
            seed: plan.seed,
        }
    }

    /// Starts a process of a replica, unless one runs.
    pub(crate) fn start(&mut self, number: usize) {
        let replica = &mut self.replicas[number];
        if replica.running.is_some() {
            return;
        }
        replica.processes += 1;
        let process = replica.processes;
        let service = self.sandbox.service_of(&format!("r{number}"));
        let (line, switch) = line(service, (number, process), self.blown.clone());
        let client = kube::Client::new(line, "default");
        let election = self.timing.map(|timing| Election {
            namespace: "kube-system".to_owned(),
            name: "cronjob-controller".to_owned(),
            identity: identity(number, process),
            timing,
        });
        let registry = Registry::new();
        let setup = Setup {
            clients: Clients {
                requests: client.clone(),
                watches: client.clone(),
                leases: client,
                host: "sandbox".to_owned(),
            },
            client_options: ApiClientOptions::default(),
            clock: replica.clock.clone(),
            seed: self.seed ^ (number as u64) << 8 ^ u64::from(process),
            registry: registry.clone(),
            health: Health::default(),
            observer: Some(Arc::new(Ear { recorder: self.recorder.clone(), replica: number, process })),
            election,
        };
        let options = Options { shards: 2, concurrent_syncs: 32, ..Options::default() };
        let manager = Manager::new(setup, options, &Registration::by_default());
        let counter = Box::new(manager.counter());
        let stop = CancellationToken::new();
        let task = self.tasks.spawn(manager.run(stop.clone()));
        replica.running = Some(Running { switch, stop, task, counter, registry });
        self.recorder.note(What::Started { replica: number, process });
    }

    /// Kills the process of a replica in the middle of whatever it does.
    pub(crate) async fn kill(&mut self, number: usize) {
        let replica = &mut self.replicas[number];
        let process = replica.processes;
        if let Some(running) = replica.running.take() {
            running.switch.state.set(crate::line::State::Shut);
            running.task.abort();
            let _killed = running.task.await;
            self.recorder.note(What::Ended { replica: number, process });
            if let Some(line) = breaches(&running.registry) {
                self.recorder.note(What::Breach(format!("r{number}.{process} {line}")));
            }
        }
    }

    /// Asks the process of a replica to end.
    pub(crate) fn ask_to_end(&self, number: usize) {
        if let Some(running) = &self.replicas[number].running {
            running.stop.cancel();
        }
    }

    /// The replica that leads: as the Lease says, or the only one.
    pub(crate) fn leader(&self) -> usize {
        if self.timing.is_none() {
            return 0;
        }
        let leases = find("coordination.k8s.io", "v1", "leases").unwrap();
        let lease = self.sandbox.get(leases, "kube-system", "cronjob-controller");
        let holder = lease.and_then(|lease| lease["spec"]["holderIdentity"].as_str().map(str::to_owned));
        holder.and_then(|holder| replica_in(&holder)).map_or(0, |(number, _)| number)
    }

    /// Steps a replica's wall clock.
    pub(crate) fn step_clock(&mut self, number: usize, by: TimeDelta) {
        let replica = &mut self.replicas[number];
        replica.off_ms += by.num_milliseconds();
        self.recorder.note(What::Clock { replica: number, off_ms: replica.off_ms });
        replica.clock.step(by);
    }

    /// What is held in memory anywhere, as text; empty if nothing is. A replica that does not run cannot tell: at the end all must.
    pub(crate) fn leftovers(&self) -> String {
        let mut held = Vec::new();
        for (number, replica) in self.replicas.iter().enumerate() {
            match &replica.running {
                Some(running) if !running.task.is_finished() => {
                    let counts = (running.counter)().into_iter().filter(|counts| *counts != Counts::default());
                    held.extend(counts.map(|counts| format!("r{number}: {counts}")));
                }
                _ => held.push(format!("r{number} does not run")),
            }
        }
        held.join("; ")
    }

    pub(crate) fn is_running(&self, number: usize) -> bool {
        self.replicas[number].running.is_some()
    }

    /// Ends everything.
    pub(crate) async fn end(mut self) {
        for number in 0..self.replicas.len() {
            self.kill(number).await;
        }
        self.background.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    // What users do. A refusal is theirs to bear.

    pub(crate) async fn create_cron(&mut self, cron: &crate::people::CronSpec) {
        self.request(Method::POST, &collection(cronjobs(cron.named.api), &cron.named.namespace), manifest(cron)).await;
    }

    pub(crate) async fn edit(&mut self, cron: &Named, patch: &Value) {
        let path = format!("{}/{}", collection(cronjobs(cron.api), &cron.namespace), cron.name);
        self.request(Method::PATCH, &path, patch.clone()).await;
    }

    pub(crate) async fn delete(&mut self, resource: &Resource, namespace: &str, name: &str) {
        let path = format!("{}/{name}", collection(resource, namespace));
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        self.request(Method::DELETE, &path, options).await;
    }

    pub(crate) async fn delete_a_job(&mut self, cron: &Named, pick: u64) {
        let prefix = format!("{}-", cron.name);
        let names: Vec<String> = self.sandbox.with_store(|store| {
            let all = store.collection(jobs(cron.api)).unwrap();
            let ours = all.range(&cron.namespace, None).filter(|job| job.name().starts_with(&prefix));
            ours.map(|job| job.name().to_owned()).collect()
        });
        if !names.is_empty() {
            let name = &names[usize::try_from(pick % names.len() as u64).unwrap()];
            self.delete(jobs(cron.api), &cron.namespace, name).await;
        }
    }

    pub(crate) async fn free_names(&mut self, cron: &Named) {
        let prefix = format!("{}-", cron.name);
        let names: Vec<String> = self.sandbox.with_store(|store| {
            let named = store.collection(jobs(cron.api)).unwrap().range(&cron.namespace, None);
            let named = named.filter(|job| job.name().starts_with(&prefix));
            let foreign = named.filter(|job| job.value()["metadata"]["ownerReferences"].is_null());
            foreign.map(|job| job.name().to_owned()).collect()
        });
        for name in names {
            self.delete(jobs(cron.api), &cron.namespace, &name).await;
        }
    }

    pub(crate) async fn create_job(&mut self, cron: &Named, name: &str, owned: bool) {
        let uid = self.sandbox.get(cronjobs(cron.api), &cron.namespace, &cron.name);
        let uid = uid.and_then(|cron| cron["metadata"]["uid"].as_str().map(str::to_owned));
        if uid.is_some() {
            let job = job_manifest(cron, name, uid.as_deref().filter(|_| owned));
            self.request(Method::POST, &collection(jobs(cron.api), &cron.namespace), job).await;
        }
    }

    pub(crate) async fn set_quota(&mut self, namespace: &str, most: Option<u64>) {
        let quotas = find("", "v1", "resourcequotas").unwrap();
        let Some(most) = most else { return self.delete(quotas, namespace, "jobs").await };
        let most = most.to_string();
        let hard = json!({"count/jobs.batch": most, "count/jobs.batch.volcano.sh": most});
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "jobs", "namespace": namespace}, "spec": {"hard": hard}});
        self.request(Method::POST, &collection(quotas, namespace), quota).await;
    }

    pub(crate) async fn request(&mut self, method: Method, path: &str, body: Value) {
        let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method.clone()).uri(path).header("content-type", content);
        let request = request.body(Full::<bytes::Bytes>::from(body.to_string())).unwrap();
        let code = self.users.call(request).await.unwrap();
        let status = code.status().as_u16();
        if !(200..300).contains(&status) {
            let text = code.into_body().collect().await.unwrap().to_bytes();
            let text = serde_json::from_slice::<Value>(&text).unwrap_or_default()["message"].clone();
            assert!(!matches!(status, 400 | 415 | 422), "the script is wrong: {method} {path}: {text}");
            self.recorder.note(What::Note(format!("refused {method} {path} {status}: {text}")));
        }
    }
}

/// What the process itself counted as its mistakes.
fn breaches(registry: &Registry) -> Option<String> {
    let text = registry.encode(Exposition::PrometheusText).unwrap();
    let mut lines = text.lines().filter(|line| {
        line.starts_with("cron_broken_invariants_total{")
            || line.starts_with("engine_overlapping_steps_total{")
            || line.contains("result=\"panicked\"")
    });
    lines.find(|line| !line.ends_with(" 0")).map(str::to_owned)
}

pub(crate) fn identity(replica: usize, process: u32) -> String {
    format!("r{replica}.{process}")
}

/// Replica and process of an identity.
pub(crate) fn replica_in(identity: &str) -> Option<(usize, u32)> {
    let (replica, process) = identity.strip_prefix('r')?.split_once('.')?;
    Some((replica.parse().ok()?, process.parse().ok()?))
}

pub(crate) fn collection(resource: &Resource, namespace: &str) -> String {
    let root = if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
    match namespace {
        "" => format!("{root}/{}/{}", resource.version, resource.plural),
        _ => format!("{root}/{}/namespaces/{namespace}/{}", resource.version, resource.plural),
    }
}
