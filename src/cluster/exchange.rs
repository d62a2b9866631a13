//! One request and its answer, without any repetition.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;

use super::failure::{failure_from_response, no_answer};
use crate::model::ApiFailure;

/// Sends a request and waits for the head of a successful answer.
///
/// # Errors
/// The server refused it, or no answer came (code 0).
pub(crate) async fn open(client: &Client, request: Request<Body>) -> Result<Response<Body>, ApiFailure> {
    let response = client.send(request).await.map_err(|e| no_answer(&e))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let (head, body) = response.into_parts();
    // The code alone is an answer, also when the body is cut off.
    let body = body.collect().await.map(|b| b.to_bytes()).unwrap_or_default();
    Err(failure_from_response(head.status.as_u16(), &head.headers, &body))
}

/// Sends a request and waits for the whole of a successful answer: its status code and body.
///
/// # Errors
/// The server refused it, or no complete answer came (code 0).
pub(crate) async fn exchange(client: &Client, request: Request<Body>) -> Result<(u16, Bytes), ApiFailure> {
    let response = open(client, request).await?;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(|e| no_answer(&e))?;
    Ok((code, body.to_bytes()))
}
