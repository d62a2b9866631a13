//! Serving a router on a listener, in plain HTTP/1.1 or over TLS, so that nobody can hold it up.
//!
//! Invariants
//! - Whoever says nothing is cut off: a TLS handshake and the head of each request have their time, a connection its age.
//! - At most [`MOST_CONNECTIONS`] are open at a time; when all are taken, one gives way to who comes ([`places`]).
//! - A connection in plain HTTP, as probes have it, takes one request and is closed. One over TLS is kept, since handshakes
//!   are dear.
//! - Nothing of it outlives [`GRACE`] after the shutdown.

mod places;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::places::{Place, Places, Stage};

/// How long requests in flight may take at the end; a client that dawdles longer is cut off.
const GRACE: Duration = Duration::from_secs(2);
/// Connections at a time.
const MOST_CONNECTIONS: usize = 256;
/// Time for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a connection is kept.
struct Patience {
    /// Time for the head of a request, and for the pause before the next one.
    head: Duration,
    /// Age at which it takes no further request.
    age: Duration,
    /// Whether it takes more than one.
    kept: bool,
}

const PLAIN: Patience = Patience { head: Duration::from_secs(3), age: Duration::from_secs(5), kept: false };
const SECURE: Patience = Patience { head: Duration::from_secs(10), age: Duration::from_secs(120), kept: true };

/// Most bytes of a request's head; a token with many claims fits.
const HEAD_BYTES: usize = 64 * 1024;
/// Pause after the system refused a connection for want of something (file descriptors, memory).
const BREATH: Duration = Duration::from_millis(500);

/// Serves `router` until `shutdown` is cancelled, then lets requests in flight finish within two seconds. With `tls` every
/// connection must begin with a handshake.
pub async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, router: Router, shutdown: CancellationToken) {
    let (connections, places) = (TaskTracker::new(), Places::new(MOST_CONNECTIONS));
    while let Some((stream, place)) = shutdown.run_until_cancelled(accept(&listener, &places)).await {
        let (tls, router, shutdown) = (tls.clone(), router.clone(), shutdown.clone());
        connections.spawn(async move {
            let give_way = place.give_way();
            // Whoever spoke badly or went away has nobody to be told.
            let _ended = give_way.run_until_cancelled(connection(stream, Arc::new(place), tls, router, shutdown)).await;
        });
    }
    connections.close();
    connections.wait().await;
}

/// The next connection, with its place.
async fn accept(listener: &TcpListener, places: &Places) -> (TcpStream, Place) {
    let (stream, peer) = next(listener).await;
    (stream, places.take(peer.ip().to_canonical()).await)
}

async fn next(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_of_the_peer(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(BREATH).await;
            }
        }
    }
}

/// The peer was gone before we could speak: no fault of ours.
fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection(
    stream: TcpStream,
    place: Arc<Place>,
    tls: Option<TlsAcceptor>,
    router: Router,
    shutdown: CancellationToken,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let Some(tls) = tls else { return Ok(answer(stream, false, router, shutdown).await?) };
    let handshake = timeout(HANDSHAKE, tls.accept(stream));
    let Some(greeted) = shutdown.run_until_cancelled(handshake).await else { return Ok(()) };
    let stream = greeted??;
    place.reached(Stage::Greeted);
    let router = router.layer(middleware::from_fn(move |request, next| noted(place.clone(), request, next)));
    Ok(answer(stream, true, router, shutdown).await?)
}

/// Answers, and notes that whoever asked was given what it asked for.
async fn noted(place: Arc<Place>, request: Request, next: Next) -> axum::response::Response {
    let answer = next.run(request).await;
    if answer.status().is_success() {
        place.reached(Stage::Proven);
    }
    answer
}

/// Answers the requests of one connection, whatever carries it, until it ends; `secure` says whose patience it has.
///
/// # Errors
/// Whoever asked spoke no HTTP, or went away.
pub async fn answer<S>(stream: S, secure: bool, router: Router, shutdown: CancellationToken) -> Result<(), hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let patience = if secure { &SECURE } else { &PLAIN };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience.head).max_buf_size(HEAD_BYTES).keep_alive(patience.kept);
    let service = TowerToHyperService::new(router);
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        biased;
        ended = connection.as_mut() => return ended,
        () = shutdown.cancelled() => {}
        () = sleep(patience.age) => {}
    }
    connection.as_mut().graceful_shutdown();
    timeout(GRACE, connection).await.unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::telemetry::{Certificate, CertificateSource, PortMetrics, Registry};
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    struct Served {
        address: std::net::SocketAddr,
        shutdown: CancellationToken,
        tasks: TaskTracker,
    }

    async fn served() -> Served {
        served_with(None).await
    }

    async fn served_with(tls: Option<TlsAcceptor>) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let slow = get(async || {
            sleep(Duration::from_secs(3600)).await;
            "late"
        });
        let router = Router::new().route("/", get(async || "here")).route("/slow", slow);
        tasks.spawn(serve(listener, tls, router, shutdown.clone()));
        Served { address, shutdown, tasks }
    }

    /// Sends `text` and returns all that comes until the server closes.
    async fn say(served: &Served, text: &str) -> String {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_request_is_answered() {
        let served = served().await;
        let answer = say(&served, "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("here"), "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_end_the_head_of_a_request_is_cut_off() {
        let served = served().await;
        let begun = Clock::system().mono();
        say(&served, "GET / HTTP/1.1\r\nhost: ").await;
        assert!(begun.elapsed() >= PLAIN.head && begun.elapsed() < PLAIN.age, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_shake_hands_is_cut_off() {
        let metrics = PortMetrics::register(&Registry::new());
        let certificate = Certificate::load(CertificateSource::SelfSigned, metrics).unwrap();
        let served = served_with(Some(certificate.acceptor().unwrap())).await;
        let begun = Clock::system().mono();
        assert_eq!(say(&served, "").await, "");
        assert!(begun.elapsed() >= HANDSHAKE && begun.elapsed() < SECURE.head, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_when_all_places_are_taken_does_not_wait() {
        let served = served().await;
        let mut silent = Vec::new();
        for _ in 0..2 * MOST_CONNECTIONS {
            silent.push(TcpStream::connect(served.address).await.unwrap());
        }
        let begun = Clock::system().mono();
        let answer = say(&served, "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(answer.ends_with("here"), "{answer}");
        assert!(begun.elapsed() < PLAIN.head, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_plain_connection_is_closed_after_its_answer() {
        let served = served().await;
        let begun = Clock::system().mono();
        let answer = say(&served, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer.ends_with("here") && answer.contains("connection: close\r\n"), "{answer}");
        assert!(begun.elapsed() < PLAIN.head, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_waits_for_requests_in_flight_and_not_for_ever() {
        let served = served().await;
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let begun = Clock::system().mono();
        served.shutdown.cancel();
        served.tasks.close();
        served.tasks.wait().await;
        assert_eq!(begun.elapsed().as_secs(), GRACE.as_secs());
    }
}
