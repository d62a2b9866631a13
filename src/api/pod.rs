//! Pod, from JSON to what the Job controller decides on.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::decode::{DecodeError, Owner, Time, controller, decode};
use super::job_policy::condition_status;
use crate::model::{
    COMPLETION_INDEX, ContainerStatus, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT, Labels, ObjectKey, Pod,
    PodCondition, PodPhase, TRACKING_FINALIZER, Termination, Uid,
};

/// Reads one Pod from its JSON text (also `RawValue::get`).
///
/// # Errors
/// The text is not JSON, or a field that is read has the wrong type.
pub fn decode_pod(text: &str) -> Result<Pod, DecodeError> {
    decode::<WirePod<'_>>("Pod", text).map(WirePod::into_model)
}

/// Reads a list of Pods: its resource version, and the Pods.
///
/// # Errors
/// The text is no list, or one of the Pods cannot be read.
pub fn decode_pod_list(text: &str) -> Result<(Box<str>, Vec<Arc<Pod>>), DecodeError> {
    #[derive(Deserialize)]
    struct List<'a> {
        metadata: Option<ListMeta>,
        #[serde(borrow)]
        items: Option<Vec<&'a RawValue>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct ListMeta {
        resource_version: Box<str>,
    }
    let List { metadata, items } = decode("PodList", text)?;
    let pods = items.unwrap_or_default().into_iter().map(|raw| decode_pod(raw.get()).map(Arc::new));
    Ok((metadata.unwrap_or_default().resource_version, pods.collect::<Result<_, _>>()?))
}

#[derive(Deserialize)]
struct WirePod<'a> {
    #[serde(borrow)]
    metadata: Option<Meta<'a>>,
    spec: Option<Spec>,
    status: Option<Status>,
}

/// `metadata`. Annotations of a Pod can be large, and all but three are somebody else's: they stay texts.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta<'a> {
    namespace: Option<Box<str>>,
    name: Option<Box<str>>,
    uid: Option<Box<str>>,
    resource_version: Option<Box<str>>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Option<Labels>,
    #[serde(borrow)]
    annotations: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
    owner_references: Option<Vec<Owner>>,
    finalizers: Option<Vec<Box<str>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: Option<Box<str>>,
    init_containers: Option<Vec<InitContainer>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InitContainer {
    name: Box<str>,
    restart_policy: Option<Box<str>>,
}

impl WirePod<'_> {
    fn into_model(self) -> Pod {
        let (meta, spec) = (self.metadata.unwrap_or_default(), self.spec.unwrap_or_default());
        let status = self.status.unwrap_or_default();
        let annotations = meta.annotations.unwrap_or_default();
        // A value that is no text is no index.
        let annotation = |name: &str| annotations.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok());
        let always = |container: &&InitContainer| container.restart_policy.as_deref() == Some("Always");
        let side_cars: Vec<Box<str>> =
            spec.init_containers.iter().flatten().filter(always).map(|container| container.name.clone()).collect();
        Pod {
            key: ObjectKey::new(
                meta.namespace.as_deref().unwrap_or_default(),
                meta.name.as_deref().unwrap_or_default(),
            ),
            uid: Uid::from(meta.uid.as_deref().unwrap_or_default()),
            resource_version: meta.resource_version.unwrap_or_default(),
            creation_time: meta.creation_timestamp.map(|time| time.0),
            deletion_time: meta.deletion_timestamp.map(|time| time.0),
            deletion_grace_s: meta.deletion_grace_period_seconds.unwrap_or(0),
            labels: meta.labels.unwrap_or_default(),
            controller: controller(meta.owner_references.unwrap_or_default()),
            tracked: meta.finalizers.iter().flatten().any(|finalizer| &**finalizer == TRACKING_FINALIZER),
            completion_index: annotation(COMPLETION_INDEX),
            failure_count: annotation(INDEX_FAILURE_COUNT),
            ignored_failure_count: annotation(INDEX_IGNORED_FAILURE_COUNT),
            scheduled: spec.node_name.is_some_and(|node| !node.is_empty()),
            phase: phase(status.phase.as_deref()),
            conditions: status.conditions.unwrap_or_default().into_iter().map(Condition::into_model).collect(),
            containers: containers(status.container_statuses, &[]),
            init_containers: containers(status.init_container_statuses, &side_cars),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: Option<Box<str>>,
    conditions: Option<Vec<Condition>>,
    container_statuses: Option<Vec<Container>>,
    init_container_statuses: Option<Vec<Container>>,
}

