//! The secure port over real sockets, with a stand-in for the API server's word.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use cronjob_controller::clock::Clock;
use cronjob_controller::model::ApiFailure;
use cronjob_controller::telemetry::{
    Access, Certificate, CertificateSource, PortMetrics, Question, Registry, Reviewer, User, Verdict, serve,
};
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::web::{get_plain, get_secure};

/// Lets the user of the token `good` read; has no answer about `lost`.
struct Book;

impl Reviewer for Book {
    fn whose(&self, token: String) -> BoxFuture<'static, Result<Option<User>, ApiFailure>> {
        Box::pin(async move {
            match token.as_str() {
                "lost" => Err(ApiFailure { message: "connection refused".into(), ..ApiFailure::default() }),
                _ => Ok(Some(User { name: token, ..User::default() })),
            }
        })
    }

    fn may(&self, question: Question) -> BoxFuture<'static, Result<Verdict, ApiFailure>> {
        let allowed = question.user.name == "good";
        Box::pin(async move { Ok(Verdict { allowed, reason: String::new() }) })
    }
}

#[tokio::test]
async fn a_port_with_its_own_certificate_answers_over_tls_whom_it_may() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let metrics = PortMetrics::register(&Registry::new());
    let certificate = Certificate::load(CertificateSource::SelfSigned, metrics.clone()).unwrap();
    let access = Access::new(Arc::new(Book), &Clock::system(), metrics);
    let router = access.guard(Router::new().route("/metrics", get(async || "page")));
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    tasks.spawn(serve(listener, Some(certificate.acceptor().unwrap()), router, shutdown.clone()));

    assert_eq!(get_secure(port, "/metrics", Some("good")).await.unwrap(), (200, "page".to_owned()));
    for (token, code) in [(Some("other"), 403), (Some("lost"), 500), (None, 401)] {
        assert_eq!(get_secure(port, "/metrics", token).await.unwrap().0, code, "{token:?}");
    }
    assert!(get_plain(port, "/metrics").await.is_err(), "not without TLS");

    shutdown.cancel();
    tasks.close();
    tasks.wait().await;
}
