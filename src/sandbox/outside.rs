//! Paths outside the resources: health, version, discovery, OpenAPI.

use http::{HeaderMap, Response, Uri};

use super::body::SandboxBody;
use super::service::{refused, response};
use super::status::Refusal;

pub(super) fn respond(uri: &Uri, _headers: &HeaderMap) -> Response<SandboxBody> {
    match uri.path() {
        "/healthz" | "/livez" | "/readyz" => response(200, "text/plain", SandboxBody::whole("ok")),
        _ => refused(&Refusal::no_such_path()),
    }
}
