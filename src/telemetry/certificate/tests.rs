use std::fs;

use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::task::TaskTracker;

use super::*;
use crate::telemetry::{Exposition, Registry};

/// A folder with `tls.crt` and `tls.key`.
struct Files {
    folder: TempDir,
    registry: Registry,
    metrics: PortMetrics,
}

/// A pair as PEM.
fn pair(name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

impl Files {
    fn new() -> Self {
        let registry = Registry::new();
        let metrics = PortMetrics::register(&registry);
        Self { folder: tempfile::tempdir().unwrap(), registry, metrics }
    }

    fn write(&self, (certificate, key): &(String, String)) {
        fs::write(self.path("tls.crt"), certificate).unwrap();
        fs::write(self.path("tls.key"), key).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn load(&self) -> Result<Certificate, CertificateError> {
        let source = CertificateSource::Files { certificate: self.path("tls.crt"), key: self.path("tls.key") };
        Certificate::load(source, self.metrics.clone())
    }

    /// How many changed pairs were (loaded, broken).
    fn loads(&self) -> (usize, usize) {
        let text = self.registry.encode(Exposition::PrometheusText).unwrap();
        let of = |result: &str| {
            let start = format!("cronjob_controller_tls_certificate_loads_total{{result=\"{result}\"}} ");
            text.lines().find_map(|line| line.strip_prefix(&start)).unwrap().parse().unwrap()
        };
        (of("loaded"), of("broken"))
    }

    /// The end of the pair in use, as the metric tells it.
    fn expiry_s(&self) -> i64 {
        let text = self.registry.encode(Exposition::PrometheusText).unwrap();
        let start = "cronjob_controller_tls_certificate_expiry_timestamp_seconds ";
        text.lines().find_map(|line| line.strip_prefix(start)).unwrap().parse().unwrap()
    }
}

/// A pair that ends with a year.
fn pair_until(year: i32) -> (String, String) {
    let (mut params, key) =
        (rcgen::CertificateParams::new(["a".to_owned()]).unwrap(), rcgen::KeyPair::generate().unwrap());
    params.not_after = rcgen::date_time_ymd(year, 12, 31);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_certificate_in_use_is_told() {
    let (files, tasks, shutdown) = (Files::new(), TaskTracker::new(), CancellationToken::new());
    assert_eq!(files.expiry_s(), 0);
    let end = |year| chrono::NaiveDate::from_ymd_opt(year, 12, 31).unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc();
    files.write(&pair_until(2030));
    tasks.spawn(files.load().unwrap().watch(shutdown.clone()));
    assert_eq!(files.expiry_s(), end(2030).timestamp());
    files.write(&pair_until(2055));
    sleep(2 * LOOK_EVERY).await;
    assert_eq!(files.expiry_s(), end(2055).timestamp());
    files.write(&("broken".to_owned(), "broken".to_owned()));
    sleep(2 * LOOK_EVERY).await;
    assert_eq!(files.expiry_s(), end(2055).timestamp());
    shutdown.cancel();
}

/// Whether a client that trusts only `trusted` (PEM) and speaks only `version` shakes hands with the server.
async fn greets(
    acceptor: &TlsAcceptor,
    trusted: &str,
    name: &'static str,
    version: &'static rustls::SupportedProtocolVersion,
) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let server = acceptor.accept(far);
    let client = connector.connect(ServerName::try_from(name).unwrap(), near);
    let (client, _server) = tokio::join!(client, server);
    client.map(drop).map_err(|error| error.to_string())
}

async fn shows(acceptor: &TlsAcceptor, pair: &(String, String), name: &'static str) -> bool {
    greets(acceptor, &pair.0, name, &rustls::version::TLS13).await.is_ok()
}

#[tokio::test]
async fn a_pair_of_files_greets_over_both_protocols() {
    let (files, one) = (Files::new(), pair("one.example"));
    files.write(&one);
    let acceptor = files.load().unwrap().acceptor().unwrap();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        assert_eq!(greets(&acceptor, &one.0, "one.example", version).await, Ok(()));
    }
    assert!(!shows(&acceptor, &pair("one.example"), "one.example").await, "another key of that name is not trusted");
}

#[tokio::test]
async fn a_pair_made_in_memory_is_another_each_time() {
    let make = || Certificate::load(CertificateSource::SelfSigned, PortMetrics::register(&Registry::new())).unwrap();
    let der = |made: &Certificate| made.shown.0.read().unwrap().cert[0].clone();
    let (one, other) = (make(), make());
    assert_ne!(der(&one), der(&other));
    let acceptor = one.acceptor().unwrap();
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(der(&one))
    });
    assert_eq!(greets(&acceptor, &pem, "localhost", &rustls::version::TLS13).await, Ok(()));
    let shutdown = CancellationToken::new();
    one.watch(shutdown).await;
}

