//! `memory` and `idle`: many CronJobs with finished Jobs of which none is due. What they weigh, and what they cost while nothing
//! happens.

use std::time::Duration;

use anyhow::Context;
use cronjob_controller::clock::Clock;
use http::Method;
use kube::Client;
use serde_json::Value;

use super::args::{Args, Choice, Scenario};
use super::counts::Counts;
use super::gate::Gate;
use super::progress::{bar, spinner};
use super::report::{Report, idle_report};
use super::server::{Server, WATCH_HISTORY};
use super::subject::Subject;
use super::world::{Schedule, World, each, send};

/// CronJobs unless told otherwise, and finished Jobs of each.
const CRONJOBS: usize = 100_000;
const HISTORY: usize = 4;
/// Seconds of which the CPU is measured, unless told otherwise.
const LENGTH_S: usize = 60;

/// Memory in MiB, times in seconds.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) cronjobs: usize,
    pub(crate) history: usize,
    /// With an empty server.
    pub(crate) base_mib: f64,
    pub(crate) steady_mib: f64,
    pub(crate) start_peak_mib: f64,
    /// While everything was listed anew; only where that can be brought about.
    pub(crate) relist_peak_mib: Option<f64>,
    pub(crate) ready_s: f64,
    pub(crate) start_cpu_s: f64,
    pub(crate) idle_s: f64,
    pub(crate) idle_cpu_s: f64,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<Report> {
    let server = Server::start(args).await?;
    let admin = server.admin_clients().await?;
    let mut found = Found { base_mib: base_mib(args, &server).await?, ..Found::default() };
    let clock = Clock::system();
    let world = World {
        name: "idle",
        cronjobs: args.cronjobs.unwrap_or(CRONJOBS),
        namespaces: args.namespaces,
        history: args.history.unwrap_or(HISTORY),
        schedule: Schedule::Far(clock.wall()),
    };
    (found.cronjobs, found.history) = (world.cronjobs, world.history);
    world.create(&admin.requests, "idle CronJobs").await?;
    let gate = Gate::to(server.address().await?).await?;
    let gated = args.server == Choice::Sandbox;
    let kubeconfig = if gated { server.kubeconfig_through(gate.port).await? } else { server.kubeconfig().to_owned() };
    let begun = clock.mono();
    let mut subject = Subject::ours(args, &kubeconfig)?;
    let waiting = spinner("caches fill");
    subject.ready().await?;
    found.ready_s = (clock.mono() - begun).as_secs_f64();
    subject.calm().await?;
    waiting.finish_and_clear();
    let usage = subject.usage()?;
    (found.steady_mib, found.start_peak_mib, found.start_cpu_s) = (usage.resident_mib, usage.peak_mib, usage.cpu_s);
    measure_idle(args, &subject, &mut found).await?;
    if args.scenario == Scenario::Memory && gated {
        found.relist_peak_mib = Some(relist_peak_mib(&gate, &server, &world, &mut subject).await?);
    }
    subject.check()?;
    subject.keep_logs(args)?;
    Ok(idle_report(args, &found))
}

/// What the process weighs without any object.
async fn base_mib(args: &Args, server: &Server) -> anyhow::Result<f64> {
    let mut subject = Subject::ours(args, server.kubeconfig())?;
    subject.settled().await?;
    Ok(subject.usage()?.resident_mib)
}

async fn measure_idle(args: &Args, subject: &Subject, found: &mut Found) -> anyhow::Result<()> {
    let length = args.length.unwrap_or(LENGTH_S);
    let bar = bar("nothing is due", length);
    let before = subject.usage()?.cpu_s;
    for _ in 0..length {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bar.inc(1);
    }
    bar.finish_and_clear();
    (found.idle_s, found.idle_cpu_s) = (length as f64, subject.usage()?.cpu_s - before);
    Ok(())
}

/// Cuts the subject off, makes the server forget what it has seen, and lets it back.
async fn relist_peak_mib(gate: &Gate, server: &Server, world: &World, subject: &mut Subject) -> anyhow::Result<f64> {
    let client = server.admin_clients().await?.requests;
    gate.set_open(false);
    forget(&client, world).await?;
    subject.process()?.forget_peak()?;
    let before = watches(&client).await?;
    gate.set_open(true);
    let waiting = spinner("everything is listed anew");
    // Of each kind one watch that is refused, and one that begins with a list.
    while watches(&client).await? < before + 4 {
        subject.check()?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    subject.calm().await?;
    waiting.finish_and_clear();
    Ok(subject.usage()?.peak_mib)
}

async fn watches(client: &Client) -> anyhow::Result<u64> {
    Ok(Counts::of(client).await?.sum(&["WATCH cronjobs", "WATCH jobs"]))
}

/// Changes a CronJob and a Job until nothing is remembered of the time before.
async fn forget(client: &Client, world: &World) -> anyhow::Result<()> {
    let namespace = format!("/apis/batch/v1/namespaces/{}", world.namespace(0));
    let jobs: Value = client.request(http::Request::get(format!("{namespace}/jobs?limit=1")).body(Vec::new())?).await?;
    let job = jobs.pointer("/items/0/metadata/name").and_then(Value::as_str).context("no finished Job")?;
    let objects = [format!("{namespace}/cronjobs/{}", world.cronjob_name(0)), format!("{namespace}/jobs/{job}")];
    each(3 * WATCH_HISTORY, 64, |number| {
        let (client, object) = (client.clone(), objects[number % 2].clone());
        async move {
            let body = format!(r#"{{"metadata":{{"annotations":{{"change":"{number}"}}}}}}"#);
            send(&client, Method::PATCH, &object, "application/merge-patch+json", body).await.map(drop)
        }
    })
    .await
}
