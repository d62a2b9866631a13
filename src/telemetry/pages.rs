//! `/statusz` and `/flagz`: what this process is and does, and how it was set, as text for people, in the form of the pages
//! of Kubernetes' components. Names and order of their lines may change; metrics are for machines.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::model::WallTime;

const COMPONENT: &str = "cronjob-controller";

/// The sentence by which Kubernetes' components keep scrapers away.
const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.";

type LineFn = Box<dyn Fn() -> String + Send + Sync>;

/// What `/statusz` tells. Cheap to clone; clones share the lines.
#[derive(Clone)]
pub struct Status {
    clock: Clock,
    start: WallTime,
    start_mono: Instant,
    lines: Arc<Mutex<Vec<(String, LineFn)>>>,
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(lines.iter().map(|(name, _)| name)).finish()
    }
}

impl Status {
    /// The status of a process that starts now.
    pub fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), start: clock.wall(), start_mono: clock.mono(), lines: Arc::default() }
    }

    /// Adds a line `NAME: VALUE`, told in order of addition; of two with one name the later replaces the earlier. `value` must
    /// not block.
    pub fn line(&self, name: &str, value: impl Fn() -> String + Send + Sync + 'static) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|(known, _)| known != name);
        lines.push((name.to_owned(), Box::new(value)));
    }

    fn page(&self) -> String {
        let up_s = self.clock.mono().saturating_duration_since(self.start_mono).as_secs();
        let started = self.start.format("%a %b %e %H:%M:%S UTC %Y");
        let (hours, minutes, seconds) = (up_s / 3600, up_s / 60 % 60, up_s % 60);
        let mut page = format!(
            "\n{COMPONENT} statusz\n{WARNING}\n\nStarted: {started}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\nBinary version: {}\n",
            env!("CARGO_PKG_VERSION"),
        );
        for (name, value) in self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // Writing to a String does not fail.
            let _written = writeln!(page, "{name}: {}", value());
        }
        page
    }
}

/// A flag as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Without the dashes.
    pub name: String,
    /// As it could be written on the command line; empty when nothing is set.
    pub value: String,
    /// Where the value comes from, in words.
    pub source: String,
}

/// Routes `/statusz` and `/flagz`.
pub fn pages_router(status: Status, flags: &[Flag]) -> Router {
    let flags: Arc<str> = flagz(flags).into();
    Router::new()
        .route("/statusz", get(async move |headers: HeaderMap| page(&headers, || status.page())))
        .route("/flagz", get(async move |headers: HeaderMap| page(&headers, || flags.to_string())))
}

/// In order of name, as the peers do.
fn flagz(flags: &[Flag]) -> String {
    let mut lines: Vec<String> =
        flags.iter().map(|Flag { name, value, source }| format!("{name}={value} ({source})\n")).collect();
    lines.sort();
    format!("\n{COMPONENT} flagz\n{WARNING}\n\n{}", lines.concat())
}

fn page(headers: &HeaderMap, text: impl FnOnce() -> String) -> Response {
    let content_type = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    if accepts_text(headers) {
        (content_type, text()).into_response()
    } else {
        let why = "media type not acceptable, must be: text/plain\n";
        (StatusCode::NOT_ACCEPTABLE, content_type, why).into_response()
    }
}

fn accepts_text(headers: &HeaderMap) -> bool {
    let Some(accept) = headers.get(header::ACCEPT) else { return true };
    let accept = accept.to_str().unwrap_or_default();
    let kinds = accept.split(',').filter_map(|part| part.split(';').next()).map(str::trim);
    kinds.into_iter().any(|kind| matches!(kind, "text/plain" | "text/*" | "*/*"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::Request;
    use chrono::TimeZone;
    use std::time::Duration;
    use tower::ServiceExt;

    async fn ask(path: &str, accept: &str, status: &Status) -> (u16, String) {
        let flag = |name: &str, value: &str, source: &str| Flag {
            name: name.to_owned(),
            value: value.to_owned(),
            source: source.to_owned(),
        };
        let flags = [flag("master", "", "default"), flag("controllers", "*", "file")];
        let request = Request::get(path).header(header::ACCEPT, accept).body(Body::empty()).unwrap();
        let response = pages_router(status.clone(), &flags).oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (code, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn statusz_tells_the_age_and_what_was_added() {
        let status = Status::new(&Clock::starting_at(chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap()));
        status.line("Leader", || "nobody".to_owned());
        status.line("Queue", || "7".to_owned());
        status.line("Leader", || "this replica".to_owned());
        tokio::time::advance(Duration::from_secs(3 * 3600 + 62)).await;
        let (code, page) = ask("/statusz", "*/*", &status).await;
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "\ncronjob-controller statusz\n{WARNING}\n\nStarted: Sun Mar  8 12:00:00 UTC 2026\nUp: 3 hr 01 min 02 sec\n\
             Binary version: {version}\nQueue: 7\nLeader: this replica\n"
        );
        assert_eq!((code, page), (200, expected));
    }

    #[tokio::test]
    async fn flagz_tells_each_flag_and_where_it_is_set() {
        let (code, page) = ask("/flagz", "text/plain", &Status::new(&Clock::system())).await;
        assert_eq!(code, 200);
        assert!(page.starts_with("\ncronjob-controller flagz\nWarning: This endpoint"), "{page}");
        assert!(page.ends_with("\n\ncontrollers=* (file)\nmaster= (default)\n"), "{page}");
    }

    #[tokio::test]
    async fn who_takes_no_text_gets_none() {
        for path in ["/statusz", "/flagz"] {
            let (code, page) = ask(path, "application/json", &Status::new(&Clock::system())).await;
            assert_eq!((code, page.as_str()), (406, "media type not acceptable, must be: text/plain\n"));
        }
    }
}
