//! A real control plane for one test: etcd and kube-apiserver on loopback ports, RBAC on, with throw-away certificates; on
//! request the real kube-controller-manager. All of it ends with the value, also after a panic or a kill of the test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use cronjob_controller::clock::Clock;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use super::binaries::find;
use super::certificates::Authority;
use super::guardian::Guardian;

/// What the server does beyond the defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Further flags of kube-apiserver.
    pub(crate) apiserver: Vec<String>,
}

/// Where the programs are.
struct Programs {
    etcd: PathBuf,
    apiserver: PathBuf,
    kubectl: PathBuf,
}

pub(crate) struct ControlPlane {
    /// `https://127.0.0.1:PORT`.
    pub(crate) server: String,
    /// `http://127.0.0.1:PORT` of etcd.
    pub(crate) etcd: String,
    folder: PathBuf,
    programs: Programs,
    authority: Authority,
    children: Vec<Child>,
    guardian: Guardian,
}

impl ControlPlane {
    /// Starts one and waits until it is ready; `None` after `test` has named itself as skipped for want of the programs.
    pub(crate) async fn start(test: &str, options: Options) -> Option<Self> {
        let programs = Programs {
            etcd: find(test, "etcd")?,
            apiserver: find(test, "kube-apiserver")?,
            kubectl: find(test, "kubectl")?,
        };
        let folder = tempfile::Builder::new().prefix("controlplane-").tempdir().unwrap().keep();
        let guardian = Guardian::new(&folder);
        let authority = Authority::new(&folder);
        authority.server("server");
        let mut this = Self {
            server: String::new(),
            etcd: String::new(),
            folder,
            programs,
            authority,
            children: Vec::new(),
            guardian,
        };
        this.start_etcd_and_server(&options);
        this.kubeconfig("admin", "admin", Some("system:masters"));
        this.ready().await;
        Some(this)
    }

    fn start_etcd_and_server(&mut self, options: &Options) {
        let [clients, peers, secure] = free_ports();
        let (clients, peers) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
        let etcd = self.programs.etcd.clone();
        let data = self.path("etcd");
        self.spawn(
            "etcd",
            Command::new(etcd).args(["--unsafe-no-fsync", "--log-level=warn"]).args([
                format!("--data-dir={}", data.display()),
                format!("--listen-client-urls={clients}"),
                format!("--advertise-client-urls={clients}"),
                format!("--listen-peer-urls={peers}"),
            ]),
        );
        self.etcd.clone_from(&clients);
        self.server = format!("https://127.0.0.1:{secure}");
        let apiserver = self.programs.apiserver.clone();
        let file = |name: &str| self.path(name).display().to_string();
        let flags = [
            format!("--etcd-servers={clients}"),
            format!("--secure-port={secure}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", file("sa.pub")),
            format!("--service-account-signing-key-file={}", file("sa.key")),
            "--authorization-mode=RBAC".to_owned(),
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--cert-dir={}", self.folder.display()),
        ];
        self.spawn("kube-apiserver", Command::new(apiserver).args(flags).args(&options.apiserver));
    }

    /// Starts the real kube-controller-manager with `controllers` (the value of its flag) and further `flags`.
    /// `None` after `test` has named itself as skipped.
    pub(crate) fn start_controller_manager(&mut self, test: &str, controllers: &str, flags: &[&str]) -> Option<()> {
        let program = find(test, "kube-controller-manager")?;
        // Each controller as its own service account, as in a cluster: with its rights and under the server's fairness.
        let kubeconfig = self.kubeconfig("kcm", "system:kube-controller-manager", None);
        let mut command = Command::new(program);
        command.args([
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--authentication-kubeconfig={}", kubeconfig.display()),
            format!("--authorization-kubeconfig={}", kubeconfig.display()),
            format!("--controllers={controllers}"),
            "--use-service-account-credentials=true".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--service-account-private-key-file={}", self.path("sa.key").display()),
            format!("--root-ca-file={}", self.path("ca.crt").display()),
        ]);
        self.spawn("kube-controller-manager", command.args(flags));
        Some(())
    }

