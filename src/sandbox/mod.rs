//! An API server inside the process, and a stand-in for what runs the Jobs.
//!
//! [`Sandbox`] is the whole of it: a pure [`store`], one [`service`] in front that speaks the REST API (in the process to a
//! `kube::Client`, over HTTP to kubectl), [`faults`] between the two, [`counters`] beside. Time comes from a [`Clock`] and
//! random numbers from a seed, so under paused tokio time a run repeats byte for byte.

pub mod admission;
pub mod body;
pub mod call;
pub mod counters;
pub mod discovery;
pub mod events;
pub mod faults;
mod feed;
pub mod ids;
pub mod kubelet;
mod openapi;
pub mod options;
mod outside;
pub mod patch;
pub mod render;
pub mod resources;
pub mod runner;
pub mod selector;
pub mod server;
pub mod service;
mod shared;
pub mod status;
pub mod store;
pub mod strategic;
pub mod table;
pub mod tap;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use counters::Counters;
use faults::{Faults, Hold};
use resources::Resource;
use runner::RunnerOptions;
use service::SandboxService;
use shared::Shared;
use store::Store;

use crate::clock::Clock;

/// Most objects that one step of the garbage collector looks at.
const GC_BATCH: usize = 1000;

/// What can be chosen about a sandbox.
#[derive(Debug, Clone)]
pub struct Options {
    /// Namespaces that exist from the start, besides those of every cluster.
    pub namespaces: Vec<String>,
    /// Changes that each resource's event log keeps; older revisions answer 410.
    pub log_limit: usize,
    /// Wall time between steps of the garbage collector and of namespace deletion in [`Sandbox::run_background`].
    pub gc_every: Duration,
    /// How long Events live, in wall time; as `--event-ttl` of the real server.
    pub event_ttl: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            log_limit: 50_000,
            gc_every: Duration::from_secs(1),
            event_ttl: Duration::from_secs(3600),
        }
    }
}

/// An API server in the process. Cheap to clone; clones are the same server.
#[derive(Debug, Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
    options: Arc<Options>,
}

impl Sandbox {
    /// An empty server with the namespaces `default`, `kube-system`, `kube-public`, `kube-node-lease` and those of the options.
    pub fn new(clock: Clock, seed: u64, options: Options) -> Self {
        let shared = Arc::new(Shared::new(clock, seed, Store::new(options.log_limit)));
        let always = ["default", "kube-node-lease", "kube-public", "kube-system"];
        shared.write(|store, moment| {
            for name in always.into_iter().chain(options.namespaces.iter().map(String::as_str)) {
                store.ensure_namespace(name, moment);
            }
        });
        Self { shared, options: Arc::new(options) }
    }

    /// The server as a service for HTTP requests with any body.
    pub fn service(&self) -> SandboxService {
        SandboxService::new(self.shared.clone())
    }

    /// The same for a client with a name: faults can be narrowed to it ([`faults::Fault::client`]), and a [`tap::Tap`] hears
    /// who sent what.
    pub fn service_of(&self, client: &str) -> SandboxService {
        self.service().of(client)
    }

    /// The same for other programs on other connections: faults do not touch it.
    pub fn service_without_faults(&self, client: &str) -> SandboxService {
        self.service().of(client).without_faults()
    }

    /// Lets `tap` hear of everything from now on. One is enough for a server; whether this is the first.
    pub fn listen(&self, tap: Arc<dyn tap::Tap>) -> bool {
        self.shared.taps.set(tap)
    }

    /// A client that talks to this server without a socket. Needs a tokio runtime around it, as every kube client does.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Serves over HTTP until `shutdown`, then ends the watches and lets other requests finish. [`server::kubeconfig`] says
    /// how kubectl finds it.
    pub async fn serve(&self, listener: TcpListener, shutdown: CancellationToken) {
        let serving = server::serve(listener, self.service(), shutdown.clone());
        tokio::pin!(serving);
        tokio::select! {
            biased;
            () = serving.as_mut() => return,
            () = shutdown.cancelled() => self.cut_watches(),
        }
        serving.await;
    }

