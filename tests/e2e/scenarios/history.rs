//! Runs that end, and how many of them are kept.

use anyhow::ensure;
use serde_json::json;

use crate::api::Said;
use crate::cluster::Ending;
use crate::objects::{cronjob, daily, hourly, job_name, minutes, own_run, rfc3339};
use crate::picture::Picture;
use crate::stage::Stage;

/// Runs that the status forgot (as after a restore): they are taken back, and of those that ended only the newest stay.
pub(crate) async fn history(stage: &Stage) -> anyhow::Result<()> {
    let now = stage.this_minute();
    let limits = json!({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1});
    let object = cronjob(stage.api, "c", &daily(now + minutes(600)), &limits);
    let created = stage.create_suspended(object, now - minutes(60)).await?;
    let runs = [Ending::Complete, Ending::Fail, Ending::Complete, Ending::Complete, Ending::Fail];
    let mut names = Vec::new();
    for (count, _) in (1..).zip(runs) {
        let at = now - minutes(60 - count);
        stage.create_job(&own_run(stage.api, &created, at)).await?;
        let name = job_name("c", at);
        // Oldest first by the time of start or of creation, which count whole seconds.
        stage.job_started(&name).await?;
        names.push(name);
        stage.expect("c", Picture::last(at).running(&names)).await?;
    }
    for (name, ending) in names.iter().zip(runs) {
        stage.end_job(name, ending).await?;
    }
    let completed = names.iter().zip(runs).map(|(name, ending)| ended(stage, name, ending));
    let deleted = [0, 1, 2].map(|gone| stage.api.deleted(&names[gone]));
    let left = Picture::last(now - minutes(55)).jobs(&names[3..]).succeeded();
    stage.expect("c", left.said(completed).said(deleted)).await
}

fn ended(stage: &Stage, name: &str, ending: Ending) -> Said {
    stage.api.completed(name, if ending == Ending::Complete { "Complete" } else { "Failed" })
}

/// Two runs on time, both completing; one is kept.
pub(crate) async fn runs_complete(stage: &Stage) -> anyhow::Result<()> {
    let first = stage.this_minute();
    let due = [first, first + minutes(2)];
    let object = cronjob(stage.api, "c", &hourly(&due), &json!({"successfulJobsHistoryLimit": 1}));
    stage.create_overdue(object, first - minutes(1)).await?;
    let mut said = Vec::new();
    for at in due {
        stage.until(at).await;
        let name = job_name("c", at);
        stage.until_true(&name, async || stage.exists(&stage.job_path(&name)).await).await?;
        stage.end_job(&name, Ending::Complete).await?;
        said.extend([stage.api.created(&stage.namespace, "c", &name), ended(stage, &name, Ending::Complete)]);
        if at == due[1] {
            said.push(stage.api.deleted(&job_name("c", due[0])));
        }
        stage.expect("c", Picture::last(at).jobs([name]).succeeded().said(said.clone())).await?;
        let status = stage.get(&stage.cronjob_path("c")).await?["status"].clone();
        let job = stage.get(&stage.job_path(&job_name("c", at))).await?["status"].clone();
        let ended = if stage.api.volcano { &job["state"]["lastTransitionTime"] } else { &job["completionTime"] };
        ensure!(status["lastSuccessfulTime"] == *ended && ended.is_string(), "{status}, {job}");
    }
    stage.until_true("Pods go with their Job", async || Ok(stage.pods_of(&job_name("c", first)).await? == 0)).await
}

pub(crate) async fn run_fails(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    stage.create_overdue(cronjob(stage.api, "c", &daily(at), &json!({})), at - minutes(1440)).await?;
    let name = job_name("c", at);
    stage.until_true(&name, async || stage.exists(&stage.job_path(&name)).await).await?;
    stage.end_job(&name, Ending::Fail).await?;
    let said = [stage.api.created(&stage.namespace, "c", &name), ended(stage, &name, Ending::Fail)];
    stage.expect("c", Picture::last(at).jobs([name]).said(said)).await
}

/// A run of ours that is in no status is taken back, silently; Forbid counts it.
pub(crate) async fn forgotten_run(stage: &Stage) -> anyhow::Result<()> {
    let now = stage.this_minute();
    let due = [now - minutes(5), now];
    let object = cronjob(stage.api, "c", &hourly(&due), &json!({"concurrencyPolicy": "Forbid"}));
    let created = stage.create_suspended(object, now - minutes(50)).await?;
    stage.create_job(&own_run(stage.api, &created, due[0])).await?;
    let name = job_name("c", due[0]);
    stage.expect("c", Picture::last(due[0]).running([&name])).await?;
    stage.resume("c").await?;
    stage.expect("c", Picture::last(due[0]).running([&name]).said([stage.api.forbidden()])).await?;
    ensure!(stage.get(&stage.cronjob_path("c")).await?["status"]["lastScheduleTime"] == rfc3339(due[0]));
    Ok(())
}
