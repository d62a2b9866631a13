//! Reading and rendering manifests, and looking inside.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::binaries::find;

pub(crate) const CHART: &str = "deploy/helm/cronjob-controller";
/// Where install.yaml installs.
pub(crate) const NAMESPACE: &str = "cronjob-controller-system";

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a program from the repository's root; its output, whatever it says.
pub(crate) fn run(program: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).current_dir(root()).output().unwrap()
}

/// What a program prints; it must succeed and print nothing to standard error.
pub(crate) fn printed(program: &Path, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && err.is_empty(), "{} {arguments:?}: {out}{err}", program.display());
    out.into_owned()
}

/// The objects of one kustomization; `None` after `test` has named itself as skipped for want of kubectl.
pub(crate) fn kustomized(test: &str, path: &str) -> Option<Vec<Value>> {
    Some(parse(&printed(&find(test, "kubectl")?, &["kustomize", path])))
}

/// The manifests that the chart makes in [`NAMESPACE`], as text; `None` after `test` has named itself as skipped for want of helm.
pub(crate) fn charted_text(test: &str, release: &str, values: &[&str]) -> Option<String> {
    let sets: Vec<String> = values.iter().map(|value| format!("--set-json={value}")).collect();
    let mut arguments = vec!["template", release, CHART, "--namespace", NAMESPACE, "--kube-version=1.36.0"];
    arguments.extend(sets.iter().map(String::as_str));
    Some(printed(&find(test, "helm")?, &arguments))
}

/// The objects of [`charted_text`].
pub(crate) fn charted(test: &str, release: &str, values: &[&str]) -> Option<Vec<Value>> {
    charted_text(test, release, values).map(|text| parse(&text))
}

/// The objects in a YAML text, without empty documents.
pub(crate) fn parse(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

/// The text of a file in the repository.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// deploy/install.yaml.
pub(crate) fn installed() -> Vec<Value> {
    parse(&read("deploy/install.yaml"))
}

/// `Kind/name` of every object, in order.
pub(crate) fn names(objects: &[Value]) -> BTreeSet<String> {
    objects.iter().map(name).collect()
}

pub(crate) fn name(object: &Value) -> String {
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// The object called `Kind/name`.
pub(crate) fn object<'a>(objects: &'a [Value], wanted: &str) -> &'a Value {
    objects
        .iter()
        .find(|object| name(object) == wanted)
        .unwrap_or_else(|| panic!("no {wanted} in {:?}", names(objects)))
}

/// The pod template of the Deployment.
pub(crate) fn template(objects: &[Value]) -> &Value {
    &object(objects, "Deployment/cronjob-controller")["spec"]["template"]
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

pub(crate) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|item| text(item).to_owned()).collect()
}

/// A right: role, group, resource (with its name, if tied to one) or URL, verb.
pub(crate) type Right = (String, String, String, String);

/// Every right of every role, one by one.
pub(crate) fn rights(objects: &[Value]) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for role in objects.iter().filter(|object| object["kind"] == "ClusterRole" || object["kind"] == "Role") {
        for rule in role["rules"].as_array().unwrap() {
            for (group, resource) in targets(rule) {
                let all =
                    texts(&rule["verbs"]).into_iter().map(|verb| (name(role), group.clone(), resource.clone(), verb));
                for right in all {
                    assert!(rights.insert(right.clone()), "{right:?} is granted twice");
                }
            }
        }
    }
    rights
}

/// Group and resource of what a rule is about.
fn targets(rule: &Value) -> Vec<(String, String)> {
    let mut targets: Vec<_> = texts(&rule["nonResourceURLs"]).into_iter().map(|url| (String::new(), url)).collect();
    for group in texts(&rule["apiGroups"]) {
        for resource in texts(&rule["resources"]) {
            let names = texts(&rule["resourceNames"]);
            if names.is_empty() {
                targets.push((group.clone(), resource.clone()));
            }
            targets.extend(names.into_iter().map(|name| (group.clone(), format!("{resource}/{name}"))));
        }
    }
    targets
}

/// Paths from the root of the files with this extension in a folder and below, in order.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let below = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(files(&below, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Values of a map by key, as text without quotes for strings.
pub(crate) fn map(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))).collect()
}
