//! The manifests on a real API server: each object is created without a warning, twice the same changes nothing, the pods pass the
//! restricted profile, and the service account may do what it needs.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::chart::ALL;
use crate::manifests::{all_components, overlaid};
use crate::objects::{CHART, NAMESPACE, Right, charted, installed, kustomized, name, object, rights, root, template};
use crate::support::binaries::find;
use crate::support::controlplane::{ControlPlane, Options};

/// Schemas of the kinds of monitoring.coreos.com, as narrow as what we use of them: a field that they lack is a field too many.
const MONITORING: &str = "tests/deployment/monitoring-crds.yaml";

async fn plane(test: &str) -> Option<ControlPlane> {
    ControlPlane::start(test, Options::default()).await
}

/// What kubectl says about each object; a warning, in whatever words, is a failure.
fn quiet(plane: &ControlPlane, arguments: &[&str]) -> Vec<String> {
    let output = plane.kubectl(arguments);
    let (out, err) = spoken(&output);
    assert!(output.status.success() && err.is_empty(), "kubectl {arguments:?}: {out}{err}");
    out.lines().map(str::to_owned).collect()
}

fn spoken(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn install_yaml() -> String {
    root().join("deploy/install.yaml").display().to_string()
}

/// Writes objects as a list that kubectl applies.
fn list(plane: &ControlPlane, file: &str, objects: &[Value]) -> PathBuf {
    let path = plane.path(file);
    std::fs::write(&path, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
    path
}

/// The version of each object of install.yaml; a write that changes something changes it.
fn versions(plane: &ControlPlane) -> String {
    plane.kubectl_ok(&["get", "-f", &install_yaml(), "-o", "jsonpath={.items[*].metadata.resourceVersion}"])
}

/// kubectl replaces the selector of a PodDisruptionBudget as a whole, and calls that "configured" even if nothing changes.
fn as_they_are(lines: Vec<String>) -> Vec<String> {
    let as_it_is = |line: String| match line.starts_with("poddisruptionbudget") {
        true => line.replace(" configured", " unchanged"),
        false => line,
    };
    lines.into_iter().map(as_it_is).collect()
}

fn all_end_with(lines: &[String], count: usize, end: &str) {
    let others: Vec<_> = lines.iter().filter(|line| !line.ends_with(end)).collect();
    assert!(others.is_empty() && lines.len() == count, "{count} lines that end with {end:?}: {lines:#?}");
}

#[tokio::test]
async fn install_yaml_on_a_real_server() {
    let Some(plane) = plane("install_yaml_on_a_real_server").await else { return };
    is_created_without_a_warning_and_twice_is_once(&plane);
    the_pod_is_admitted_under_the_restricted_profile(&plane);
    the_service_account_may_do_what_its_roles_say_and_no_more(&plane);
    requests_for_the_lease_travel_at_the_level_for_leader_election(&plane).await;
    everything_is_deleted_again(&plane);
}

#[tokio::test]
async fn everything_else_on_a_real_server() {
    let test = "everything_else_on_a_real_server";
    let Some(plane) = plane(test).await else { return };
    is_applied_by_the_server_and_twice_is_once(&plane);
    chart_overlays_and_components_are_accepted(test, &plane);
    helm_installs_upgrades_rolls_back_and_removes(test, &plane);
}

fn is_created_without_a_warning_and_twice_is_once(plane: &ControlPlane) {
    let (file, count) = (install_yaml(), installed().len());
    let strictly = ["apply", "--warnings-as-errors", "--validate=strict", "-f", &file];
    all_end_with(&quiet(plane, &strictly), count, " created");
    let first = versions(plane);
    all_end_with(&as_they_are(quiet(plane, &strictly)), count, " unchanged");
    assert_eq!(first, versions(plane));
    let dry = quiet(plane, &[&strictly[..], &["--dry-run=server"]].concat());
    all_end_with(&as_they_are(dry), count, " unchanged (server dry run)");
    let schema = plane.kubectl_ok(&["get", "flowschema", "cronjob-controller-leader-election", "-o", "json"]);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let dangling = &schema["status"]["conditions"][0];
    assert_ne!(dangling["status"], "True", "its priority level is not there: {dangling}");
}

fn is_applied_by_the_server_and_twice_is_once(plane: &ControlPlane) {
    let (file, count) = (install_yaml(), installed().len());
    let apply = || quiet(plane, &["apply", "--server-side", "--warnings-as-errors", "--validate=strict", "-f", &file]);
    all_end_with(&apply(), count, " serverside-applied");
    let first = versions(plane);
    all_end_with(&apply(), count, " serverside-applied");
    assert_eq!(first.split(' ').count(), count);
    assert_eq!(first, versions(plane));
}

fn chart_overlays_and_components_are_accepted(test: &str, plane: &ControlPlane) {
    let crds = root().join(MONITORING).display().to_string();
    quiet(plane, &["create", "-f", &crds]);
    quiet(plane, &["wait", "--for=condition=Established", "--timeout=60s", "-f", &crds]);
    plane.kubectl_ok(&["create", "namespace", "cronjob-demo"]);
    plane.kubectl_ok(&["create", "namespace", "platform"]);
    let overlay = |name: &str| kustomized(test, &format!("deploy/kustomize/overlays/{name}"));
    let (Some(chart), Some(everything)) = (charted(test, "cronjob-controller", &[]), charted(test, "all", &ALL)) else {
        return;
    };
    for (what, objects) in [
        ("chart", chart),
        ("chart with everything", everything),
        ("components", all_components(test).unwrap()),
        ("ha", overlay("ha").unwrap()),
        ("demo", overlay("demo").unwrap()),
        ("another namespace", overlaid(test, "overlays/default", &[], json!({"namespace": "platform"})).unwrap()),
    ] {
        let file = list(plane, "list.json", &objects).display().to_string();
        let server =
            ["apply", "--server-side", "--dry-run=server", "--warnings-as-errors", "--validate=strict", "-f", &file];
        let lines = quiet(plane, &server);
        assert_eq!(lines.len(), objects.len(), "{what}: {lines:#?}");
    }
    // The stand-ins for the operator's schemas are as strict as that: a field that they lack is refused.
    let mut rule = object(&all_components(test).unwrap(), "PrometheusRule/cronjob-controller").clone();
    rule["spec"]["groups"][0]["rules"][0]["runbook"] = "elsewhere".into();
    let file = list(plane, "list.json", &[rule]).display().to_string();
    let (_, refused) =
        spoken(&plane.kubectl(&["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", &file]));
    assert!(refused.contains("runbook"), "{refused}");
}

fn helm_installs_upgrades_rolls_back_and_removes(test: &str, plane: &ControlPlane) {
    let Some(helm) = find(test, "helm") else { return };
    let run = |arguments: &[&str]| -> String {
        let mut command = Command::new(&helm);
        command.env_clear().env("HOME", plane.path("")).env("KUBECONFIG", plane.admin_kubeconfig());
        let output = command.current_dir(root()).args(arguments).args(["--namespace", "blue"]).output().unwrap();
        let (out, err) = spoken(&output);
        assert!(output.status.success() && err.is_empty(), "helm {arguments:?}: {out}{err}");
        out
    };
    let replicas = || {
        let of = ["get", "deployment", "blue-cronjob-controller", "-n", "blue", "-o", "jsonpath={.spec.replicas}"];
        plane.kubectl_ok(&of)
    };
    let notes = run(&["install", "blue", CHART, "--create-namespace"]);
    assert!(notes.contains("installed as blue-cronjob-controller in namespace blue"), "{notes}");
    assert_eq!(replicas(), "2");
    run(&["upgrade", "blue", CHART, "--set=replicaCount=1"]);
    assert_eq!(replicas(), "1");
    let budget = ["get", "poddisruptionbudget", "-n", "blue", "-o", "name"];
    assert_eq!(plane.kubectl_ok(&budget), "", "the budget went with the second replica");
    run(&["rollback", "blue", "1"]);
    assert_eq!(replicas(), "2");
    run(&["uninstall", "blue"]);
    let kinds = "clusterroles,clusterrolebindings,flowschemas,deployments,services,serviceaccounts,roles,rolebindings";
    let left = plane.kubectl_ok(&["get", kinds, "-n", "blue", "-l", "app.kubernetes.io/instance=blue", "-o", "name"]);
    assert_eq!(left, "");
}

fn the_pod_is_admitted_under_the_restricted_profile(plane: &ControlPlane) {
    let objects = installed();
    let mut pod = template(&objects).clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "sound".into();
    pod["metadata"]["namespace"] = NAMESPACE.into();
    let file = list(plane, "pod.json", &[pod.clone()]).display().to_string();
    quiet(plane, &["create", "--warnings-as-errors", "-f", &file]);
    // The profile is in force: one capability and the pod is refused.
    pod["metadata"]["name"] = "unsound".into();
    pod["spec"]["containers"][0]["securityContext"]["capabilities"] = json!({"add": ["NET_ADMIN"]});
    let file = list(plane, "pod.json", &[pod]).display().to_string();
    let (_, refused) = spoken(&plane.kubectl(&["create", "-f", &file]));
    assert!(refused.contains("violates PodSecurity \"restricted"), "{refused}");
}

fn the_service_account_may_do_what_its_roles_say_and_no_more(plane: &ControlPlane) {
    let objects = installed();
    let reviews: Vec<Value> = rights(&objects).iter().map(review).collect();
    let file = list(plane, "reviews.json", &reviews).display().to_string();
    let verdicts = plane.kubectl_ok(&["create", "-f", &file, "-o", "jsonpath={.status.allowed} "]);
    let verdicts: Vec<&str> = verdicts.split_whitespace().collect();
    assert_eq!(verdicts.len(), reviews.len());
    for (right, verdict) in rights(&objects).iter().zip(verdicts) {
        // The controllers do not read each other's metrics and pages.
        let expected = if right.0.ends_with("-reader") { "false" } else { "true" };
        assert_eq!(verdict, expected, "{right:?}");
    }
    let account = format!("--as=system:serviceaccount:{NAMESPACE}:cronjob-controller");
    for (namespace, verb, resource) in [
        (NAMESPACE, "get", "secrets"),
        (NAMESPACE, "list", "pods"),
        (NAMESPACE, "list", "configmaps"),
        (NAMESPACE, "create", "pods"),
        (NAMESPACE, "update", "cronjobs.batch"),
        (NAMESPACE, "delete", "cronjobs.batch"),
        (NAMESPACE, "update", "jobs.batch"),
        (NAMESPACE, "deletecollection", "jobs.batch"),
        (NAMESPACE, "delete", "leases.coordination.k8s.io"),
        (NAMESPACE, "update", "leases.coordination.k8s.io"),
        ("kube-system", "create", "leases.coordination.k8s.io"),
    ] {
        let answer = plane.kubectl(&["auth", "can-i", verb, resource, "-n", namespace, &account]);
        assert_eq!(spoken(&answer).0.trim(), "no", "{verb} {resource} in {namespace}");
    }
}

/// Asks whether the service account has one right.
fn review((role, group, resource, verb): &Right) -> Value {
    let user = format!("system:serviceaccount:{NAMESPACE}:cronjob-controller");
    if resource.starts_with('/') {
        let spec = json!({"user": user, "nonResourceAttributes": {"path": resource, "verb": verb}});
        return json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
    }
    let (resource, rest) = resource.split_once('/').unwrap_or((resource, ""));
    let (subresource, object) = if resource == "leases" { ("", rest) } else { (rest, "") };
    let namespace = if role.starts_with("Role/") { NAMESPACE } else { "default" };
    json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "resourceAttributes": {
                "namespace": namespace, "group": group, "resource": resource, "subresource": subresource,
                "name": object, "verb": verb,
            },
        },
    })
}

