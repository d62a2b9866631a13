//! The requests of an election, on a client of their own: no lane, no rate limit and no repetition stands before a renewal.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Method, Request};
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;

use super::record::{API_VERSION, Lease};
use crate::clock::Clock;
use crate::cluster::exchange::{exchange, open};
use crate::cluster::failure::{failure_from_frame, too_late};
use crate::cluster::metrics::RequestMetrics;
use crate::cluster::reflector::lines::Lines;
use crate::cluster::reflector::wire::Frame;
use crate::model::ApiFailure;

/// How long the server is asked to keep a watch open.
const WATCH_FOR: Duration = Duration::from_secs(600);

/// One Lease on the server.
pub(super) struct LeaseApi {
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) host: String,
    pub(super) metrics: RequestMetrics,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl LeaseApi {
    /// The Lease as it is now.
    pub(super) async fn get(&self, deadline: Duration) -> Result<Lease, ApiFailure> {
        self.send(Method::GET, self.path(), Vec::new(), deadline).await
    }

    /// Creates `lease`.
    pub(super) async fn create(&self, lease: &Lease, deadline: Duration) -> Result<Lease, ApiFailure> {
        self.send(Method::POST, self.collection(), lease.body(), deadline).await
    }

    /// Writes `lease`; the server takes it only if it is still at the version that the body carries.
    pub(super) async fn update(&self, lease: &Lease, deadline: Duration) -> Result<Lease, ApiFailure> {
        self.send(Method::PUT, self.path(), lease.body(), deadline).await
    }

    /// Opens a watch of what happens to the Lease after `version`.
    pub(super) async fn watch(&self, version: &str, deadline: Duration) -> Result<LeaseWatch, ApiFailure> {
        // Names of objects and versions need no escaping in a query.
        let uri = format!(
            "{}?watch=true&fieldSelector=metadata.name%3D{}&resourceVersion={version}&timeoutSeconds={}",
            self.collection(),
            self.name,
            WATCH_FOR.as_secs()
        );
        let request = Request::get(uri)
            .header(ACCEPT, HeaderValue::from_static("application/json"))
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"))
            .body(Body::empty())
            .map_err(no_request)?;
        let answer = timeout(deadline, open(&self.client, request)).await;
        let response = answer.unwrap_or_else(|_late| Err(too_late(deadline)))?;
        Ok(LeaseWatch { lines: Lines::new(response.into_body()) })
    }

    async fn send(&self, method: Method, uri: String, body: Vec<u8>, deadline: Duration) -> Result<Lease, ApiFailure> {
        let request = Request::builder().method(method.clone()).uri(uri).header(CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(Bytes::from(body))).map_err(no_request)?;
        let begun = self.clock.mono();
        let answer = timeout(deadline, exchange(&self.client, request)).await;
        let answer = answer.unwrap_or_else(|_late| Err(too_late(deadline)));
        let code = answer.as_ref().map_or_else(|failure| failure.code, |(code, _)| *code);
        self.metrics.on_attempt(code, &method, &self.host, self.clock.mono().saturating_duration_since(begun));
        Lease::parse(&answer?.1)
    }

    fn collection(&self) -> String {
        format!("/apis/{API_VERSION}/namespaces/{}/leases", self.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

fn no_request(error: http::Error) -> ApiFailure {
    ApiFailure { message: format!("cannot make a request: {error}").into(), ..ApiFailure::default() }
}

/// An open watch of one Lease.
pub(super) struct LeaseWatch {
    lines: Lines,
}

impl LeaseWatch {
    /// The Lease after its next change; `None` when it was deleted. May be dropped and called again without losing anything.
    ///
    /// # Errors
    /// The watch is over, and why.
    pub(super) async fn next(&mut self) -> Result<Option<Lease>, String> {
        loop {
            let line = self.lines.next().await.map_err(|error| error.to_string())?;
            let line = line.ok_or_else(|| "the server ended it".to_owned())?;
            let frame: Frame<'_> = serde_json::from_slice(&line).map_err(|error| error.to_string())?;
            let object = frame.object.get();
            match &*frame.kind {
                "ADDED" | "MODIFIED" => return Lease::parse(object.as_bytes()).map(Some).map_err(|e| e.to_string()),
                "DELETED" => return Ok(None),
                "BOOKMARK" => {}
                "ERROR" => return Err(failure_from_frame(object).to_string()),
                other => return Err(format!("unknown type of frame: {other}")),
            }
        }
    }
}
