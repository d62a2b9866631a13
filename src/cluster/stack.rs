//! Connections to the API server: `kube::Client`s over our own layers.
//!
//! Invariants
//! - Nothing here repeats a request. (Hyper sends a request again only when its pooled connection was closed before the
//!   first byte went out; no server has seen it then.)
//! - Watches never share a connection with other requests: a long list or a burst of events cannot hold up a creation.
//! - A panic below costs the one request that met it. kube's client runs its service on a task of its own, which would die
//!   with the first panic in `call`; so `call` only makes a future, and the layers run inside the caller.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::uri::Scheme;
use http::{HeaderValue, Request, Response, Uri};
use hyper_rustls::{DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, ResolveServerName};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use thiserror::Error;
use tower::util::BoxCloneService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

/// Time for a TCP connection to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// After this long without traffic a connection is probed, on TCP and on HTTP/2, as client-go does.
const PROBE_AFTER: Duration = Duration::from_secs(30);
/// A probe without an answer for this long ends the connection.
const PROBE_TIMEOUT: Duration = Duration::from_secs(15);

/// What is sent as `User-Agent`.
const AGENT: &str = concat!("cronjob-controller/", env!("CARGO_PKG_VERSION"));

/// The protocol to speak over TLS; without TLS it is always HTTP/1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 if the server offers it, else HTTP/1.1.
    #[default]
    Http2,
    /// HTTP/1.1: one connection per request in flight.
    Http1,
}

/// The clients of one API server.
#[derive(Clone)]
pub struct Clients {
    /// For single requests.
    pub requests: Client,
    /// For lists and watches, on connections of their own.
    pub watches: Client,
    /// For the election of a leader alone: nothing else may delay a renewal. Over HTTP/1.1, where a request that is given up takes
    /// its connection with it, so that the next one does not wait on a dead line.
    pub leases: Client,
    /// Host and port of the server, for the metrics' label.
    pub host: String,
}

/// Why no client can be made of a configuration.
#[derive(Debug, Error)]
pub enum StackError {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig {path} cannot be used")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: KubeconfigError,
    },
    /// There is neither a kubeconfig nor a pod's service account.
    #[error("found no cluster: neither a kubeconfig nor the service account of a pod")]
    NoCluster(#[from] InferConfigError),
    /// The server's URL has another scheme, or none.
    #[error("server {0} is neither an http:// nor an https:// URL")]
    Server(Uri),
    /// A proxy is named by `proxy-url` of the kubeconfig or by the environment.
    #[error(
        "proxy {0} cannot be used, since proxies are not supported: unset proxy-url in the kubeconfig or HTTPS_PROXY"
    )]
    Proxy(Uri),
    /// Certificates, keys or the user's credentials are unusable.
    #[error("the credentials or certificates of the cluster configuration are unusable")]
    Credentials(#[from] kube::Error),
    /// `tls-server-name` is no name.
    #[error("tls-server-name {0:?} is not a host name")]
    ServerName(String),
}

/// The configuration in the kubeconfig at `path`; without a path, the service account of the pod that we run in, or else what
/// `KUBECONFIG` or `~/.kube/config` says.
///
/// # Errors
/// [`StackError::Kubeconfig`] or [`StackError::NoCluster`].
pub async fn load_config(path: Option<&Path>) -> Result<Config, StackError> {
    let Some(path) = path else {
        return match Config::incluster() {
            Ok(config) => Ok(config),
            Err(_no_pod) => Ok(Config::infer().await?),
        };
    };
    let unusable = |source| StackError::Kubeconfig { path: path.display().to_string(), source };
    let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(unusable)
}

/// Clients for the cluster that `config` names. Must be called inside a tokio runtime.
///
/// # Errors
/// See [`StackError`].
pub fn clients(mut config: Config, protocol: Protocol) -> Result<Clients, StackError> {
    if let Some(proxy) = config.proxy_url {
        return Err(StackError::Proxy(proxy));
    }
    if ![Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&config.cluster_url.scheme()) {
        return Err(StackError::Server(config.cluster_url));
    }
    trust_nothing_if_nothing_is_verified(&mut config);
    config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
    let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    Ok(Clients {
        requests: client(&config, protocol)?,
        watches: client(&config, protocol)?,
        leases: client(&config, Protocol::Http1)?,
        host,
    })
}