    /// Writes a kubeconfig of `user`, who proves himself by certificate. The user of `admin` is in system:masters.
    pub(crate) fn kubeconfig(&self, file: &str, user: &str, group: Option<&str>) -> PathBuf {
        self.authority.user(file, user, group);
        let credentials = json!({"client-certificate": self.path(&format!("{file}.crt")), "client-key": self.path(&format!("{file}.key"))});
        self.write_kubeconfig(file, credentials)
    }

    /// Writes a kubeconfig of the service account `namespace/name`, with a token that the server has issued.
    pub(crate) fn service_account_kubeconfig(&self, file: &str, namespace: &str, name: &str) -> PathBuf {
        let token = self.kubectl_ok(&["create", "token", name, "-n", namespace, "--duration=2h"]);
        self.write_kubeconfig(file, json!({"token": token.trim()}))
    }

    fn write_kubeconfig(&self, file: &str, user: serde_json::Value) -> PathBuf {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": self.server, "certificate-authority": self.path("ca.crt")}}],
            "users": [{"name": "it", "user": user}],
        });
        let path = self.path(&format!("{file}.kubeconfig"));
        std::fs::write(&path, kubeconfig.to_string()).unwrap();
        path
    }

    /// The administrator's kubeconfig.
    pub(crate) fn admin_kubeconfig(&self) -> PathBuf {
        self.path("admin.kubeconfig")
    }

    /// A client with the rights of the administrator.
    pub(crate) async fn client(&self) -> Client {
        self.client_of(&self.admin_kubeconfig()).await
    }

    /// A client of whoever `kubeconfig` names.
    pub(crate) async fn client_of(&self, kubeconfig: &Path) -> Client {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        Client::try_from(config).unwrap()
    }

    /// Runs kubectl as the administrator.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.programs.kubectl);
        command.env_clear().env("HOME", &self.folder).env("KUBECONFIG", self.admin_kubeconfig());
        command.args(args).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs kubectl as the administrator and returns what it prints.
    ///
    /// # Panics
    /// When it fails.
    pub(crate) fn kubectl_ok(&self, args: &[&str]) -> String {
        let output = self.kubectl(args);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {args:?}: {out}{err}");
        out.into_owned()
    }

    /// Runs `command` until this control plane ends; what it prints goes to `NAME.log` in the folder.
    pub(crate) fn spawn(&mut self, name: &str, command: &mut Command) -> u32 {
        let log = std::fs::File::create(self.log(name)).unwrap();
        let child = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn();
        let child = child.unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        self.guardian.guard(&child);
        let pid = child.id();
        self.children.push(child);
        pid
    }

    /// All processes so far: etcd, kube-apiserver and what was [spawned](Self::spawn) besides.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }

    /// Whether the program that was [spawned](Self::spawn) as `pid` has ended.
    pub(crate) fn has_ended(&mut self, pid: u32) -> bool {
        let child = self.children.iter_mut().find(|child| child.id() == pid).expect("a pid of ours");
        child.try_wait().unwrap().is_some()
    }

    /// Where the log of the program `name` is.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}.log"))
    }

    /// A path in the folder that is removed in the end.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    async fn ready(&mut self) {
        let client = self.client().await;
        let clock = Clock::system();
        let until = clock.mono() + Duration::from_secs(120);
        loop {
            let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
            let answer = client.request_text(request).await;
            if matches!(&answer, Ok(text) if text == "ok") {
                return;
            }
            let ended = self.children.iter_mut().any(|child| child.try_wait().unwrap().is_some());
            if ended || clock.mono() > until {
                let log = |name: &str| std::fs::read_to_string(self.log(name)).unwrap_or_default();
                panic!(
                    "the control plane does not become ready: {answer:?}\n{}\n{}",
                    log("etcd"),
                    log("kube-apiserver")
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Ports that nobody listens on; all are held at once, so that they differ.
fn free_ports<const N: usize>() -> [u16; N] {
    let held: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}
