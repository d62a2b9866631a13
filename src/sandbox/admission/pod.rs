//! Pods and Pod templates: the defaults that kubectl shows, and the mistakes that users make.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Causes, at, child, metadata, set_default, text};

const CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Defaults of a whole Pod.
pub(super) fn default_pod(pod: &mut Value) {
    if let Some(spec) = child(pod, "spec") {
        default_spec(spec);
        set_default(spec, "enableServiceLinks", true);
        set_default(spec, "serviceAccountName", "default");
        set_default(spec, "serviceAccount", "default");
    }
    if let Some(status) = child(pod, "status") {
        set_default(status, "phase", "Pending");
        set_default(status, "qosClass", "BestEffort");
    }
}

/// Defaults of a template's `spec`; its metadata has none.
pub(super) fn default_template(template: &mut Value) {
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
    let metadata = at(template, &["metadata"]);
    metadata::validate_labels(metadata, &format!("{field}.metadata"), causes);
    let spec = at(template, &["spec"]);
    let field = format!("{field}.spec");
    let volumes = names(spec, "volumes");
    validate_volumes(spec, &field, causes);
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
    let policy = at(spec, &["restartPolicy"]);
    if !["Always", "OnFailure", "Never"].contains(&policy.as_str().unwrap_or_default()) {
        causes.unsupported(format!("{field}.restartPolicy"), policy, &["Always", "OnFailure", "Never"]);
    }
    causes.non_negative(format!("{field}.terminationGracePeriodSeconds"), at(spec, &["terminationGracePeriodSeconds"]));
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