    /// Reads the store.
    pub fn with_store<T>(&self, read: impl FnOnce(&Store) -> T) -> T {
        self.shared.read(read)
    }

    /// One object as stored; `None` if it is not there.
    pub fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Value> {
        self.shared.read(|store| store.get(resource, namespace, name))
    }

    /// Stores `object` as it is, past every rule and over what has its name: as a server of another release has left it. A uid and
    /// times are not added. Answers whether there was one of that name.
    pub fn store_unvalidated(&self, resource: &Resource, object: &Value) -> bool {
        self.shared.write(|store, _| store.overwrite(resource, object))
    }

    /// Sets what `kubectl logs` shows of a container.
    pub fn set_log(&self, namespace: &str, pod: &str, container: &str, text: &str) {
        self.shared.write(|store, _| store.set_log(namespace, pod, container, text));
    }

    /// Forgets every change up to `revision`: what resumes from before answers 410.
    pub fn compact(&self, revision: u64) {
        self.shared.write(|store, _| store.compact(revision));
    }

    /// Counts of requests.
    pub fn requests(&self) -> &Counters {
        &self.shared.counters
    }

    /// The faults that are or will be installed.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Holds the watches (and lists, if so chosen) of a resource at the present state, from now on.
    pub fn hold_cache(&self, resource: &'static Resource, hold: Hold) {
        let revision = self.shared.read(Store::revision);
        self.shared.faults.hold(resource, revision, hold, self.shared.clock.mono());
    }

    /// Releases what [`Sandbox::hold_cache`] or a stale-cache fault holds back.
    pub fn release_cache(&self, resource: &'static Resource) {
        self.shared.faults.release(resource);
        self.shared.wake_all();
    }

    /// Ends every open watch, without an error.
    pub fn cut_watches(&self) {
        self.shared.faults.cut_watches();
        self.shared.wake_all();
    }

    /// Removes every fault and releases every held cache.
    pub fn heal(&self) {
        self.shared.faults.clear();
        self.shared.wake_all();
    }

    /// One step of the garbage collector. Answers how many objects it wrote or removed; what that causes is left to the next.
    pub fn gc_step(&self) -> usize {
        self.shared.write(|store, moment| store.gc_step(moment.now, GC_BATCH))
    }

    /// One step of emptying namespaces that are being deleted. Answers how many objects it wrote or removed.
    pub fn namespace_step(&self) -> usize {
        self.shared.write(|store, moment| store.namespace_step(moment.now))
    }

    /// Removes Events that nobody wrote to for the time that Events live. Answers how many.
    pub fn expire_events(&self) -> usize {
        let ttl = chrono::TimeDelta::from_std(self.options.event_ttl).unwrap_or(chrono::TimeDelta::MAX);
        self.shared.write(|store, moment| store.expire_events(moment.now, ttl))
    }

    /// Lets Jobs of both kinds run, as far as their statuses tell, until `cancel`. With [`RunnerOptions::job_controller`]
    /// batch/v1 Jobs are left to a controller, and Pods run instead.
    pub async fn run_jobs(&self, options: RunnerOptions, seed: u64, cancel: CancellationToken) {
        let nodes = async {
            if options.job_controller {
                kubelet::run(self.shared.clone(), options, seed, cancel.clone()).await;
            }
        };
        tokio::join!(runner::run(self.shared.clone(), options, seed, cancel.clone()), nodes);
    }

    /// Does in the background what a cluster does: collects garbage, empties namespaces, lets Events expire. Ends with the
    /// token.
    pub async fn run_background(&self, cancel: CancellationToken) {
        let every = self.options.gc_every / self.shared.clock.speed();
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            while self.gc_step() > 0 {
                // Everybody else gets a turn between batches.
                tokio::task::yield_now().await;
            }
            self.namespace_step();
            self.expire_events();
        }
    }
}
