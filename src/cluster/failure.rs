//! What went wrong with a call, read from the answer of the server.

use std::error::Error;
use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use serde::Deserialize;

use crate::model::ApiFailure;

/// Longest piece of an answer that is not a `metav1.Status` (a proxy's page, say) kept as message, in characters.
const FOREIGN_MESSAGE_CHARS: usize = 256;

/// The fields of a `metav1.Status` that somebody here reads.
#[derive(Deserialize)]
struct WireStatus {
    kind: Option<String>,
    code: Option<u16>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<WireDetails>,
}

#[derive(Deserialize)]
struct WireDetails {
    #[serde(rename = "retryAfterSeconds")]
    retry_after_s: Option<u64>,
    causes: Option<Vec<WireCause>>,
}

#[derive(Deserialize)]
struct WireCause {
    reason: Option<String>,
}

/// The failure that an answer with a status code outside 2xx stands for. `Retry-After` counts in its form as seconds; where
/// header and body both ask for a wait, the longer one holds.
pub(crate) fn failure_from_response(code: u16, headers: &HeaderMap, body: &[u8]) -> ApiFailure {
    let mut failure = failure_from_status(body).unwrap_or_else(|| foreign(body));
    failure.code = code;
    if failure.reason.is_empty() {
        failure.reason = usual_reason(code).into();
    }
    let header = headers.get(RETRY_AFTER).and_then(|v| v.to_str().ok()).and_then(|v| v.trim().parse().ok());
    failure.retry_after = failure.retry_after.max(header.map(Duration::from_secs));
    failure
}

/// The failure in a `metav1.Status`: the body of a refused request or the object of an ERROR frame. `None` when `json` is
/// something else.
pub(crate) fn failure_from_status(json: &[u8]) -> Option<ApiFailure> {
    let status: WireStatus = serde_json::from_slice(json).ok()?;
    if status.kind.as_deref() != Some("Status") {
        return None;
    }
    let details = status.details.as_ref();
    let causes = details.and_then(|d| d.causes.as_deref()).unwrap_or_default();
    Some(ApiFailure {
        code: status.code.unwrap_or_default(),
        namespace_terminating: causes.iter().any(|c| c.reason.as_deref() == Some("NamespaceTerminating")),
        retry_after: details.and_then(|d| d.retry_after_s).map(Duration::from_secs),
        reason: status.reason.unwrap_or_default().into(),
        message: status.message.unwrap_or_default().into(),
    })
}

/// No answer came: the request may or may not have been applied.
pub(crate) fn no_answer(error: &dyn Error) -> ApiFailure {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        // Wrappers often repeat what they wrap.
        if !message.contains(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        source = error.source();
    }
    ApiFailure { message: message.into(), ..ApiFailure::default() }
}

/// No answer within the time allowed.
pub(crate) fn too_late(allowed: Duration) -> ApiFailure {
    ApiFailure { message: format!("no answer within {} s", allowed.as_secs_f64()).into(), ..ApiFailure::default() }
}

fn foreign(body: &[u8]) -> ApiFailure {
    let message: String = String::from_utf8_lossy(body).trim().chars().take(FOREIGN_MESSAGE_CHARS).collect();
    ApiFailure { message: message.into(), ..ApiFailure::default() }
}

/// The reason that the API server gives with a code, for answers that carry no Status. A bare 409 has two meanings and gets none.
fn usual_reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        410 => "Gone",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_with_causes_and_wait() {
        let body = br#"{"kind":"Status","code":403,"reason":"Forbidden","message":"jobs is forbidden",
            "details":{"retryAfterSeconds":3,"causes":[{"reason":"NamespaceTerminating","message":"x"}]}}"#;
        let failure = failure_from_response(403, &HeaderMap::new(), body);
        assert!(failure.namespace_terminating);
        assert_eq!((failure.code, &*failure.reason, &*failure.message), (403, "Forbidden", "jobs is forbidden"));
        assert_eq!(failure.retry_after, Some(Duration::from_secs(3)));
    }

    #[test]
    fn the_longer_of_two_waits_holds_and_a_date_is_no_wait() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "5".parse().unwrap());
        let body = br#"{"kind":"Status","details":{"retryAfterSeconds":1}}"#;
        assert_eq!(failure_from_response(429, &headers, body).retry_after, Some(Duration::from_secs(5)));
        headers.insert(RETRY_AFTER, "Wed, 21 Oct 2026 07:28:00 GMT".parse().unwrap());
        assert_eq!(failure_from_response(429, &headers, b"").retry_after, None);
    }

    #[test]
    fn an_answer_that_is_no_status_keeps_its_text_and_gets_the_usual_reason() {
        let failure = failure_from_response(404, &HeaderMap::new(), b"404 page not found\n");
        assert!(failure.is_not_found());
        assert_eq!(&*failure.message, "404 page not found");
        assert_eq!(&*failure_from_response(409, &HeaderMap::new(), b"").reason, "");
    }
}
