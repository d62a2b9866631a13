//! The one way in: an HTTP request, in the process or from a socket, through the faults to the store and back.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, header};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::sleep;
use tower::{BoxError, Service};

use super::body::SandboxBody;
use super::call::{Call, Route, Verb};
use super::counters::NO_ANSWER;
use super::faults::{Action, Hold};
use super::shared::Shared;
use super::status::Refusal;
use super::store::{Answer, ListSource};
use super::watch::{Watch, WatchFaults};

/// The connection broke before an answer came: a fault, or a request body that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("connection reset by peer")]
pub struct Disconnected;

/// The API server as a service. Cheap to clone; clones share everything.
#[derive(Debug, Clone)]
pub struct SandboxService {
    shared: Arc<Shared>,
    client: Client,
}

/// Who is at the other end.
#[derive(Debug, Clone)]
struct Client {
    name: Arc<str>,
    faults: bool,
}

impl SandboxService {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, client: Client { name: "".into(), faults: true } }
    }

    pub(super) fn of(mut self, client: &str) -> Self {
        self.client.name = client.into();
        self
    }

    pub(super) fn without_faults(mut self) -> Self {
        self.client.faults = false;
        self
    }
}

impl<B> Service<Request<B>> for SandboxService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<SandboxBody>;
    type Error = Disconnected;
    type Future = BoxFuture<'static, Result<Self::Response, Disconnected>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Disconnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (shared, client) = (self.shared.clone(), self.client.clone());
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(|_| Disconnected)?.to_bytes();
            match Call::parse(&parts.method, &parts.uri, &parts.headers) {
                Err(refusal) => Ok(refused(&refusal)),
                Ok(Route::Outside) => Ok(super::outside::respond(&shared.counters, &parts.uri, &parts.headers)),
                Ok(Route::Resource(call)) => handle(shared, client, Call { body, ..*call }).await,
            }
        })
    }
}

/// What faults leave of a request.
#[derive(Default)]
struct Fate {
    refusal: Option<Refusal>,
    duplicate: bool,
    lost_answer: bool,
    delay_answer: std::time::Duration,
    stale: Option<Hold>,
    watch: WatchFaults,
}

async fn handle(shared: Arc<Shared>, client: Client, call: Call) -> Result<Response<SandboxBody>, Disconnected> {
    let fate = meet_faults(&shared, &client, &call).await?;
    if let Some(refusal) = &fate.refusal {
        shared.counters.add(&call, refusal.code);
        shared.taps.served(&client.name, &call, refusal.code, (0, 0));
        return Ok(refused(refusal));
    }
    if call.verb == Verb::Watch {
        shared.taps.served(&client.name, &call, 200, (0, 0));
        return Ok(open_watch(shared, call, fate.watch));
    }
    if fate.duplicate {
        // The first answer goes nowhere.
        let _ = apply(&shared, &client, &call, fate.stale);
    }
    let result = apply(&shared, &client, &call, fate.stale);
    if !fate.delay_answer.is_zero() {
        sleep(fate.delay_answer).await;
    }
    if fate.lost_answer {
        shared.counters.add(&call, NO_ANSWER);
        return Err(Disconnected);
    }
    let code = match &result {
        Ok(answer) => answer.code,
        Err(refusal) => refusal.code,
    };
    shared.counters.add(&call, code);
    Ok(match result {
        Ok(answer) => answered(answer),
        Err(refusal) => refused(&refusal),
    })
}

async fn meet_faults(shared: &Shared, client: &Client, call: &Call) -> Result<Fate, Disconnected> {
    let mut fate = Fate::default();
    let actions = if client.faults { shared.faults.decide(call, &client.name) } else { Vec::new() };
    for action in actions {
        match action {
            Action::Refuse(refusal) => fate.refusal = Some(refusal),
            Action::LostRequest => {
                shared.counters.add(call, NO_ANSWER);
                shared.taps.served(&client.name, call, NO_ANSWER, (0, 0));
                return Err(Disconnected);
            }
            Action::LostAnswer => fate.lost_answer = true,
            Action::Delay(duration) => sleep(duration).await,
            Action::DelayAnswer(duration) => fate.delay_answer += duration,
            Action::Duplicate => fate.duplicate = true,
            Action::StaleCache(hold) => fate.stale = Some(hold),
            Action::CutWatch(after) => fate.watch.cut_after = Some(after),
            Action::StallWatch => fate.watch.stalled = true,
            Action::ExpireWatch => fate.watch.expired = true,
        }
    }
    Ok(fate)
}

fn apply(shared: &Shared, client: &Client, call: &Call, stale: Option<Hold>) -> Result<Answer, Refusal> {
    let now = shared.clock.mono();
    let mut revisions = (0, 0);
    let result = if call.verb == Verb::List {
        let source = shared.faults.list_ceiling(call.resource, now).map_or(ListSource::Current, ListSource::At);
        shared.read(|store| store.list(call, &source, shared.clock.wall()))
    } else {
        write(shared, call, stale, now, &mut revisions)
    };
    let code = result.as_ref().map_or_else(|refusal| refusal.code, |answer| answer.code);
    shared.taps.served(&client.name, call, code, revisions);
    result
}

fn write(
    shared: &Shared,
    call: &Call,
    stale: Option<Hold>,
    now: tokio::time::Instant,
    revisions: &mut (u64, u64),
) -> Result<Answer, Refusal> {
    shared.write(|store, moment| {
        let before = store.revision();
        let result = store.apply(call, moment);
        *revisions = (before, store.revision());
        if store.revision() > before {
            // Under the lock, so that no watch sees the write between it and the hold.
            shared.faults.on_write(call.resource);
            if let Some(hold) = stale {
                shared.faults.hold(call.resource, before, hold, now);
            }
        }
        result
    })
}

fn open_watch(shared: Arc<Shared>, call: Call, faults: WatchFaults) -> Response<SandboxBody> {
    match Watch::open(shared.clone(), call.clone(), faults) {
        Ok(stream) => {
            shared.counters.add(&call, 200);
            response(200, "application/json", SandboxBody::watch(stream))
        }
        Err(refusal) => {
            shared.counters.add(&call, refusal.code);
            refused(&refusal)
        }
    }
}

fn answered(answer: Answer) -> Response<SandboxBody> {
    let mut response = response(answer.code, answer.content_type, SandboxBody::whole(answer.body));
    for warning in &answer.warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::try_from(format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

pub(super) fn refused(refusal: &Refusal) -> Response<SandboxBody> {
    let body = Bytes::from(refusal.to_value().to_string());
    let mut response = response(refusal.code, "application/json", SandboxBody::whole(body));
    if let Some(after_s) = refusal.retry_after_s {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after_s));
    }
    response
}

pub(super) fn response(code: u16, content_type: &'static str, body: SandboxBody) -> Response<SandboxBody> {
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
