//! Names, quotas, and namespaces with very many Jobs.

use anyhow::ensure;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::cluster::Ending;
use crate::objects::{cronjob, daily, job, job_name, minutes, own_run};
use crate::picture::Picture;
use crate::stage::Stage;

/// More than two pages of a list.
const FOREIGN: usize = 1200;

/// Before the controllers look: many Jobs of nobody, which no Job controller works on, and two ended runs of a CronJob whose names
/// come after all of them.
pub(crate) async fn fill_pages(stage: &Stage) -> anyhow::Result<()> {
    let made = (0..FOREIGN).map(async |count| {
        let mut foreign = job(stage.api, &format!("foreign-{count:04}"));
        if !stage.api.volcano {
            foreign["spec"]["managedBy"] = "e2e.example.com/nobody".into();
        }
        stage.create_job(&foreign).await.map(drop)
    });
    stream::iter(made).buffer_unordered(16).try_collect::<Vec<()>>().await?;
    let now = stage.this_minute();
    let object = cronjob(stage.api, "z", &daily(now + minutes(600)), &json!({"successfulJobsHistoryLimit": 1}));
    let created = stage.create_suspended(object, now - minutes(5)).await?;
    for at in [now - minutes(7), now - minutes(6)] {
        stage.create_job(&own_run(stage.api, &created, at)).await?;
        stage.job_started(&job_name("z", at)).await?;
        stage.end_job(&job_name("z", at), Ending::Complete).await?;
    }
    Ok(())
}

pub(crate) async fn paging(stage: &Stage) -> anyhow::Result<()> {
    let jobs = stage.jobs().await?;
    let mut own: Vec<&str> = jobs.iter().filter_map(|job| job["metadata"]["name"].as_str()).collect();
    own.retain(|name| name.starts_with("z-"));
    let last = stage.get(&stage.cronjob_path("z")).await?["status"]["lastScheduleTime"].clone();
    let last = last.as_str().unwrap_or_default().parse::<chrono::DateTime<chrono::Utc>>()?;
    let kept = *own.last().ok_or_else(|| anyhow::anyhow!("no run is left"))?;
    let gone = job_name("z", last - minutes(2));
    let left = Picture::last(last).jobs([kept]).succeeded().said([stage.api.deleted(&gone)]);
    stage.expect("z", left).await?;
    let foreign = stage.jobs().await?.iter().filter(|job| job["metadata"]["ownerReferences"].is_null()).count();
    ensure!(foreign == FOREIGN, "{foreign} Jobs of others are left");
    Ok(())
}

/// With the longest name that is allowed the Job's name is as long as a label may be, but two.
pub(crate) async fn longest_name(stage: &Stage) -> anyhow::Result<()> {
    let (at, long) = (stage.this_minute(), "n".repeat(52));
    stage.create_overdue(cronjob(stage.api, &long, &daily(at), &json!({})), at - minutes(1440)).await?;
    let name = job_name(&long, at);
    ensure!(name.len() == 61);
    let created = stage.api.created(&stage.namespace, &long, &name);
    stage.expect(&long, Picture::last(at).running([name]).said([created])).await
}

pub(crate) async fn name_too_long(stage: &Stage) -> anyhow::Result<()> {
    let long = "n".repeat(53);
    let object = cronjob(stage.api, &long, "0 0 1 1 *", &json!({}));
    let path = stage.api.cronjobs(&stage.namespace);
    let status = stage.send(http::Method::POST, &path, &object).await.expect_err("refused");
    let message = status["message"].as_str().unwrap_or_default();
    ensure!(message.contains("must be no more than 52 characters"), "{status}");
    Ok(())
}

/// A quota on Jobs as the quota controller keeps it.
fn quota(stage: &Stage, hard: u32, used: u32) -> Value {
    let counted = if stage.api.volcano { "count/jobs.batch.volcano.sh" } else { "count/jobs.batch" };
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"},
        "spec": {"hard": {counted: hard.to_string()}},
        "status": {"hard": {counted: hard.to_string()}, "used": {counted: used.to_string()}},
    })
}

/// What the server says when a run exceeds the quota of [`quota`].
fn exceeded(stage: &Stage, name: &str, hard: u32) -> String {
    let resource = if stage.api.volcano { "jobs.batch.volcano.sh" } else { "jobs.batch" };
    let count = format!("count/{resource}");
    format!(
        "{resource} \"{name}\" is forbidden: exceeded quota: full, requested: {count}=1, used: {count}={hard}, limited: {count}={hard}"
    )
}

/// Refused runs are tried again, told in one event that counts, and start when there is room.
pub(crate) async fn quota_full(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    let last = at - minutes(1440);
    stage.post(&stage.core("resourcequotas"), &quota(stage, 0, 0)).await?;
    let path = format!("{}/full", stage.core("resourcequotas"));
    stage.patch(&format!("{path}/status"), &json!({"status": quota(stage, 0, 0)["status"]})).await?;
    let object = stage.create_overdue(cronjob(stage.api, "c", &daily(at), &json!({})), last).await?;
    let name = job_name("c", at);
    let refused = stage.api.not_created(&exceeded(stage, &name, 0));
    stage.expect("c", Picture::last(last).said([refused.clone()])).await?;
    let counted = async || Ok(stage.events(&object).await?.iter().any(|(said, count)| *said == refused && *count > 1));
    stage.until_true("the event counts", counted).await?;
    let room = quota(stage, 5, 0);
    stage.patch(&path, &json!({"spec": room["spec"]})).await?;
    stage.patch(&format!("{path}/status"), &json!({"status": room["status"]})).await?;
    let created = stage.api.created(&stage.namespace, "c", &name);
    stage.expect("c", Picture::last(at).running([name]).said([refused, created])).await
}

/// The quota is used up by a Job of others; when that goes, the quota controller makes room.
pub(crate) async fn quota_freed(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    let last = at - minutes(1440);
    stage.create_job(&job(stage.api, "filler")).await?;
    stage.post(&stage.core("resourcequotas"), &quota(stage, 1, 1)).await?;
    let path = format!("{}/full", stage.core("resourcequotas"));
    stage.patch(&format!("{path}/status"), &json!({"status": quota(stage, 1, 1)["status"]})).await?;
    stage.create_overdue(cronjob(stage.api, "c", &daily(at), &json!({})), last).await?;
    let name = job_name("c", at);
    let refused = stage.api.not_created(&exceeded(stage, &name, 1));
    stage.expect("c", Picture::last(last).said([refused.clone()])).await?;
    stage.delete(&stage.job_path("filler"), "Background").await?;
    let created = stage.api.created(&stage.namespace, "c", &name);
    stage.expect("c", Picture::last(at).running([name]).said([refused, created])).await
}
