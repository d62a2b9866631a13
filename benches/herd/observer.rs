//! Who watches Jobs arrive, from outside: a watch of their metadata over a connection of its own. Frames are stamped when they
//! come and read when all is over, so that watching costs little while it counts.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "real time and real connections: nothing here repeats from a seed"
)]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use cronjob_controller::clock::Clock;
use cronjob_controller::model::WallTime;
use http_body_util::BodyExt;
use indicatif::ProgressBar;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

const ACCEPT: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const ADDED: &[u8] = b"{\"type\":\"ADDED\"";
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// A Job as it was seen first.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) namespace: String,
    /// The due instant that it says it is for.
    pub(crate) due: WallTime,
    pub(crate) seen: WallTime,
}

impl Arrival {
    /// Seconds from `since` until it was seen.
    pub(crate) fn after(&self, since: WallTime) -> f64 {
        self.seen.signed_duration_since(since).as_seconds_f64()
    }
}

/// Listens until it is dropped.
pub(crate) struct Observer {
    clock: Clock,
    frames: Arc<Mutex<Vec<(WallTime, Bytes)>>>,
    count: watch::Receiver<usize>,
    _stop: DropGuard,
}

impl Observer {
    /// Watches what comes after now.
    pub(crate) async fn start(client: &Client) -> anyhow::Result<Self> {
        let first = http::Request::get("/apis/batch/v1/jobs?limit=1").header("accept", "application/json");
        let list: serde_json::Value = client.request(first.body(Vec::new())?).await?;
        let version = list.pointer("/metadata/resourceVersion").and_then(|version| version.as_str());
        let version = version.context("a list without resourceVersion")?;
        let path = format!("/apis/batch/v1/jobs?watch=true&timeoutSeconds=36000&resourceVersion={version}");
        let request = http::Request::get(path).header("accept", ACCEPT).body(Body::empty())?;
        let body = client.send(request).await?.into_body();
        let (clock, frames, stop) = (Clock::system(), Arc::<Mutex<Vec<_>>>::default(), CancellationToken::new());
        let (told, count) = watch::channel(0);
        let (into, stamp, until) = (frames.clone(), clock.clone(), stop.clone());
        TaskTracker::new().spawn(async move { until.run_until_cancelled(listen(body, into, stamp, told)).await });
        Ok(Self { clock, frames, count, _stop: stop.drop_guard() })
    }

    /// Waits for `wanted` Jobs, at most `patience` from one to the next.
    pub(crate) async fn wait_for(
        &mut self,
        wanted: usize,
        patience: Duration,
        bar: &ProgressBar,
    ) -> anyhow::Result<()> {
        loop {
            let seen = *self.count.borrow_and_update();
            bar.set_position(seen as u64);
            if seen >= wanted {
                return Ok(());
            }
            let more = tokio::time::timeout(patience, self.count.changed()).await;
            let more = more.with_context(|| format!("{seen} of {wanted} Jobs came, then none for {patience:?}"))?;
            ensure!(more.is_ok(), "the watch ended after {seen} Jobs");
        }
    }

    /// How many were seen so far.
    pub(crate) fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// All that were seen, in order.
    pub(crate) fn arrivals(&self) -> anyhow::Result<Vec<Arrival>> {
        let frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        frames.iter().map(|(seen, line)| read(*seen, line)).collect()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
}

async fn listen(mut body: Body, frames: Arc<Mutex<Vec<(WallTime, Bytes)>>>, clock: Clock, told: watch::Sender<usize>) {
    let mut rest: Vec<u8> = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let (now, Ok(data)) = (clock.wall(), frame.into_data()) else { continue };
        rest.extend_from_slice(&data);
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { continue };
        let whole = Bytes::from(rest.drain(..=end).collect::<Vec<_>>());
        let lines = whole.split(|byte| *byte == b'\n').filter(|line| line.starts_with(ADDED));
        let lines: Vec<_> = lines.map(|line| (now, whole.slice_ref(line))).collect();
        let mut frames = frames.lock().unwrap_or_else(PoisonError::into_inner);
        frames.extend(lines);
        told.send_replace(frames.len());
    }
}

fn read(seen: WallTime, line: &[u8]) -> anyhow::Result<Arrival> {
    #[derive(Deserialize)]
    struct Frame {
        object: Object,
    }
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        namespace: String,
        annotations: std::collections::BTreeMap<String, String>,
    }
    let Frame { object: Object { metadata } } = serde_json::from_slice(line)?;
    let due = metadata.annotations.get(SCHEDULED).context("a Job without the instant it is for")?;
    let due = chrono::DateTime::parse_from_rfc3339(due)?.to_utc();
    Ok(Arrival { namespace: metadata.namespace, due, seen })
}
