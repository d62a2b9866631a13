//! The real control plane itself: it starts, says which release it is, lets its controllers work, and leaves nothing behind.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

#[path = "support/mod.rs"]
mod support;

use std::time::Duration;

use support::controlplane::{ControlPlane, Options};

#[tokio::test]
async fn a_control_plane_serves_its_release_and_leaves_nothing_behind() {
    let Some(mut plane) = ControlPlane::start("controlplane", Options::default()).await else { return };
    let version = plane.kubectl_ok(&["version", "-o", "json"]);
    let version: serde_json::Value = serde_json::from_str(&version).unwrap();
    assert_eq!(version["clientVersion"]["gitVersion"], version["serverVersion"]["gitVersion"], "{version}");
    let Some(()) =
        plane.start_controller_manager("controlplane", "namespace-controller,garbage-collector-controller", &[])
    else {
        return;
    };
    plane.kubectl_ok(&["create", "namespace", "short-lived"]);
    plane.kubectl_ok(&["delete", "namespace", "short-lived", "--timeout=60s"]);
    let (folder, server) = (plane.path(""), plane.server.clone());
    drop(plane);
    assert!(!folder.exists(), "{folder:?} is left");
    let port = server.rsplit(':').next().unwrap().parse::<u16>().unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "the server still listens");
}
