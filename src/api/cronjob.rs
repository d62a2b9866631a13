//! CronJob of either API, from JSON to model.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::decode::{DecodeError, Meta, Time, decode, wrong};
use crate::model::{CronJob, CronJobSpec, CronJobStatus, Flavor, JobTemplate, ObjectKey, ObjectReference, Policy, Uid};

const KIND: &str = "CronJob";

/// Reads one CronJob from its JSON text (also `RawValue::get`). Both APIs have the same shape here; `flavor` only says which one
/// the caller serves.
///
/// # Errors
/// The text is not JSON, a field has the wrong type, or a part of the Job template is not an object.
pub fn decode_cronjob(_flavor: Flavor, text: &str) -> Result<CronJob, DecodeError> {
    let WireCronJob { metadata, spec, status } = decode(KIND, text)?;
    let mut metadata = metadata.unwrap_or_default();
    let key = metadata.key();
    Ok(CronJob {
        uid: metadata.uid(),
        resource_version: metadata.take_resource_version(),
        creation_time: metadata.creation_timestamp.map(|t| t.0),
        deleting: metadata.deleting(),
        spec: spec.unwrap_or_default().into_model(&key)?,
        status: status.unwrap_or_default().into_model(),
        key,
    })
}

#[derive(Deserialize)]
struct WireCronJob<'a> {
    metadata: Option<Meta>,
    #[serde(borrow)]
    spec: Option<Spec<'a>>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    schedule: Option<Box<str>>,
    time_zone: Option<Box<str>>,
    starting_deadline_seconds: Option<i64>,
    concurrency_policy: Option<std::borrow::Cow<'a, str>>,
    suspend: Option<bool>,
    successful_jobs_history_limit: Option<i32>,
    failed_jobs_history_limit: Option<i32>,
    #[serde(borrow)]
    job_template: Option<Template<'a>>,
}

