//! Failed calls as the transport shows them, on top of [`ApiFailure::from_status`], which reads the body of a refusal.

use std::error::Error;
use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use serde::Deserialize;

use crate::model::ApiFailure;

/// The failure that an answer with a status code outside 2xx stands for. `Retry-After` counts in its form as seconds; where
/// header and body both ask for a wait, the longer one holds.
pub(crate) fn failure_from_response(code: u16, headers: &HeaderMap, body: &[u8]) -> ApiFailure {
    let mut failure = ApiFailure::from_status(code, body);
    let header = headers.get(RETRY_AFTER).and_then(|v| v.to_str().ok()).and_then(|v| v.trim().parse().ok());
    failure.retry_after = failure.retry_after.max(header.map(Duration::from_secs));
    failure
}

/// The failure in the Status of a watch's ERROR frame, whose code stands nowhere else.
pub(crate) fn failure_from_frame(status: &str) -> ApiFailure {
    #[derive(Default, Deserialize)]
    struct Code {
        #[serde(default)]
        code: u16,
    }
    let Code { code } = serde_json::from_str(status).unwrap_or_default();
    ApiFailure::from_status(code, status.as_bytes())
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

/// No answer within the time for which this process was known to lead.
pub(crate) fn too_late_for_leader() -> ApiFailure {
    ApiFailure { message: "no answer before the lease could have passed to another".into(), ..ApiFailure::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_code_of_an_error_frame_is_in_its_status() {
        let failure = failure_from_frame(r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#);
        assert_eq!((failure.code, &*failure.reason, &*failure.message), (410, "Expired", "too old"));
        assert_eq!(failure_from_frame("7").code, 0);
    }

    #[test]
    fn a_failed_connection_names_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("client error (Connect)")]
        struct Outer(#[source] std::io::Error);
        let failure = no_answer(&Outer(std::io::Error::other("connection refused")));
        assert_eq!(&*failure.message, "client error (Connect): connection refused");
        assert!(failure.is_ambiguous());
    }
}
