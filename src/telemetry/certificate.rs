//! The certificate of a TLS port: made in memory, or two files that are read again when they change.
//!
//! Invariants
//! - There is a usable pair at all times: a new one that does not work leaves the old one in its place, a log line and a
//!   count.
//! - Files are compared by what they hold, so a renamed link (as Kubernetes swaps mounted secrets), a rewritten file and a
//!   moved folder are all the same to us.
//! - Only regular files are read: a pipe in their place cannot hold a thread up.
//! - A key made here is never written anywhere.

mod expiry;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use thiserror::Error;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_util::sync::CancellationToken;

use super::PortMetrics;
use crate::file::read_regular;
use crate::model::WallTime;

/// How often the files are looked at. Kubelet itself takes up to a minute or two to bring a changed secret into a pod.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Names in a certificate made here. Nobody can verify it anyway; it only has to be one.
const NAMES: [&str; 3] = ["cronjob-controller", "localhost", "127.0.0.1"];

/// Where a certificate and its key come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    /// Made at the start, signed by itself, gone with the process.
    SelfSigned,
    /// PEM files.
    Files {
        /// The certificate, followed by those between it and the root.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
}

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} holds no {what} in PEM form: {source}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
        /// What is wrong.
        source: pem::Error,
    },
    /// Certificate and key do not belong together, or rustls does not know their kind.
    #[error("the certificate and its key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

/// The pair that the port shows at the moment.
pub struct Certificate {
    source: CertificateSource,
    shown: Arc<Shown>,
    /// What the files held when they were last looked at, whether it worked or not.
    seen: Option<Texts>,
    metrics: PortMetrics,
}

#[derive(Debug)]
struct Shown(RwLock<Arc<CertifiedKey>>);

/// The contents of both files.
#[derive(PartialEq, Eq)]
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    /// Makes or reads the pair.
    ///
    /// # Errors
    /// There is no usable pair.
    pub fn load(source: CertificateSource, metrics: PortMetrics) -> Result<Self, CertificateError> {
        let (pair, seen) = match &source {
            CertificateSource::SelfSigned => (self_signed()?, None),
            CertificateSource::Files { certificate, key } => {
                let texts = Texts::read(certificate, key)?;
                (texts.pair(certificate, key)?, Some(texts))
            }
        };
        metrics.on_expiry(end(&pair));
        Ok(Self { source, shown: Arc::new(Shown(RwLock::new(Arc::new(pair)))), seen, metrics })
    }

    /// What accepts TLS connections, from TLS 1.2 on, always with the pair of the moment.
    ///
    /// # Errors
    /// The cryptography of this build lacks a protocol.
    pub fn acceptor(&self) -> Result<TlsAcceptor, CertificateError> {
        let config = ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(self.shown.clone());
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Looks at the files again and again until `shutdown`; returns at once if there are none.
    pub async fn watch(mut self, shutdown: CancellationToken) {
        if let CertificateSource::Files { certificate, key } = self.source.clone() {
            while shutdown.run_until_cancelled(sleep(LOOK_EVERY)).await.is_some() {
                self.look(&certificate, &key);
            }
        }
    }

    /// Reads both files (a few kilobytes in memory-backed mounts) and shows what they hold if it is new and works.
    fn look(&mut self, certificate: &Path, key: &Path) {
        let texts = match Texts::read(certificate, key) {
            Ok(texts) if self.seen.as_ref() == Some(&texts) => return,
            Ok(texts) => texts,
            // In the midst of a swap, perhaps; a file that stays away is told once.
            Err(error) => {
                if self.seen.take().is_some() {
                    self.keep(&error);
                }
                return;
            }
        };
        match texts.pair(certificate, key) {
            Ok(pair) => {
                self.metrics.on_expiry(end(&pair));
                *self.shown.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
                self.metrics.on_load(true);
                tracing::info!(certificate = %certificate.display(), "a changed certificate is in use");
            }
            Err(error) => self.keep(&error),
        }
        self.seen = Some(texts);
    }

    fn keep(&self, error: &CertificateError) {
        self.metrics.on_load(false);
        tracing::error!(%error, "a changed certificate cannot be used; the old one stays");
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Texts {
    fn read(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        let read =
            |path: &Path| read_regular(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source });
        Ok(Self { certificate: read(certificate)?, key: read(key)? })
    }

    fn pair(&self, certificate: &Path, key: &Path) -> Result<CertifiedKey, CertificateError> {
        let wrong = |path: &Path, what| {
            let path = path.to_owned();
            move |source| CertificateError::Pem { path, what, source }
        };
        let no_certificate = wrong(certificate, "certificate");
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.and_then(|chain| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) });
        let key_der = PrivateKeyDer::from_pem_slice(&self.key).map_err(wrong(key, "private key"))?;
        Ok(CertifiedKey::from_der(chain.map_err(no_certificate)?, key_der, &provider())?)
    }
}

/// Without an end, practically: it lives as long as the process, however long that is.
fn self_signed() -> Result<CertifiedKey, CertificateError> {
    let made = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned))?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())
        .map_err(|why| rustls::Error::General(why.to_owned()))?;
    Ok(CertifiedKey::from_der(vec![made.cert.der().clone()], key, &provider())?)
}

/// When the first certificate of a pair ends.
fn end(pair: &CertifiedKey) -> Option<WallTime> {
    expiry::not_after(pair.cert.first()?)
}

fn provider() -> CryptoProvider {
    ring::default_provider()
}

#[cfg(test)]
mod tests;
