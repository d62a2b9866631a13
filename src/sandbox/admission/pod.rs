//! Pods and Pod templates: the defaults that kubectl shows, and the mistakes that users make.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Causes, at, child, metadata, set_default, text};

const CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Keys of the tolerations that every Pod gets: its node may be away for five minutes.
const TOLERATED: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Defaults of a whole Pod, and what admission adds.
pub(super) fn default_pod(pod: &mut Value) {
    let Some(spec) = child(pod, "spec") else { return };
    default_spec(spec);
    set_default(spec, "enableServiceLinks", true);
    set_default(spec, "serviceAccountName", "default");
    let account = text(spec, &["serviceAccountName"]).to_owned();
    set_default(spec, "serviceAccount", account);
    set_default(spec, "priority", 0);
    set_default(spec, "preemptionPolicy", "PreemptLowerPriority");
    default_requests(spec);
    tolerate(spec);
    let quality = quality(spec);
    let gated = !items(spec, "schedulingGates").is_empty();
    let created = at(pod, &["metadata", "creationTimestamp"]).clone();
    if let Some(status) = child(pod, "status") {
        set_default(status, "phase", "Pending");
        status["qosClass"] = quality.into();
        if gated {
            status["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": created,
                "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]);
        }
    }
}

/// The warning about a name that is no name of a host.
pub(super) fn warn(pod: &Value, warnings: &mut Vec<String>) {
    let why = metadata::dns_label(text(pod, &["metadata", "name"]));
    if !why.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{}]",
            why.join(" ")
        ));
    }
}

/// A limit without a request is the request.
fn default_requests(spec: &mut Value) {
    for list in CONTAINER_LISTS {
        for container in items_mut(spec, list) {
            let limits = at(container, &["resources", "limits"]).clone();
            let Some(resources) = container.get_mut("resources") else { continue };
            for (name, limit) in limits.as_object().into_iter().flatten() {
                if let Some(requests) = child(resources, "requests") {
                    set_default(requests, name, limit.clone());
                }
            }
        }
    }
}

fn tolerate(spec: &mut Value) {
    set_default(spec, "tolerations", Vec::<Value>::new());
    let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) else { return };
    for key in TOLERATED {
        let known = tolerations.iter().any(|toleration| {
            [key, ""].contains(&text(toleration, &["key"]))
                && ["NoExecute", ""].contains(&text(toleration, &["effect"]))
        });
        if !known {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}

/// The class of a Pod by what its containers ask for.
fn quality(spec: &Value) -> &'static str {
    let containers = || CONTAINER_LISTS.iter().flat_map(|list| items(spec, list));
    let asked = |container: &Value, part: &str, name: &str| at(container, &["resources", part, name]).clone();
    let nothing = containers().all(|container| {
        ["limits", "requests"]
            .iter()
            .all(|part| ["cpu", "memory"].iter().all(|name| asked(container, part, name).is_null()))
    });
    let everything = containers().all(|container| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = asked(container, "limits", name);
            !limit.is_null() && limit == asked(container, "requests", name)
        })
    });
    match (nothing, everything) {
        (true, _) => "BestEffort",
        (_, true) => "Guaranteed",
        _ => "Burstable",
    }
}

/// Defaults of a template's `spec`; its metadata has none, but is there.
pub(super) fn default_template(template: &mut Value) {
    set_default(template, "metadata", Map::new());
    if let Some(spec) = child(template, "spec") {
        default_spec(spec);
    }
}

fn default_spec(spec: &mut Value) {
    set_default(spec, "dnsPolicy", "ClusterFirst");
    set_default(spec, "restartPolicy", "Always");
    set_default(spec, "schedulerName", "default-scheduler");
    set_default(spec, "securityContext", Map::new());
    set_default(spec, "terminationGracePeriodSeconds", 30);
    let account = text(spec, &["serviceAccountName"]).to_owned();
    if !account.is_empty() {
        set_default(spec, "serviceAccount", account);
    }
    for list in CONTAINER_LISTS {
        items_mut(spec, list).for_each(default_container);
    }
    items_mut(spec, "volumes").for_each(default_volume);
}

fn default_container(container: &mut Value) {
    let image = text(container, &["image"]);
    let last = image.rsplit('/').next().unwrap_or(image);
    let pinned = last.contains('@') || last.split_once(':').is_some_and(|(_, tag)| tag != "latest");
    set_default(container, "imagePullPolicy", if pinned { "IfNotPresent" } else { "Always" });
    set_default(container, "resources", Map::new());
    set_default(container, "terminationMessagePath", "/dev/termination-log");
    set_default(container, "terminationMessagePolicy", "File");
    items_mut(container, "ports").for_each(|port| set_default(port, "protocol", "TCP"));
    for variable in items_mut(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            set_default(field, "apiVersion", "v1");
        }
    }
    for name in PROBES {
        if let Some(probe) = container.get_mut(name) {
            set_default(probe, "failureThreshold", 3);
            set_default(probe, "periodSeconds", 10);
            set_default(probe, "successThreshold", 1);
            set_default(probe, "timeoutSeconds", 1);
            if let Some(request) = probe.get_mut("httpGet") {
                set_default(request, "scheme", "HTTP");
            }
        }
    }
}

