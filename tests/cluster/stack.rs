//! Connections: over plain sockets and TLS, on real time.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use cronjob_controller::cluster::{Protocol, clients};
use http::{Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube::client::Body;
use kube::config::AuthInfo;
use kube::{Client, Config};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::task::TaskTracker;

/// Made with `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj /CN=test -addext
/// subjectAltName=DNS:apiserver.test`; worth nothing outside this test.
const CERTIFICATE: &[u8] = include_bytes!("server.crt");
const KEY: &[u8] = include_bytes!("server.key");

/// One request as it arrived.
#[derive(Clone, Debug)]
struct Arrived {
    connection: SocketAddr,
    version: Version,
    agent: String,
    authorization: String,
}

/// A server that answers every request with one status code.
struct Server {
    address: SocketAddr,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    tasks: TaskTracker,
}

impl Server {
    async fn start(code: u16, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (arrived, tasks) = (Arc::new(Mutex::new(Vec::new())), TaskTracker::new());
        let (log, connections) = (arrived.clone(), tasks.clone());
        tasks.spawn(async move {
            loop {
                let (stream, peer) = listener.accept().await.unwrap();
                let (log, tls) = (log.clone(), tls.clone());
                connections.spawn(async move { serve(stream, peer, code, tls, log).await });
            }
        });
        Self { address, arrived, tasks }
    }

    async fn plain(code: u16) -> Self {
        Self::start(code, None).await
    }

    async fn tls() -> Self {
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
        let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        let mut config =
            ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self::start(200, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    fn config(&self, scheme: &str) -> Config {
        Config::new(format!("{scheme}://{}", self.address).parse().unwrap())
    }

    fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }

    fn connections(&self) -> usize {
        self.arrived().iter().map(|a| a.connection).collect::<BTreeSet<_>>().len()
    }

    fn versions(&self) -> Vec<Version> {
        self.arrived().iter().map(|a| a.version).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.close();
    }
}

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    code: u16,
    tls: Option<TlsAcceptor>,
    log: Arc<Mutex<Vec<Arrived>>>,
) {
    let answer = hyper::service::service_fn(move |request: Request<Incoming>| {
        let header = |name| request.headers().get(name).map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default();
        log.lock().unwrap().push(Arrived {
            connection: peer,
            version: request.version(),
            agent: header("user-agent"),
            authorization: header("authorization"),
        });
        let response =
            Response::builder().status(code).header("retry-after", "0").body(Full::<bytes::Bytes>::from("{}")).unwrap();
        futures::future::ready(Ok::<_, std::convert::Infallible>(response))
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    // A client that hangs up is no matter here.
    match tls {
        None => drop(builder.serve_connection(TokioIo::new(stream), answer).await),
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                drop(builder.serve_connection(TokioIo::new(stream), answer).await);
            }
        }
    }
}

async fn get(client: &Client) -> Result<u16, kube::Error> {
    let request = Request::get("/api/v1/pods").body(Body::empty()).unwrap();
    client.send(request).await.map(|response| response.status().as_u16())
}

#[tokio::test]
async fn plain_http_needs_no_certificates_and_says_who_we_are() {
    let server = Server::plain(200).await;
    let mut config = server.config("http");
    config.auth_info = AuthInfo { token: Some("secret".to_owned().into()), ..AuthInfo::default() };
    let clients = clients(config, Protocol::Http2).unwrap();
    assert_eq!(get(&clients.requests).await.unwrap(), 200);
    let arrived = server.arrived();
    assert_eq!(arrived[0].version, Version::HTTP_11);
    assert_eq!(arrived[0].agent, format!("cronjob-controller/{}", env!("CARGO_PKG_VERSION")));
    assert_eq!(arrived[0].authorization, "Bearer secret");
    assert_eq!(clients.host, server.address.to_string());
}

#[tokio::test]
async fn no_layer_repeats_a_refused_request() {
    for code in [429, 500, 503, 504] {
        let server = Server::plain(code).await;
        let clients = clients(server.config("http"), Protocol::Http2).unwrap();
        assert_eq!(get(&clients.requests).await.unwrap(), code);
        assert_eq!(server.arrived().len(), 1, "{code}");
    }
}

#[tokio::test]
async fn without_a_ca_and_with_verification_off_tls_works_and_speaks_http2_on_one_connection() {
    let server = Server::tls().await;
    let mut config = server.config("https");
    config.accept_invalid_certs = true;
    let clients = clients(config, Protocol::Http2).unwrap();
    assert_eq!(get(&clients.requests).await.unwrap(), 200);
    let many = futures::future::join_all((0..20).map(|_| get(&clients.requests))).await;
    assert!(many.into_iter().all(|code| code.is_ok_and(|code| code == 200)));
    assert!(server.versions().iter().all(|v| *v == Version::HTTP_2));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn watches_have_connections_of_their_own() {
    let server = Server::tls().await;
    let mut config = server.config("https");
    config.accept_invalid_certs = true;
    let clients = clients(config, Protocol::Http2).unwrap();
    for client in [&clients.requests, &clients.watches, &clients.requests] {
        get(client).await.unwrap();
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn http1_can_be_chosen_over_tls() {
    let server = Server::tls().await;
    let mut config = server.config("https");
    config.accept_invalid_certs = true;
    get(&clients(config, Protocol::Http1).unwrap().requests).await.unwrap();
    assert_eq!(server.versions(), [Version::HTTP_11]);
}

#[tokio::test]
async fn the_server_is_verified_against_the_configured_ca_and_name() {
    let server = Server::tls().await;
    let mut config = server.config("https");
    config.root_cert = Some(vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap().to_vec()]);
    let unnamed = clients(config.clone(), Protocol::Http2).unwrap();
    assert!(get(&unnamed.requests).await.is_err(), "the certificate is not for an address");
    config.tls_server_name = Some("apiserver.test".into());
    let named = clients(config, Protocol::Http2).unwrap();
    assert_eq!(get(&named.requests).await.unwrap(), 200);
}
