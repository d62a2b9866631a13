//! batch/v1 CronJob: defaults, validation and warnings of Kubernetes 1.36.

use serde_json::Value;

use super::{Causes, Operation, at, child, job, job_rules, metadata, pod, set_default, text, time_zone};
use crate::schedule::{Schedule, Zone};

/// Job names add `-` and the minute (up to ten digits) to the CronJob's name and must stay within 63.
const MAX_NAME: usize = 52;

pub(super) fn default(object: &mut Value) {
    let Some(spec) = child(object, "spec") else { return };
    set_default(spec, "concurrencyPolicy", "Allow");
    set_default(spec, "suspend", false);
    set_default(spec, "successfulJobsHistoryLimit", 3);
    set_default(spec, "failedJobsHistoryLimit", 1);
    // Of the Job template only the parts below the Job's own fields get defaults.
    let Some(template) = child(spec, "jobTemplate") else { return };
    set_default(template, "metadata", serde_json::Map::new());
    if let Some(job) = child(template, "spec") {
        job::default_policies(job);
        if let Some(template) = child(job, "template") {
            pod::default_template(template);
        }
    }
}

pub(super) fn validate(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = at(object, &["spec"]);
    let old_spec = old.map(|old| at(old, &["spec"]));
    let zone = spec.get("timeZone").filter(|zone| !zone.is_null());
    validate_schedule(spec, old_spec, zone.is_some(), causes);
    causes.non_negative("spec.startingDeadlineSeconds", at(spec, &["startingDeadlineSeconds"]));
    if let Some(zone) = zone
        && old_spec.is_none_or(|old| old.get("timeZone") != Some(zone))
    {
        validate_time_zone(zone, causes);
    }
    validate_policy(at(spec, &["concurrencyPolicy"]), causes);
    job_rules::validate_template(at(spec, &["jobTemplate"]), "spec.jobTemplate", causes);
    for limit in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        causes.non_negative(format!("spec.{limit}"), at(spec, &[limit]));
    }
    let name = at(object, &["metadata", "name"]);
    if old.is_none() && name.as_str().is_some_and(|name| name.len() > MAX_NAME) {
        causes.invalid("metadata.name", name, &format!("must be no more than {MAX_NAME} characters"));
    }
}

/// A zone inside the schedule is tolerated only where it has been before.
fn validate_schedule(spec: &Value, old: Option<&Value>, has_zone: bool, causes: &mut Causes) {
    let value = at(spec, &["schedule"]);
    let schedule = value.as_str().unwrap_or_default();
    if schedule.is_empty() {
        causes.required("spec.schedule", "");
        return;
    }
    if let Err(error) = Schedule::parse(schedule) {
        causes.invalid("spec.schedule", value, &error.to_string());
    }
    let tolerated = old.is_some_and(|old| text(old, &["schedule"]).contains("TZ"));
    match (schedule.contains("TZ"), tolerated) {
        (true, true) if has_zone => {
            causes.invalid("spec.schedule", value, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
        }
        (true, false) => {
            causes.invalid("spec.schedule", value, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        }
        _ => {}
    }
}

fn validate_time_zone(value: &Value, causes: &mut Causes) {
    let field = "spec.timeZone";
    let name = value.as_str().unwrap_or_default();
    if name.is_empty() {
        causes.invalid(field, value, "timeZone must be nil or non-empty string");
        return;
    }
    if time_zone::bad_parts(name) > 0 {
        causes.invalid(field, value, &format!("unknown time zone {name}"));
        return;
    }
    if name.eq_ignore_ascii_case("Local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        causes.invalid(field, value, why);
    }
    if time_zone::is_folder(name) {
        causes.invalid(field, value, "is a directory");
    } else if let Err(error) = Zone::load(name, Zone::UTC) {
        causes.invalid(field, value, &error.to_string());
    }
}

fn validate_policy(value: &Value, causes: &mut Causes) {
    match value.as_str().unwrap_or_default() {
        "Allow" | "Forbid" | "Replace" => {}
        "" => causes.required("spec.concurrencyPolicy", ""),
        _ => causes.unsupported("spec.concurrencyPolicy", value, &["Allow", "Forbid", "Replace"]),
    }
}

pub(super) fn warn(object: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    if old.is_none() {
        metadata::warn_pod_name(Operation::Create, text(object, &["metadata", "name"]), warnings);
    } else if text(object, &["spec", "schedule"]).contains("TZ") {
        // The doubled `spec.spec` is the real server's.
        warnings.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
    }
}
