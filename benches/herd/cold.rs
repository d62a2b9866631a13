//! `cold-start`: from the start of the process to its first decision, beside a bare client that reads the same lists. Sixty
//! CronJobs are overdue since different minutes.

use std::time::Duration;

use anyhow::Context;
use cronjob_controller::clock::Clock;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;

use super::args::Args;
use super::figures::sorted;
use super::observer::Observer;
use super::progress::bar;
use super::report::{Report, cold_report};
use super::server::Server;
use super::subject::Subject;
use super::world::{Schedule, World};

/// CronJobs unless told otherwise, and finished Jobs of each.
const CRONJOBS: usize = 20_000;
const HISTORY: usize = 4;
/// One for each minute of the hour.
const OVERDUE: usize = 60;
const PATIENCE: Duration = Duration::from_secs(600);

/// Medians, in seconds.
pub(crate) struct Found {
    /// A bare client reads both lists, at the same time, and throws them away.
    pub(crate) bare_s: Vec<f64>,
    /// From the start of our process until its first Job is seen.
    pub(crate) first_s: Vec<f64>,
    /// Until the last of the overdue.
    pub(crate) all_s: Vec<f64>,
    /// Until it says that it is ready.
    pub(crate) peak_mib: Vec<f64>,
    /// Pairs of neighbours that came against the order of their instants.
    pub(crate) inversions: usize,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<Report> {
    let server = Server::start(args).await?;
    let admin = server.admin_clients().await?;
    let now = Clock::system().wall();
    let world = World {
        name: "cold",
        cronjobs: args.cronjobs.unwrap_or(CRONJOBS),
        namespaces: args.namespaces,
        history: args.history.unwrap_or(HISTORY),
        schedule: Schedule::Far(now),
    };
    world.create(&admin.requests, "idle CronJobs").await?;
    let mut found = Found { bare_s: vec![], first_s: vec![], all_s: vec![], peak_mib: vec![], inversions: 0 };
    for pair in 0..args.pairs {
        // Fresh ones each time; those of the last time are up to date.
        let name = OVERDUE_NAMES.get(pair).context("no more than nine pairs")?;
        let overdue = World { name, cronjobs: OVERDUE, namespaces: 1, history: 0, schedule: Schedule::Overdue };
        overdue.create(&admin.requests, "overdue CronJobs").await?;
        found.bare_s.push(read_both(&server.clients().await?.watches).await?);
        start(args, &server, &mut found).await?;
    }
    Ok(cold_report(args, &found))
}

const OVERDUE_NAMES: [&str; 9] = ["due-1", "due-2", "due-3", "due-4", "due-5", "due-6", "due-7", "due-8", "due-9"];

/// Starts us once and ends us when all that was overdue has started.
async fn start(args: &Args, server: &Server, found: &mut Found) -> anyhow::Result<()> {
    let mut observer = Observer::start(&server.admin_clients().await?.watches).await?;
    let begun = observer.clock().wall();
    let mut subject = Subject::ours(args, server.kubeconfig())?;
    let progress = bar("overdue", OVERDUE);
    observer.wait_for(OVERDUE, PATIENCE, &progress).await?;
    progress.finish_and_clear();
    subject.check()?;
    subject.keep_logs(args)?;
    let mut arrivals = observer.arrivals()?;
    arrivals.truncate(OVERDUE);
    let times = sorted(arrivals.iter().map(|arrival| arrival.after(begun)));
    found.first_s.extend(times.first());
    found.all_s.extend(times.last());
    found.peak_mib.push(subject.usage()?.peak_mib);
    found.inversions += arrivals.windows(2).filter(|pair| pair[0].due > pair[1].due).count();
    Ok(())
}

/// Seconds in which a bare client reads CronJobs and Jobs with the requests that a reflector makes.
async fn read_both(client: &Client) -> anyhow::Result<f64> {
    let clock = Clock::system();
    let begun = clock.mono();
    let lists = ["cronjobs", "jobs"].map(|plural| read(client, plural));
    futures::future::try_join_all(lists).await?;
    Ok(clock.mono().saturating_duration_since(begun).as_secs_f64())
}

async fn read(client: &Client, plural: &str) -> anyhow::Result<()> {
    let path = format!(
        "/apis/batch/v1/{plural}?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&sendInitialEvents=true\
         &resourceVersionMatch=NotOlderThan"
    );
    let request = http::Request::get(path).header("accept", "application/json").body(Body::empty())?;
    let mut body = client.send(request).await?.into_body();
    let mut tail: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        // The annotation may be cut by the border of two frames.
        tail.extend_from_slice(&data);
        let bookmark = tail[tail.len().saturating_sub(400)..].windows(END.len()).any(|window| window == END);
        if bookmark {
            return Ok(());
        }
        tail.drain(..tail.len().saturating_sub(400));
    }
    anyhow::bail!("the list of {plural} ended too early")
}

const END: &[u8] = b"k8s.io/initial-events-end";