fn default_volume(volume: &mut Value) {
    let Some(fields) = volume.as_object_mut() else { return };
    if fields.keys().all(|name| name == "name") {
        fields.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = fields.get_mut(source) {
            // 0644, as everywhere in decimal.
            set_default(source, "defaultMode", 420);
        }
    }
    if let Some(path) = fields.get_mut("hostPath") {
        set_default(path, "type", "");
    }
}

fn items_mut<'a>(object: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Notes what no Pod of this template could be created with. `field` is the template's own path.
pub(super) fn validate_template(template: &Value, field: &str, causes: &mut Causes) {
    metadata::validate_labels(at(template, &["metadata"]), &format!("{field}.labels"), causes);
    validate_spec(at(template, &["spec"]), &format!("{field}.spec"), causes);
}

/// The same for a Pod's spec, which stands at `field`.
pub(super) fn validate_spec(spec: &Value, field: &str, causes: &mut Causes) {
    let volumes = names(spec, "volumes");
    validate_volumes(spec, field, causes);
    if at(spec, &["containers"]).as_array().is_none_or(Vec::is_empty) {
        causes.required(format!("{field}.containers"), "");
    }
    let mut seen = BTreeSet::new();
    for list in CONTAINER_LISTS {
        for (index, container) in items(spec, list).iter().enumerate() {
            let field = format!("{field}.{list}[{index}]");
            validate_container(container, &field, &volumes, causes);
            let name = at(container, &["name"]);
            if !name.is_null() && !seen.insert(text(container, &["name"])) {
                causes.duplicate(format!("{field}.name"), name);
            }
        }
    }
    let deadline = at(spec, &["activeDeadlineSeconds"]);
    if deadline.as_i64().is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        let why = "must be between 1 and 2147483647, inclusive";
        causes.invalid(format!("{field}.activeDeadlineSeconds"), deadline, why);
    }
    let policy = at(spec, &["restartPolicy"]);
    if !["Always", "OnFailure", "Never"].contains(&policy.as_str().unwrap_or_default()) {
        causes.unsupported(format!("{field}.restartPolicy"), policy, &["Always", "OnFailure", "Never"]);
    }
}

fn validate_volumes(spec: &Value, field: &str, causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    for (index, volume) in items(spec, "volumes").iter().enumerate() {
        let field = format!("{field}.volumes[{index}].name");
        validate_label(at(volume, &["name"]), &field, causes);
        if !seen.insert(text(volume, &["name"])) {
            causes.duplicate(field, at(volume, &["name"]));
        }
    }
}

fn validate_container(container: &Value, field: &str, volumes: &BTreeSet<&str>, causes: &mut Causes) {
    validate_label(at(container, &["name"]), &format!("{field}.name"), causes);
    if text(container, &["image"]).is_empty() {
        causes.required(format!("{field}.image"), "");
    }
    for (index, port) in items(container, "ports").iter().enumerate() {
        let field = format!("{field}.ports[{index}].containerPort");
        match at(port, &["containerPort"]).as_i64() {
            None | Some(0) => causes.required(field, ""),
            Some(1..=65535) => {}
            Some(_) => causes.invalid(field, at(port, &["containerPort"]), "must be between 1 and 65535, inclusive"),
        }
    }
    for (index, variable) in items(container, "env").iter().enumerate() {
        if text(variable, &["name"]).is_empty() {
            causes.required(format!("{field}.env[{index}].name"), "");
        }
    }
    for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
        let field = format!("{field}.volumeMounts[{index}]");
        if !volumes.contains(text(mount, &["name"])) {
            causes.not_found(format!("{field}.name"), at(mount, &["name"]));
        }
        if text(mount, &["mountPath"]).is_empty() {
            causes.required(format!("{field}.mountPath"), "");
        }
    }
    let policy = at(container, &["imagePullPolicy"]);
    if !["Always", "IfNotPresent", "Never"].contains(&policy.as_str().unwrap_or_default()) {
        causes.unsupported(format!("{field}.imagePullPolicy"), policy, &["Always", "IfNotPresent", "Never"]);
    }
}

fn validate_label(name: &Value, field: &str, causes: &mut Causes) {
    match name.as_str().unwrap_or_default() {
        "" => causes.required(field, ""),
        text => metadata::dns_label(text).iter().for_each(|why| causes.invalid(field, name, why)),
    }
}

fn names<'a>(object: &'a Value, list: &str) -> BTreeSet<&'a str> {
    items(object, list).iter().map(|item| text(item, &["name"])).collect()
}

fn items<'a>(object: &'a Value, list: &str) -> &'a [Value] {
    at(object, &[list]).as_array().map(Vec::as_slice).unwrap_or_default()
}
