//! The static binary as the image holds it: alone in a root directory that it may not write, as a user without a name, with nothing
//! but the token that a kubelet mounts; against a real API server, over TLS.
//!
//! Runs if `CRONJOB_STATIC_BINARY` names the binary (`deploy/static-build` prints it), and as root, who alone may change the root
//! directory.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use chrono::{DurationRound, FixedOffset, TimeDelta};
use cronjob_controller::clock::Clock;
use serde_json::{Value, json};

use crate::objects::{NAMESPACE, installed, root, template, texts};
use crate::support::controlplane::{ControlPlane, Options};

const BINARY: &str = "CRONJOB_STATIC_BINARY";
const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";

fn binary(test: &str) -> Option<PathBuf> {
    let Some(path) = std::env::var_os(BINARY) else {
        eprintln!("SKIPPED {test}: {BINARY} names no static binary (deploy/static-build makes one)");
        return None;
    };
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !is_root {
        eprintln!("SKIPPED {test}: only root may change the root directory");
        return None;
    }
    Some(root().join(path))
}

/// Makes the root directory: the binary, and what the kubelet would mount.
fn image(plane: &ControlPlane, binary: &Path) -> PathBuf {
    let image = plane.path("image");
    std::fs::create_dir_all(image.join(ACCOUNT)).unwrap();
    std::fs::copy(binary, image.join("cronjob-controller")).unwrap();
    let token = plane.kubectl_ok(&["create", "token", "cronjob-controller", "-n", NAMESPACE]);
    std::fs::write(image.join(ACCOUNT).join("token"), token.trim()).unwrap();
    std::fs::copy(plane.path("ca.crt"), image.join(ACCOUNT).join("ca.crt")).unwrap();
    std::fs::write(image.join(ACCOUNT).join("namespace"), NAMESPACE).unwrap();
    for path in std::iter::successors(Some(image.join(ACCOUNT)), |path| path.parent().map(Path::to_owned)) {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o555)).unwrap();
        if path == image {
            break;
        }
    }
    image
}

/// A CronJob of Shanghai whose only run was due two minutes ago; the name of its Job and its due instant as text.
fn overdue(plane: &ControlPlane) -> (String, String) {
    let due = (Clock::system().wall() - TimeDelta::minutes(2)).duration_trunc(TimeDelta::minutes(1)).unwrap();
    let local = due.with_timezone(&FixedOffset::east_opt(8 * 3600).unwrap());
    let cronjob = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "zone", "namespace": "default"},
        "spec": {
            "schedule": local.format("%-M %-H * * *").to_string(), "timeZone": "Asia/Shanghai",
            "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "none"}],
            }}}},
        },
    });
    let file = plane.path("cronjob.json");
    std::fs::write(&file, cronjob.to_string()).unwrap();
    plane.kubectl_ok(&["create", "-f", file.to_str().unwrap()]);
    let before = (due - TimeDelta::hours(1)).format("%Y-%m-%dT%H:%M:%SZ");
    let status = json!({"status": {"lastScheduleTime": before.to_string()}}).to_string();
    plane.kubectl_ok(&["patch", "cronjob", "zone", "--subresource=status", "--type=merge", "-p", &status]);
    (format!("zone-{}", due.timestamp() / 60), local.format("%Y-%m-%dT%H:%M:%S%:z").to_string())
}

/// Asks again and again until there is an answer; the log of the program is told if there is none within a minute.
async fn eventually<T>(plane: &ControlPlane, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    for _try in 0..1200 {
        if let Some(answer) = ask() {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = std::fs::read_to_string(plane.log("controller")).unwrap_or_default();
    panic!("no {what}: {log}");
}

fn probe(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.starts_with("HTTP/1.1 200 ").then_some(answer)
}

#[tokio::test]
async fn the_static_binary_works_in_an_empty_root_directory() {
    let test = "the_static_binary_works_in_an_empty_root_directory";
    let Some(binary) = binary(test) else { return };
    let Some(mut plane) = ControlPlane::start(test, Options::default()).await else { return };
    plane.kubectl_ok(&["apply", "-f", root().join("deploy/install.yaml").to_str().unwrap()]);
    let image = image(&plane, &binary);
    let (job, instant) = overdue(&plane);
    let health = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let pod = template(&installed())["spec"].clone();
    let user = &pod["securityContext"]["runAsUser"];
    let mut command = Command::new("chroot");
    command.arg(format!("--userspec=+{user}:+{user}")).arg(format!("--groups=+{user}")).arg(&image);
    command.arg("/cronjob-controller").args(texts(&pod["containers"][0]["args"]));
    command.arg("--metrics-bind-address=0").arg(format!("--health-probe-bind-address=127.0.0.1:{health}"));
    let (host, port) = plane.server.trim_start_matches("https://").rsplit_once(':').unwrap();
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", port);
    let clock = Clock::system();
    let started = clock.mono();
    let pid = plane.spawn("controller", &mut command).to_string();
    eventually(&plane, "readiness", || probe(health, "/readyz")).await;
    let ready = clock.mono() - started;
    let found = eventually(&plane, "Job", || {
        let found = plane.kubectl(&["get", "job", &job, "-o", "json"]);
        found.status.success().then(|| serde_json::from_slice::<Value>(&found.stdout).unwrap())
    })
    .await;
    let annotations = &found["metadata"]["annotations"];
    assert_eq!(annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"], instant.as_str());
    let size = std::fs::metadata(&binary).unwrap().len();
    eprintln!("{size} bytes; ready {} ms after its start", ready.as_millis());
    // It ends when told, and nobody has written into its root directory.
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    eventually(&plane, "end", || {
        let log = std::fs::read_to_string(plane.log("controller")).unwrap();
        log.contains(r#""ended""#).then_some(())
    })
    .await;
    let left: Vec<_> = std::fs::read_dir(&image).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
