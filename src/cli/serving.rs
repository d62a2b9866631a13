//! The flags of the ports and of the end of the process, and what is served there.
//!
//! Two ports by default: metrics and pages over TLS for whoever the API server allows, and probes in plain HTTP for kubelet,
//! which shows no token. They share a port only where both are plain.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use clap::{ArgAction, Args};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::values::{BindAddress, Contradiction, parse_duration};
use crate::clock::Clock;
use crate::telemetry::{
    Access, Certificate, CertificateSource, Flag, Health, PortMetrics, Registry, Reviewer, Status, health_router,
    metrics_router, pages_router, serve,
};

/// What the secure port serves.
const PATHS: &str = "/flagz /metrics /statusz";

/// Flags about the ports and the end of the process.
#[derive(Debug, Args)]
#[command(next_help_heading = "Operation")]
pub struct ServingArgs {
    /// Where /metrics, /statusz and /flagz are served: ":PORT" is every address, 0 is off.
    #[arg(long, value_name = "ADDRESS", default_value = ":8443")]
    pub metrics_bind_address: BindAddress,

    /// Serve metrics over TLS, to whoever the API server knows by bearer token and lets get the path.
    ///
    /// Asked by TokenReview and SubjectAccessReview; answers are kept for up to a minute. false serves them in plain HTTP to
    /// everybody.
    #[arg(long, value_name = "BOOL", default_value = "true", default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    pub metrics_secure: bool,

    /// PEM file with the certificate of the metrics port, and those between it and the root. Default: a certificate made at
    /// the start, signed by itself.
    ///
    /// Read again when it changes, at the latest after 10 seconds; one that cannot be used leaves the old one in its place.
    #[arg(long, value_name = "FILE")]
    pub tls_cert_file: Option<PathBuf>,

    /// PEM file with the private key that belongs to --tls-cert-file.
    #[arg(long, value_name = "FILE")]
    pub tls_private_key_file: Option<PathBuf>,

    /// Where /healthz, /livez and /readyz are served, plain HTTP; 0 is off.
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: BindAddress,

    /// How long steps in flight may take after SIGTERM before they are cut off. Keep it below the pod's
    /// terminationGracePeriodSeconds.
    #[arg(long, value_name = "DURATION", default_value = "25s", value_parser = parse_duration)]
    pub shutdown_budget: Duration,
}

/// What is shown on the ports.
pub(super) struct Shown {
    pub(super) clock: Clock,
    pub(super) registry: Registry,
    pub(super) health: Health,
    pub(super) status: Status,
    pub(super) flags: Vec<Flag>,
    /// Who says who may look.
    pub(super) reviewer: Arc<dyn Reviewer>,
}

/// A port to be served.
struct Port {
    flag: &'static str,
    address: BindAddress,
    router: Router,
    tls: Option<TlsAcceptor>,
}

impl ServingArgs {
    /// What is wrong with flags that are each sound by themselves.
    pub(super) fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = Vec::new();
        match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(_), None) => {
                found.push(Contradiction::new(&["tls-cert-file"], "needs --tls-private-key-file beside it"));
            }
            (None, Some(_)) => {
                found.push(Contradiction::new(&["tls-private-key-file"], "needs --tls-cert-file beside it"));
            }
            _ => {}
        }
        if self.metrics_secure && self.shared_address() {
            let address = self.metrics_bind_address;
            let why = format!("{address} is for metrics and for probes, but probes show no token: take two ports");
            found.push(Contradiction::new(&["metrics-bind-address", "health-probe-bind-address"], why));
        }
        found
    }

    /// Listens on the ports and answers until `closing`.
    ///
    /// # Errors
    /// A port is taken, or the certificate cannot be used.
    pub(super) async fn open(
        &self,
        tasks: &TaskTracker,
        shown: Shown,
        closing: &CancellationToken,
    ) -> anyhow::Result<()> {
        for Port { flag, address, router, tls } in self.ports(tasks, shown, closing)? {
            let listener = address.bind().await.with_context(|| format!("cannot listen on {address} (--{flag})"))?;
            if let Some(listener) = listener {
                tell(flag, &listener, tls.is_some());
                tasks.spawn(serve(listener, tls, router, closing.clone()));
            }
        }
        Ok(())
    }

    fn ports(&self, tasks: &TaskTracker, shown: Shown, closing: &CancellationToken) -> anyhow::Result<Vec<Port>> {
        let Shown { clock, registry, health, status, flags, reviewer } = shown;
        let port_metrics = PortMetrics::register(&registry);
        status.line("Paths", || PATHS.to_owned());
        let pages = metrics_router(registry).merge(pages_router(status, &flags));
        let probes = health_router(health);
        let metrics =
            |router, tls| Port { flag: "metrics-bind-address", address: self.metrics_bind_address, router, tls };
        if self.shared_address() && !self.metrics_secure {
            return Ok(vec![metrics(pages.merge(probes), None)]);
        }
        let (flag, address) = ("health-probe-bind-address", self.health_probe_bind_address);
        let probes = Port { flag, address, router: probes, tls: None };
        if self.metrics_bind_address == BindAddress::Off || !self.metrics_secure {
            return Ok(vec![metrics(pages, None), probes]);
        }
        let certificate = Certificate::load(self.certificate_source(), port_metrics.clone())
            .context("the metrics port has no certificate (--tls-cert-file, --tls-private-key-file)")?;
        let tls = certificate.acceptor()?;
        tasks.spawn(certificate.watch(closing.clone()));
        let pages = Access::new(reviewer, &clock, port_metrics).guard(pages);
        Ok(vec![metrics(pages, Some(tls)), probes])
    }

    fn certificate_source(&self) -> CertificateSource {
        match (self.tls_cert_file.clone(), self.tls_private_key_file.clone()) {
            (Some(certificate), Some(key)) => CertificateSource::Files { certificate, key },
            _ => CertificateSource::SelfSigned,
        }
    }

    /// Whether both are asked for on one port; port 0 is another one each time.
    fn shared_address(&self) -> bool {
        let any_port = match self.metrics_bind_address {
            BindAddress::Off => true,
            BindAddress::Every(port) => port == 0,
            BindAddress::At(address) => address.port() == 0,
        };
        !any_port && self.metrics_bind_address == self.health_probe_bind_address
    }
}

fn tell(flag: &str, listener: &TcpListener, tls: bool) {
    let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
    tracing::info!(flag, address, tls, "listening");
}
