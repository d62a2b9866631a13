//! Who may read what is served on the secure port: whoever the API server knows by token and lets read the path.
//!
//! Invariants
//! - Nothing is answered without a yes of the API server: no token, no answer from it, or an answer that cannot be read all
//!   end without the page.
//! - Tokens are neither kept nor logged; a cached answer is found by the hash of what was asked.
//! - Who asks more than is good for the API server is told so (429) before it is asked.
//! - One question is asked once at a time, however many wait for the answer, and few are asked at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::json;

use super::PortMetrics;
use super::answers::{Answer, Answers, Key, Unanswered};
use crate::clock::Clock;
use crate::model::ApiFailure;

/// Someone known to the API server, in the words of its `UserInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct User {
    /// `system:serviceaccount:monitoring:prometheus`.
    pub name: String,
    /// Unique over time; empty if the server gives none.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// What else the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// A request for a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Who asks.
    pub user: User,
    /// The method, in small letters: the verb of a nonResourceURL rule.
    pub verb: String,
    /// The path, without query.
    pub path: String,
}

/// Whether a question is answered with yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Yes.
    pub allowed: bool,
    /// Why, in the words of the authorizer; often empty.
    pub reason: String,
}

impl Answer for Option<User> {
    fn is_yes(&self) -> bool {
        self.is_some()
    }
}

impl Answer for Verdict {
    fn is_yes(&self) -> bool {
        self.allowed
    }
}

/// Who knows tokens and rights: the API server, or a stand-in.
pub trait Reviewer: Send + Sync {
    /// Whose token it is; `None` if nobody's.
    fn whose(&self, token: String) -> BoxFuture<'static, Result<Option<User>, ApiFailure>>;

    /// Whether the user may.
    fn may(&self, question: Question) -> BoxFuture<'static, Result<Verdict, ApiFailure>>;
}

/// Asks a [`Reviewer`] about each request. Cheap to clone.
#[derive(Clone)]
pub struct Access {
    reviewer: Arc<dyn Reviewer>,
    users: Answers<Option<User>>,
    verdicts: Answers<Verdict>,
    metrics: PortMetrics,
}

impl Access {
    /// Access by the word of `reviewer`.
    pub fn new(reviewer: Arc<dyn Reviewer>, clock: &Clock, metrics: PortMetrics) -> Self {
        Self { reviewer, users: Answers::new(clock), verdicts: Answers::new(clock), metrics }
    }

    /// `router`, behind this access; also paths that it does not know.
    pub fn guard(self, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(self, check))
    }

    /// Whose token it is, from the cache or by asking.
    async fn whose(&self, token: &str) -> Result<Option<User>, Unanswered> {
        let ask = || {
            let (this, answer) = (self.clone(), self.reviewer.whose(token.to_owned()));
            async move {
                let answer = answer.await;
                this.count("token", answer.as_ref().map(Option::is_some));
                answer
            }
        };
        self.users.get(Key::of(token.as_bytes()), ask).await
    }

    /// Whether the user may, from the cache or by asking.
    async fn may(&self, question: Question) -> Result<Verdict, Unanswered> {
        // Texts in a tree of texts: nothing in it can fail to be written.
        let key = Key::of(&serde_json::to_vec(&question).unwrap_or_default());
        let ask = || {
            let (this, answer) = (self.clone(), self.reviewer.may(question));
            async move {
                let answer = answer.await;
                this.count("access", answer.as_ref().map(|verdict| verdict.allowed));
                answer
            }
        };
        self.verdicts.get(key, ask).await
    }

    fn count(&self, review: &'static str, yes: Result<bool, &ApiFailure>) {
        let result = match yes {
            Ok(true) => "yes",
            Ok(false) => "no",
            Err(error) => {
                let (code, reason) = (error.code, &*error.reason);
                tracing::warn!(review, code, reason, %error, "the API server does not say who may read the secure port");
                "error"
            }
        };
        self.metrics.on_review(review, result);
    }
}

/// Lets a request pass, or answers it as Kubernetes' components do.
async fn check(State(access): State<Access>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let Some(token) = bearer(request.headers()) else { return unauthorized() };
    let user = match access.whose(token).await {
        Ok(Some(user)) => user,
        Ok(None) => return unauthorized(),
        Err(error) => return unknown(&path, &error),
    };
    let (name, verb) = (user.name.clone(), request.method().as_str().to_ascii_lowercase());
    match access.may(Question { user, verb: verb.clone(), path: path.clone() }).await {
        Ok(verdict) if verdict.allowed => next.run(request).await,
        Ok(verdict) => forbidden(&name, &verb, &path, &verdict.reason),
        Err(error) => unknown(&path, &error),
    }
}

/// The token of `Authorization: Bearer …`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn unauthorized() -> Response {
    refusal(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized".to_owned())
}

fn forbidden(user: &str, verb: &str, path: &str, reason: &str) -> Response {
    let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let message = format!("forbidden: User {user:?} cannot {verb} path {path:?}{because}");
    refusal(StatusCode::FORBIDDEN, "Forbidden", message)
}

/// A `metav1.Status`.
fn refusal(code: StatusCode, reason: &str, message: String) -> Response {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {},
        "status": "Failure", "message": message, "reason": reason, "code": code.as_u16(),
    });
    if code == StatusCode::FORBIDDEN {
        status["details"] = json!({});
    }
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (code, headers, status.to_string()).into_response()
}

/// The API server did not say or was not asked; whoever may not know more is not told more than that.
fn unknown(path: &str, why: &Unanswered) -> Response {
    let error = match why {
        Unanswered::TooMany(wait) => return too_many(*wait),
        Unanswered::Failed(error) => error,
    };
    let cause = if error.is_ambiguous() { "no answer from the API server" } else { "the API server refuses to say" };
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (StatusCode::INTERNAL_SERVER_ERROR, headers, format!("Internal Server Error: {path:?}: {cause}\n")).into_response()
}

fn too_many(wait: Duration) -> Response {
    let message = "Too many requests of unknown users, please try again later.".to_owned();
    let mut response = refusal(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
    // In whole seconds, and not too early.
    response.headers_mut().insert(header::RETRY_AFTER, (wait.as_secs() + 1).into());
    response
}

#[cfg(test)]
mod tests;
