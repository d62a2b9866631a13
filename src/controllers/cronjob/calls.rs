//! Sends what a step asks for and turns the answers into what the step expects. Nothing is decided here.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};

use crate::api::{decode_cronjob, decode_job, delete_body, job_body, status_patch, wire};
use crate::cluster::{ApiClient, Lane, Urgency};
use crate::controllers::requests::{JSON, MERGE_PATCH, is_answer_about, readable, request};
use crate::model::{ApiFailure, CronJob, Flavor, Job, ObjectKey, Uid, WallTime};
use crate::reconcile::{Answer, Call};

/// The requests of one CronJob's steps.
#[derive(Clone)]
pub(in crate::controllers) struct Calls {
    api: ApiClient,
    flavor: Flavor,
    /// `spec.managedBy` of the Jobs made, where their template has none.
    managed_by: Option<Arc<str>>,
}

impl Calls {
    /// `managed_by` counts for `batch/v1` only: Jobs of Volcano have no such field.
    pub(in crate::controllers) fn new(api: ApiClient, flavor: Flavor, managed_by: Option<Arc<str>>) -> Self {
        Self { api, flavor, managed_by: managed_by.filter(|_| flavor == Flavor::Kubernetes) }
    }

    /// Sends one call. `pending` is the due instant for which this step may still create a Job: until then its requests travel
    /// as urgently as that creation.
    pub(in crate::controllers) async fn perform(
        &self,
        tenant: &Arc<str>,
        pending: Option<WallTime>,
        call: &Call,
    ) -> Answer {
        let lane = if pending.is_some() { Lane::Create } else { own_lane(call) };
        let urgency = Urgency { lane, due: pending, tenant: tenant.clone() };
        let sent = async |request| match request {
            Ok(request) => self.api.send(urgency, request).await,
            Err(failure) => Err(failure),
        };
        match call {
            Call::GetCronJob { key } => {
                Answer::CronJob(sent(self.get_cronjob(key)).await.and_then(|b| self.cronjob(&b, key)))
            }
            Call::GetJob { key } => Answer::Job(sent(self.get_job(key)).await.and_then(|b| self.job(&b, key))),
            Call::CreateJob { cronjob, name, at, offset_s } => {
                let key = ObjectKey::new(cronjob.key.namespace.clone(), &**name);
                Answer::Job(sent(self.create_job(cronjob, *at, *offset_s)).await.and_then(|b| self.job(&b, &key)))
            }
            Call::DeleteJob { key, uid } => Answer::Deleted(sent(self.delete_job(key, uid)).await.map(drop)),
            Call::PatchStatus { base, status } => {
                let body = status_patch(&base.status, status, &base.resource_version);
                let path = wire(self.flavor).cronjob_status_path(&base.key.namespace, &base.key.name);
                let request = request(Method::PATCH, path, MERGE_PATCH, body);
                Answer::CronJob(sent(request).await.and_then(|b| self.cronjob(&b, &base.key)))
            }
        }
    }

    fn get_cronjob(&self, key: &ObjectKey) -> Result<Request<Vec<u8>>, ApiFailure> {
        request(Method::GET, wire(self.flavor).cronjob_path(&key.namespace, &key.name), JSON, Vec::new())
    }

    fn get_job(&self, key: &ObjectKey) -> Result<Request<Vec<u8>>, ApiFailure> {
        request(Method::GET, wire(self.flavor).job_path(&key.namespace, &key.name), JSON, Vec::new())
    }

    fn delete_job(&self, key: &ObjectKey, uid: &Uid) -> Result<Request<Vec<u8>>, ApiFailure> {
        let path = wire(self.flavor).job_path(&key.namespace, &key.name);
        request(Method::DELETE, path, JSON, delete_body(self.flavor, uid.as_str()))
    }

    fn create_job(&self, cronjob: &CronJob, at: WallTime, offset_s: i32) -> Result<Request<Vec<u8>>, ApiFailure> {
        let path = wire(self.flavor).jobs_path(Some(&cronjob.key.namespace));
        request(Method::POST, path, JSON, job_body(self.flavor, cronjob, at, offset_s, self.managed_by.as_deref()))
    }

    fn cronjob(&self, body: &Bytes, key: &ObjectKey) -> Result<Arc<CronJob>, ApiFailure> {
        let cronjob = readable(body, |text| decode_cronjob(self.flavor, text))?;
        is_answer_about(key, "CronJob", &cronjob.key, body)?;
        Ok(Arc::new(cronjob))
    }

    fn job(&self, body: &Bytes, key: &ObjectKey) -> Result<Arc<Job>, ApiFailure> {
        let job = readable(body, |text| decode_job(self.flavor, text))?;
        is_answer_about(key, "Job", &job.key, body)?;
        Ok(Arc::new(job))
    }
}

/// The lane of a call that no creation waits for.
fn own_lane(call: &Call) -> Lane {
    match call {
        Call::CreateJob { .. } => Lane::Create,
        Call::PatchStatus { .. } => Lane::Status,
        Call::DeleteJob { .. } => Lane::Delete,
        Call::GetCronJob { .. } | Call::GetJob { .. } => Lane::Read,
    }
}
