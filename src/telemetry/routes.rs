//! The routes of telemetry: `/metrics` and the probes.

use std::collections::BTreeSet;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::{Exposition, Health, Registry, Scope};

/// Routes `/metrics`: OpenMetrics for those who accept it, Prometheus text for others.
pub fn metrics_router(registry: Registry) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state(registry)
}

/// Routes `/healthz`, `/livez`, `/readyz` (with `?verbose` and `?exclude=NAME`) and one path for each check, as `/livez/ping`.
pub fn health_router(health: Health) -> Router {
    [("healthz", Scope::Live), ("livez", Scope::Live), ("readyz", Scope::Ready)]
        .into_iter()
        .fold(Router::new(), |router, (probe, scope)| {
            let all = move |State(health): State<Health>, RawQuery(query): RawQuery| async move {
                whole(&health, probe, scope, query.as_deref().unwrap_or_default())
            };
            let one = move |State(health): State<Health>, Path(name): Path<String>| async move {
                single(&health, scope, &name)
            };
            router.route(&format!("/{probe}"), get(all)).route(&format!("/{probe}/{{name}}"), get(one))
        })
        .with_state(health)
}

async fn metrics(State(registry): State<Registry>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let form = Exposition::for_accept(accept);
    match registry.encode(form) {
        Ok(text) => ([(header::CONTENT_TYPE, form.content_type())], text).into_response(),
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "a metric could not be written\n".to_owned()),
    }
}

fn whole(health: &Health, probe: &str, scope: Scope, query: &str) -> Response {
    let mut verbose = false;
    let mut exclude = BTreeSet::new();
    for part in query.split('&') {
        match part.split_once('=').unwrap_or((part, "")) {
            ("verbose", _) => verbose = true,
            ("exclude", name) if !name.is_empty() => {
                exclude.insert(name.to_owned());
            }
            _ => {}
        }
    }
    let report = health.probe(probe, scope, &exclude);
    match (report.ok, verbose) {
        (true, false) => plain(StatusCode::OK, "ok".to_owned()),
        (true, true) => plain(StatusCode::OK, report.verbose),
        (false, _) => plain(StatusCode::INTERNAL_SERVER_ERROR, report.verbose),
    }
}

fn single(health: &Health, scope: Scope, name: &str) -> Response {
    match health.one(scope, name) {
        Some(Ok(())) => plain(StatusCode::OK, "ok".to_owned()),
        Some(Err(reason)) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n")),
        None => plain(StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
    }
}

fn plain(status: StatusCode, text: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (status, headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt;

    async fn ask(router: Router, path: &str, accept: &str) -> (u16, String, String) {
        let request = Request::get(path).header(header::ACCEPT, accept).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let content_type = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, content_type, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn metrics_answer_in_the_form_that_was_asked_for() {
        let router = metrics_router(Registry::new());
        let (status, form, body) = ask(router.clone(), "/metrics", "application/openmetrics-text;version=1.0.0").await;
        assert_eq!(
            (status, form.as_str(), body.as_str()),
            (200, "application/openmetrics-text; version=1.0.0; charset=utf-8", "# EOF\n")
        );
        let (status, form, body) = ask(router, "/metrics", "*/*").await;
        assert_eq!((status, form.as_str(), body.as_str()), (200, "text/plain; version=0.0.4; charset=utf-8", ""));
    }

    #[tokio::test]
    async fn probes_say_ok_and_more_when_asked() {
        let router = health_router(Health::default());
        for probe in ["healthz", "livez", "readyz"] {
            assert_eq!(ask(router.clone(), &format!("/{probe}"), "*/*").await.2, "ok");
            let (_, _, verbose) = ask(router.clone(), &format!("/{probe}?verbose"), "*/*").await;
            assert_eq!(verbose, format!("[+]ping ok\n{probe} check passed\n"));
            assert_eq!(ask(router.clone(), &format!("/{probe}/ping"), "*/*").await.2, "ok");
            assert_eq!(ask(router.clone(), &format!("/{probe}/pong"), "*/*").await.0, 404);
        }
    }

    #[tokio::test]
    async fn a_failed_probe_answers_500_and_says_why_unasked() {
        let health = Health::default();
        health.check("caches", Scope::Ready, || Err("not listed yet".to_owned()));
        let router = health_router(health);
        let (status, _, body) = ask(router.clone(), "/readyz", "*/*").await;
        assert_eq!(
            (status, body.as_str()),
            (500, "[+]ping ok\n[-]caches failed: not listed yet\nreadyz check failed\n")
        );
        assert_eq!(ask(router.clone(), "/readyz/caches", "*/*").await.2, "internal server error: not listed yet\n");
        assert_eq!(ask(router.clone(), "/readyz?exclude=caches", "*/*").await.2, "ok");
        assert_eq!(ask(router, "/livez", "*/*").await.2, "ok");
    }
}
