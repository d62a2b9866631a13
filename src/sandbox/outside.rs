//! Paths outside the resources: what [`discovery`] knows, the counts of requests as `/metrics`, and 404 for the rest: a Status inside a group that is served, plain
//! text elsewhere, as from the real server.

use bytes::Bytes;
use http::{HeaderMap, Response, Uri, header};

use super::body::SandboxBody;
use super::counters::Counters;
use super::discovery;
use super::resources;
use super::service::{refused, response};
use super::status::Refusal;

/// The text form of metrics that every scraper reads.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn respond(counters: &Counters, uri: &Uri, headers: &HeaderMap) -> Response<SandboxBody> {
    if uri.path() == "/metrics" {
        return response(200, TEXT, SandboxBody::whole(counters.exposition()));
    }
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match discovery::respond(uri.path(), accept) {
        Some(response) => response.map(SandboxBody::whole),
        None if inside_a_group(uri.path()) => refused(&Refusal::no_such_path()),
        None => {
            response(404, "text/plain; charset=utf-8", SandboxBody::whole(Bytes::from_static(b"404 page not found\n")))
        }
    }
}

fn inside_a_group(path: &str) -> bool {
    match path.trim_matches('/').split('/').collect::<Vec<_>>().as_slice() {
        ["api", _, ..] => true,
        ["apis", group, _, ..] => resources::has_group(group),
        _ => false,
    }
}
