//! `alone`: one CronJob due at a time on an idle server, and with `--beside` while a herd runs in another namespace.

use std::time::Duration;

use chrono::{DurationRound, TimeDelta};
use http::Method;

use super::args::Args;
use super::figures::{quantile, sorted};
use super::herd::DELTA_S;
use super::observer::{Arrival, Observer};
use super::progress::{bar, spinner};
use super::report::{Curve, Report, alone_report};
use super::server::Server;
use super::subject::Subject;
use super::world::{Schedule, World, send};

/// CronJobs unless told otherwise: one for each second.
const CRONJOBS: usize = 60;
/// Due instants unless told otherwise.
const INSTANTS: usize = 500;
/// Plain POSTs, one after the other, to compare with.
const POSTS: usize = 200;
/// Time without a Job after which something is wrong.
const PATIENCE: Duration = Duration::from_secs(150);

/// What was found, in seconds.
pub(crate) struct Found {
    /// From sending a plain POST to seeing its Job, sorted.
    pub(crate) plain_s: Vec<f64>,
    /// From instant and delta to seeing the Job, sorted.
    pub(crate) alone_s: Vec<f64>,
    /// The same of those that were due while the herd ran.
    pub(crate) beside_s: Vec<f64>,
    /// How long the herd took.
    pub(crate) herd_s: f64,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<Report> {
    let server = Server::start(args).await?;
    let admin = server.admin_clients().await?;
    let plain_s = plain(&server).await?;
    let world = World {
        name: "alone",
        cronjobs: args.cronjobs.unwrap_or(CRONJOBS),
        namespaces: 1,
        history: args.history.unwrap_or(0),
        schedule: Schedule::EverySeconds(args.every.unwrap_or(60)),
    };
    let instants = args.length.unwrap_or(INSTANTS);
    let mut observer = Observer::start(&admin.watches).await?;
    let clock = observer.clock().clone();
    // In the middle of the time that is watched.
    let half = TimeDelta::seconds(60 + (instants * 60 / world.cronjobs / 2) as i64);
    let due = (clock.wall() + half.max(TimeDelta::seconds(60 + args.beside as i64 / 400)))
        .duration_trunc(TimeDelta::minutes(1))?;
    let herd = World { name: "herd", cronjobs: args.beside, schedule: Schedule::At(due), ..world.clone() };
    herd.create(&admin.requests, "beside").await?;
    create_apart(&world, &admin.requests).await?;
    let mut subject = Subject::ours(args, server.kubeconfig())?;
    let waiting = spinner("caches fill");
    subject.ready().await?;
    waiting.finish_and_clear();
    let already = observer.count();
    let wanted = already + instants + args.beside;
    observer.wait_for(wanted, PATIENCE, &bar("Jobs", wanted)).await?;
    subject.check()?;
    subject.keep_logs(args)?;
    let arrivals: Vec<Arrival> = observer.arrivals()?.split_off(already);
    let of = |name: &str| {
        let name = name.to_owned();
        arrivals.iter().filter(move |arrival| arrival.namespace.starts_with(&name))
    };
    let end = of("herd").map(|arrival| arrival.seen).max();
    let ran = |arrival: &&Arrival| end.is_some_and(|end| (due..=end).contains(&arrival.due));
    let lag = |arrival: &Arrival| arrival.after(arrival.due) - DELTA_S;
    let found = Found {
        plain_s,
        alone_s: sorted(of("alone").filter(|arrival| !ran(arrival)).map(lag)),
        beside_s: sorted(of("alone").filter(ran).map(lag)),
        herd_s: end.map_or(0.0, |end| (end - due).as_seconds_f64() - DELTA_S),
    };
    let curves = vec![Curve { name: "lag of each, sorted".into(), at_s: found.alone_s.clone() }];
    Ok(Report { curves, ..alone_report(args, &found, quantile(&found.plain_s, 0.5)) })
}

/// From sending a plain POST until its Job is seen, one after the other.
async fn plain(server: &Server) -> anyhow::Result<Vec<f64>> {
    let admin = server.admin_clients().await?;
    let client = server.clients().await?.requests;
    let world = World { name: "plain", cronjobs: 0, namespaces: 1, history: 0, schedule: Schedule::EverySeconds(60) };
    world.create(&admin.requests, "plain").await?;
    let mut observer = Observer::start(&admin.watches).await?;
    let clock = observer.clock().clone();
    let bar = bar("plain POSTs", POSTS);
    let mut sent = Vec::new();
    for number in 0..POSTS {
        let (path, body) = world.start(number, clock.wall())?;
        sent.push(clock.wall());
        send(&client, Method::POST, &path, "application/json", body).await?;
        observer.wait_for(number + 1, PATIENCE, &bar).await?;
    }
    bar.finish_and_clear();
    Ok(sorted(observer.arrivals()?.iter().zip(sent).map(|(arrival, sent)| arrival.after(sent))))
}

/// Creates the CronJobs spread over the period, since the instants of `@every` follow from the creation.
async fn create_apart(world: &World, client: &kube::Client) -> anyhow::Result<()> {
    let Schedule::EverySeconds(period_s) = world.schedule else { return world.create(client, "alone").await };
    let pause = Duration::from_secs(period_s.into()) / u32::try_from(world.cronjobs.max(1))?;
    let bar = bar("creating, apart from each other", world.cronjobs);
    world.create_namespaces(client).await?;
    for number in 0..world.cronjobs {
        world.create_one(client, number).await?;
        bar.inc(1);
        tokio::time::sleep(pause).await;
    }
    bar.finish_and_clear();
    Ok(())
}
