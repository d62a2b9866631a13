//! `herd`: many CronJobs due at one instant. Floor, we and the peer in turns, each on a server of its own.

use std::time::Duration;

use anyhow::{Context, ensure};
use chrono::{DurationRound, TimeDelta};
use cronjob_controller::clock::Clock;
use cronjob_controller::model::WallTime;
use kube::Client;

use super::args::{Args, Choice};
use super::counts::Counts;
use super::figures::{median, quantile, sorted};
use super::floor;
use super::observer::{Arrival, Observer};
use super::process::Usage;
use super::progress::{bar, spinner};
use super::report::{Curve, Report, herd_report};
use super::server::Server;
use super::subject::Subject;
use super::world::{Schedule, World};

/// Both controllers wait so long after an instant before they look whether it is due.
pub(crate) const DELTA_S: f64 = 0.1;

/// CronJobs unless told otherwise.
const CRONJOBS: usize = 5_000;

/// Time without a Job after which something is wrong.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often a server is filled anew, with more time each, because the instant came before everything was ready.
const ATTEMPTS: i32 = 4;

/// What one measurement of one subject found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// Seconds from the instant (and the delta) until each Job was seen, sorted.
    pub(crate) lags_s: Vec<f64>,
    /// Until the last was seen; of the floor, until the last was answered.
    pub(crate) span_s: f64,
    /// Requests, from just before the instant until nothing happened any more.
    pub(crate) requests: Counts,
    /// Of the subject in the same time; of the floor nothing.
    pub(crate) cpu_s: f64,
    /// Of the server in the same time.
    pub(crate) server_cpu_s: f64,
    /// Of the subject since its start.
    pub(crate) peak_mib: f64,
    /// Of the subject before the instant.
    pub(crate) steady_mib: f64,
}

/// Who was measured, and each of its runs.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) runs: Vec<Run>,
}

impl Row {
    /// Median over the runs.
    pub(crate) fn median(&self, of: impl Fn(&Run) -> f64) -> f64 {
        median(self.runs.iter().map(of))
    }

    pub(crate) fn lag(&self, q: f64) -> f64 {
        self.median(|run| quantile(&run.lags_s, q))
    }

