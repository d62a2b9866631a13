//! The event recorder: says what happened to an object as core/v1 Events, and is never in the way of a run.
//!
//! Invariants
//! - [`EventRecorder::record`] neither waits nor fails: a full queue drops the event and counts it.
//! - One task correlates all events of a process in the order in which they were recorded; only then are they written.
//! - Events travel in the last lane of the API client.
//!
//! core/v1 rather than events.k8s.io, and not kube's recorder: `docs/adr/0021-own-event-recorder.md`.

mod correlate;
mod lru;
mod wire;
mod write;

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::correlate::{Correlator, Saying, Unwritten};
use self::write::{WAIT, Writer};
use super::api_client::ApiClient;
use super::metrics::EventMetrics;
use crate::clock::Clock;
use crate::model::{Happening, ObjectReference};

/// Options of the recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventOptions {
    /// Events that may wait: a herd's worth, since they are written when all its runs have started. What does not wait costs nothing.
    pub queue: usize,
    /// Events that may be under way at a time, those included that wait for another try.
    pub under_way: usize,
    /// Writes in flight at most.
    pub concurrency: usize,
    /// Time for what is left to be written at shutdown.
    pub flush: Duration,
    /// Seed of the first waits between tries.
    pub seed: u64,
}

impl EventOptions {
    /// The usual options.
    pub fn new(seed: u64) -> Self {
        Self { queue: 65_536, under_way: 1000, concurrency: 8, flush: Duration::from_secs(5), seed }
    }
}

/// Says what happened. Cheap to clone; clones feed the same task.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    queue: mpsc::Sender<Saying>,
    clock: Clock,
    metrics: EventMetrics,
}

impl EventRecorder {
    /// Says that `happening` happened to `about` just now; `component` (`source.component`) is who noticed.
    pub fn record(&self, component: &'static str, about: ObjectReference, happening: Happening) {
        self.metrics.recorded.inc();
        let saying = Saying { component, about, happening, at: self.clock.wall() };
        if let Err(refused) = self.queue.try_send(saying) {
            self.metrics.dropped_full.inc();
            let saying = refused.into_inner();
            let Happening { reason, ref message, .. } = saying.happening;
            tracing::warn!(object = %saying.about.name, reason, message, "event dropped: too many wait, or shut down");
        }
    }
}

/// The task behind the recorders of a process.
pub struct EventTask {
    queue: mpsc::Receiver<Saying>,
    client: ApiClient,
    correlator: Correlator,
    rng: StdRng,
    options: EventOptions,
    metrics: EventMetrics,
}

/// A recorder and the task that must run for it.
pub fn event_recorder(
    client: ApiClient,
    clock: Clock,
    options: EventOptions,
    metrics: EventMetrics,
) -> (EventRecorder, EventTask) {
    let (send, receive) = mpsc::channel(options.queue.max(1));
    let recorder = EventRecorder { queue: send, clock: clock.clone(), metrics: metrics.clone() };
    let task = EventTask {
        queue: receive,
        client,
        correlator: Correlator::new(clock),
        rng: StdRng::seed_from_u64(options.seed),
        options,
        metrics,
    };
    (recorder, task)
}

impl EventTask {
    /// Writes events until `stop` is cancelled or all recorders are gone, then what is left, with one try each and within
    /// the flush time.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut writer = Writer::new(self.client.clone(), self.metrics.clone(), self.options.concurrency, stop.clone());
        loop {
            let room = writer.len() < self.options.under_way;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = writer.step() => {}
                saying = self.queue.recv(), if room => match saying {
                    Some(saying) => self.accept(saying, &mut writer),
                    None => break,
                },
            }
        }
        let flush = self.options.flush;
        if timeout(flush, self.flush(&mut writer)).await.is_err() {
            tracing::warn!(left = writer.len() + self.queue.len(), "events lost at shutdown");
        }
    }

    async fn flush(&mut self, writer: &mut Writer) {
        self.queue.close();
        while let Some(saying) = self.queue.recv().await {
            self.accept(saying, writer);
        }
        while writer.len() > 0 {
            writer.step().await;
        }
    }

    fn accept(&mut self, saying: Saying, writer: &mut Writer) {
        match self.correlator.correlate(saying) {
            Ok(event) => writer.submit(event, WAIT.mul_f64(self.rng.random::<f64>())),
            Err(Unwritten::SaidAlready) => {}
            Err(Unwritten::Spam) => {
                self.metrics.dropped_spam.inc();
            }
        }
    }
}

#[cfg(test)]
mod tests;
