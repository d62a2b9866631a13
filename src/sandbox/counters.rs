//! How many requests were answered, by what they asked and how they ended: what tests and benchmarks assert on.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use super::call::{Call, Subresource, Verb};

/// The code under which requests are counted whose answer never reached the client.
pub const NO_ANSWER: u16 = 0;

/// One row of the count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKey {
    /// API group; empty for core.
    pub group: &'static str,
    /// Plural of the resource.
    pub resource: &'static str,
    /// What was asked.
    pub verb: Verb,
    /// Of which part.
    pub subresource: Subresource,
    /// HTTP status code, or [`NO_ANSWER`].
    pub code: u16,
}

/// Counts of requests on resources since the start or the last [`Counters::reset`]. Watches count when they open.
#[derive(Debug, Default)]
pub struct Counters {
    rows: Mutex<BTreeMap<RequestKey, u64>>,
}

impl Counters {
    pub(super) fn add(&self, call: &Call, code: u16) {
        let key = RequestKey {
            group: call.resource.group,
            resource: call.resource.plural,
            verb: call.verb,
            subresource: call.subresource,
            code,
        };
        *self.rows.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
    }

    /// All rows.
    pub fn snapshot(&self) -> BTreeMap<RequestKey, u64> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sum of the rows for which `counts` holds.
    pub fn sum(&self, counts: impl Fn(&RequestKey) -> bool) -> u64 {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().filter(|(key, _)| counts(key)).map(|(_, count)| count).sum()
    }

    /// Requests of a verb on a resource, whatever their end.
    pub fn of(&self, verb: Verb, group: &str, resource: &str) -> u64 {
        self.sum(|key| key.verb == verb && key.group == group && key.resource == resource)
    }

    /// All rows as text of `/metrics`, under the name and the words of the real server.
    pub(super) fn exposition(&self) -> String {
        let mut text = "# TYPE apiserver_request_total counter\n".to_owned();
        for (RequestKey { group, resource, verb, subresource, code }, count) in self.snapshot() {
            let (verb, subresource) = (method(verb), subresource.name());
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "apiserver_request_total{{code=\"{code}\",group=\"{group}\",resource=\"{resource}\",\
                 subresource=\"{subresource}\",verb=\"{verb}\"}} {count}"
            );
        }
        text
    }

    /// Starts again from zero.
    pub fn reset(&self) {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// How the real server's metrics call a verb.
fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
        Verb::DeleteCollection => "DELETECOLLECTION",
    }
}