impl Spec<'_> {
    fn into_model(self, object: &ObjectKey) -> Result<CronJobSpec, DecodeError> {
        Ok(CronJobSpec {
            schedule: self.schedule.unwrap_or_default(),
            time_zone: self.time_zone,
            starting_deadline_s: self.starting_deadline_seconds,
            policy: match self.concurrency_policy.as_deref() {
                Some("Forbid") => Policy::Forbid,
                Some("Replace") => Policy::Replace,
                _ => Policy::Allow,
            },
            suspend: self.suspend.unwrap_or(false),
            successful_limit: self.successful_jobs_history_limit,
            failed_limit: self.failed_jobs_history_limit,
            template: Arc::new(self.job_template.unwrap_or_default().into_model(object)?),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template<'a> {
    #[serde(borrow)]
    metadata: Option<TemplateMeta<'a>>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TemplateMeta<'a> {
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

impl Template<'_> {
    fn into_model(self, object: &ObjectKey) -> Result<JobTemplate, DecodeError> {
        let metadata = self.metadata.unwrap_or_default();
        Ok(JobTemplate {
            labels_json: json_object(object, "spec.jobTemplate.metadata.labels", metadata.labels)?,
            annotations_json: json_object(object, "spec.jobTemplate.metadata.annotations", metadata.annotations)?,
            spec_json: json_object(object, "spec.jobTemplate.spec", self.spec)?,
        })
    }
}

/// The text of a part that must be an object when it is there.
fn json_object(object: &ObjectKey, field: &str, part: Option<&RawValue>) -> Result<Option<Box<str>>, DecodeError> {
    match part.map(RawValue::get) {
        None | Some("null") => Ok(None),
        Some(text) if text.starts_with('{') => Ok(Some(text.into())),
        Some(_) => Err(wrong(KIND, object, field, "invalid type, expected an object")),
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    active: Option<Vec<Reference>>,
    last_schedule_time: Option<Time>,
    last_successful_time: Option<Time>,
}

impl Status {
    fn into_model(self) -> CronJobStatus {
        CronJobStatus {
            active: self.active.unwrap_or_default().into_iter().map(Reference::into_model).collect(),
            last_schedule_time: self.last_schedule_time.map(|t| t.0),
            last_successful_time: self.last_successful_time.map(|t| t.0),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Reference {
    kind: Option<Box<str>>,
    api_version: Option<Box<str>>,
    namespace: Option<Box<str>>,
    name: Option<Box<str>>,
    uid: Option<Box<str>>,
    resource_version: Option<Box<str>>,
    field_path: Option<Box<str>>,
}

impl Reference {
    fn into_model(self) -> ObjectReference {
        ObjectReference {
            kind: self.kind.unwrap_or_default(),
            api_version: self.api_version.unwrap_or_default(),
            namespace: self.namespace.unwrap_or_default(),
            name: self.name.unwrap_or_default(),
            uid: Uid::from(self.uid.as_deref().unwrap_or_default()),
            resource_version: self.resource_version.unwrap_or_default(),
            field_path: self.field_path.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CronJob, DecodeError> {
        decode_cronjob(Flavor::Kubernetes, text)
    }

    #[test]
    fn everything_that_a_decision_reads_is_kept() {
        let cronjob = read(
            r#"{"kind":"CronJob","metadata":{"name":"n","namespace":"s","uid":"u","resourceVersion":"7",
            "creationTimestamp":"2024-03-01T09:59:59Z","deletionTimestamp":"2024-03-01T10:00:00Z"},
            "spec":{"schedule":"0 * * * *","timeZone":"","startingDeadlineSeconds":-3,"concurrencyPolicy":"Forbid",
            "suspend":true,"successfulJobsHistoryLimit":3,"jobTemplate":{"metadata":{"labels":{"a":"b"},"finalizers":["x"]},
            "spec":{"new":{ "field" : 1e2}}}},
            "status":{"active":[{"kind":"Job","name":"n-1","uid":"j"}],"lastScheduleTime":"2024-03-01T10:00:00+01:00"}}"#,
        )
        .unwrap();
        assert_eq!(cronjob.key.to_string(), "s/n");
        assert_eq!(cronjob.uid.as_str(), "u");
        assert!(cronjob.deleting && cronjob.spec.suspend);
        assert_eq!(cronjob.spec.time_zone.as_deref(), Some(""));
        assert_eq!(cronjob.spec.starting_deadline_s, Some(-3));
        assert_eq!(cronjob.spec.policy, Policy::Forbid);
        assert_eq!((cronjob.spec.successful_limit, cronjob.spec.failed_limit), (Some(3), None));
        assert_eq!(cronjob.spec.template.labels_json.as_deref(), Some(r#"{"a":"b"}"#));
        assert_eq!(cronjob.spec.template.spec_json.as_deref(), Some(r#"{"new":{ "field" : 1e2}}"#));
        assert_eq!(cronjob.status.active[0].uid.as_str(), "j");
        assert_eq!(cronjob.status.last_schedule_time.unwrap().to_rfc3339(), "2024-03-01T09:00:00+00:00");
    }

    #[test]
    fn whatever_is_missing_or_null_is_the_zero_value() {
        let empty = read("{}").unwrap();
        assert_eq!(&*empty.spec.schedule, "");
        let nulls =
            read(r#"{"metadata":null,"spec":{"schedule":null,"jobTemplate":null},"status":{"active":null}}"#).unwrap();
        assert_eq!(nulls, empty);
    }

    #[test]
    fn an_error_names_object_and_field() {
        let error =
            read(r#"{"metadata":{"name":"n","namespace":"s"},"spec":{"startingDeadlineSeconds":"5"}}"#).unwrap_err();
        assert_eq!(error.to_string(), "CronJob s/n: field spec.startingDeadlineSeconds");
        let error =
            read(r#"{"metadata":{"name":"n","namespace":"s"},"spec":{"jobTemplate":{"spec":[]}}}"#).unwrap_err();
        assert_eq!(error.to_string(), "CronJob s/n: field spec.jobTemplate.spec");
        let error = read(r#"{"metadata":{"name":"n"},"status":{"active":[{"uid":1}]}}"#).unwrap_err();
        assert_eq!(error.to_string(), "CronJob ?/n: field status.active[0].uid");
        assert_eq!(read("nonsense").unwrap_err().to_string(), "CronJob ?/?: field .");
        assert_eq!(read(r#"{"":n}"#).unwrap_err().to_string(), "CronJob ?/?: field .");
    }
}
