//! The scenarios, written once, on the sandbox under paused time and on the real control plane.
//!
//! Each is one row of `suite::SCENARIOS`, with a name, and has a namespace of its own. `CRONJOB_E2E=NAME,NAME` plays only these,
//! `CRONJOB_E2E=help` prints the names. All rows of a run share one cluster and go at the same time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod api;
mod cluster;
mod objects;
mod picture;
mod plane;
mod rbac;
mod sandbox;
mod scenarios;
mod stage;
mod suite;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;

use plane::Plane;
use sandbox::InProcess;
use suite::{SCENARIOS, play_all, selected};

#[tokio::test(start_paused = true)]
async fn every_scenario_holds_on_the_sandbox() {
    let cluster = InProcess::new("2026-03-01T10:00:20Z");
    let stages = suite::prepare(cluster.clone(), selected()).await;
    cluster.start_controllers();
    play_all(&stages).await;
    cluster.end().await;
}

#[tokio::test]
async fn every_scenario_holds_on_a_real_control_plane() {
    let Some(plane) = Plane::start("e2e", &[]).await else { return };
    let Some(()) = plane.start_others("e2e") else { return };
    let plane = Arc::new(plane);
    let kubelet = plane.start_kubelet();
    let stages = suite::prepare(plane.clone(), selected()).await;
    plane.start_controllers(&[]);
    play_all(&stages).await;
    kubelet.abort();
    let log = plane.log();
    assert!(log.contains("\"level\":\"INFO\"") && !log.contains("\"level\":\"ERROR\""), "{log}");
}

#[test]
fn names_of_scenarios_are_unique_and_fit_a_namespace() {
    let mut names: Vec<String> = SCENARIOS.iter().map(suite::Scenario::full_name).collect();
    names.sort();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    assert!(names.iter().all(|name| name.len() <= 50), "{names:?}");
}

/// What the two definitions must agree on: a Job is made of the template as it stands.
#[test]
fn the_template_of_volcanos_cronjob_has_the_schema_of_its_job() {
    let schema = |name: &str| -> serde_json::Value {
        let path = format!("{}/config/crd/batch.volcano.sh_{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let definition: serde_json::Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
    };
    assert_eq!(schema("cronjobs")["properties"]["jobTemplate"]["properties"]["spec"], schema("jobs"));
}
