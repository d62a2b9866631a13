//! Sends what a step of a Job asks for and turns the answers into what the step expects. Nothing is decided here.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};

use crate::api::{
    NewPod, adopt_patch, decode_batch_job, decode_pod, decode_pod_list, job_status_patch, pod_body, pod_path,
    pods_path, pods_query, release_patch, untrack_patch, wire,
};
use crate::cluster::{ApiClient, Lane, Urgency};
use crate::controllers::requests::{
    JSON, MERGE_PATCH, STRATEGIC_MERGE_PATCH, is_answer_about, readable, request, unusable,
};
use crate::jobs::{Answer, Call, IndexAdditions, PodAdditions, PodList, PodPatch};
use crate::model::{ApiFailure, BatchJob, Flavor, ObjectKey, Pod, TRACKING_FINALIZER};

/// The requests of the steps of Jobs. Cheap to clone.
#[derive(Clone)]
pub(in crate::controllers) struct Calls {
    api: ApiClient,
}

impl Calls {
    pub(in crate::controllers) fn new(api: ApiClient) -> Self {
        Self { api }
    }

    /// Sends one call of an object in the namespace `tenant`.
    pub(super) async fn perform(&self, tenant: &Arc<str>, call: &Call) -> Answer {
        let sent = async |request: Result<Request<Vec<u8>>, ApiFailure>| {
            let urgency = Urgency { lane: lane(call), due: None, tenant: tenant.clone() };
            self.api.send(urgency, request?).await
        };
        match call {
            Call::GetJob { key } => Answer::Job(self.read(Lane::Read, key).await),
            Call::ListPods { namespace, selector } => {
                let request = request(Method::GET, pods_query(namespace, selector), JSON, Vec::new());
                Answer::Pods(sent(request).await.and_then(|body| pods(&body)))
            }
            Call::CreatePod { job, additions } => {
                Answer::Pod(sent(create_pod(job, additions)).await.and_then(|body| pod(&body)))
            }
            Call::PatchPod { key, patch } => {
                let path = pod_path(&key.namespace, &key.name);
                let request = request(Method::PATCH, path, STRATEGIC_MERGE_PATCH, pod_patch(patch));
                Answer::Pod(sent(request).await.and_then(|body| patched(&body, key)))
            }
            Call::DeletePod { key } => {
                let request = request(Method::DELETE, pod_path(&key.namespace, &key.name), JSON, Vec::new());
                Answer::Deleted(sent(request).await.map(drop))
            }
            Call::PatchStatus { base, status } => {
                let body = job_status_patch(&base.status, status, &base.resource_version);
                let path = wire(Flavor::Kubernetes).job_status_path(&base.key.namespace, &base.key.name);
                Answer::Job(
                    sent(request(Method::PATCH, path, MERGE_PATCH, body)).await.and_then(|body| job(&body, &base.key)),
                )
            }
        }
    }

    /// The Job as the server has it.
    pub(in crate::controllers) async fn read(&self, lane: Lane, key: &ObjectKey) -> Result<Arc<BatchJob>, ApiFailure> {
        let path = wire(Flavor::Kubernetes).job_path(&key.namespace, &key.name);
        let urgency = Urgency { lane, due: None, tenant: key.namespace.clone() };
        self.api.send(urgency, request(Method::GET, path, JSON, Vec::new())?).await.and_then(|body| job(&body, key))
    }

    /// Deletes a Job with this body.
    pub(in crate::controllers) async fn delete_job(&self, key: &ObjectKey, body: Vec<u8>) -> Result<(), ApiFailure> {
        let path = wire(Flavor::Kubernetes).job_path(&key.namespace, &key.name);
        let urgency = Urgency { lane: Lane::Delete, due: None, tenant: key.namespace.clone() };
        self.api.send(urgency, request(Method::DELETE, path, JSON, body)?).await.map(drop)
    }
}

/// Without a due instant: in its lane, what a CronJob is due for goes first.
fn lane(call: &Call) -> Lane {
    match call {
        Call::CreatePod { .. } => Lane::Create,
        Call::PatchStatus { .. } | Call::PatchPod { .. } => Lane::Status,
        Call::DeletePod { .. } => Lane::Delete,
        Call::GetJob { .. } | Call::ListPods { .. } => Lane::Read,
    }
}

fn create_pod(job: &BatchJob, additions: &PodAdditions) -> Result<Request<Vec<u8>>, ApiFailure> {
    let index = additions.index.as_ref();
    let new = NewPod {
        template_json: &job.spec.template.json,
        generate_name: &additions.generate_name,
        owner: &additions.owner,
        finalizer: additions.finalizer,
        labels: index.map(IndexAdditions::labels).unwrap_or_default(),
        annotations: index.map(IndexAdditions::annotations).unwrap_or_default(),
        hostname: index.map(|index| &*index.hostname),
        variable: index.map(|_| IndexAdditions::variable()),
    };
    let body = pod_body(&new).map_err(|error| unusable(format!("the Pod template cannot be read: {error}")))?;
    request(Method::POST, pods_path(&job.key.namespace), JSON, body)
}

fn pod_patch(patch: &PodPatch) -> Vec<u8> {
    match patch {
        PodPatch::Untrack => untrack_patch(TRACKING_FINALIZER),
        PodPatch::Adopt { job, uid } => {
            adopt_patch(&PodAdditions::new(job, None).owner, uid.as_str(), TRACKING_FINALIZER)
        }
        PodPatch::Release { job, uid } => release_patch(job.as_str(), uid.as_str(), TRACKING_FINALIZER),
    }
}

fn job(body: &Bytes, key: &ObjectKey) -> Result<Arc<BatchJob>, ApiFailure> {
    let job = readable(body, decode_batch_job)?;
    is_answer_about(key, "Job", &job.key, body)?;
    Ok(Arc::new(job))
}

fn patched(body: &Bytes, key: &ObjectKey) -> Result<Arc<Pod>, ApiFailure> {
    let pod = pod(body)?;
    is_answer_about(key, "Pod", &pod.key, body)?;
    Ok(pod)
}

fn pod(body: &Bytes) -> Result<Arc<Pod>, ApiFailure> {
    readable(body, decode_pod).map(Arc::new)
}

fn pods(body: &Bytes) -> Result<PodList, ApiFailure> {
    readable(body, decode_pod_list).map(|(resource_version, pods)| PodList { resource_version, pods })
}