fn phase(text: Option<&str>) -> PodPhase {
    match text {
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some("Unknown") => PodPhase::Unknown,
        _ => PodPhase::Pending,
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    condition_type: Box<str>,
    status: Box<str>,
    last_transition_time: Option<Time>,
}

impl Condition {
    fn into_model(self) -> PodCondition {
        PodCondition {
            status: condition_status(&self.status),
            condition_type: self.condition_type,
            last_transition_time: self.last_transition_time.map(|time| time.0),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    name: Box<str>,
    restart_count: Option<i32>,
    state: Option<State>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    terminated: Option<Terminated>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Terminated {
    exit_code: Option<i32>,
    finished_at: Option<Time>,
}

fn containers(statuses: Option<Vec<Container>>, side_cars: &[Box<str>]) -> Vec<ContainerStatus> {
    let termination = |terminated: Terminated| Termination {
        exit_code: terminated.exit_code.unwrap_or(0),
        finished_at: terminated.finished_at.map(|time| time.0),
    };
    let status = |container: Container| ContainerStatus {
        side_car: side_cars.contains(&container.name),
        name: container.name,
        restart_count: container.restart_count.unwrap_or(0),
        terminated: container.state.unwrap_or_default().terminated.map(termination),
    };
    statuses.unwrap_or_default().into_iter().map(status).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ConditionStatus;
    use serde_json::json;

    #[test]
    fn everything_that_a_decision_reads_is_kept() {
        let text = json!({
            "metadata": {"name": "n", "namespace": "s", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2025-01-15T10:30:00Z", "deletionTimestamp": "2025-01-15T10:31:00Z",
                "deletionGracePeriodSeconds": 30, "labels": {"a": "b"}, "finalizers": ["x/y", TRACKING_FINALIZER],
                "annotations": {COMPLETION_INDEX: "3", INDEX_FAILURE_COUNT: "1", INDEX_IGNORED_FAILURE_COUNT: "2", "odd": 5},
                "ownerReferences": [{"kind": "X", "uid": "x"},
                    {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "ju", "controller": true}]},
            "spec": {"nodeName": "node", "initContainers": [{"name": "i"}, {"name": "car", "restartPolicy": "Always"}]},
            "status": {"phase": "Failed",
                "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2025-01-15T10:30:00Z"}],
                "initContainerStatuses": [{"name": "i"}, {"name": "car", "restartCount": 4}],
                "containerStatuses": [{"name": "c", "restartCount": 2,
                    "state": {"terminated": {"exitCode": 42, "finishedAt": "2025-01-15T10:30:30Z"}}}]},
        });
        let pod = decode_pod(&text.to_string()).unwrap();
        assert_eq!((pod.key.to_string().as_str(), pod.uid.as_str(), &*pod.resource_version), ("s/n", "u", "7"));
        assert!(pod.deleting() && pod.tracked && pod.scheduled);
        let indexes = [&pod.completion_index, &pod.failure_count, &pod.ignored_failure_count];
        assert_eq!(indexes.map(|text| text.as_deref().unwrap()), ["3", "1", "2"]);
        assert_eq!(pod.controller.as_ref().map(|owner| owner.uid.as_str()), Some("ju"));
        assert_eq!((pod.phase, pod.deletion_grace_s, pod.labels.len()), (PodPhase::Failed, 30, 1));
        assert_eq!(pod.condition("Ready").map(|ready| ready.status), Some(ConditionStatus::False));
        let terminated = pod.containers[0].terminated.unwrap();
        assert_eq!((terminated.exit_code, terminated.finished_at.is_some()), (42, true));
        let init: Vec<_> = pod.init_containers.iter().map(|status| (status.side_car, status.restart_count)).collect();
        assert_eq!(init, [(false, 0), (true, 4)]);
    }

    #[test]
    fn a_pod_of_which_little_is_said_is_pending_and_untracked() {
        let pod = decode_pod(r#"{"metadata":{"name":"n","annotations":null,"labels":null},"status":{}}"#).unwrap();
        assert!(!pod.tracked && !pod.scheduled && pod.phase == PodPhase::Pending);
        let told = decode_pod(r#"{"metadata":{"name":"n","namespace":"s"},"status":{"phase":3}}"#).unwrap_err().told();
        assert!(told.starts_with("Pod s/n: field status.phase: invalid type"), "{told}");
    }

    #[test]
    fn a_list_has_a_version_and_pods() {
        let text =
            r#"{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#;
        let (version, pods) = decode_pod_list(text).unwrap();
        assert_eq!((&*version, pods.len(), &*pods[1].key.name), ("9", 2, "b"));
        assert_eq!(decode_pod_list(r#"{"items":null}"#).unwrap().1.len(), 0);
    }
}
