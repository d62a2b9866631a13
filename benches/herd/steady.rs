//! `steady`: CronJobs spread over the minutes of an hour, their Jobs run and end, for hours of virtual time on the sandbox in
//! this process. What grows, and what each run costs server and controller together.

use std::time::Duration;

use chrono::{DurationRound, TimeDelta};
use cronjob_controller::clock::Clock;
use cronjob_controller::cluster::{ApiClientOptions, Clients};
use cronjob_controller::controllers::{Manager, Options, Registration, Setup};
use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::runner::RunnerOptions;
use cronjob_controller::sandbox::{self, Sandbox};
use cronjob_controller::telemetry::{Health, Registry};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::args::Args;
use super::process::usage;
use super::progress::bar;
use super::report::{Report, steady_report};

/// CronJobs unless told otherwise.
const CRONJOBS: usize = 1_000;
/// Hours unless told otherwise.
const HOURS: usize = 24;
/// Of virtual time: more than the longest run, so that what was due in an hour has ended with it.
const GRACE: TimeDelta = TimeDelta::minutes(2);

/// One hour of virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hour {
    pub(crate) started: u64,
    pub(crate) writes: u64,
    pub(crate) reads: u64,
    pub(crate) conflicts: u64,
    pub(crate) cpu_s: f64,
    pub(crate) resident_mib: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    let cronjobs = args.cronjobs.unwrap_or(CRONJOBS);
    let hours = runtime.block_on(simulate(args, cronjobs))?;
    Ok(steady_report(args, cronjobs, &hours))
}

async fn simulate(args: &Args, cronjobs: usize) -> anyhow::Result<Vec<Hour>> {
    let start = Clock::system().wall().duration_trunc(TimeDelta::hours(1))? + GRACE;
    let clock = Clock::starting_at(start);
    let sandbox = Sandbox::new(clock.clone(), 1, sandbox::Options::default());
    let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
    let (server, until) = (sandbox.clone(), end.clone());
    tasks.spawn(async move { server.run_background(until).await });
    let (server, until) = (sandbox.clone(), end.clone());
    tasks.spawn(async move { server.run_jobs(RunnerOptions::default(), 1, until).await });
    create(&sandbox.client(), cronjobs).await?;
    let manager = manager(&sandbox, &clock);
    let until = end.clone();
    tasks.spawn(async move { manager.run(until).await });
    // What the first lists cost is not what an hour costs.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let count = args.length.unwrap_or(HOURS);
    let bar = bar("hours", count);
    let mut hours = Vec::new();
    for _ in 0..count {
        hours.push(hour(&sandbox).await?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    end.cancel();
    Ok(hours)
}

async fn hour(sandbox: &Sandbox) -> anyhow::Result<Hour> {
    let pids = [std::process::id()];
    sandbox.requests().reset();
    let before = usage(&pids)?;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let after = usage(&pids)?;
    let requests = sandbox.requests();
    Ok(Hour {
        started: requests.of(Verb::Create, "batch", "jobs"),
        // The stand-in works past the counters, so all of these are the controller's.
        writes: requests.sum(|key| key.verb.writes()),
        reads: requests.sum(|key| matches!(key.verb, Verb::Get | Verb::List)),
        conflicts: requests.sum(|key| key.code == 409),
        cpu_s: after.cpu_s - before.cpu_s,
        resident_mib: after.resident_mib,
    })
}

fn manager(sandbox: &Sandbox, clock: &Clock) -> Manager {
    let client = sandbox.client();
    let clients =
        Clients { requests: client.clone(), watches: client.clone(), leases: client, host: "sandbox".to_owned() };
    let setup = Setup {
        clients,
        client_options: ApiClientOptions::default(),
        clock: clock.clone(),
        seed: 1,
        registry: Registry::new(),
        health: Health::default(),
        observer: None,
        election: None,
    };
    Manager::new(setup, Options::default(), &Registration::by_default())
}

async fn create(client: &kube::Client, cronjobs: usize) -> anyhow::Result<()> {
    for number in 0..cronjobs {
        let container = json!({"name": "work", "image": "registry.example/report"});
        let pod = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
        let body = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": format!("steady-{number:06}")},
            "spec": {"schedule": format!("{} * * * *", 3 + number % 55), "jobTemplate": {"spec": {"template": pod}}},
        });
        let path = "/apis/batch/v1/namespaces/default/cronjobs";
        super::world::send(client, http::Method::POST, path, "application/json", body.to_string()).await?;
    }
    Ok(())
}