#[tokio::test]
async fn what_cannot_be_used_at_the_start_is_named() {
    let files = Files::new();
    let text = |files: &Files| files.load().err().unwrap().to_string();
    assert!(text(&files).contains("tls.crt: No such file"), "{}", text(&files));
    let (one, other) = (pair("one.example"), pair("other.example"));
    files.write(&("no certificate".to_owned(), one.1.clone()));
    assert!(text(&files).contains("tls.crt holds no certificate in PEM form"), "{}", text(&files));
    files.write(&(one.0.clone(), one.0.clone()));
    assert!(text(&files).contains("tls.key holds no private key in PEM form"), "{}", text(&files));
    files.write(&(one.0, other.1));
    assert!(text(&files).starts_with("the certificate and its key cannot be used"), "{}", text(&files));
}

#[tokio::test(start_paused = true)]
async fn a_changed_pair_is_shown_and_a_broken_one_is_not() {
    let (files, tasks, shutdown) = (Files::new(), TaskTracker::new(), CancellationToken::new());
    let (one, other) = (pair("one.example"), pair("one.example"));
    files.write(&one);
    let certificate = files.load().unwrap();
    let acceptor = certificate.acceptor().unwrap();
    tasks.spawn(certificate.watch(shutdown.clone()));
    files.write(&(other.0.clone(), one.1.clone()));
    sleep(3 * LOOK_EVERY).await;
    assert!(shows(&acceptor, &one, "one.example").await);
    assert_eq!(files.loads(), (0, 1), "a broken pair is told once");
    fs::remove_file(files.path("tls.crt")).unwrap();
    sleep(3 * LOOK_EVERY).await;
    assert!(shows(&acceptor, &one, "one.example").await);
    assert_eq!(files.loads(), (0, 2), "a missing file is told once");
    // A pipe that nobody writes to must not hold anybody up.
    assert!(std::process::Command::new("mkfifo").arg(files.path("tls.crt")).status().unwrap().success());
    sleep(3 * LOOK_EVERY).await;
    assert_eq!(files.loads(), (0, 2));
    fs::remove_file(files.path("tls.crt")).unwrap();
    files.write(&other);
    sleep(3 * LOOK_EVERY).await;
    assert!(shows(&acceptor, &other, "one.example").await && !shows(&acceptor, &one, "one.example").await);
    assert_eq!(files.loads(), (1, 2));
    shutdown.cancel();
    tasks.close();
    tasks.wait().await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_swapped_by_its_link_as_kubelet_does_is_seen() {
    use std::os::unix::fs::symlink;
    let (files, tasks, shutdown) = (Files::new(), TaskTracker::new(), CancellationToken::new());
    let (one, other) = (pair("one.example"), pair("one.example"));
    for (version, pair) in [("..v1", &one), ("..v2", &other)] {
        fs::create_dir(files.path(version)).unwrap();
        fs::write(files.path(version).join("tls.crt"), &pair.0).unwrap();
        fs::write(files.path(version).join("tls.key"), &pair.1).unwrap();
    }
    symlink("..v1", files.path("..data")).unwrap();
    for name in ["tls.crt", "tls.key"] {
        symlink(format!("..data/{name}"), files.path(name)).unwrap();
    }
    let certificate = files.load().unwrap();
    let acceptor = certificate.acceptor().unwrap();
    tasks.spawn(certificate.watch(shutdown.clone()));
    symlink("..v2", files.path("..new")).unwrap();
    fs::rename(files.path("..new"), files.path("..data")).unwrap();
    sleep(2 * LOOK_EVERY).await;
    assert!(shows(&acceptor, &other, "one.example").await);
    assert_eq!(files.loads(), (1, 0));
    shutdown.cancel();
}
