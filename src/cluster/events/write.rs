//! Writing events: several at once, but never two writes of one event.
//!
//! Invariants
//! - Of one event at most one write is under way; what is said of it meanwhile waits, the newest only.
//! - An event that cannot be written holds nobody else up: it gives its place back while it waits for its next try.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::wire::Event;
use crate::cluster::api_client::ApiClient;
use crate::cluster::lanes::{Lane, Urgency};
use crate::cluster::metrics::EventMetrics;
use crate::model::ApiFailure;

/// Tries when no answer comes, as client-go.
const TRIES: u32 = 12;
/// Wait between two tries; the first wait is a random part of it.
pub(super) const WAIT: Duration = Duration::from_secs(10);

/// Namespace and name of an event.
type EventId = (Box<str>, String);

/// The writes under way.
pub(super) struct Writer {
    tools: Tools,
    /// Every event that is being written, and what is to be written of it next.
    events: BTreeMap<EventId, Option<Write>>,
    running: FuturesUnordered<BoxFuture<'static, EventId>>,
}

/// What every write needs.
#[derive(Clone)]
struct Tools {
    client: ApiClient,
    metrics: EventMetrics,
    /// Places for tries at the same time, given out in order.
    places: Arc<Semaphore>,
    stop: CancellationToken,
}

/// One event on its way.
struct Write {
    event: Event,
    first_wait: Duration,
}

impl Writer {
    pub(super) fn new(client: ApiClient, metrics: EventMetrics, concurrency: usize, stop: CancellationToken) -> Self {
        let places = Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        let tools = Tools { client, metrics, places, stop };
        Self { tools, events: BTreeMap::new(), running: FuturesUnordered::new() }
    }

    /// Events under way.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Takes an event in; `first_wait` is the wait after the first try without an answer.
    pub(super) fn submit(&mut self, event: Event, first_wait: Duration) {
        let id = (event.namespace().into(), event.name.clone());
        let write = Write { event, first_wait };
        match self.events.get_mut(&id) {
            Some(next) => *next = Some(write),
            None => self.start(id, write),
        }
    }

    /// Waits until a write ends; for ever when none runs.
    pub(super) async fn step(&mut self) {
        match self.running.next().await {
            Some(id) => {
                if let Some(next) = self.events.remove(&id).flatten() {
                    self.start(id, next);
                }
            }
            None => std::future::pending().await,
        }
    }

    fn start(&mut self, id: EventId, write: Write) {
        self.events.insert(id.clone(), None);
        let tools = self.tools.clone();
        self.running.push(Box::pin(async move {
            write.run(&tools).await;
            id
        }));
    }
}

impl Write {
    /// Tries until the server has answered, or too often, or until told to stop.
    async fn run(self, tools: &Tools) {
        let Event { about, reason, .. } = &self.event;
        let mut wait = self.first_wait;
        for attempt in 1..=TRIES {
            let last = attempt == TRIES || tools.stop.is_cancelled();
            match self.try_once(tools).await {
                Ok(()) => return,
                Err(failure) if (failure.is_ambiguous() || failure.is_withheld()) && !last => {
                    tracing::debug!(object = %about.name, reason, error = %failure, "event not written yet");
                }
                Err(failure) => {
                    tools.metrics.failed.inc();
                    tracing::warn!(namespace = %about.namespace, object = %about.name, reason, error = %failure, "event lost");
                    return;
                }
            }
            // A shutdown ends the wait, and grants one more try.
            tools.stop.run_until_cancelled(sleep(wait)).await;
            wait = WAIT;
        }
    }

    async fn try_once(&self, tools: &Tools) -> Result<(), ApiFailure> {
        // The semaphore is never closed; without a permit the write would only be less orderly.
        let _place = tools.places.acquire().await.ok();
        if self.event.count > 1 {
            match self.send(tools, self.event.patch()).await {
                // It has expired, or never came about.
                Err(failure) if failure.is_not_found() => {}
                result => return result,
            }
        }
        match self.send(tools, self.event.post()).await {
            // Said already: by an earlier try whose answer was lost, or by another leader.
            Err(failure) if failure.is_already_exists() => Ok(()),
            result => result,
        }
    }

    async fn send(
        &self,
        tools: &Tools,
        request: Result<http::Request<Vec<u8>>, http::Error>,
    ) -> Result<(), ApiFailure> {
        let request = request.map_err(|e| ApiFailure {
            code: 400,
            reason: "BadRequest".into(),
            message: e.to_string().into(),
            ..ApiFailure::default()
        })?;
        let tenant: Arc<str> = self.event.namespace().into();
        tools.client.send(Urgency { lane: Lane::Event, due: None, tenant }, request).await.map(|_body| ())
    }
}
