//! Requests and answers, as every controller makes and reads them.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request};

use crate::api::DecodeError;
use crate::engine::Retry;
use crate::model::{ApiFailure, ObjectKey};

pub(super) const JSON: &str = "application/json";
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(super) const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";

/// Longest wait that the server's `Retry-After` may ask of one object: a mistaken header must not cost a day's run.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub(super) fn request(
    method: Method,
    path: String,
    content: &'static str,
    body: Vec<u8>,
) -> Result<Request<Vec<u8>>, ApiFailure> {
    // A name that is empty would make it a request about all of them.
    if path.contains("//") || path.ends_with('/') {
        return Err(ApiFailure { code: 400, ..unusable(format!("not sent: the path {path} lacks a name")) });
    }
    let builder = Request::builder().method(method).uri(path);
    let builder = if body.is_empty() { builder } else { builder.header(CONTENT_TYPE, content) };
    builder.body(body).map_err(|error| unusable(format!("cannot make a request: {error}")))
}

/// Decodes a good answer. One that cannot be read leaves open what the server did, like no answer at all.
pub(super) fn readable<T>(body: &Bytes, decode: impl FnOnce(&str) -> Result<T, DecodeError>) -> Result<T, ApiFailure> {
    let text = std::str::from_utf8(body).map_err(|error| unusable(format!("the answer is not UTF-8: {error}")))?;
    decode(text).map_err(|error| ApiFailure::unreadable(format!("the answer cannot be read: {}", error.told())))
}

/// Whether a good answer is the object that was asked about: a list, or a Status, decodes as an object without a name.
pub(super) fn is_answer_about(
    asked: &ObjectKey,
    kind: &str,
    answered: &ObjectKey,
    body: &Bytes,
) -> Result<(), ApiFailure> {
    #[derive(serde::Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, default)]
        kind: std::borrow::Cow<'a, str>,
    }
    let told = serde_json::from_slice::<Kind<'_>>(body).map(|told| told.kind).unwrap_or_default();
    if asked == answered && (told == kind || told.is_empty()) {
        return Ok(());
    }
    Err(ApiFailure::unreadable(format!("the answer about {kind} {asked} is {told} {answered}")))
}

pub(super) fn unusable(message: String) -> ApiFailure {
    ApiFailure { message: message.into(), ..ApiFailure::default() }
}

/// How to go on after a failure for which the server asked to wait so long, if it did.
pub(super) fn back_off(retry_after: Option<Duration>) -> Retry {
    retry_after.map_or(Retry::Backoff, |wait| Retry::After(wait.min(LONGEST_WAIT)))
}
