//! The client for everything but watches: each request with a deadline, in a lane, repeated only where that is safe.
//!
//! Invariants
//! - A request that may have been applied is never sent twice, except a GET. Only an answer of 429 (the server did nothing)
//!   is followed by the same write again, after the wait that the server asks for.
//! - The deadline runs from the first time a request is sent and covers all its repetitions; waiting for the first slot does
//!   not count, since that wait is bounded by the deadlines of those in flight.
//! - Every way to fail is an [`ApiFailure`]; code 0 says that nobody knows whether the request was applied.
//! - With a gate ([`ApiClient::gated`]) nothing but a GET is sent while the gate is shut, and no write is waited for longer than the
//!   gate was known to stay open when it was sent.
//! - A call may be dropped at any time: its slot comes back. What was sent before may still be applied.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, request};
use kube::Client;
use kube::client::Body;
use tokio::time::{Instant, sleep, timeout_at};

use super::exchange::exchange;
use super::failure::{too_late, too_late_for_leader};
use super::lanes::{Lanes, Slot, Urgency, Verdict};
use super::limit::{Concurrency, Limit};
use super::metrics::{LaneMetrics, RequestMetrics};
use super::validity::Validity;
use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::model::ApiFailure;

/// Wait before the first repetition when the server names none; it doubles from one to the next.
const DEFAULT_WAIT: Duration = Duration::from_secs(1);

/// Options of an [`ApiClient`].
#[derive(Clone, Debug, PartialEq)]
pub struct ApiClientOptions {
    /// Time from the first sending to the last byte of the answer, repetitions included.
    pub deadline: Duration,
    /// Repetitions at most, as in client-go.
    pub retries: u32,
    /// Bounds of the number of requests in flight.
    pub concurrency: Concurrency,
    /// Client-side rate limit (`--kube-api-qps`, `--kube-api-burst`); off by default, since the API server shares itself out
    /// by its own fairness rules.
    pub rate: Option<RateLimit>,
    /// Value of the metrics' label `host`.
    pub host: String,
}

impl Default for ApiClientOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            retries: 10,
            concurrency: Concurrency::default(),
            rate: None,
            host: String::new(),
        }
    }
}

/// A client-side rate limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Requests a second in the long run; above zero.
    pub qps: f64,
    /// Requests at once.
    pub burst: u32,
}

/// A client of the API server. Cheap to clone; clones share lanes, limits and metrics.
#[derive(Clone)]
pub struct ApiClient {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    clock: Clock,
    lanes: Arc<Lanes>,
    rate: Option<Turnstile>,
    metrics: RequestMetrics,
    options: ApiClientOptions,
    /// How long writes may be sent; `None` for ever.
    gate: Option<Validity>,
}

impl ApiClient {
    /// A client over `client`, which must not repeat requests by itself.
    pub fn new(client: Client, clock: Clock, options: ApiClientOptions, metrics: RequestMetrics) -> Self {
        Self::gated(client, clock, options, metrics, None)
    }

    /// The same, whose writes pass `gate`.
    pub fn gated(
        client: Client,
        clock: Clock,
        options: ApiClientOptions,
        metrics: RequestMetrics,
        gate: Option<Validity>,
    ) -> Self {
        let lanes = Lanes::new(Limit::new(options.concurrency), metrics.lanes.clone());
        let rate = options.rate.map(|rate| Turnstile::new(&clock, rate));
        Self { inner: Arc::new(Inner { client, clock, lanes, rate, metrics, options, gate }) }
    }

    /// Sends `request`, whose URI is a path with query, when its turn has come, and returns the body of the answer.
    ///
    /// # Errors
    /// What the server refused with, or code 0 when no complete answer came in time; a write before a shut gate is
    /// [withheld](ApiFailure::withheld).
    pub async fn send(&self, urgency: Urgency, request: Request<Vec<u8>>) -> Result<Bytes, ApiFailure> {
        let inner = &*self.inner;
        let request = Repeatable::new(request);
        // Also before the queue, so that what cannot be sent takes no slot from anybody.
        inner.pass_gate(&request)?;
        let slot = inner.enter(&urgency).await;
        // On the heap, so that the thousands of requests of a herd that wait for a slot are small.
        Box::pin(inner.attempts(&urgency, &request, slot)).await
    }
}

