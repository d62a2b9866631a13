//! The two servers that scripts run against.

use bytes::Bytes;
use chrono::TimeZone;
use cronjob_controller::clock::Clock;
use cronjob_controller::sandbox::store::Store;
use cronjob_controller::sandbox::{Options, Sandbox};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tower::Service;

use super::script::{Reply, Request, Server};
use super::support::controlplane::ControlPlane;

/// The sandbox, alone: nothing runs in its background, as nothing but the server runs on the other side.
pub(crate) struct Sandboxed(Sandbox);

impl Sandboxed {
    pub(crate) fn new() -> Self {
        let noon = chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap();
        let sandbox = Sandbox::new(Clock::starting_at(noon), 7, Options::default());
        // As on a server that has been started, whose caches begin there.
        sandbox.compact(sandbox.with_store(Store::revision));
        Self(sandbox)
    }
}

impl Server for Sandboxed {
    const REAL: bool = false;

    async fn send(&mut self, request: Request) -> Reply {
        let watch = request.watch;
        let answer = self.0.service().call(outgoing("", request)).await.unwrap();
        read(answer, watch).await
    }
}

/// The real server, without a client library in between that would retry or rewrite.
pub(crate) struct Real {
    server: String,
    client: Client<hyper_rustls::HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Real {
    pub(crate) async fn new(plane: &ControlPlane) -> Self {
        let kubeconfig = Kubeconfig::read_from(plane.admin_kubeconfig()).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let connector = config.rustls_https_connector().unwrap();
        Self { server: plane.server.clone(), client: Client::builder(TokioExecutor::new()).build(connector) }
    }
}

impl Server for Real {
    const REAL: bool = true;

    async fn send(&mut self, request: Request) -> Reply {
        let watch = request.watch;
        let answer = self.client.request(outgoing(&self.server, request)).await.unwrap();
        read(answer, watch).await
    }
}

fn outgoing(server: &str, request: Request) -> http::Request<Full<Bytes>> {
    let mut builder = http::Request::builder().method(request.method.as_str()).uri(format!("{server}{}", request.path));
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    builder.body(Full::from(request.body)).unwrap()
}

/// Reads an answer to its end, or a stream until `watch` lines have come.
async fn read<B>(answer: http::Response<B>, watch: Option<usize>) -> Reply
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let (parts, body) = answer.into_parts();
    let mut body = std::pin::pin!(body);
    let mut text = Vec::new();
    let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    while watch.is_none_or(|most| lines(&text) < most)
        && let Some(frame) = body.frame().await
    {
        if let Ok(data) = frame.unwrap().into_data() {
            text.extend_from_slice(&data);
        }
    }
    if let Some(most) = watch
        && let Some((end, _)) = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(most.saturating_sub(1))
    {
        text.truncate(end + 1);
    }
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    Reply { code: parts.status.as_u16(), headers: headers.collect(), body: String::from_utf8(text).unwrap() }
}
