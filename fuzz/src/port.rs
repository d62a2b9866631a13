//! The bytes of one connection to the ports of metrics and probes, through the code that answers sockets, over memory.
//!
//! Input: the first byte chooses the patience (odd: that of TLS, which keeps connections), the rest is what the peer sends
//! before it closes its side.

use std::sync::Arc;

use axum::Router;
use cronjob_controller::clock::Clock;
use cronjob_controller::model::ApiFailure;
use cronjob_controller::telemetry::{
    Access, Flag, Health, PortMetrics, Question, Registry, Reviewer, Scope, Status, User, Verdict, answer,
    health_router, metrics_router, pages_router,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

type Asked<T> = std::pin::Pin<Box<dyn Future<Output = Result<T, ApiFailure>> + Send>>;

/// Knows one token and lets its owner read everything but `/flagz`.
struct Door;

impl Reviewer for Door {
    fn whose(&self, token: String) -> Asked<Option<User>> {
        Box::pin(async move {
            match token.as_str() {
                "good" => Ok(Some(User::default())),
                "lost" => Err(ApiFailure::default()),
                _ => Ok(None),
            }
        })
    }

    fn may(&self, question: Question) -> Asked<Verdict> {
        Box::pin(async move { Ok(Verdict { allowed: question.path != "/flagz", reason: String::new() }) })
    }
}

fn router(clock: &Clock) -> Router {
    let registry = Registry::new();
    let metrics = PortMetrics::register(&registry);
    let health = Health::default();
    health.check("caches", Scope::Ready, || Err("not listed yet".to_owned()));
    let flag = Flag { name: "controllers".into(), value: "*".into(), source: "default".into() };
    let pages = metrics_router(registry).merge(pages_router(Status::new(clock), &[flag]));
    Access::new(Arc::new(Door), clock, metrics).guard(pages).merge(health_router(health))
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let Some((first, sent)) = input.split_first() else { return };
    let secure = first % 2 == 1;
    let (seen, ended) = super::on_paused_time(async { converse(sent, secure).await });
    assert!(ended, "a connection whose peer has closed its side ends by itself");
    judge(&seen, secure);
}

/// What the peer reads, and whether the connection ended within an hour of virtual time.
async fn converse(sent: &[u8], secure: bool) -> (Vec<u8>, bool) {
    let (mut peer, stream) = tokio::io::duplex(1 << 20);
    let answering = answer(stream, secure, router(&Clock::system()), CancellationToken::new());
    let talking = async {
        let _gone = peer.write_all(sent).await;
        let _gone = peer.shutdown().await;
        let mut seen = Vec::new();
        let _gone = peer.read_to_end(&mut seen).await;
        seen
    };
    let both = async { tokio::join!(answering, talking).1 };
    match tokio::time::timeout(std::time::Duration::from_secs(3600), both).await {
        Ok(seen) => (seen, true),
        Err(_) => (Vec::new(), false),
    }
}

/// Whatever was sent, only HTTP comes back, of the codes that these ports have.
fn judge(seen: &[u8], secure: bool) {
    if seen.is_empty() {
        return;
    }
    let text = String::from_utf8_lossy(seen);
    let code = text.strip_prefix("HTTP/1.1 ").or_else(|| text.strip_prefix("HTTP/1.0 ")).and_then(|rest| rest.get(..3));
    let known = ["200", "400", "401", "403", "404", "405", "406", "414", "429", "431", "500", "501", "503"];
    assert!(code.is_some_and(|code| known.contains(&code)), "{text}");
    assert!(!text.contains("controllers=* (default)"), "nobody may read /flagz here");
    let answers = text.matches("HTTP/1.1 ").count();
    assert!(secure || answers <= 1, "plain connections take one request: {text}");
}
