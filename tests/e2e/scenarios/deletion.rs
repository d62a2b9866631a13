//! CronJobs and namespaces that go.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::api::{Api, K8S, VOLCANO};
use crate::objects::{cronjob, daily, hourly, job_name, minutes, rfc3339};
use crate::picture::Picture;
use crate::stage::Stage;

/// Starts a CronJob `c` with one run and waits for it; answers the run's name.
async fn start_one(stage: &Stage) -> anyhow::Result<String> {
    let at = stage.this_minute();
    stage.create_overdue(cronjob(stage.api, "c", &daily(at), &json!({})), at - minutes(1440)).await?;
    let name = job_name("c", at);
    let created = stage.api.created(&stage.namespace, "c", &name);
    stage.expect("c", Picture::last(at).running([&name]).said([created])).await?;
    Ok(name)
}

pub(crate) async fn deleted_with_its_jobs(stage: &Stage) -> anyhow::Result<()> {
    let name = start_one(stage).await?;
    if !stage.api.volcano {
        stage.until_true("the run has its Pod", async || Ok(stage.pods_of(&name).await? == 1)).await?;
    }
    stage.forget("c");
    stage.delete(&stage.cronjob_path("c"), "Background").await?;
    stage.until_true("its Job goes", async || Ok(!stage.exists(&stage.job_path(&name)).await?)).await?;
    stage.until_true("its Pod goes", async || Ok(stage.pods_of(&name).await? == 0)).await?;
    ensure!(!stage.exists(&stage.cronjob_path("c")).await?);
    Ok(())
}

/// Jobs that outlive their CronJob are nobody's: a new CronJob of the same name leaves them alone, says that the name is taken,
/// and goes on with the next run.
pub(crate) async fn jobs_left_as_orphans(stage: &Stage) -> anyhow::Result<()> {
    let first = stage.this_minute();
    let due = [first, first + minutes(2)];
    let object = cronjob(stage.api, "c", &hourly(&due), &json!({"concurrencyPolicy": "Replace"}));
    stage.create_overdue(object.clone(), first - minutes(1)).await?;
    let names = due.map(|at| job_name("c", at));
    let created = names.each_ref().map(|name| stage.api.created(&stage.namespace, "c", name));
    stage.expect("c", Picture::last(first).running([&names[0]]).said([created[0].clone()])).await?;
    stage.forget("c");
    stage.delete(&stage.cronjob_path("c"), "Orphan").await?;
    stage.until_true("it goes", async || Ok(!stage.exists(&stage.cronjob_path("c")).await?)).await?;
    let orphan = stage.get(&stage.job_path(&names[0])).await?;
    ensure!(orphan["metadata"]["ownerReferences"].is_null(), "{orphan}");
    stage.create_overdue(object, first - minutes(1)).await?;
    let foreign = stage.api.foreign(&names[0], "none");
    stage.expect("c", Picture::last(first - minutes(1)).said([foreign.clone()])).await?;
    stage.until(due[1]).await;
    let after = Picture::last(due[1]).running([&names[1]]).said([foreign, created[1].clone()]);
    stage.expect("c", after).await?;
    ensure!(stage.get(&stage.job_path(&names[0])).await?["metadata"]["uid"] == orphan["metadata"]["uid"]);
    Ok(())
}

/// One that is being deleted starts nothing more, however long that takes.
pub(crate) async fn held_by_a_finalizer(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    let last = at - minutes(1440);
    let mut object = cronjob(stage.api, "c", &daily(at), &json!({}));
    object["metadata"]["finalizers"] = json!(["e2e.example.com/hold"]);
    stage.create_suspended(object, last).await?;
    stage.delete(&stage.cronjob_path("c"), "Background").await?;
    stage.resume("c").await?;
    stage.pass(3).await;
    stage.expect("c", Picture::last(last)).await?;
    stage.forget("c");
    stage.patch(&stage.cronjob_path("c"), &json!({"metadata": {"finalizers": null}})).await?;
    stage.until_true("it goes", async || Ok(!stage.exists(&stage.cronjob_path("c")).await?)).await
}

/// A namespace that is being deleted takes no Jobs: nothing starts in it, of either API, and then all of it goes.
pub(crate) async fn terminating_namespace(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    let last = at - minutes(1440);
    let apis: [&Api; 2] = [&K8S, &VOLCANO];
    for api in apis {
        let mut object = cronjob(api, "c", &daily(at), &json!({"suspend": true}));
        object["metadata"]["annotations"] = json!({"e2e.example.com/note": "both APIs"});
        stage.post(&api.cronjobs(&stage.namespace), &object).await?;
        let status = json!({"status": {"lastScheduleTime": rfc3339(last)}});
        stage.patch(&format!("{}/c/status", api.cronjobs(&stage.namespace)), &status).await?;
    }
    let namespace = format!("/api/v1/namespaces/{}", stage.namespace);
    stage.delete(&namespace, "Background").await?;
    for api in apis {
        let path = format!("{}/c", api.cronjobs(&stage.namespace));
        stage.patch(&path, &json!({"spec": {"suspend": false}})).await?;
    }
    stage.pass(4).await;
    for api in apis {
        let jobs = stage.get(&api.jobs(&stage.namespace)).await?;
        ensure!(jobs["items"] == json!([]), "{jobs}");
        let object = stage.get(&format!("{}/c", api.cronjobs(&stage.namespace))).await?;
        ensure!(object["status"]["lastScheduleTime"] == rfc3339(last), "{object}");
        ensure!(object["status"]["active"] == Value::Null, "{object}");
    }
    stage.cluster.empty_namespaces();
    stage.until_true("the namespace goes", async || Ok(!stage.exists(&namespace).await?)).await
}
