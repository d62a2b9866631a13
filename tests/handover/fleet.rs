//! The replicas: processes of the binary, each with its own line to the server, and the Lease that they take turns on.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "real time and real connections: nothing here repeats from a seed"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronjob_controller::clock::Clock;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::proxy::{Mode, Proxy};
use crate::support::controlplane::ControlPlane;
use crate::watches::{Seen, follow};
use crate::{Blow, LEASE, RENEW, RETRY};

const REPLICAS: usize = 3;

/// Longer than this nothing here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Who holds the Lease, and since when as far as we saw.
type Holder = (String, Option<Instant>);

pub(crate) struct Fleet {
    plane: ControlPlane,
    replicas: Vec<Replica>,
    holder: watch::Receiver<Holder>,
    /// Logs of all processes that ever ran.
    logs: Vec<PathBuf>,
    /// When frozen lines were opened again, by the user of their replica.
    thaws: BTreeMap<String, Vec<DateTime<Utc>>>,
    clock: Clock,
    tasks: Vec<AbortOnDropHandle<()>>,
}

/// The process that runs in one place.
struct Replica {
    proxy: Arc<Proxy>,
    pid: u32,
    identity: String,
    /// How many processes ran here.
    incarnation: usize,
}

impl Fleet {
    /// Starts the replicas, and waits until one of them leads.
    pub(crate) async fn start(mut plane: ControlPlane, client: &Client, clock: &Clock) -> Self {
        let tasks = TaskTracker::new();
        let (seen, holder) = watch::channel((String::new(), None));
        let (ready, begun) = oneshot::channel();
        let (fleet_clock, clock) = (clock.clone(), clock.clone());
        let on_lease = move |lease| {
            if let Seen::Applied(lease) = lease {
                let lease: Lease = lease;
                let identity = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
                seen.send_if_modified(|known| {
                    let another = known.0 != identity;
                    *known = if another { (identity, Some(clock.mono())) } else { known.clone() };
                    another
                });
            }
        };
        let watching = tasks.spawn(follow(Api::default_namespaced(client.clone()), ready, on_lease));
        begun.await.unwrap();
        let server = plane.server.trim_start_matches("https://").parse().unwrap();
        let (mut replicas, mut logs) = (Vec::new(), Vec::new());
        for at in 0..REPLICAS {
            let proxy = Arc::new(Proxy::start(server, &tasks).await);
            plane.kubeconfig(&user(at), &user(at), Some("system:masters"));
            let (pid, log) = start_process(&mut plane, at, 0, &proxy);
            replicas.push(Replica { proxy, pid, identity: identity_in(&log).await, incarnation: 0 });
            logs.push(log);
        }
        let tasks = vec![AbortOnDropHandle::new(watching)];
        let mut fleet = Self { plane, replicas, holder, logs, thaws: BTreeMap::new(), clock: fleet_clock, tasks };
        fleet.leader().await;
        fleet
    }

    /// The replica that leads; waits for it.
    pub(crate) async fn leader(&mut self) -> usize {
        let replicas: BTreeMap<String, usize> =
            self.replicas.iter().enumerate().map(|(at, replica)| (replica.identity.clone(), at)).collect();
        let found = timeout(PATIENCE, self.holder.wait_for(|(holder, _)| replicas.contains_key(holder))).await;
        let holder = found.expect("one of the replicas leads").unwrap();
        replicas[&holder.0]
    }

    /// When another than the replica `last` came to lead.
    pub(crate) async fn next_leader(&mut self, last: usize) -> Instant {
        let last = self.replicas[last].identity.clone();
        let next = self.holder.wait_for(|(holder, _)| !holder.is_empty() && *holder != last);
        timeout(PATIENCE, next).await.expect("another leads").unwrap().1.unwrap()
    }

