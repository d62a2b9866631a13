//! Bodies to send.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::time::rfc3339;
use super::wire::wire;
use crate::model::{CronJob, CronJobStatus, Flavor, ObjectReference, WallTime, job_name};

/// The Job that a CronJob starts for the due instant `at` (POST to [`super::Wire::jobs_path`]). `offset_s` is the offset of the zone
/// `spec.timeZone` at that instant, in seconds east of Greenwich; the annotation shows the instant in it. The body names no
/// namespace. Template parts that are not the JSON texts they should be are left out; decoding never lets such texts in.
/// `managed_by` becomes `spec.managedBy` unless the template has one.
pub fn job_body(flavor: Flavor, cronjob: &CronJob, at: WallTime, offset_s: i32, managed_by: Option<&str>) -> Vec<u8> {
    let wire = wire(flavor);
    let template = &cronjob.spec.template;
    let scheduled = serde_json::value::to_raw_value(&rfc3339(at, offset_s)).ok();
    let mut annotations: BTreeMap<String, &RawValue> =
        template.annotations_json.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if let Some(scheduled) = &scheduled {
        annotations.insert(wire.scheduled_annotation.to_owned(), scheduled);
    }
    let managed = managed_by.and_then(|name| with_manager(template.spec_json.as_deref()?, name));
    let body = JobBody {
        api_version: wire.api_version,
        kind: "Job",
        metadata: JobMeta {
            name: job_name(&cronjob.key.name, at),
            creation_timestamp: wire.sends_creation_time.then(|| rfc3339(at, 0)),
            labels: raw(template.labels_json.as_deref()),
            annotations,
            owner_references: [Owner {
                api_version: wire.api_version,
                kind: "CronJob",
                name: &cronjob.key.name,
                uid: cronjob.uid.as_str(),
                controller: true,
                block_owner_deletion: true,
            }],
        },
        spec: raw(managed.as_deref().or(template.spec_json.as_deref())),
    };
    to_vec(&body)
}

/// The spec with `managedBy`; `None` where it has one.
fn with_manager(spec_json: &str, name: &str) -> Option<String> {
    const FIELD: &str = "managedBy";
    let name = serde_json::value::to_raw_value(name).ok()?;
    let mut spec: BTreeMap<String, &RawValue> = serde_json::from_str(spec_json).ok()?;
    if spec.contains_key(FIELD) {
        return None;
    }
    spec.insert(FIELD.to_owned(), &name);
    serde_json::to_string(&spec).ok()
}

fn raw(text: Option<&str>) -> Option<&RawValue> {
    text.and_then(|text| serde_json::from_str(text).ok())
}

/// Serialising plain structs to memory cannot fail; an empty body would be refused by the server.
fn to_vec(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobBody<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: JobMeta<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobMeta<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a RawValue>,
    annotations: BTreeMap<String, &'a RawValue>,
    owner_references: [Owner<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Owner<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    uid: &'a str,
    controller: bool,
    block_owner_deletion: bool,
}

/// JSON merge patch that turns the status `before` (as it stands at `resource_version`) into `after`. It carries the resource
/// version, so that a stale one is answered with a conflict, and only the fields that changed, so that nothing else is touched;
/// what became empty is `null`, which removes it.
pub fn status_patch(before: &CronJobStatus, after: &CronJobStatus, resource_version: &str) -> Vec<u8> {
    let time = |at: Option<WallTime>| at.map(|at| rfc3339(at, 0));
    let active = || (!after.active.is_empty()).then(|| after.active.iter().map(Reference::of).collect());
    to_vec(&StatusPatch {
        metadata: PatchMeta { resource_version },
        status: PatchStatus {
            active: (before.active != after.active).then(active),
            last_schedule_time: (before.last_schedule_time != after.last_schedule_time)
                .then(|| time(after.last_schedule_time)),
            last_successful_time: (before.last_successful_time != after.last_successful_time)
                .then(|| time(after.last_successful_time)),
        },
    })
}

#[derive(Serialize)]
struct StatusPatch<'a> {
    metadata: PatchMeta<'a>,
    status: PatchStatus<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchMeta<'a> {
    resource_version: &'a str,
}

/// `None` outside: not in the patch. `Some(None)`: removed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchStatus<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    active: Option<Option<Vec<Reference<'a>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_schedule_time: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_successful_time: Option<Option<String>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    field_path: &'a str,
}

impl<'a> Reference<'a> {
    fn of(reference: &'a ObjectReference) -> Self {
        Self {
            kind: &reference.kind,
            namespace: &reference.namespace,
            name: &reference.name,
            uid: reference.uid.as_str(),
            api_version: &reference.api_version,
            resource_version: &reference.resource_version,
            field_path: &reference.field_path,
        }
    }
}

