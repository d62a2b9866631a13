//! The floor: how fast the server takes the same number of plain POSTs of the same bodies, from a bare client with the
//! production transport. Nothing is decided, no status is written.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use http::Method;

use super::args::Args;
use super::herd::{Run, Tally};
use super::observer::Observer;
use super::progress::bar;
use super::server::Server;
use super::world::{Schedule, World, each, send};

/// Numbers in flight that are tried; the best of them is the floor.
pub(crate) const IN_FLIGHT: [usize; 3] = [32, 64, 128];

/// Time without a Job after which something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// POSTs what `world` would start, `in_flight` at a time.
pub(crate) async fn run(args: &Args, world: &World, in_flight: usize) -> anyhow::Result<Run> {
    let server = Server::start(args).await?;
    let admin = server.admin_clients().await?;
    let namespaces = World { cronjobs: 0, ..world.clone() };
    namespaces.create(&admin.requests, "floor").await?;
    let mut observer = Observer::start(&admin.watches).await?;
    let clock = observer.clock().clone();
    let at = match world.schedule {
        Schedule::At(at) => at,
        _ => clock.wall(),
    };
    let starts: Vec<_> = (0..world.cronjobs).map(|number| world.start(number, at)).collect::<anyhow::Result<_>>()?;
    let (starts, client) = (Arc::new(starts), server.clients().await?.requests);
    let bar = bar(&format!("floor, {in_flight} in flight"), world.cronjobs);
    let tally = Tally::begin(&server, &[], &admin.requests).await?;
    let begun = clock.wall();
    let posted = each(world.cronjobs, in_flight, |number| {
        let (starts, client) = (starts.clone(), client.clone());
        async move {
            let (path, body) = &starts[number];
            send(&client, Method::POST, path, "application/json", body.clone()).await.map(drop)
        }
    });
    posted.await?;
    let answered_s = (clock.wall() - begun).as_seconds_f64();
    observer.wait_for(world.cronjobs, PATIENCE, &bar).await?;
    bar.finish_and_clear();
    let mut run = tally.end(&server, &admin.requests, &observer.arrivals()?, |_| begun).await?;
    run.span_s = answered_s.max(TimeDelta::milliseconds(1).as_seconds_f64());
    Ok(run)
}
