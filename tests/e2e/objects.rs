//! Objects as users write them.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::api::Api;

/// Marks a Job that a scenario made itself.
pub(crate) const BY_HAND: &str = "e2e.example.com/by-hand";

pub(crate) fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The name of a CronJob's Job for the due instant `at`.
pub(crate) fn job_name(cronjob: &str, at: DateTime<Utc>) -> String {
    format!("{cronjob}-{}", at.timestamp() / 60)
}

/// The schedule of this minute, once a day.
pub(crate) fn daily(at: DateTime<Utc>) -> String {
    at.format("%-M %-H * * *").to_string()
}

/// The schedule of these minutes, every hour. They must differ.
pub(crate) fn hourly(minutes: &[DateTime<Utc>]) -> String {
    let minutes: Vec<String> = minutes.iter().map(|at| at.format("%-M").to_string()).collect();
    format!("{} * * * *", minutes.join(","))
}

pub(crate) fn minutes(count: i64) -> TimeDelta {
    TimeDelta::minutes(count)
}

/// What a Job runs: one Pod, which fails for good when it fails.
pub(crate) fn job_spec(api: &Api) -> Value {
    let pod = json!({"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example.com/c:1"}],
    }});
    if api.volcano {
        json!({"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": pod}]})
    } else {
        json!({"backoffLimit": 0, "template": pod})
    }
}

/// A CronJob; the fields of `spec` are laid over a minimal one.
pub(crate) fn cronjob(api: &Api, name: &str, schedule: &str, spec: &Value) -> Value {
    let mut whole = json!({"schedule": schedule, "jobTemplate": {"spec": job_spec(api)}});
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    json!({"apiVersion": api.api_version, "kind": "CronJob", "metadata": {"name": name}, "spec": whole})
}

/// A Job made by hand.
pub(crate) fn job(api: &Api, name: &str) -> Value {
    let metadata = json!({"name": name, "labels": {BY_HAND: "true"}});
    json!({"apiVersion": api.api_version, "kind": "Job", "metadata": metadata, "spec": job_spec(api)})
}

/// A reference to `owner` as its controller.
pub(crate) fn controlled_by(owner: &Value) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }])
}

/// A Job such as the controller makes of `cronjob` for `at`, but by hand.
pub(crate) fn own_run(api: &Api, cronjob: &Value, at: DateTime<Utc>) -> Value {
    let mut object = job(api, &job_name(cronjob["metadata"]["name"].as_str().unwrap(), at));
    object["metadata"]["annotations"] = json!({api.annotation: rfc3339(at)});
    object["metadata"]["ownerReferences"] = controlled_by(cronjob);
    object
}
