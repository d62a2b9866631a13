//! A failed call to the API server, as decisions see it.

use std::fmt;
use std::time::Duration;

/// A call that did not succeed: the server's `metav1.Status`, or no answer at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiFailure {
    /// HTTP status code; 0 when no answer came (then the write may or may not have been applied, unless it was withheld).
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

/// `reason` of what was not sent.
const WITHHELD: &str = "NotLeading";

/// `reason` of an answer that cannot be read.
const UNREADABLE: &str = "UnreadableAnswer";

/// How long it takes until it is known whether this process leads again.
const WITHHELD_FOR: Duration = Duration::from_secs(1);

impl ApiFailure {
    /// A write that was not sent, since this process may not write now.
    pub fn withheld() -> Self {
        Self {
            reason: WITHHELD.into(),
            message: "not sent: this process does not lead at the moment".into(),
            retry_after: Some(WITHHELD_FOR),
            ..Self::default()
        }
    }

    /// It was never sent: see [`ApiFailure::withheld`].
    pub fn is_withheld(&self) -> bool {
        self.code == 0 && &*self.reason == WITHHELD
    }

    /// A good answer came that cannot be read; `message` says what is wrong with it. It leaves open what the server did.
    pub fn unreadable(message: String) -> Self {
        Self { reason: UNREADABLE.into(), message: message.into(), ..Self::default() }
    }

    /// The object is there and cannot be read: see [`ApiFailure::unreadable`].
    pub fn is_unreadable(&self) -> bool {
        self.code == 0 && &*self.reason == UNREADABLE
    }

    /// The same request may well succeed a while later: no answer, too many requests, or a fault of the server.
    pub fn may_pass(&self) -> bool {
        self.is_ambiguous() || self.code == 429 || self.code >= 500
    }

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

    /// A deletion that names a uid found another object under the name: what it meant is gone.
    pub fn is_other_uid(&self) -> bool {
        self.is_conflict() && self.message.contains("UID in the precondition")
    }

    /// No answer came, so a write may have been applied all the same.
    pub fn is_ambiguous(&self) -> bool {
        self.code == 0 && !self.is_withheld()
    }
}

impl fmt::Display for ApiFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiFailure {}
