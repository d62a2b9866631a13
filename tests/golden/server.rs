//! A tiny API server as the vectors describe it: its Jobs, its faults, and a record of what was asked of it.

use std::collections::BTreeMap;

use cronjob_controller::model::Flavor;
use serde::Deserialize;
use serde_json::{Value, json};

/// `api` of a vector.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Api {
    #[serde(default)]
    extra_jobs: Vec<Value>,
    #[serde(default)]
    missing_jobs: Vec<String>,
    pub(crate) cron_job: Option<Value>,
    get_cron_job: Option<Value>,
    create_job: Option<Value>,
    update_status: Option<Value>,
    #[serde(default)]
    get_job: BTreeMap<String, Value>,
    #[serde(default)]
    delete_job: BTreeMap<String, Value>,
    empty_namespace_get: String,
    #[serde(default)]
    create_drops_owner: bool,
}

pub(crate) type Answer = Result<Value, Value>;

pub(crate) struct Server<'a> {
    api: &'a Api,
    resource: &'static str,
    namespace: String,
    /// The clock, in whole seconds.
    now: String,
    cronjob: Value,
    jobs: BTreeMap<(String, String), Value>,
    pub(crate) calls: Vec<String>,
    pub(crate) created: Vec<Value>,
    pub(crate) deleted: Vec<String>,
    /// The CronJob as the last status write wanted it.
    pub(crate) put: Option<Value>,
}

pub(crate) fn text<'v>(object: &'v Value, path: &str) -> &'v str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn key(job: &Value) -> (String, String) {
    (text(job, "/metadata/namespace").to_owned(), text(job, "/metadata/name").to_owned())
}

fn refusal(code: u16, reason: &str, message: String) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
}

impl<'a> Server<'a> {
    pub(crate) fn new(flavor: Flavor, api: &'a Api, cronjob: &Value, jobs: &[Value], now: String) -> Self {
        let cached = jobs.iter().filter(|job| !api.missing_jobs.iter().any(|name| name == text(job, "/metadata/name")));
        Self {
            api,
            resource: match flavor {
                Flavor::Kubernetes => "jobs.batch",
                Flavor::Volcano => "jobs.batch.volcano.sh",
            },
            namespace: text(cronjob, "/metadata/namespace").to_owned(),
            now,
            cronjob: api.cron_job.clone().unwrap_or_else(|| cronjob.clone()),
            jobs: cached.chain(&api.extra_jobs).map(|job| (key(job), job.clone())).collect(),
            calls: Vec::new(),
            created: Vec::new(),
            deleted: Vec::new(),
            put: None,
        }
    }

    fn log(&mut self, verb: &str, namespace: &str, name: &str) {
        self.calls.push(format!("{verb} {namespace}/{name}"));
    }

    fn not_found(&self, name: &str) -> Value {
        refusal(404, "NotFound", format!("{} \"{name}\" not found", self.resource))
    }

    pub(crate) fn get_cronjob(&mut self, namespace: &str, name: &str) -> Answer {
        self.log("getCronJob", namespace, name);
        self.api.get_cron_job.clone().map_or_else(|| Ok(self.cronjob.clone()), Err)
    }

    pub(crate) fn get_job(&mut self, namespace: &str, name: &str) -> Answer {
        self.log("getJob", namespace, name);
        // Such a path reaches no Job at all, so no fault of one either.
        if namespace.is_empty() && self.api.empty_namespace_get == "404" {
            let of_volcano =
                if self.resource == "jobs.batch" { String::new() } else { format!(" (get {} {name})", self.resource) };
            let message = format!("the server could not find the requested resource{of_volcano}");
            return Err(refusal(404, "NotFound", message));
        }
        if let Some(fault) = self.api.get_job.get(name) {
            return Err(fault.clone());
        }
        let namespace = if namespace.is_empty() { self.namespace.clone() } else { namespace.to_owned() };
        self.jobs.get(&(namespace, name.to_owned())).cloned().ok_or_else(|| self.not_found(name))
    }

    pub(crate) fn create_job(&mut self, namespace: &str, body: &Value) -> Answer {
        let name = text(body, "/metadata/name").to_owned();
        self.log("createJob", namespace, &name);
        if let Some(fault) = &self.api.create_job {
            return Err(fault.clone());
        }
        let place = (namespace.to_owned(), name.clone());
        if self.jobs.contains_key(&place) {
            return Err(refusal(409, "AlreadyExists", format!("{} \"{name}\" already exists", self.resource)));
        }
        self.created.push(body.clone());
        let mut job = body.clone();
        job["metadata"]["namespace"] = json!(namespace);
        job["metadata"]["uid"] = json!(format!("created-{name}"));
        job["metadata"]["resourceVersion"] = json!("1000001");
        job["metadata"]["creationTimestamp"] = json!(self.now);
        if self.api.create_drops_owner {
            job["metadata"]["ownerReferences"] = Value::Null;
        }
        self.jobs.insert(place, job.clone());
        Ok(job)
    }

    pub(crate) fn delete_job(&mut self, namespace: &str, name: &str) -> Result<(), Value> {
        self.log("deleteJob", namespace, name);
        if let Some(fault) = self.api.delete_job.get(name) {
            return Err(fault.clone());
        }
        self.jobs.remove(&(namespace.to_owned(), name.to_owned())).ok_or_else(|| self.not_found(name))?;
        self.deleted.push(name.to_owned());
        Ok(())
    }

    pub(crate) fn put_status(&mut self, wanted: Value) -> Answer {
        let (namespace, name) = key(&wanted);
        self.log("updateStatus", &namespace, &name);
        self.put = Some(wanted.clone());
        self.api.update_status.clone().map_or(Ok(wanted), Err)
    }
}