/// Body of a DELETE of a Job, which is to be that of `uid`: the server refuses (409) if another has its name by then.
pub fn delete_body(flavor: Flavor, uid: &str) -> Vec<u8> {
    let mut options = serde_json::json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}});
    if let Some(policy) = wire(flavor).propagation {
        options["propagationPolicy"] = policy.into();
    }
    options.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::decode_cronjob;
    use chrono::TimeZone;
    use serde_json::{Value, json};

    fn at() -> WallTime {
        chrono::Utc.timestamp_opt(1_736_937_000, 0).unwrap()
    }

    fn body(flavor: Flavor, template: Value) -> Value {
        managed_body(flavor, template, None)
    }

    fn managed_body(flavor: Flavor, template: Value, managed_by: Option<&str>) -> Value {
        let text =
            json!({"metadata": {"name": "train", "namespace": "ml", "uid": "u"}, "spec": {"jobTemplate": template}});
        let cronjob = decode_cronjob(flavor, &text.to_string()).unwrap();
        serde_json::from_slice(&job_body(flavor, &cronjob, at(), 28_800, managed_by)).unwrap()
    }

    #[test]
    fn the_body_holds_labels_annotations_owner_and_spec_and_no_other_metadata_of_the_template() {
        let template = json!({
            "metadata": {"name": "x", "finalizers": ["f"], "labels": {"a": "b"},
                "annotations": {"k": "v", "batch.kubernetes.io/cronjob-scheduled-timestamp": "old"}},
            "spec": {"unknown": [1, {"deep": null}]},
        });
        let owner = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "train", "uid": "u", "controller": true,
            "blockOwnerDeletion": true});
        assert_eq!(
            body(Flavor::Kubernetes, template),
            json!({"apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": "train-28948950", "creationTimestamp": "2025-01-15T10:30:00Z", "labels": {"a": "b"},
                    "annotations": {"k": "v", "batch.kubernetes.io/cronjob-scheduled-timestamp": "2025-01-15T18:30:00+08:00"},
                    "ownerReferences": [owner]},
                "spec": {"unknown": [1, {"deep": null}]}})
        );
    }

    #[test]
    fn a_manager_is_named_where_the_template_names_none() {
        let managed =
            |spec: Value| managed_body(Flavor::Kubernetes, json!({ "spec": spec }), Some("a/b"))["spec"].clone();
        assert_eq!(managed(json!({"x": 1.5})), json!({"x": 1.5, "managedBy": "a/b"}));
        assert_eq!(managed(json!({"managedBy": "c/d"})), json!({"managedBy": "c/d"}));
    }

    #[test]
    fn volcano_sends_no_creation_time_and_its_own_annotation() {
        let body = body(Flavor::Volcano, json!({"spec": {"queue": "q"}}));
        assert_eq!(body["metadata"]["creationTimestamp"], Value::Null);
        assert_eq!(
            body["metadata"]["annotations"],
            json!({"volcano.sh/cronjob-scheduled-timestamp": "2025-01-15T18:30:00+08:00"})
        );
    }

    #[test]
    fn a_status_patch_holds_what_changed_and_can_clear() {
        let one = ObjectReference { name: "a".into(), uid: "1".into(), ..ObjectReference::default() };
        let before =
            CronJobStatus { active: vec![one.clone()], last_schedule_time: Some(at()), last_successful_time: None };
        let after = CronJobStatus { active: vec![], last_successful_time: Some(at()), ..before.clone() };
        let patch: Value = serde_json::from_slice(&status_patch(&before, &after, "7")).unwrap();
        assert_eq!(
            patch,
            json!({"metadata": {"resourceVersion": "7"},
                "status": {"active": null, "lastSuccessfulTime": "2025-01-15T10:30:00Z"}})
        );
        let back: Value = serde_json::from_slice(&status_patch(&after, &before, "8")).unwrap();
        assert_eq!(back["status"], json!({"active": [{"name": "a", "uid": "1"}], "lastSuccessfulTime": null}));
    }

    #[test]
    fn deletions_are_in_the_background() {
        let body = |flavor| serde_json::from_slice::<Value>(&delete_body(flavor, "u")).unwrap();
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "u"}});
        assert_eq!(body(Flavor::Volcano), options);
        assert_eq!(body(Flavor::Kubernetes)["propagationPolicy"], "Background");
        assert_eq!(body(Flavor::Kubernetes)["preconditions"], options["preconditions"]);
    }
}
