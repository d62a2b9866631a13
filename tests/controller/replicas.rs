//! Replicas of the production controllers on one paused runtime, each with a line of its own to the sandbox, and a ledger of who
//! wrote what while who held the Lease.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cronjob_controller::cluster::{ApiClientOptions, Clients, Election, Leadership, Timing};
use cronjob_controller::controllers::{Manager, Options, Registration, Setup};
use cronjob_controller::latest::Latest;
use cronjob_controller::sandbox::Sandbox;
use cronjob_controller::sandbox::resources::{Resource, find};
use cronjob_controller::sandbox::service::{Disconnected, SandboxService};
use cronjob_controller::telemetry::{Health, Registry, health_router};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, unfold};
use futures::{StreamExt, TryStreamExt};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceExt};

use crate::world::{World, jobs};

pub(crate) fn leases() -> &'static Resource {
    find("coordination.k8s.io", "v1", "leases").unwrap()
}

/// One write as it left a replica.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) by: String,
    /// Who held the Lease on the server at that moment.
    pub(crate) holder: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    /// Name of the object in the body, of a creation.
    pub(crate) name: String,
}

/// The line of one replica. Partitioned, it holds back both directions: what was sent arrives when that is over, whether or not
/// anybody still waits for an answer. Shut, nothing passes for ever.
#[derive(Clone)]
struct Way {
    sandbox: Sandbox,
    inner: SandboxService,
    partitioned: Latest<bool>,
    /// How long each piece of a watch of CronJobs takes to arrive, one after the other.
    lag: Latest<Duration>,
    shut: CancellationToken,
    tasks: TaskTracker,
    identity: String,
    /// `None` for the elections's own client.
    ledger: Option<Arc<Mutex<Vec<Write>>>>,
}

type WayBody = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

