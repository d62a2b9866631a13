//! A failed call to the API server, as decisions see it.

use std::fmt;
use std::time::Duration;

/// A call that did not succeed: the server's `metav1.Status`, or no answer at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiFailure {
    /// HTTP status code; 0 when no answer came (then the write may or may not have been applied).
    pub code: u16,
    /// `reason` of the Status, for example `NotFound`, `AlreadyExists`, `Conflict`; empty when the server gave none.
    pub reason: Box<str>,
    /// `message` of the Status, or what the transport said.
    pub message: Box<str>,
    /// Whether `details.causes` holds `NamespaceTerminating`.
    pub namespace_terminating: bool,
    /// How long the server asked us to wait (`Retry-After`, `details.retryAfterSeconds`).
    pub retry_after: Option<Duration>,
}

impl ApiFailure {
    /// The object does not exist.
    pub fn is_not_found(&self) -> bool {
        &*self.reason == "NotFound"
    }

    /// An object of that name exists.
    pub fn is_already_exists(&self) -> bool {
        &*self.reason == "AlreadyExists"
    }

    /// The resource version sent is not the current one.
    pub fn is_conflict(&self) -> bool {
        &*self.reason == "Conflict"
    }

    /// No answer came, so a write may have been applied all the same.
    pub fn is_ambiguous(&self) -> bool {
        self.code == 0
    }
}

impl fmt::Display for ApiFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiFailure {}
