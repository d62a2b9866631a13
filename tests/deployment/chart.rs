//! The chart by itself, and against kustomize.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::Parser;
use cronjob_controller::cli::Args;
use serde_json::{Value, json};

use crate::manifests::all_components;
use crate::objects::{
    CHART, charted, charted_text, files, installed, name, names, object, parse, printed, read, rights, root, run,
    template, text, texts,
};
use crate::support::binaries::find;

/// Everything that the chart can make.
pub(crate) const ALL: [&str; 9] = [
    "rbac.jobs=true",
    "metrics.serviceMonitor.create=true",
    "metrics.prometheusRule.create=true",
    "metrics.dashboard.create=true",
    r#"metrics.readers=[{"kind":"ServiceAccount","name":"prometheus","namespace":"monitoring"}]"#,
    r#"metrics.tls.secretName="certificate""#,
    "networkPolicy.create=true",
    r#"config={"leaderElection":{"leaseDuration":"15s"}}"#,
    r#"commonLabels={"team":"batch"}"#,
];

#[test]
fn the_chart_passes_lint_without_a_word() {
    let Some(helm) = find("the_chart_passes_lint_without_a_word", "helm") else { return };
    for values in [&[][..], &ALL[..]] {
        let sets: Vec<String> = values.iter().map(|value| format!("--set-json={value}")).collect();
        let mut arguments = vec!["lint", "--strict", CHART];
        arguments.extend(sets.iter().map(String::as_str));
        let said = printed(&helm, &arguments);
        assert!(said.contains("1 chart(s) linted, 0 chart(s) failed") && !said.contains('['), "{said}");
    }
}

/// An object without what must differ: labels that only Helm has, and the place of the namespace's name in the text.
fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
        labels.remove("helm.sh/chart");
        labels.remove("app.kubernetes.io/managed-by");
    }
    object
}

fn comparables<'a>(objects: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, Value> {
    objects.into_iter().map(|object| (name(object), comparable(object))).collect()
}

/// Object by object, so that a difference is printed alone.
fn assert_equal(chart: &BTreeMap<String, Value>, kustomize: &BTreeMap<String, Value>) {
    assert_eq!(chart.keys().collect::<Vec<_>>(), kustomize.keys().collect::<Vec<_>>());
    for (name, object) in chart {
        assert_eq!(object, &kustomize[name], "{name}: the chart's on the left, kustomize's on the right");
    }
}

#[test]
fn the_chart_makes_what_install_yaml_holds() {
    let Some(chart) = charted("the_chart_makes_what_install_yaml_holds", "cronjob-controller", &[]) else { return };
    let installed = installed();
    // Helm's users make the namespace with `--create-namespace`.
    let without_namespace = installed.iter().filter(|object| object["kind"] != "Namespace");
    assert_equal(&comparables(&chart), &comparables(without_namespace));
}

#[test]
fn the_chart_makes_what_the_optional_components_hold() {
    let test = "the_chart_makes_what_the_optional_components_hold";
    let values = [
        "rbac.jobs=true",
        "metrics.serviceMonitor.create=true",
        "metrics.prometheusRule.create=true",
        "networkPolicy.create=true",
    ];
    let (Some(chart), Some(components)) = (charted(test, "cronjob-controller", &values), all_components(test)) else {
        return;
    };
    let without_namespace = components.iter().filter(|object| object["kind"] != "Namespace");
    assert_equal(&comparables(&chart), &comparables(without_namespace));
}

#[test]
fn a_budget_needs_two_replicas() {
    let test = "a_budget_needs_two_replicas";
    for (replicas, expected) in [(0, false), (1, false), (2, true), (3, true)] {
        let Some(objects) = charted(test, "cronjob-controller", &[&format!("replicaCount={replicas}")]) else { return };
        let budget = names(&objects).contains("PodDisruptionBudget/cronjob-controller");
        assert_eq!(budget, expected, "{replicas} replicas");
    }
}