/// The answer's headers tell which schema and level a request was put into.
async fn requests_for_the_lease_travel_at_the_level_for_leader_election(plane: &ControlPlane) {
    let kubeconfig = plane.service_account_kubeconfig("controller", NAMESPACE, "cronjob-controller");
    let client = plane.client_of(&kubeconfig).await;
    let uid = |kind: &str, name: &str| plane.kubectl_ok(&["get", kind, name, "-o", "jsonpath={.metadata.uid}"]);
    let ours = uid("flowschema", "cronjob-controller-leader-election");
    let level = uid("prioritylevelconfiguration", "leader-election");
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
    let lease =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "cronjob-controller"}});
    let one = format!("{leases}/cronjob-controller");
    let field = format!("{leases}?fieldSelector=metadata.name%3Dcronjob-controller");
    for (method, path, body, expected) in [
        ("POST", &leases, Some(&lease), true),
        ("GET", &one, None, true),
        // Without a version it is refused, which is no matter here.
        ("PUT", &one, Some(&lease), true),
        ("GET", &format!("{field}&watch=true&timeoutSeconds=1"), None, true),
        ("GET", &"/apis/batch/v1/jobs".to_owned(), None, false),
    ] {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
        let answer = client.send(request.body(kube::client::Body::from(body.into_bytes())).unwrap()).await.unwrap();
        assert!(answer.status().is_success() || method == "PUT", "{method} {path}: {}", answer.status());
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        let seen = (header("x-kubernetes-pf-flowschema-uid"), header("x-kubernetes-pf-prioritylevel-uid"));
        assert_eq!(seen == (ours.clone(), level.clone()), expected, "{method} {path}");
    }
}

fn everything_is_deleted_again(plane: &ControlPlane) {
    plane.kubectl_ok(&["delete", "--wait=false", "-f", &install_yaml()]);
    let cluster_wide = installed().into_iter().filter(|object| object["metadata"]["namespace"].is_null());
    for object in cluster_wide.filter(|object| object["kind"] != "Namespace") {
        let (kind, called) = (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        let left = plane.kubectl_ok(&["get", kind, called, "--ignore-not-found"]);
        assert!(left.is_empty(), "{} is left", name(&object));
    }
}
