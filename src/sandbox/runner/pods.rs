//! The Pod of a batch/v1 Job: nothing runs in it, but kubectl can list it and read its log.

use serde_json::{Value, json};

use super::status::timestamp;
use crate::model::WallTime;

/// What `kubectl logs` shows of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sandbox) struct LogText {
    pub(in crate::sandbox) namespace: String,
    pub(in crate::sandbox) pod: String,
    pub(in crate::sandbox) container: String,
    pub(in crate::sandbox) text: String,
}

/// A Pod made from the Job's template; it carries the template's labels, which the API server made point to the Job.
pub(super) fn pod(job: &str, uid: &str, pod: &str, template: &Value) -> Value {
    let mut metadata = json!({
        "name": pod,
        "generateName": format!("{job}-"),
        "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }],
    });
    for field in ["labels", "annotations"] {
        if let Some(value) = template.pointer(&format!("/metadata/{field}")) {
            metadata[field] = value.clone();
        }
    }
    let mut spec = template.get("spec").cloned().unwrap_or_default();
    if spec.is_object() {
        spec["nodeName"] = "sandbox".into();
        // Nothing runs in it that would have to be asked to end.
        spec["terminationGracePeriodSeconds"] = 0.into();
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

/// The log of each container, as if each had printed one line at its start.
pub(in crate::sandbox) fn logs(namespace: &str, pod: &str, template: &Value, now: WallTime) -> Vec<LogText> {
    containers(template)
        .map(|(container, image)| LogText {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            container: container.to_owned(),
            text: format!("{} sandbox: {image} would run here\n", timestamp(now)),
        })
        .collect()
}

/// The status while the Pod runs (`ended` absent), and after it has succeeded or failed.
pub(super) fn status(template: &Value, started: WallTime, ended: Option<(bool, WallTime)>) -> Value {
    let started = timestamp(started);
    let (phase, ready) = match ended {
        None => ("Running", true),
        Some((true, _)) => ("Succeeded", false),
        Some((false, _)) => ("Failed", false),
    };
    let state = match ended {
        None => json!({ "running": { "startedAt": started } }),
        Some((success, at)) => json!({ "terminated": {
            "exitCode": i32::from(!success),
            "reason": if success { "Completed" } else { "Error" },
            "startedAt": started,
            "finishedAt": timestamp(at),
        } }),
    };
    let statuses: Vec<Value> = containers(template)
        .map(|(name, image)| {
            json!({
                "name": name, "image": image, "imageID": "", "ready": ready, "started": ready, "restartCount": 0,
                "state": state, "lastState": {},
            })
        })
        .collect();
    json!({ "status": { "phase": phase, "startTime": started, "containerStatuses": statuses } })
}

fn containers(template: &Value) -> impl Iterator<Item = (&str, &str)> {
    let list = template.pointer("/spec/containers").and_then(Value::as_array);
    list.into_iter().flatten().map(|container| {
        let field = |name: &str| container.get(name).and_then(Value::as_str).unwrap_or_default();
        (field("name"), field("image"))
    })
}
