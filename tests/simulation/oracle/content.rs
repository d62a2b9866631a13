//! What is in the Jobs that replicas send: what the CronJob's template says, and who made them.

use chrono::{DateTime, FixedOffset, SecondsFormat};
use cronjob_controller::sandbox::call::Verb;
use serde_json::{Value, json};

use super::Oracle;
use super::facts::{Version, text};
use super::scene::Key;
use crate::history::Asked;
use crate::plan::{Api, Ms};

impl Oracle {
    /// A request about a CronJob or one of its Jobs was answered.
    pub(super) fn on_answer(&mut self, at: Ms, key: &Key, request: &Asked) {
        if request.resource.plural != "jobs" {
            return;
        }
        let job = (key.0, key.1.clone(), request.name.clone());
        let owner = self.scene.jobs.get(&job).and_then(|job| job.owner.as_ref());
        let Some(uid) = self.scene.uids.get(key).or(owner).cloned() else { return };
        let Some(cron) = self.scene.crons.get_mut(&uid) else { return };
        match (request.verb, request.code) {
            (Verb::Create, 201) => self.judge_content(at, key, request),
            // Taken, or nobody knows.
            (Verb::Create, 0 | 409) => cron.taken.extend(cron.minutes_in(&request.name)),
            (Verb::Delete, 400..=403 | 405..=428 | 430..=499) => cron.refused_at = Some(at),
            _ => {}
        }
    }

    /// Invariant 13.
    fn judge_content(&mut self, at: Ms, key: &Key, request: &Asked) {
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else { return };
        let owner = body["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or_default();
        let Some(cron) = self.scene.crons.get(owner) else { return };
        let window = self.scene.window(at);
        let differences: Vec<String> = cron.since(window).map(|version| difference(key, version, &body)).collect();
        if differences.iter().all(|difference| !difference.is_empty()) {
            let job = (key.0, key.1.clone(), request.name.clone());
            self.blame(13, at, &job, differences.last().cloned().unwrap_or_default());
        }
    }
}

/// What in `body` is not as the Job of a version of the CronJob `key`; empty if all is.
fn difference(key: &Key, version: &Version, body: &Value) -> String {
    let (api_version, annotation) = match key.0 {
        Api::Kubernetes => ("batch/v1", "batch.kubernetes.io/cronjob-scheduled-timestamp"),
        Api::Volcano => ("batch.volcano.sh/v1alpha1", "volcano.sh/cronjob-scheduled-timestamp"),
    };
    let template = &version.spec()["jobTemplate"];
    let metadata = &body["metadata"];
    let scheduled = metadata["annotations"][annotation].as_str().unwrap_or_default();
    let Ok(due) = DateTime::parse_from_rfc3339(scheduled) else { return format!("no instant in {annotation}") };
    let mut annotations = template["metadata"]["annotations"].clone();
    annotations[annotation] = json!(in_zone_of(version, due));
    let owner = json!({"apiVersion": api_version, "kind": "CronJob", "name": key.2, "uid": version.uid, "controller": true,
        "blockOwnerDeletion": true});
    let parts = [
        ("apiVersion", &body["apiVersion"], json!(api_version)),
        ("kind", &body["kind"], json!("Job")),
        ("name", &metadata["name"], json!(super::facts::job_name(&key.2, due.timestamp_millis()))),
        ("labels", &metadata["labels"], template["metadata"]["labels"].clone()),
        ("annotations", &metadata["annotations"], annotations),
        ("ownerReferences", &metadata["ownerReferences"], json!([owner])),
        ("spec", &body["spec"], template["spec"].clone()),
    ];
    let wrong = parts.into_iter().find(|(_, is, wanted)| *is != wanted);
    wrong.map_or_else(String::new, |(part, is, wanted)| {
        format!("{part} of the Job of {} is {is}, not {wanted}", text(due.timestamp_millis()))
    })
}

/// An instant as the annotation shows it: in the CronJob's zone, or in UTC.
fn in_zone_of(version: &Version, due: DateTime<FixedOffset>) -> String {
    let zone = version.timetable.1.as_deref().and_then(|zone| zone.parse::<chrono_tz::Tz>().ok());
    match zone {
        Some(zone) => due.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::Secs, true),
        None => due.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true),
    }
}
