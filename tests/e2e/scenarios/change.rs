//! CronJobs that users change.

use serde_json::json;

use super::time::{KATHMANDU, daily_in_kathmandu, runs_in_kathmandu};
use crate::objects::{cronjob, daily, hourly, job_name, minutes};
use crate::picture::Picture;
use crate::stage::Stage;

pub(crate) async fn suspend_resume(stage: &Stage) -> anyhow::Result<()> {
    let now = stage.this_minute();
    let due = [now - minutes(5), now - minutes(3), now + minutes(2)];
    let last = now - minutes(8);
    stage.create_suspended(cronjob(stage.api, "c", &hourly(&due), &json!({})), last).await?;
    stage.pass(3).await;
    stage.expect("c", Picture::last(last)).await?;
    // Of those that passed meanwhile only the newest is made up for.
    stage.resume("c").await?;
    let names = due.map(|at| job_name("c", at));
    let created = names.each_ref().map(|name| stage.api.created(&stage.namespace, "c", name));
    let resumed = Picture::last(due[1]).running([&names[1]]).said([created[1].clone()]);
    stage.expect("c", resumed.clone()).await?;
    stage.patch_cronjob("c", &json!({"suspend": true})).await?;
    stage.until(due[2]).await;
    stage.pass(3).await;
    stage.expect("c", resumed).await?;
    stage.resume("c").await?;
    let both = Picture::last(due[2]).running(&names[1..]).said(created[1..].to_vec());
    stage.expect("c", both).await
}

/// A new schedule holds from its edit on: what would have been due before does not start, what comes does.
pub(crate) async fn edit_schedule(stage: &Stage) -> anyhow::Result<()> {
    let past = stage.this_minute() - minutes(3);
    let last = past - minutes(20);
    let never_now = daily(past + minutes(600));
    for name in ["c", "back"] {
        stage.create_overdue(cronjob(stage.api, name, &never_now, &json!({})), last).await?;
        stage.expect(name, Picture::last(last)).await?;
    }
    // Long enough for the controller to know them as they were.
    stage.pass(2).await;
    let coming = stage.coming_minute(20);
    stage.patch_cronjob("back", &json!({"schedule": daily(past)})).await?;
    stage.patch_cronjob("c", &json!({"schedule": daily(coming)})).await?;
    // An edit wakes nobody before the new schedule does; another change makes the controller look at once.
    stage.pass(1).await;
    let looked = json!({"metadata": {"labels": {"looked": "again"}}});
    stage.patch(&stage.cronjob_path("back"), &looked).await?;
    stage.until(coming).await;
    let name = job_name("c", coming);
    let created = stage.api.created(&stage.namespace, "c", &name);
    stage.expect("c", Picture::last(coming).running([name]).said([created])).await?;
    stage.expect("back", Picture::last(last)).await
}

pub(crate) async fn edit_zone(stage: &Stage) -> anyhow::Result<()> {
    let coming = stage.coming_minute(40);
    let last = stage.this_minute();
    let object = cronjob(stage.api, "c", &daily_in_kathmandu(coming), &json!({"timeZone": "Etc/UTC"}));
    stage.create_overdue(object, last).await?;
    stage.expect("c", Picture::last(last)).await?;
    stage.pass(2).await;
    stage.patch_cronjob("c", &json!({"timeZone": KATHMANDU})).await?;
    stage.until(coming).await;
    runs_in_kathmandu(stage, coming, Picture::last(coming)).await
}
