//! The Volcano kinds: schema defaults and validation, then what Volcano's own webhooks do.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Causes, Invalid, at, child, metadata, set_default, text, time_zone, volcano_schema};
use crate::sandbox::resources::Resource;
use crate::schedule::{Schedule, Zone, quote};

/// Job names add `-` and the minute to the CronJob's name and must stay within 63.
const MAX_NAME: usize = 52;

/// Defaults (the schema's, and for Jobs those of the mutating webhook), then validation by schema.
pub(super) fn default_and_validate(resource: &Resource, object: &mut Value, causes: &mut Causes) {
    let schema = volcano_schema::root(resource.plural);
    schema.default(object);
    if resource.plural == "jobs" {
        mutate_job(object);
    }
    schema.validate(object, "", causes);
}

/// The validating webhooks. They run after everything else and see only writes of the main resource.
pub(super) fn webhook(resource: &Resource, object: &Value) -> Result<(), Invalid> {
    let (name, why) = match resource.plural {
        "cronjobs" => ("validatecronjob.volcano.sh", refuse_cronjob(object)),
        _ => ("validatejob.volcano.sh", refuse_job(object)),
    };
    if why.is_empty() { Ok(()) } else { Err(Invalid::denied(name, &why)) }
}

/// What the webhook has against a CronJob; empty if nothing. The spaces between the parts are the webhook's own.
fn refuse_cronjob(object: &Value) -> String {
    let spec = at(object, &["spec"]);
    let mut about_spec = String::new();
    let schedule = text(spec, &["schedule"]);
    if schedule.is_empty() {
        about_spec += "schedule is required, but got empty";
    } else if schedule.contains("TZ") {
        about_spec += "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field";
    } else if Schedule::parse(schedule).is_err() {
        about_spec += "schedule is not a valid cron expression";
    }
    if let Some(zone) = at(spec, &["timeZone"]).as_str() {
        about_spec += &refuse_zone(zone);
    }
    let about_name = refuse_name(text(object, &["metadata", "name"]));
    let parts: Vec<&str> = [about_spec.trim(), about_name.trim()].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

fn refuse_zone(zone: &str) -> String {
    if zone.is_empty() {
        return " timeZone must be nil or non-empty string, got empty string".to_owned();
    }
    let mut why = " unknown timeZone".repeat(time_zone::bad_parts(zone));
    if zone.eq_ignore_ascii_case("Local") {
        why += " timeZone can't be Local, and must be defined in https://www.iana.org/time-zones";
    } else if Zone::load(zone, Zone::UTC).is_err() {
        why += " invalid timeZone";
    }
    why
}

fn refuse_name(name: &str) -> String {
    if name.len() > MAX_NAME {
        return format!(
            "cronJob name must be no more than {MAX_NAME} characters to accommodate job name suffix (max 63 total)"
        );
    }
    let why = metadata::qualified_name(name);
    if why.is_empty() { String::new() } else { format!("invalid cronJob name {}: {}", quote(name), why.join(" ")) }
}

/// What the mutating webhook fills in: the scheduler, names of tasks, and how many Pods are enough.
fn mutate_job(object: &mut Value) {
    let Some(spec) = child(object, "spec") else { return };
    set_default(spec, "schedulerName", "volcano");
    let mut total = 0;
    let tasks = spec.get_mut("tasks").and_then(Value::as_array_mut);
    for (index, task) in tasks.into_iter().flatten().enumerate() {
        set_default(task, "name", format!("default{index}"));
        set_default(task, "replicas", 1);
        let replicas = at(task, &["replicas"]).clone();
        set_default(task, "minAvailable", replicas);
        total += at(task, &["minAvailable"]).as_i64().unwrap_or_default();
    }
    let enough = spec.get_mut("minAvailable").and_then(|value| value.as_i64()).unwrap_or_default();
    if enough == 0 && total > 0 {
        spec["minAvailable"] = total.into();
    }
}

/// What the webhook has against a Job; empty if nothing.
fn refuse_job(object: &Value) -> String {
    let spec = at(object, &["spec"]);
    let tasks = at(spec, &["tasks"]).as_array().map(Vec::as_slice).unwrap_or_default();
    if tasks.is_empty() {
        return "No task specified in job spec".to_owned();
    }
    let mut why = String::new();
    let mut seen = BTreeSet::new();
    for name in tasks.iter().map(|task| text(task, &["name"])) {
        if !seen.insert(name) {
            why += &format!(" duplicated task name {name};");
        }
    }
    let replicas: i64 = tasks.iter().filter_map(|task| at(task, &["replicas"]).as_i64()).sum();
    if at(spec, &["minAvailable"]).as_i64().unwrap_or_default() > replicas {
        why += " job 'minAvailable' should not be greater than total replicas in tasks;";
    }
    why.trim().to_owned()
}
