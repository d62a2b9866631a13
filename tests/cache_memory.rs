//! What the caches and actors of a controller hold, and the most they ever hold while lists are made anew: counted by the allocator,
//! so a size and no timing. One test alone in its binary, since the allocator's figures are the process's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cronjob_controller::clock::Clock;
use cronjob_controller::cluster::{ApiClientOptions, Clients};
use cronjob_controller::controllers::{Manager, Options, Registration, Setup};
use cronjob_controller::latest::Latest;
use cronjob_controller::telemetry::{Health, Registry};
use futures::{Stream, StreamExt, stream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::Body;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const CRONJOBS: usize = 10_000;
const JOBS_OF_EACH: usize = 3;
/// How often the server forgets the version that is watched from. At the second and third time every object has changed meanwhile.
const EXPIRIES: u64 = 3;
/// So much more than what is kept, in hundredths of it, may be held on the way through a new list: steps that wait because everything
/// has changed, and one page. A second copy of the objects or of a list's text would be far beyond it.
const PEAK_PERCENT: u64 = 25;

/// An API server that holds nothing: it makes each object when it is listed.
struct Server {
    jobs: usize,
    streams_lists: bool,
    /// How often versions have expired; a change ends every watch with 410.
    expired: Latest<u64>,
    lists: AtomicU64,
    others: AtomicU64,
}

type Answer = Response<StreamBody<stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;

impl Server {
    fn answer(self: Arc<Self>, request: &Request<Body>) -> Answer {
        let query = request.uri().query().unwrap_or_default();
        let kind = match request.uri().path() {
            "/apis/batch/v1/cronjobs" => Kind::CronJob,
            "/apis/batch/v1/jobs" => Kind::Job,
            path => {
                // The CronJobs of another API, which is not there; nothing else is to be asked for, and nothing written.
                let absent = path.contains("batch.volcano.sh") && request.method() == Method::GET;
                self.others.fetch_add(u64::from(!absent), Ordering::Relaxed);
                return answer(404, stream::empty());
            }
        };
        let number = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.parse::<usize>().ok());
        if query.contains("sendInitialEvents") {
            if !self.streams_lists {
                return answer(422, stream::empty());
            }
            self.lists.fetch_add(1, Ordering::Relaxed);
            return self.watch(kind, true);
        }
        if query.contains("watch=true") {
            return self.watch(kind, false);
        }
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.page(kind, number("continue=").unwrap_or(0), number("limit=").unwrap())
    }

    fn count(&self, kind: Kind) -> usize {
        if kind == Kind::CronJob { CRONJOBS } else { self.jobs }
    }

    /// Of every list the version is greater, and that of its objects too from the second expiry on.
    fn versions(&self) -> (u64, u64) {
        let expired = self.expired.get();
        (1_000_000 + expired, 500_000 + expired.saturating_sub(1))
    }

    /// A page, made piece by piece as it is sent, so that the server does not count.
    fn page(&self, kind: Kind, from: usize, limit: usize) -> Answer {
        let (list, object) = self.versions();
        let to = (from + limit).min(self.count(kind));
        let next = if to < self.count(kind) { to.to_string() } else { String::new() };
        let head = format!(r#"{{"metadata":{{"resourceVersion":"{list}","continue":"{next}"}},"items":["#);
        let item = move |number| format!("{}{}", if number == from { "" } else { "," }, kind.object(number, object));
        answer(
            200,
            stream::iter([head]).chain(stream::iter((from..to).map(item))).chain(stream::iter(["]}".to_owned()])),
        )
    }

    fn watch(&self, kind: Kind, with_list: bool) -> Answer {
        let (list, object) = self.versions();
        let listed = if with_list { self.count(kind) } else { 0 };
        let added = move |number| format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", kind.object(number, object));
        let end = format!(
            "{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{list}\",\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}}}}}\n"
        );
        let mut expired = self.expired.follow();
        let gone = stream::once(async move {
            expired.changed().await;
            "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}\n".to_owned()
        });
        let end = stream::iter(with_list.then_some(end));
        let lines = stream::iter((0..listed).map(added)).chain(end).chain(gone);
        answer(200, lines)
    }
}

fn answer(code: u16, pieces: impl Stream<Item = String> + Send + 'static) -> Answer {
    let body = StreamBody::new(pieces.map(|piece| Ok(Frame::data(Bytes::from(piece)))).boxed());
    Response::builder().status(code).body(body).unwrap()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    CronJob,
    Job,
}

impl Kind {
    /// One object as a server sends it, with what nobody here reads: some 2 kB.
    fn object(self, number: usize, version: u64) -> String {
        let managed = format!(r#"[{{"manager":"kubectl","fieldsV1":{{"f:spec":"{}"}}}}]"#, "f".repeat(600));
        let pod = format!(
            r#"{{"template":{{"spec":{{"restartPolicy":"Never","containers":[{{"name":"c","image":"registry.example.com/c:1","args":["{}"]}}]}}}}}}"#,
            "a".repeat(800)
        );
        let owner = if self == Self::Job { number / JOBS_OF_EACH } else { number };
        let namespace = format!("tenant-{:03}", owner % 200);
        let name = format!("nightly-report-{owner:06}");
        let uid = |prefix: &str, number: usize| format!("{prefix}-52ad-4b0c-9a77-{number:012}");
        match self {
            Self::CronJob => format!(
                r#"{{"apiVersion":"batch/v1","kind":"CronJob","metadata":{{"namespace":"{namespace}","name":"{name}","uid":"{}","resourceVersion":"{version}","creationTimestamp":"2026-01-01T00:00:00Z","managedFields":{managed}}},"spec":{{"schedule":"0 0 1 1 *","concurrencyPolicy":"Forbid","successfulJobsHistoryLimit":3,"failedJobsHistoryLimit":1,"jobTemplate":{{"spec":{pod}}}}},"status":{{"lastScheduleTime":"2026-03-01T09:02:00Z","lastSuccessfulTime":"2026-03-01T09:02:30Z"}}}}"#,
                uid("cccccccc", number)
            ),
            Self::Job => {
                let minute = number % JOBS_OF_EACH;
                let at = format!("2026-03-01T09:{minute:02}:00Z");
                let ended = format!("2026-03-01T09:{minute:02}:30Z");
                format!(
                    r#"{{"apiVersion":"batch/v1","kind":"Job","metadata":{{"namespace":"{namespace}","name":"{name}-{}","uid":"{}","resourceVersion":"{version}","creationTimestamp":"{at}","annotations":{{"batch.kubernetes.io/cronjob-scheduled-timestamp":"{at}"}},"ownerReferences":[{{"apiVersion":"batch/v1","kind":"CronJob","name":"{name}","uid":"{}","controller":true}}],"managedFields":{managed}}},"spec":{pod},"status":{{"startTime":"{at}","completionTime":"{ended}","succeeded":1,"conditions":[{{"type":"Complete","status":"True"}}]}}}}"#,
                    29_539_260 + minute,
                    uid("dddddddd", number),
                    uid("cccccccc", owner),
                )
            }
        }
    }
}

/// Bytes held when all is at rest, and the most that were ever held, through so many new lists.
async fn measure(jobs: usize, streams_lists: bool, expiries: u64) -> (u64, u64) {
    let profiler = dhat::Profiler::builder().testing().build();
    let server = Arc::new(Server {
        jobs,
        streams_lists,
        expired: Latest::new(0),
        lists: AtomicU64::new(0),
        others: AtomicU64::new(0),
    });
    let answering = server.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let answer = answering.clone().answer(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    let client = kube::Client::new(service, "default");
    let setup = Setup {
        clients: Clients {
            requests: client.clone(),
            watches: client.clone(),
            leases: client,
            host: "made-on-demand".into(),
        },
        client_options: ApiClientOptions::default(),
        clock: Clock::starting_at("2026-03-01T10:00:30Z".parse().unwrap()),
        seed: 11,
        registry: Registry::new(),
        health: Health::default(),
        observer: None,
        election: None,
    };
    let manager = Manager::new(setup, Options::default(), &Registration::by_default());
    let counts = manager.counter();
    let stop = CancellationToken::new();
    let running = tokio_util::task::TaskTracker::new().spawn(manager.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let lists = server.lists.load(Ordering::Relaxed);
    let settled = dhat::HeapStats::get().curr_bytes as u64;
    for expiry in 1..=expiries {
        server.expired.update(|expired| *expired += 1);
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_eq!(server.lists.load(Ordering::Relaxed), lists * (expiry + 1), "each expiry makes a list necessary");
    }
    let held = counts()[0];
    assert_eq!((held.cronjobs, held.jobs, held.engine.cells), (CRONJOBS, jobs, CRONJOBS), "{held}");
    assert_eq!(server.others.load(Ordering::Relaxed), 0, "nothing was written");
    let peak = dhat::HeapStats::get().max_bytes as u64;
    stop.cancel();
    running.await.unwrap();
    drop(profiler);
    (settled, peak)
}

#[tokio::test(start_paused = true)]
async fn lists_made_anew_hold_little_more_than_what_is_kept_and_an_object_costs_what_the_docs_say() {
    let jobs = CRONJOBS * JOBS_OF_EACH;
    let (cronjobs_alone, _) = measure(0, true, 0).await;
    let per_cronjob = cronjobs_alone / CRONJOBS as u64;
    for streams_lists in [true, false] {
        let (settled, peak) = measure(jobs, streams_lists, EXPIRIES).await;
        let per_job = (settled - cronjobs_alone) / jobs as u64;
        println!(
            "{per_cronjob} B per CronJob, {per_job} B per Job; {settled} B at rest, {peak} B at most (streamed lists: {streams_lists})"
        );
        // docs/operations.md, Sizing, without what the allocator itself needs.
        assert!((1_000..2_200).contains(&per_cronjob), "{per_cronjob} B per CronJob");
        assert!((200..600).contains(&per_job), "{per_job} B per Job");
        assert!(peak <= settled + settled * PEAK_PERCENT / 100, "{peak} B at most, {settled} B at rest");
    }
}