/// Where certificates are not looked at, kube still asks the operating system for its roots and fails when it has none, as in
/// an image from scratch. An empty root store says that none are needed.
fn trust_nothing_if_nothing_is_verified(config: &mut Config) {
    let plain = config.cluster_url.scheme() == Some(&Scheme::HTTP);
    if plain || config.accept_invalid_certs {
        config.root_cert.get_or_insert_default();
    }
}

/// One client with a connection pool of its own.
fn client(config: &Config, protocol: Protocol) -> Result<Client, StackError> {
    let http = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_adaptive_window(true)
        .http2_keep_alive_interval(PROBE_AFTER)
        .http2_keep_alive_timeout(PROBE_TIMEOUT)
        .build::<_, Body>(connector(config, protocol)?);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(client_over(BoxCloneService::new(service), &config.default_namespace))
}

/// A client whose calls run in whoever makes them.
fn client_over<B>(service: BoxCloneService<Request<Body>, Response<B>, BoxError>, namespace: &str) -> Client
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let in_the_caller = tower::service_fn(move |request: Request<Body>| {
        let service = service.clone();
        async move { service.oneshot(request).await }
    });
    Client::new(in_the_caller, namespace)
}

fn connector(config: &Config, protocol: Protocol) -> Result<HttpsConnector<HttpConnector>, StackError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(PROBE_AFTER));
    tcp.set_keepalive_interval(Some(PROBE_TIMEOUT / 3));
    tcp.set_keepalive_retries(Some(3));
    let mut tls = config.rustls_client_config()?;
    if protocol == Protocol::Http2 {
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    }
    let names: Arc<dyn ResolveServerName + Send + Sync> = match &config.tls_server_name {
        Some(name) => Arc::new(FixedServerNameResolver::new(
            name.clone().try_into().map_err(|_invalid| StackError::ServerName(name.clone()))?,
        )),
        None => Arc::new(DefaultServerNameResolver::default()),
    };
    Ok(HttpsConnector::new(tcp, tls, false, names))
}

#[cfg(test)]
mod tests {
    use tokio_util::task::TaskTracker;

    use super::*;

    #[tokio::test]
    async fn a_panic_below_costs_one_request_and_not_the_client() {
        let below = tower::service_fn(|request: Request<Body>| {
            assert_ne!(request.uri().path(), "/panic");
            futures::future::ready(Ok::<_, BoxError>(Response::new(Body::empty())))
        });
        let client = client_over(BoxCloneService::new(below), "default");
        let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
        let victim = client.clone();
        let panics = get("/panic");
        assert!(TaskTracker::new().spawn(async move { victim.send(panics).await.is_ok() }).await.is_err());
        assert!(client.send(get("/fine")).await.is_ok());
    }

    fn refused(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::new("https://cluster.example:6443".parse().unwrap());
        change(&mut config);
        clients(config, Protocol::Http2).err().unwrap().to_string()
    }

    #[tokio::test]
    async fn a_configuration_that_cannot_work_is_refused_with_a_reason() {
        let proxy = refused(|config| config.proxy_url = Some("http://proxy.example:3128".parse().unwrap()));
        assert!(proxy.contains("http://proxy.example:3128") && proxy.contains("HTTPS_PROXY"), "{proxy}");
        let server = refused(|config| config.cluster_url = "cluster.example:6443".parse().unwrap());
        assert!(server.contains("cluster.example:6443"), "{server}");
        let name = refused(|config| {
            config.root_cert = Some(Vec::new());
            config.tls_server_name = Some("not a name".into());
        });
        assert!(name.contains("not a name"), "{name}");
    }

    #[tokio::test]
    async fn a_kubeconfig_is_loaded_from_its_path_and_a_missing_one_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let text = "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], \
                    users: [{name: u, user: {}}], contexts: [{name: c, context: {cluster: c, user: u, namespace: n}}]}";
        std::fs::write(&path, text).unwrap();
        let config = load_config(Some(&path)).await.unwrap();
        assert_eq!(
            (config.cluster_url.to_string().as_str(), config.default_namespace.as_str()),
            ("http://127.0.0.1:1/", "n")
        );
        let missing = load_config(Some(&directory.path().join("none"))).await.unwrap_err();
        assert!(missing.to_string().contains("none"), "{missing}");
    }
}
