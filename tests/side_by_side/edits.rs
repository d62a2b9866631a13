//! What the script does to a CronJob and around it.

use serde_json::{Value, json};

/// One edit. In texts `<+N>` is the minute N after the start as Jobs are named by it, `<mm +N>` that minute of its hour,
/// `<time +N>` its instant, `<uid>` the uid of the CronJob, `<uid of NAME>` that of the ConfigMap NAME.
pub(crate) enum Edit {
    /// A POST of the CronJob itself, with this spec.
    Create(Value),
    /// A merge patch.
    Patch(Value),
    /// A merge patch of its status.
    PatchStatus(Value),
    /// A POST of something else: the path inside the namespace (`jobs`, `configmaps`) and the object.
    Beside(&'static str, Value),
    /// The Job of the minute ends well, or not.
    Finish(i64, bool),
    /// The Job of the minute goes, in the background.
    DeleteJob(i64),
    /// The CronJob goes, with this propagation.
    Delete(&'static str),
    /// A POST that must be refused with this text.
    Refused(Value, &'static str),
}

/// A Job by hand: its name ends with `suffix`.
pub(crate) fn job(name: &str, metadata: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
        "spec": { "template": { "spec": pod() } },
    });
    job["metadata"]["name"] = name.into();
    job
}

/// The owner reference of the case's own CronJob.
pub(crate) fn owned_by_it(name: &str) -> Value {
    json!([{
        "apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": "<uid>", "controller": true,
        "blockOwnerDeletion": true,
    }])
}

pub(crate) fn pod() -> Value {
    json!({ "restartPolicy": "Never", "containers": [{ "name": "c", "image": "registry.example.com/c:1" }] })
}
