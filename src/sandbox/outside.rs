//! Paths outside the resources: what [`discovery`] knows, and 404 for the rest.

use http::{HeaderMap, Response, Uri, header};

use super::body::SandboxBody;
use super::discovery;
use super::service::refused;
use super::status::Refusal;

pub(super) fn respond(uri: &Uri, headers: &HeaderMap) -> Response<SandboxBody> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match discovery::respond(uri.path(), accept) {
        Some(response) => response.map(SandboxBody::whole),
        None => refused(&Refusal::no_such_path()),
    }
}