    pub(crate) fn strike(&mut self, at: usize, blow: Blow) {
        let replica = &self.replicas[at];
        match blow {
            Blow::Kill => signal(replica.pid, "KILL"),
            Blow::Terminate => signal(replica.pid, "TERM"),
            Blow::Stop => signal(replica.pid, "STOP"),
            Blow::Freeze => replica.proxy.set(Mode::Frozen),
            Blow::Cut => replica.proxy.set(Mode::Cut),
        }
    }

    /// Undoes it: the same process goes on, or another runs in its place.
    pub(crate) async fn heal(&mut self, at: usize, blow: Blow) {
        match blow {
            Blow::Kill | Blow::Terminate => {
                self.wait_for_end(at).await;
                let replica = &mut self.replicas[at];
                replica.incarnation += 1;
                let (pid, log) = start_process(&mut self.plane, at, replica.incarnation, &replica.proxy);
                (replica.pid, replica.identity) = (pid, identity_in(&log).await);
                self.logs.push(log);
                return;
            }
            Blow::Stop => signal(self.replicas[at].pid, "CONT"),
            Blow::Freeze | Blow::Cut => {
                if blow == Blow::Freeze {
                    self.thaws.entry(user(at)).or_default().push(self.clock.wall());
                }
                self.replicas[at].proxy.set(Mode::Open);
            }
        }
        assert!(!self.plane.has_ended(self.replicas[at].pid), "{blow:?} has ended a process");
    }

    async fn wait_for_end(&mut self, at: usize) {
        let pid = self.replicas[at].pid;
        let ended = async {
            while !self.plane.has_ended(pid) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, ended).await.expect("the process ends");
    }

    /// Ends all replicas in order.
    pub(crate) async fn end(&mut self) {
        for at in 0..REPLICAS {
            self.strike(at, Blow::Terminate);
        }
        for at in 0..REPLICAS {
            self.wait_for_end(at).await;
        }
        let holder = self.holder.wait_for(|(holder, _)| holder.is_empty());
        timeout(PATIENCE, holder).await.expect("the last leader releases the Lease").unwrap();
        self.tasks.clear();
    }

    /// When frozen lines were opened again, by the user of their replica.
    pub(crate) fn thaws(&self) -> &BTreeMap<String, Vec<DateTime<Utc>>> {
        &self.thaws
    }

    /// How often a process led once more after it had lost the lead.
    pub(crate) fn terms_after_a_loss(&self) -> usize {
        let terms = |log: &PathBuf| lines(log).iter().filter(|line| line["message"] == "became leader").count();
        self.logs.iter().map(|log| terms(log).saturating_sub(1)).sum()
    }
}

/// As whom a replica speaks to the server.
fn user(at: usize) -> String {
    format!("replica-{at}")
}

fn start_process(plane: &mut ControlPlane, at: usize, incarnation: usize, proxy: &Proxy) -> (u32, PathBuf) {
    let name = format!("replica-{at}-{incarnation}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
    command.args([
        "run",
        "--controllers=kubernetes-cronjob",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ]);
    command.args(["--logging-format=json", "--leader-elect-resource-namespace=default"]);
    command.args([
        format!("--kubeconfig={}", plane.path(&format!("{}.kubeconfig", user(at))).display()),
        format!("--master=https://{}", proxy.address),
        format!("--leader-elect-lease-duration={}ms", LEASE.as_millis()),
        format!("--leader-elect-renew-deadline={}ms", RENEW.as_millis()),
        format!("--leader-elect-retry-period={}ms", RETRY.as_millis()),
    ]);
    let pid = plane.spawn(&name, &mut command);
    (pid, plane.log(&name))
}

/// Who a process says it is.
async fn identity_in(log: &PathBuf) -> String {
    let said = async {
        loop {
            let lines = lines(log);
            if let Some(identity) = lines.iter().find_map(|line| line["identity"].as_str()) {
                return identity.to_owned();
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let said = timeout(PATIENCE, said).await;
    said.unwrap_or_else(|_| panic!("a replica does not start: {}", std::fs::read_to_string(log).unwrap()))
}

fn lines(log: &PathBuf) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().unwrap();
    assert!(status.success(), "kill -{name} {pid}");
}
