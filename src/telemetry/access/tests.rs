use std::sync::Mutex;

use axum::body::Body;
use axum::routing::get;
use serde_json::Value;
use tower::ServiceExt;

use super::*;
use crate::telemetry::{Exposition, Registry};

/// Knows the tokens `good` (whose user may read `/metrics`) and `poor` (whose user may nothing); has no answer to `lost`.
#[derive(Default)]
struct Book {
    asked: Mutex<Vec<String>>,
}

impl Book {
    fn note(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }
}

impl Reviewer for Book {
    fn whose(&self, token: String) -> BoxFuture<'static, Result<Option<User>, ApiFailure>> {
        self.note(format!("whose {token}"));
        Box::pin(async move {
            match token.as_str() {
                "good" | "poor" | "mute" => Ok(Some(User { name: token, ..User::default() })),
                "lost" => Err(ApiFailure { message: "connection refused".into(), ..ApiFailure::default() }),
                _ => Ok(None),
            }
        })
    }

    fn may(&self, question: Question) -> BoxFuture<'static, Result<Verdict, ApiFailure>> {
        self.note(format!("may {} {} {}", question.user.name, question.verb, question.path));
        Box::pin(async move {
            match question.user.name.as_str() {
                "mute" => Err(ApiFailure { code: 403, ..ApiFailure::default() }),
                name => Ok(Verdict { allowed: name == "good" && question.path == "/metrics", reason: String::new() }),
            }
        })
    }
}

struct Port {
    book: Arc<Book>,
    registry: Registry,
    router: Router,
}

impl Port {
    fn new() -> Self {
        let (book, registry) = (Arc::new(Book::default()), Registry::new());
        let access = Access::new(book.clone(), &Clock::system(), PortMetrics::register(&registry));
        let router = access.guard(Router::new().route("/metrics", get(async || "page")));
        Self { book, registry, router }
    }

    async fn ask(&self, path: &str, authorization: Option<&str>) -> (u16, String) {
        let mut request = Request::get(path);
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let response = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (code, String::from_utf8(body.to_vec()).unwrap())
    }

    fn asked(&self) -> Vec<String> {
        self.book.asked.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_known_and_allowed_reads_the_page() {
    let port = Port::new();
    for authorization in ["Bearer good", "bearer  good "] {
        assert_eq!(port.ask("/metrics?x=y", Some(authorization)).await, (200, "page".to_owned()));
    }
    assert_eq!(port.asked(), ["whose good", "may good get /metrics"]);
}

#[tokio::test(start_paused = true)]
async fn who_shows_no_known_token_is_refused_with_the_components_text() {
    let port = Port::new();
    let expected: Value = serde_json::from_str(
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#,
    )
    .unwrap();
    for authorization in [None, Some("Bearer "), Some("Bearer"), Some("Basic good"), Some("Bearer stolen")] {
        let (code, body) = port.ask("/metrics", authorization).await;
        assert_eq!((code, serde_json::from_str::<Value>(&body).unwrap()), (401, expected.clone()), "{authorization:?}");
    }
    assert_eq!(port.asked(), ["whose stolen"]);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_is_told_what_is_missing_also_on_pages_that_do_not_exist() {
    let port = Port::new();
    let (code, body) = port.ask("/metrics", Some("Bearer poor")).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((code, &body["message"]), (403, &"forbidden: User \"poor\" cannot get path \"/metrics\"".into()));
    assert_eq!((&body["reason"], &body["details"]), (&"Forbidden".into(), &json!({})));
    assert_eq!(port.ask("/nowhere", Some("Bearer good")).await.0, 403);
    assert_eq!(port.ask("/nowhere", None).await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_of_the_api_server_the_page_stays_closed() {
    let port = Port::new();
    let lost = "Internal Server Error: \"/metrics\": no answer from the API server\n";
    assert_eq!(port.ask("/metrics", Some("Bearer lost")).await, (500, lost.to_owned()));
    let refused = "Internal Server Error: \"/metrics\": the API server refuses to say\n";
    assert_eq!(port.ask("/metrics", Some("Bearer mute")).await, (500, refused.to_owned()));
    assert_eq!(port.ask("/metrics", Some("Bearer lost")).await.0, 500);
    assert_eq!(port.asked(), ["whose lost", "whose mute", "may mute get /metrics", "whose lost"]);
    let text = port.registry.encode(Exposition::PrometheusText).unwrap();
    assert!(text.contains("cronjob_controller_access_reviews_total{review=\"token\",result=\"error\"} 2\n"), "{text}");
    assert!(text.contains("cronjob_controller_access_reviews_total{review=\"access\",result=\"error\"} 1\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_yes_holds_a_minute_and_a_no_ten_seconds() {
    let port = Port::new();
    for token in ["good", "poor", "stolen"] {
        port.ask("/metrics", Some(&format!("Bearer {token}"))).await;
    }
    let before = port.asked().len();
    tokio::time::advance(Duration::from_secs(10)).await;
    for token in ["good", "poor", "stolen"] {
        port.ask("/metrics", Some(&format!("Bearer {token}"))).await;
    }
    assert_eq!(port.asked()[before..], ["may poor get /metrics", "whose stolen"]);
    tokio::time::advance(Duration::from_secs(50)).await;
    port.ask("/metrics", Some("Bearer good")).await;
    assert_eq!(port.asked()[before + 2..], ["whose good", "may good get /metrics"]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_made_up_tokens_is_told_to_wait_and_keeps_nobody_out_who_is_known() {
    let port = Port::new();
    assert_eq!(port.ask("/metrics", Some("Bearer good")).await.0, 200);
    let mut codes = std::collections::BTreeMap::<u16, usize>::new();
    for n in 0..500 {
        *codes.entry(port.ask("/metrics", Some(&format!("Bearer made-up-{n}"))).await.0).or_default() += 1;
    }
    // The good one was one of the burst of 50.
    assert_eq!(codes, [(401, 49), (429, 451)].into());
    tokio::time::advance(Duration::from_secs(1)).await;
    for n in 500..600 {
        *codes.entry(port.ask("/metrics", Some(&format!("Bearer made-up-{n}"))).await.0).or_default() += 1;
    }
    assert_eq!(codes, [(401, 59), (429, 541)].into());
    assert_eq!(port.ask("/metrics", Some("Bearer good")).await.0, 200);
    let request = Request::get("/metrics").header(header::AUTHORIZATION, "Bearer yet-another");
    let response = port.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()[header::RETRY_AFTER], "1");
}
