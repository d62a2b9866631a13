//! What stands in the repository beside the code says what the code does: manifests, samples, decisions.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn documents(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

fn of_kind(kind: &str) -> Vec<Value> {
    documents("deploy/install.yaml").into_iter().filter(|document| document["kind"] == kind).collect()
}

/// Every (group, resource, verb) of the rules, one by one.
fn rights(role: &Value) -> BTreeSet<(String, String, String)> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut rights = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    rights.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    rights
}

#[test]
fn the_role_grants_what_is_used_and_nothing_else() {
    let mut expected = BTreeSet::new();
    let mut grant = |group: &str, resource: &str, verbs: &[&str]| {
        expected.extend(verbs.iter().map(|verb| (group.to_owned(), resource.to_owned(), (*verb).to_owned())));
    };
    for group in ["batch", "batch.volcano.sh"] {
        grant(group, "cronjobs", &["get", "list", "watch"]);
        grant(group, "cronjobs/status", &["patch"]);
        grant(group, "cronjobs/finalizers", &["update"]);
        grant(group, "jobs", &["get", "list", "watch", "create", "delete"]);
    }
    grant("", "events", &["create", "patch"]);
    let roles = of_kind("ClusterRole");
    assert_eq!(roles.len(), 1);
    assert_eq!(rights(&roles[0]), expected);
}

#[test]
fn the_pod_meets_the_restricted_profile() {
    let namespace = &of_kind("Namespace")[0];
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    let pod = &of_kind("Deployment")[0]["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"], json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}));
    for container in pod["containers"].as_array().unwrap() {
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["readOnlyRootFilesystem"], true);
        assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
        assert!(context["runAsUser"].as_i64().unwrap() > 0);
    }
}

#[test]
fn one_replica_replaces_another_and_never_runs_beside_it() {
    let spec = &of_kind("Deployment")[0]["spec"];
    assert_eq!(spec["replicas"], 1);
    assert_eq!(spec["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn probes_and_ports_of_the_deployment_are_those_of_its_flags() {
    let container = of_kind("Deployment")[0]["spec"]["template"]["spec"]["containers"][0].clone();
    let flags: Vec<&str> = container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    for port in container["ports"].as_array().unwrap() {
        let flag = match port["name"].as_str().unwrap() {
            "metrics" => "--metrics-bind-address",
            "probes" => "--health-probe-bind-address",
            other => panic!("port {other} has no flag"),
        };
        assert!(flags.contains(&format!("{flag}=:{}", port["containerPort"]).as_str()), "{flag} in {flags:?}");
    }
    assert_eq!(container["livenessProbe"]["httpGet"], json!({"path": "/livez", "port": "probes"}));
    assert_eq!(container["readinessProbe"]["httpGet"], json!({"path": "/readyz", "port": "probes"}));
}

#[test]
fn the_samples_show_both_apis_every_policy_and_each_trap() {
    let mut seen = BTreeSet::new();
    for file in files("config/samples", "yaml") {
        for object in documents(&file) {
            if object["kind"] != "CronJob" {
                continue;
            }
            let spec = &object["spec"];
            seen.insert(object["apiVersion"].as_str().unwrap().to_owned());
            seen.insert(spec["concurrencyPolicy"].as_str().unwrap_or("Allow").to_owned());
            let traps = [("zone", spec["timeZone"].is_string()), ("suspended", spec["suspend"] == true)];
            seen.extend(traps.iter().filter(|(_, there)| *there).map(|(trap, _)| (*trap).to_owned()));
        }
    }
    let expected = ["Allow", "Forbid", "Replace", "batch.volcano.sh/v1alpha1", "batch/v1", "suspended", "zone"];
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn every_decision_is_in_the_index_under_its_own_title() {
    let index = fs::read_to_string(root().join("docs/adr/README.md")).unwrap();
    for file in files("docs/adr", "md") {
        let name = file.rsplit('/').next().unwrap();
        let Some(number) = name.get(..4).filter(|number| number.bytes().all(|c| c.is_ascii_digit())) else { continue };
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let title = text.lines().next().unwrap().trim_start_matches(&format!("# {number}: ")).to_owned();
        let row = format!("| [{number}]({name}) | {title} |");
        assert!(index.contains(&row), "docs/adr/README.md lacks the row\n{row}");
    }
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let mut broken = Vec::new();
    for folder in [".", "docs", "docs/adr", "config"] {
        for file in files(folder, "md") {
            let text = fs::read_to_string(root().join(&file)).unwrap();
            let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
                let path = root().join(folder).join(target.split('#').next().unwrap());
                if !path.exists() {
                    broken.push(format!("{file}: {target}"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Paths from the root of the files with this extension right inside a folder, in order.
fn files(folder: &str, extension: &str) -> Vec<String> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let wanted = paths.iter().filter(|path| path.extension().is_some_and(|found| found == extension));
    wanted.map(|path| format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap())).collect()
}