impl Inner {
    /// Sends until there is an answer to keep.
    async fn attempts(&self, urgency: &Urgency, request: &Repeatable, slot: Slot) -> Result<Bytes, ApiFailure> {
        let until = self.clock.mono() + self.options.deadline;
        let mut result = self.attempt(request, slot, until).await;
        for attempt in 0..self.options.retries {
            let Err(failure) = &result else { break };
            let method = &request.head.method;
            let Some(wait) = wait_before_retry(method, failure, attempt) else { break };
            if self.clock.mono() + wait >= until {
                break;
            }
            sleep(wait).await;
            let Ok(slot) = timeout_at(until, self.enter(urgency)).await else { break };
            self.metrics.on_retry(failure.code, method, &self.options.host);
            result = self.attempt(request, slot, until).await;
        }
        result
    }

    async fn enter(&self, urgency: &Urgency) -> Slot {
        if let Some(rate) = &self.rate {
            rate.pass(urgency).await;
        }
        self.lanes.enter(urgency).await
    }

    /// Sends once; gives the slot back with what the answer says about the server's load.
    async fn attempt(&self, request: &Repeatable, slot: Slot, until: Instant) -> Result<Bytes, ApiFailure> {
        let begun = self.clock.mono();
        let shut_at = self.pass_gate(request)?.map(|left| begun + left).filter(|shut_at| *shut_at < until);
        let until = shut_at.unwrap_or(until);
        let answer = timeout_at(until, exchange(&self.client, request.copy())).await;
        let (verdict, code) = match &answer {
            Ok(Ok((code, _))) => (Verdict::Fine, *code),
            Ok(Err(failure)) => (verdict(failure.code), failure.code),
            Err(_late) => (Verdict::Congested, 0),
        };
        slot.finish(verdict);
        let took = self.clock.mono().saturating_duration_since(begun);
        self.metrics.on_attempt(code, &request.head.method, &self.options.host, took);
        match answer {
            Ok(result) => result.map(|(_, body)| body),
            Err(_late) if shut_at.is_some() => Err(too_late_for_leader()),
            Err(_late) => Err(too_late(self.options.deadline)),
        }
    }

    /// How long a request may take that passes the gate now, if there is a limit.
    fn pass_gate(&self, request: &Repeatable) -> Result<Option<Duration>, ApiFailure> {
        match &self.gate {
            Some(gate) if request.head.method != Method::GET => {
                gate.remaining().map(Some).ok_or_else(ApiFailure::withheld)
            }
            _ => Ok(None),
        }
    }
}

/// What a refusal says about load.
fn verdict(code: u16) -> Verdict {
    match code {
        0 => Verdict::Unknown,
        429 | 503 | 504 => Verdict::Congested,
        _ => Verdict::Fine,
    }
}

/// How long to wait before the same request may be sent again; `None` when it must not be.
fn wait_before_retry(method: &Method, failure: &ApiFailure, attempt: u32) -> Option<Duration> {
    let doubling = DEFAULT_WAIT.saturating_mul(2u32.saturating_pow(attempt));
    let wait = failure.retry_after.unwrap_or(doubling);
    match failure.code {
        429 => Some(wait),
        0 if method == Method::GET => Some(wait),
        500.. if method == Method::GET && failure.retry_after.is_some() => Some(wait),
        _ => None,
    }
}

/// A request that can be sent more than once.
struct Repeatable {
    head: request::Parts,
    body: Bytes,
}

impl Repeatable {
    fn new(request: Request<Vec<u8>>) -> Self {
        let (head, body) = request.into_parts();
        Self { head, body: body.into() }
    }

    fn copy(&self) -> Request<Body> {
        Request::from_parts(self.head.clone(), Body::from(self.body.clone()))
    }
}

/// Lets requests pass at the allowed rate, the most urgent one first: one at a time waits for the token, the others wait in
/// the order of the lanes.
struct Turnstile {
    gate: Arc<Lanes>,
    bucket: Bucket,
}

impl Turnstile {
    fn new(clock: &Clock, rate: RateLimit) -> Self {
        let period = Duration::try_from_secs_f64(1.0 / rate.qps).unwrap_or(Duration::ZERO);
        let gate = Lanes::new(Limit::fixed(1), LaneMetrics::default());
        Self { gate, bucket: Bucket::new(clock, rate.burst, period) }
    }

    async fn pass(&self, urgency: &Urgency) {
        let _turn = self.gate.enter(urgency).await;
        while let Err(wait) = self.bucket.take() {
            sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests;