impl Way {
    fn note(&self, request: &Request<Body>, body: &Bytes) {
        if let Some(ledger) = self.ledger.as_ref().filter(|_| request.method() != Method::GET) {
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            ledger.lock().unwrap().push(Write {
                by: self.identity.clone(),
                holder: holder(&self.sandbox),
                method: request.method().clone(),
                path: request.uri().path().to_owned(),
                name: body["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            });
        }
    }

    async fn carry(mut self, request: Request<Body>) -> Result<Response<WayBody>, Disconnected> {
        let passes = |partitioned: &bool| !partitioned;
        self.partitioned.wait_for(passes).await;
        if self.shut.is_cancelled() {
            return std::future::pending().await;
        }
        let lags = request.uri().path().ends_with("/cronjobs") && is_watch(&request);
        let answer = self.inner.call(request).await;
        self.partitioned.wait_for(passes).await;
        let (head, body) = answer?.into_parts();
        let lag = lags.then_some(self.lag);
        let frames = unfold((Box::pin(body), self.partitioned, lag), |(mut body, partitioned, lag)| async move {
            let frame = body.frame().await?;
            let wait = lag.as_ref().map_or(Duration::ZERO, Latest::get);
            tokio::time::sleep(wait).await;
            partitioned.wait_for(|partitioned| !partitioned).await;
            Some((frame, (body, partitioned, lag)))
        });
        Ok(Response::from_parts(head, StreamBody::new(frames.boxed())))
    }
}

impl Service<Request<Body>> for Way {
    type Response = Response<WayBody>;
    type Error = Disconnected;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let way = self.clone();
        Box::pin(async move {
            if way.shut.is_cancelled() {
                return std::future::pending().await;
            }
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let request = Request::from_parts(head, Body::from(body.clone()));
            way.note(&request, &body);
            // On its own, since the network does not forget a request whose sender has given up.
            let tasks = way.tasks.clone();
            if is_watch(&request) { way.carry(request).await } else { tasks.spawn(way.carry(request)).await.unwrap() }
        })
    }
}

fn is_watch(request: &Request<Body>) -> bool {
    request.uri().query().is_some_and(|query| query.contains("watch=true"))
}

/// Identity in the Lease on the server.
pub(crate) fn holder(sandbox: &Sandbox) -> String {
    let lease = sandbox.get(leases(), "default", "cronjob-controller").unwrap_or_default();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// A process of ours.
pub(crate) struct Replica {
    pub(crate) identity: String,
    pub(crate) leadership: Leadership,
    health: Health,
    partition: Latest<bool>,
    lag: Latest<Duration>,
    shut: CancellationToken,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Replica {
    /// Begins or ends a partition.
    pub(crate) fn partition(&self, partitioned: bool) {
        self.partition.set(partitioned);
    }

    /// From now on what its watch of CronJobs tells comes so much later, one piece after the other.
    pub(crate) fn lag(&self, lag: Duration) {
        self.lag.set(lag);
    }

    /// Ends it in order.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Kills it in the middle of whatever it does.
    pub(crate) async fn kill(self) {
        self.shut.cancel();
        self.task.abort();
        let _killed = self.task.await;
    }

    /// Whether `/readyz` says so.
    pub(crate) async fn is_ready(&self) -> bool {
        let request = Request::get("/readyz").body(axum::body::Body::empty()).unwrap();
        health_router(self.health.clone()).oneshot(request).await.unwrap().status().is_success()
    }
}

/// What replicas share: the world, and what is written down of them.
pub(crate) struct Replicas {
    pub(crate) world: World,
    pub(crate) options: Options,
    tasks: TaskTracker,
    ledger: Arc<Mutex<Vec<Write>>>,
    /// Uids of all Jobs that ever were, by name.
    started: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
    next: u64,
}

impl Replicas {
    pub(crate) async fn new(start: &str) -> Self {
        let world = World::new(start);
        let (tasks, started) = (TaskTracker::new(), Arc::new(Mutex::new(BTreeMap::new())));
        tasks.spawn(follow_jobs(world.sandbox.clone(), started.clone()));
        Self { world, options: Options::default(), tasks, ledger: Arc::default(), started, next: 0 }
    }

    /// Starts one more.
    pub(crate) fn start(&mut self) -> Replica {
        self.next += 1;
        let identity = format!("replica-{}", self.next);
        let (partition, lag) = (Latest::new(false), Latest::new(Duration::ZERO));
        let shut = CancellationToken::new();
        let way = |ledger: Option<&Arc<Mutex<Vec<Write>>>>| {
            let way = Way {
                sandbox: self.world.sandbox.clone(),
                inner: self.world.sandbox.service(),
                partitioned: partition.clone(),
                lag: lag.clone(),
                shut: shut.clone(),
                tasks: self.tasks.clone(),
                identity: identity.clone(),
                ledger: ledger.cloned(),
            };
            kube::Client::new(way, "default")
        };
        let health = Health::default();
        let setup = Setup {
            clients: Clients {
                requests: way(Some(&self.ledger)),
                watches: way(Some(&self.ledger)),
                leases: way(None),
                host: "sandbox".into(),
            },
            client_options: ApiClientOptions::default(),
            clock: self.world.clock.clone(),
            seed: self.next,
            registry: Registry::new(),
            health: health.clone(),
            observer: None,
            election: Some(Election {
                namespace: "default".into(),
                name: "cronjob-controller".into(),
                identity: identity.clone(),
                timing: Timing::default(),
            }),
        };
        let controllers = Registration::by_default();
        let manager = Manager::new(setup, self.options.clone(), &controllers);
        let (leadership, stop) = (manager.leadership().unwrap(), CancellationToken::new());
        let task = self.tasks.spawn(manager.run(stop.clone()));
        Replica { identity, leadership, health, partition, lag, shut, stop, task }
    }

    /// Lets time pass until the wall clock shows `until`.
    pub(crate) async fn pass_until(&self, until: &str) {
        self.world.pass_until(until).await;
    }

    /// Who holds the Lease.
    pub(crate) fn holder(&self) -> String {
        holder(&self.world.sandbox)
    }

    /// Writes so far, but those of elections.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.ledger.lock().unwrap().clone()
    }

    /// Names of Jobs whose creation was sent, in that order.
    pub(crate) fn creations(&self) -> Vec<String> {
        let writes = self.writes().into_iter();
        writes.filter(|write| write.method == Method::POST && write.path.ends_with("/jobs")).map(|it| it.name).collect()
    }

    /// How many Jobs of this name there ever were.
    pub(crate) fn started(&self, job: &str) -> usize {
        self.started.lock().unwrap().get(job).map_or(0, Vec::len)
    }

    /// Names of all Jobs that ever were.
    pub(crate) fn ever_started(&self) -> Vec<String> {
        self.started.lock().unwrap().keys().cloned().collect()
    }

    /// No write left a replica that did not hold the Lease.
    pub(crate) fn check_writes(&self) {
        let foreign: Vec<Write> = self.writes().into_iter().filter(|write| write.by != write.holder).collect();
        assert!(foreign.is_empty(), "written by who did not lead: {foreign:#?}");
    }

    /// Lets a second pass, for what is on its way.
    pub(crate) async fn settle(&self) {
        self.world.pass(Duration::from_secs(1)).await;
    }
}

async fn follow_jobs(sandbox: Sandbox, started: Arc<Mutex<BTreeMap<String, Vec<String>>>>) {
    let client = sandbox.client();
    let path = format!("/apis/{}/{}", jobs().api_version(), jobs().plural);
    loop {
        let list = Request::get(&path).body(Vec::new()).unwrap();
        let list: Value = client.request(list).await.unwrap();
        assert!(
            started.lock().unwrap().is_empty() && list["items"].as_array().unwrap().is_empty(),
            "seen from the start"
        );
        let version = list["metadata"]["resourceVersion"].as_str().unwrap();
        let watch = Request::get(format!("{path}?watch=true&timeoutSeconds=1000000&resourceVersion={version}"));
        let body = client.send(watch.body(Body::empty()).unwrap()).await.unwrap().into_body();
        let mut lines = body.into_data_stream().map_ok(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        let mut text = String::new();
        while let Some(chunk) = lines.try_next().await.unwrap() {
            text.push_str(&chunk);
            while let Some((line, rest)) = text.split_once('\n') {
                let event: Value = serde_json::from_str(line).unwrap();
                if event["type"] == "ADDED" {
                    let metadata = &event["object"]["metadata"];
                    let word = |field: &str| metadata[field].as_str().unwrap().to_owned();
                    started.lock().unwrap().entry(word("name")).or_default().push(word("uid"));
                }
                text = rest.to_owned();
            }
        }
    }
}