#[test]
fn a_change_of_the_configuration_restarts_the_pods() {
    let test = "a_change_of_the_configuration_restarts_the_pods";
    let checksum = |value: &str| {
        let objects = charted(test, "cronjob-controller", &[&format!(r#"config={{"controllers":"{value}"}}"#)])?;
        let file = text(&object(&objects, "ConfigMap/cronjob-controller")["data"]["config.yaml"]).to_owned();
        let file = &parse(&file)[0];
        let expected = json!({
            "apiVersion": "cronjob-controller.config/v1alpha1", "kind": "ControllerConfiguration", "controllers": value,
        });
        assert_eq!(file, &expected);
        let args = template(&objects)["spec"]["containers"][0]["args"].to_string();
        assert!(args.contains("--config=/etc/cronjob-controller/config.yaml"), "{args}");
        Some(text(&template(&objects)["metadata"]["annotations"]["checksum/config"]).to_owned())
    };
    let Some(first) = checksum("*") else { return };
    assert_eq!(Some(&first), checksum("*").as_ref());
    assert_ne!(Some(&first), checksum("kubernetes-cronjob").as_ref());
}

#[test]
fn the_program_takes_the_configuration_and_the_flags_of_the_chart() {
    let test = "the_program_takes_the_configuration_and_the_flags_of_the_chart";
    let port = "metrics.port=9443";
    let (Some(plain), Some(all)) =
        (charted(test, "cronjob-controller", &[]), charted(test, "cronjob-controller", &[&ALL[..], &[port]].concat()))
    else {
        return;
    };
    for objects in [&plain, &all] {
        takes_its_flags(objects);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let program = Path::new(env!("CARGO_BIN_EXE_cronjob-controller"));
    let validate = |text: &str| {
        std::fs::write(&file, text).unwrap();
        run(program, &["config", "validate", file.to_str().unwrap()])
    };
    let made = text(&object(&all, "ConfigMap/cronjob-controller")["data"]["config.yaml"]).to_owned();
    let sound = validate(&made);
    assert!(sound.status.success(), "{made}: {}", String::from_utf8_lossy(&sound.stderr));
    assert!(!validate(&made.replace("leaseDuration", "leaseLength")).status.success());
}

/// The command line of the pod is one that the program understands.
pub(crate) fn takes_its_flags(objects: &[Value]) {
    let args = texts(&template(objects)["spec"]["containers"][0]["args"]);
    let line = std::iter::once("cronjob-controller".to_owned()).chain(args.clone());
    if let Err(error) = Args::try_parse_from(line) {
        panic!("{args:?}: {error}");
    }
}

#[test]
fn another_release_has_names_of_its_own() {
    let test = "another_release_has_names_of_its_own";
    let (Some(first), Some(second)) = (charted(test, "cronjob-controller", &ALL), charted(test, "blue", &ALL)) else {
        return;
    };
    let shared: Vec<String> = names(&first).intersection(&names(&second)).cloned().collect();
    assert!(shared.is_empty(), "{shared:?}");
    let long = charted(test, &"x".repeat(53), &ALL).unwrap();
    let too_long: Vec<String> =
        long.iter().map(name).filter(|name| name.split('/').nth(1).unwrap().len() > 63).collect();
    assert!(too_long.is_empty(), "{too_long:?}");
}

#[test]
fn rights_can_be_left_out() {
    let test = "rights_can_be_left_out";
    let Some(without_volcano) = charted(test, "cronjob-controller", &["rbac.volcano=false"]) else { return };
    assert!(rights(&without_volcano).iter().all(|right| right.1 != "batch.volcano.sh"));
    let none = charted(test, "cronjob-controller", &["rbac.create=false"]).unwrap();
    assert!(rights(&none).is_empty());
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let Some(helm) = find("values_that_make_no_sense_are_refused", "helm") else { return };
    for (value, complaint) in [
        (r#"replicaCount="two""#, "/replicaCount"),
        ("nonsense=1", "nonsense"),
        ("metrics.serviceMonitor.enabled=true", "enabled"),
        (r#"logging.format="xml""#, "/logging/format"),
        (r#"extraArgs=["run"]"#, "/extraArgs/0"),
        (r#"image.digest="sha256:1""#, "/image/digest"),
        (r#"serviceAccount.create=false"#, "serviceAccount.name is required"),
        (r#"config={"kind":"Pod"}"#, "/config/kind"),
    ] {
        let output = run(&helm, &["template", "x", CHART, "--kube-version=1.36.0", &format!("--set-json={value}")]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(complaint), "{value}: {said}");
    }
}

/// Every path of the values, `metrics.port`; what is free inside ends the path.
fn paths(values: &Value, schema: &Value, prefix: &str, into: &mut BTreeSet<String>) {
    for (key, value) in values.as_object().unwrap() {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        let schema = &schema["properties"][key];
        assert!(schema.is_object(), "values.schema.json does not know {path}");
        if schema["properties"].is_object() && key != "config" {
            paths(value, schema, &path, into);
        } else {
            into.insert(path);
        }
    }
}

#[test]
fn schema_and_readme_of_the_chart_know_each_value() {
    let schema: Value = serde_json::from_str(&read(&format!("{CHART}/values.schema.json"))).unwrap();
    let values = &parse(&read(&format!("{CHART}/values.yaml")))[0];
    let mut expected = BTreeSet::new();
    paths(values, &schema, "", &mut expected);
    let readme = read(&format!("{CHART}/README.md"));
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let documented: BTreeSet<String> = rows.map(|(path, _)| path.to_owned()).collect();
    assert_eq!(documented, expected);
}

#[test]
fn what_the_pod_mounts_is_there() {
    let Some(objects) = charted("what_the_pod_mounts_is_there", "cronjob-controller", &ALL) else { return };
    let pod = &template(&objects)["spec"];
    let names = |list: &Value| -> BTreeSet<String> {
        list.as_array().unwrap().iter().map(|item| text(&item["name"]).to_owned()).collect()
    };
    assert_eq!(names(&pod["containers"][0]["volumeMounts"]), names(&pod["volumes"]));
    let dashboard =
        text(&object(&objects, "ConfigMap/cronjob-controller-dashboard")["data"]["cronjob-controller.json"]);
    let source: Value = serde_json::from_str(&read("deploy/monitoring/dashboard.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(dashboard).unwrap(), source);
    let team = objects.iter().filter(|object| object["metadata"]["labels"]["team"] == "batch").count();
    assert_eq!(team, objects.len());
}

#[test]
fn no_template_leaves_a_trace_of_itself() {
    let Some(text) = charted_text("no_template_leaves_a_trace_of_itself", "cronjob-controller", &ALL) else { return };
    for trace in ["<no value>", "%!", "null\n"] {
        assert!(!text.contains(trace), "{trace:?} in {text}");
    }
    let templates = files(&format!("{CHART}/templates"), "yaml");
    let made: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# Source: cronjob-controller/")).collect();
    for template in templates {
        let path = template.strip_prefix(root().join(CHART)).unwrap().to_str().unwrap().to_owned();
        assert!(made.contains(path.as_str()), "{path} makes nothing with every option on");
    }
}
