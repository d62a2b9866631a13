//! When a run is due: zones, deadlines, intervals.

use anyhow::ensure;
use chrono::TimeDelta;
use serde_json::json;

use crate::objects::{cronjob, daily, job_name, minutes, rfc3339};
use crate::picture::Picture;
use crate::stage::Stage;

/// No daylight saving, and an offset that no other zone nearby shares.
pub(crate) const KATHMANDU: &str = "Asia/Kathmandu";

/// The daily schedule that is due at `at` if it is read in Kathmandu.
pub(crate) fn daily_in_kathmandu(at: chrono::DateTime<chrono::Utc>) -> String {
    daily(at + TimeDelta::minutes(345))
}

/// The run at `at` is there, and its annotation shows Kathmandu's time.
pub(crate) async fn runs_in_kathmandu(
    stage: &Stage,
    at: chrono::DateTime<chrono::Utc>,
    expected: Picture,
) -> anyhow::Result<()> {
    let name = job_name("c", at);
    let created = stage.api.created(&stage.namespace, "c", &name);
    stage.expect("c", expected.running([&name]).said([created])).await?;
    let annotations = stage.get(&stage.job_path(&name)).await?["metadata"]["annotations"].clone();
    let local = (at + TimeDelta::minutes(345)).format("%Y-%m-%dT%H:%M:%S+05:45").to_string();
    ensure!(annotations[stage.api.annotation] == local, "{annotations}");
    Ok(())
}

/// A schedule in a zone of its own, at the next minute; read in UTC it would be due hours later.
pub(crate) async fn time_zone(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.coming_minute(20);
    let object = cronjob(stage.api, "c", &daily_in_kathmandu(at), &json!({"timeZone": KATHMANDU}));
    stage.create_cronjob(&object).await?;
    stage.until(at).await;
    runs_in_kathmandu(stage, at, Picture::last(at)).await
}

/// A run ten minutes late starts if its deadline allows it; else it is told of as missed.
pub(crate) async fn deadline(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute() - minutes(10);
    let before = at - minutes(1440);
    for (name, seconds) in [("late", 30), ("in-time", 7200)] {
        let object = cronjob(stage.api, name, &daily(at), &json!({"startingDeadlineSeconds": seconds}));
        stage.create_overdue(object, before).await?;
    }
    let name = job_name("in-time", at);
    let created = stage.api.created(&stage.namespace, "in-time", &name);
    stage.expect("in-time", Picture::last(at).running([name]).said([created])).await?;
    stage.expect("late", Picture::last(before).said([stage.api.missed(at)])).await
}

/// Intervals count from the last run, and the newest one that has passed is made up for.
pub(crate) async fn every(stage: &Stage) -> anyhow::Result<()> {
    let last = stage.this_minute() - minutes(130);
    let object = cronjob(stage.api, "c", "@every 1h", &json!({}));
    stage.create_overdue(object, last).await?;
    let at = last + minutes(120);
    let name = job_name("c", at);
    let created = stage.api.created(&stage.namespace, "c", &name);
    stage.expect("c", Picture::last(at).running([&name]).said([created])).await?;
    let job = stage.get(&stage.job_path(&name)).await?;
    ensure!(job["metadata"]["annotations"][stage.api.annotation] == rfc3339(at), "{job}");
    Ok(())
}
