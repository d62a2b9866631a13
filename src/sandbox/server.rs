//! The sandbox over HTTP, so that kubectl and other programs can use it. Plain HTTP on a socket of the caller's choice; no
//! users, no TLS: bind it to the loopback address.

use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{BoxError, Service};

/// How long to wait after the system refused a connection (usually: no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long requests in flight may still take at the end.
const GRACE: Duration = Duration::from_secs(2);

/// Serves `service` on `listener` until `shutdown`; then lets the requests in flight finish, for at most two seconds.
pub async fn serve<S, B>(listener: TcpListener, service: S, shutdown: CancellationToken)
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(serve_connection(stream, service.clone(), shutdown.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

async fn serve_connection<S, B>(stream: TcpStream, service: S, shutdown: CancellationToken)
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    // Small answers go out at once; a failure to say so costs only time.
    let _ = stream.set_nodelay(true);
    let builder = Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(connection);
    let ended = tokio::select! {
        biased;
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            // Whoever is not done by then (a watch that began in this very moment) is dropped.
            timeout(GRACE, connection).await.unwrap_or(Ok(()))
        }
        ended = connection.as_mut() => ended,
    };
    if let Err(error) = ended {
        // Clients go away in the middle of watches all the time.
        tracing::debug!(%error, "connection ended");
    }
}

/// A kubeconfig for the server at `address`.
pub fn kubeconfig(address: SocketAddr) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: sandbox
  cluster:
    server: http://{address}
contexts:
- name: sandbox
  context:
    cluster: sandbox
    namespace: default
    user: sandbox
users:
- name: sandbox
  user: {{}}
current-context: sandbox
"
    )
}
