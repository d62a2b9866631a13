//! What others made, and what others do to what is ours.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::cluster::Ending;
use crate::objects::{controlled_by, cronjob, daily, hourly, job, job_name, minutes};
use crate::picture::Picture;
use crate::stage::Stage;

pub(crate) async fn active_job_deleted(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    stage.create_overdue(cronjob(stage.api, "c", &daily(at), &json!({})), at - minutes(1440)).await?;
    let name = job_name("c", at);
    let created = stage.api.created(&stage.namespace, "c", &name);
    stage.expect("c", Picture::last(at).running([&name]).said([created.clone()])).await?;
    let job = stage.get(&stage.job_path(&name)).await?;
    stage.delete(&stage.job_path(&name), "Background").await?;
    let missing = stage.api.missing(&name, uid(&job)?);
    stage.expect("c", Picture::last(at).said([created, missing])).await
}

/// The name of a run is taken by a Job that is nobody's: told once, and the next run comes.
pub(crate) async fn name_taken(stage: &Stage) -> anyhow::Result<()> {
    let first = stage.this_minute();
    let due = [first, first + minutes(2)];
    let names = due.map(|at| job_name("c", at));
    let taken = stage.create_job(&job(stage.api, &names[0])).await?;
    let last = first - minutes(1);
    stage.create_overdue(cronjob(stage.api, "c", &hourly(&due), &json!({})), last).await?;
    let foreign = stage.api.foreign(&names[0], "none");
    stage.expect("c", Picture::last(last).said([foreign.clone()])).await?;
    stage.until(due[1]).await;
    let created = stage.api.created(&stage.namespace, "c", &names[1]);
    stage.expect("c", Picture::last(due[1]).running([&names[1]]).said([foreign, created])).await?;
    ensure!(uid(&stage.get(&stage.job_path(&names[0])).await?)? == uid(&taken)?);
    Ok(())
}

/// A Job of another owner with the CronJob's name is not the CronJob's: not cleaned up, not active, in nobody's way.
pub(crate) async fn owner_of_the_same_name(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    let last = at - minutes(1440);
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let owner = stage.post(&stage.core("configmaps"), &owner).await?;
    let spec = json!({"successfulJobsHistoryLimit": 0, "concurrencyPolicy": "Forbid"});
    stage.create_suspended(cronjob(stage.api, "c", &daily(at), &spec), last).await?;
    for name in ["done", "running"] {
        let mut other = job(stage.api, name);
        other["metadata"]["ownerReferences"] = controlled_by(&owner);
        stage.create_job(&other).await?;
    }
    stage.end_job("done", Ending::Complete).await?;
    stage.resume("c").await?;
    let name = job_name("c", at);
    let created = stage.api.created(&stage.namespace, "c", &name);
    stage.expect("c", Picture::last(at).running([name]).said([created])).await?;
    ensure!(stage.exists(&stage.job_path("done")).await? && stage.exists(&stage.job_path("running")).await?);
    Ok(())
}

/// A Job made from the CronJob by hand is told of once, and is in nobody's way.
pub(crate) async fn job_by_hand(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    let last = at - minutes(1440);
    let object = cronjob(stage.api, "c", &daily(at), &json!({"concurrencyPolicy": "Forbid"}));
    let created = stage.create_suspended(object, last).await?;
    let mut by_hand = job(stage.api, "c-by-hand");
    by_hand["metadata"]["annotations"] = json!({"cronjob.kubernetes.io/instantiate": "manual"});
    by_hand["metadata"]["ownerReferences"] = controlled_by(&created);
    let by_hand = stage.create_job(&by_hand).await?;
    let unknown = stage.api.unknown("c-by-hand", uid(&by_hand)?);
    stage.expect("c", Picture::last(last).jobs(["c-by-hand"]).said([unknown.clone()])).await?;
    stage.resume("c").await?;
    let name = job_name("c", at);
    let started = stage.api.created(&stage.namespace, "c", &name);
    let both = Picture::last(at).jobs(["c-by-hand", &name]).active([&name]);
    stage.expect("c", both.said([unknown, started])).await
}

/// Labels, annotations and finalizers that others put on a CronJob outlast every write of its status, and none goes to its Jobs.
pub(crate) async fn fields_of_others(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    let mut object = cronjob(stage.api, "c", &daily(at), &json!({}));
    let marks = json!({"example.com/mark": "kept"});
    object["metadata"]["labels"] = marks.clone();
    object["metadata"]["annotations"] = marks.clone();
    object["metadata"]["finalizers"] = json!(["e2e.example.com/hold"]);
    stage.create_overdue(object, at - minutes(1440)).await?;
    let name = job_name("c", at);
    let created = stage.api.created(&stage.namespace, "c", &name);
    stage.expect("c", Picture::last(at).running([&name]).said([created])).await?;
    let metadata = stage.get(&stage.cronjob_path("c")).await?["metadata"].clone();
    ensure!(metadata["labels"] == marks && metadata["annotations"] == marks, "{metadata}");
    ensure!(metadata["finalizers"] == json!(["e2e.example.com/hold"]), "{metadata}");
    let job = stage.get(&stage.job_path(&name)).await?["metadata"].clone();
    ensure!(job["labels"]["example.com/mark"] == Value::Null, "{job}");
    ensure!(job["annotations"]["example.com/mark"] == Value::Null, "{job}");
    ensure!(job["finalizers"] == Value::Null, "{job}");
    Ok(())
}

fn uid(object: &Value) -> anyhow::Result<&str> {
    object["metadata"]["uid"].as_str().context("a uid")
}
