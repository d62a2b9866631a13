//! A refusal of the API server, from its answer to model.

use std::time::Duration;

use serde::Deserialize;

use crate::model::ApiFailure;

/// The longest text of a proxy or load balancer that is worth keeping as a message.
const MAX_FOREIGN_TEXT: usize = 512;

/// `metav1.Status`, as far as it is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    kind: Option<String>,
    message: Option<Box<str>>,
    reason: Option<Box<str>>,
    details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    causes: Option<Vec<Cause>>,
    retry_after_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cause {
    /// The field is called `reason` on the wire, CauseType in Go.
    reason: Option<String>,
}

impl ApiFailure {
    /// What a refusal with HTTP status `code` says. `body` is normally a `metav1.Status`; whatever else it is (a proxy's page)
    /// becomes the message, and the reason follows from the code.
    pub fn from_status(code: u16, body: &[u8]) -> Self {
        let status: Option<Status> = serde_json::from_slice(body).ok();
        let Some(status) = status.filter(|s| s.kind.as_deref() == Some("Status") || s.reason.is_some()) else {
            return Self { code, reason: reason_of(code).into(), message: foreign_text(code, body), ..Self::default() };
        };
        let details = status.details.unwrap_or_default();
        let causes = details.causes.unwrap_or_default();
        Self {
            code,
            reason: status.reason.filter(|reason| !reason.is_empty()).unwrap_or_else(|| reason_of(code).into()),
            message: status.message.unwrap_or_default(),
            namespace_terminating: causes.iter().any(|cause| cause.reason.as_deref() == Some("NamespaceTerminating")),
            retry_after: details
                .retry_after_seconds
                .and_then(|s| u64::try_from(s).ok())
                .filter(|s| *s > 0)
                .map(Duration::from_secs),
        }
    }
}

/// The reason that the API's conventions give to a bare code.
fn reason_of(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Gone",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}

fn foreign_text(code: u16, body: &[u8]) -> Box<str> {
    if code == 404 {
        return "the server could not find the requested resource".into();
    }
    let text = String::from_utf8_lossy(body.get(..MAX_FOREIGN_TEXT).unwrap_or(body));
    match text.trim() {
        "" => format!("the server answered with status {code}").into(),
        text => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_with_its_causes_and_its_wish_to_be_left_alone() {
        let failure = ApiFailure::from_status(
            403,
            br#"{"kind":"Status","message":"no","reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating","field":"metadata.namespace"}],"retryAfterSeconds":7}}"#,
        );
        assert!(failure.namespace_terminating);
        assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
        assert_eq!((&*failure.reason, &*failure.message), ("Forbidden", "no"));
    }

    #[test]
    fn a_status_without_a_reason_gets_that_of_its_code() {
        assert!(ApiFailure::from_status(404, br#"{"kind":"Status","message":"gone","reason":""}"#).is_not_found());
    }

    #[test]
    fn an_answer_that_is_no_status_still_tells_something() {
        let proxy = ApiFailure::from_status(502, b"<html>bad gateway</html>");
        assert_eq!(&*proxy.message, "<html>bad gateway</html>");
        assert!(ApiFailure::from_status(404, b"404 page not found").is_not_found());
        assert_eq!(&*ApiFailure::from_status(500, b"").message, "the server answered with status 500");
        assert_eq!(ApiFailure::from_status(500, &[0xff; 9000]).message.chars().count(), MAX_FOREIGN_TEXT);
    }
}
