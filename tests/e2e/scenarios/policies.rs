//! What happens to a run while an earlier one is still there.

use anyhow::{Context, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::cluster::Ending;
use crate::objects::{controlled_by, cronjob, daily, hourly, job, job_name, minutes};
use crate::picture::Picture;
use crate::stage::Stage;

/// One run, due at once.
pub(crate) async fn starts(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    stage.create_overdue(cronjob(stage.api, "c", &daily(at), &json!({})), at - minutes(1440)).await?;
    let first = job_name("c", at);
    let created = stage.api.created(&stage.namespace, "c", &first);
    stage.expect("c", Picture::last(at).running([first]).said([created])).await
}

/// Starts a CronJob `c` with this policy whose first run is due at once, and waits until it runs. Answers the due instants of this
/// run and of the next, which comes in one to two minutes; then no other for most of an hour.
async fn start_pair(stage: &Stage, policy: &str) -> anyhow::Result<[DateTime<Utc>; 2]> {
    let first = stage.this_minute();
    let due = [first, first + minutes(2)];
    let object = cronjob(stage.api, "c", &hourly(&due), &json!({"concurrencyPolicy": policy}));
    stage.create_overdue(object, first - minutes(1)).await?;
    let name = job_name("c", first);
    let created = stage.api.created(&stage.namespace, "c", &name);
    stage.expect("c", Picture::last(first).running([&name]).said([created])).await?;
    stage.job_started(&name).await?;
    Ok(due)
}

pub(crate) async fn allow(stage: &Stage) -> anyhow::Result<()> {
    let due = start_pair(stage, "Allow").await?;
    stage.until(due[1]).await;
    let names = due.map(|at| job_name("c", at));
    let created = names.each_ref().map(|name| stage.api.created(&stage.namespace, "c", name));
    stage.expect("c", Picture::last(due[1]).running(names).said(created)).await
}

pub(crate) async fn forbid(stage: &Stage) -> anyhow::Result<()> {
    let due = start_pair(stage, "Forbid").await?;
    let names = due.map(|at| job_name("c", at));
    let created = names.each_ref().map(|name| stage.api.created(&stage.namespace, "c", name));
    stage.until(due[1]).await;
    let skipped = [created[0].clone(), stage.api.forbidden()];
    stage.expect("c", Picture::last(due[0]).running([&names[0]]).said(skipped.clone())).await?;
    stage.end_job(&names[0], Ending::Complete).await?;
    // The skipped run is still pending and starts as soon as there is room.
    let said = [stage.api.completed(&names[0], "Complete"), created[1].clone()];
    let after = Picture::last(due[1]).jobs(names.clone()).active([&names[1]]).succeeded();
    stage.expect("c", after.said(skipped).said(said)).await
}

pub(crate) async fn replace(stage: &Stage) -> anyhow::Result<()> {
    let due = start_pair(stage, "Replace").await?;
    let names = due.map(|at| job_name("c", at));
    if !stage.api.volcano {
        stage.until_true("the first run has its Pod", async || Ok(stage.pods_of(&names[0]).await? == 1)).await?;
    }
    stage.until(due[1]).await;
    let created = names.each_ref().map(|name| stage.api.created(&stage.namespace, "c", name));
    let said = created.into_iter().chain([stage.api.deleted(&names[0])]).chain(stage.api.replacing());
    stage.expect("c", Picture::last(due[1]).running([&names[1]]).said(said)).await?;
    stage.until_true("the replaced Pod goes", async || Ok(stage.pods_of(&names[0]).await? == 0)).await
}

/// As `replace`, but what is replaced was put into the status by hand, so that nothing has to be waited for.
pub(crate) async fn replace_at_once(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    let object = cronjob(stage.api, "c", &daily(at), &json!({"concurrencyPolicy": "Replace"}));
    let before = at - minutes(1440);
    let created = stage.create_suspended(object, before).await?;
    let mut old = job(stage.api, "old");
    old["metadata"]["ownerReferences"] = controlled_by(&created);
    // It is active before it is there, so that the controller never sees it without.
    let old = put_active(stage, &old).await?;
    stage.resume("c").await?;
    let new = job_name("c", at);
    let said = [stage.api.created(&stage.namespace, "c", &new), stage.api.deleted("old")];
    let unknown = stage.api.unknown("old", old["metadata"]["uid"].as_str().context("a uid")?);
    stage.until_true("the replacement", async || Ok(stage.exists(&stage.job_path(&new)).await?)).await?;
    // Whether the controller saw the Job or the status first is left to chance: it may have asked about the Job.
    let asked = stage.picture("c").await?.events.contains(&unknown);
    let said = said.into_iter().chain(stage.api.replacing()).chain(asked.then_some(unknown));
    stage.expect("c", Picture::last(at).running([new]).said(said)).await
}

/// Creates a Job and puts it into `status.active` of the CronJob `c`.
async fn put_active(stage: &Stage, job: &Value) -> anyhow::Result<Value> {
    let job = stage.create_job(job).await?;
    let metadata = &job["metadata"];
    let reference = json!({
        "apiVersion": stage.api.api_version, "kind": "Job", "namespace": stage.namespace,
        "name": metadata["name"], "uid": metadata["uid"],
    });
    let status = stage.patch_status("c", &json!({"active": [reference]})).await?;
    ensure!(status["status"]["active"][0]["uid"] == metadata["uid"], "{status}");
    ensure!(stage.now() - stage.this_minute() < TimeDelta::minutes(1));
    Ok(job)
}