    fn curve(&self) -> Curve {
        // The run in the middle stands for all.
        let typical = self.median(|run| run.span_s);
        let run = self.runs.iter().find(|run| run.span_s == typical);
        Curve { name: self.name.clone(), at_s: run.map(|run| run.lags_s.clone()).unwrap_or_default() }
    }
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<Report> {
    ensure!(args.peer.is_none() || args.server != Choice::Sandbox, "the peer needs --server real or a URL");
    let mut rows: Vec<Row> = floor::IN_FLIGHT.map(|n| format!("floor, {n} in flight")).map(row).into();
    rows.push(row("ours".to_owned()));
    rows.extend(args.peer.as_ref().map(|_| row("peer".to_owned())));
    let world = world(args, Schedule::At(Clock::system().wall()));
    for pair in 0..args.pairs {
        for turn in 0..rows.len() {
            // Nobody is always first.
            let at = (turn + pair) % rows.len();
            let run = match floor::IN_FLIGHT.get(at) {
                Some(in_flight) => floor::run(args, &world, *in_flight).await,
                None => herd(args, &rows[at].name).await,
            };
            let run = run.with_context(|| rows[at].name.clone())?;
            rows[at].runs.push(run);
        }
    }
    let floors = floor::IN_FLIGHT.len();
    let best = (0..floors).min_by(|a, b| rows[*a].median(|r| r.span_s).total_cmp(&rows[*b].median(|r| r.span_s)));
    let best = best.context("there are floors")?;
    let curves = [&rows[best]].into_iter().chain(&rows[floors..]).map(Row::curve).collect();
    Ok(Report { curves, ..herd_report(args, &rows, best) })
}

fn row(name: String) -> Row {
    Row { name, runs: Vec::new() }
}

/// The CronJobs of the herd.
fn world(args: &Args, schedule: Schedule) -> World {
    World {
        name: "herd",
        cronjobs: args.cronjobs.unwrap_or(CRONJOBS),
        namespaces: args.namespaces,
        history: args.history.unwrap_or(0),
        schedule: args.every.map_or(schedule, Schedule::EverySeconds),
    }
}

/// One herd of us, or of the peer.
async fn herd(args: &Args, name: &str) -> anyhow::Result<Run> {
    let mut lead_s = lead_s(args);
    for _ in 1..ATTEMPTS {
        if let Some(run) = try_herd(args, name, lead_s).await? {
            return Ok(run);
        }
        lead_s *= 2;
    }
    try_herd(args, name, lead_s).await?.context("the server is not filled and the subject not ready in time")
}

/// Guess of the time to fill the server and to start the subject: a millisecond a request and half a minute.
fn lead_s(args: &Args) -> i64 {
    let requests = args.cronjobs.unwrap_or(CRONJOBS) * (1 + 2 * args.history.unwrap_or(0)) + args.others;
    let per_s = if args.server == Choice::Sandbox { 4000 } else { 800 };
    20 + (requests / per_s) as i64
}

/// `None` when the instant came too early.
async fn try_herd(args: &Args, name: &str, lead_s: i64) -> anyhow::Result<Option<Run>> {
    let server = Server::start(args).await?;
    let admin = server.admin_clients().await?;
    let clock = Clock::system();
    let due = (clock.wall() + TimeDelta::seconds(lead_s + 60)).duration_trunc(TimeDelta::minutes(1))?;
    let world = world(args, Schedule::At(due));
    let far = Schedule::Far(clock.wall());
    let others = World { name: "others", cronjobs: args.others, schedule: far, ..world.clone() };
    if args.others > 0 {
        others.create(&admin.requests, name).await?;
    }
    world.create(&admin.requests, name).await?;
    let start = || match (&args.peer, name) {
        (Some(program), "peer") => Subject::peer(program, &server),
        _ => Subject::ours(args, server.kubeconfig()),
    };
    let mut subject = start()?;
    if args.every.is_none() {
        let waiting = spinner(&format!("{name}: caches fill"));
        subject.settled().await?;
        waiting.finish_and_clear();
        if clock.wall() + TimeDelta::seconds(2) > due {
            return Ok(None);
        }
    }
    let mut observer = Observer::start(&admin.watches).await?;
    let tally = Tally::begin(&server, &subject.pids(), &admin.requests).await?;
    let progress = bar(&format!("{name}: Jobs"), world.cronjobs);
    observer.wait_for(world.cronjobs, PATIENCE + clock.until(due), &progress).await?;
    progress.finish_and_clear();
    let mut arrivals = observer.arrivals()?;
    arrivals.truncate(world.cronjobs);
    subject.check()?;
    subject.keep_logs(args)?;
    let delta = TimeDelta::milliseconds(100);
    tally.end(&server, &admin.requests, &arrivals, |arrival| arrival.due + delta).await.map(Some)
}

/// The counts before something is measured.
pub(crate) struct Tally {
    pids: Vec<u32>,
    requests: Counts,
    subject: Usage,
    server: Usage,
}

impl Tally {
    /// From here on it counts.
    pub(crate) async fn begin(server: &Server, pids: &[u32], client: &Client) -> anyhow::Result<Self> {
        let requests = Counts::of(client).await?;
        Ok(Self { pids: pids.to_vec(), requests, subject: super::process::usage(pids)?, server: server.usage()? })
    }

    /// Waits until nothing happens any more, and says what happened. `since` is when an arrival was due.
    pub(crate) async fn end(
        self,
        server: &Server,
        client: &Client,
        arrivals: &[Arrival],
        since: impl Fn(&Arrival) -> WallTime,
    ) -> anyhow::Result<Run> {
        let requests = server.quiet(client, Duration::from_secs(600)).await?;
        let (subject, served) = (super::process::usage(&self.pids)?, server.usage()?);
        let lags_s = sorted(arrivals.iter().map(|arrival| arrival.after(since(arrival))));
        Ok(Run {
            span_s: lags_s.last().copied().unwrap_or_default(),
            lags_s,
            requests: requests.since(&self.requests),
            cpu_s: subject.cpu_s - self.subject.cpu_s,
            server_cpu_s: served.cpu_s - self.server.cpu_s,
            peak_mib: subject.peak_mib,
            steady_mib: self.subject.resident_mib,
        })
    }
}
