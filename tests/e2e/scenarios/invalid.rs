//! Schedules and zones that make no sense.

use anyhow::ensure;
use serde_json::json;

use crate::objects::{cronjob, daily, job_name, minutes};
use crate::picture::Picture;
use crate::stage::Stage;

const FOUR_FIELDS: &str = "* * * *";
const FIELDS_ERROR: &str = "expected exactly 5 fields, found 4: [* * * *]";

/// What the API server never lets in.
pub(crate) async fn refused(stage: &Stage) -> anyhow::Result<()> {
    let zone_error = "unknown time zone Mars/Olympus";
    let with_prefix = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
    let cases = [
        (FOUR_FIELDS, json!({}), FIELDS_ERROR),
        ("0 0 1 1 *", json!({"timeZone": "Mars/Olympus"}), zone_error),
        ("TZ=UTC 0 0 1 1 *", json!({}), with_prefix),
        ("0 0 1 1 *", json!({"startingDeadlineSeconds": -1}), "must be greater than or equal to 0"),
    ];
    for (schedule, spec, why) in cases {
        let object = cronjob(stage.api, "c", schedule, &spec);
        let path = stage.api.cronjobs(&stage.namespace);
        let status = stage.send(http::Method::POST, &path, &object).await.expect_err("refused");
        ensure!(status["message"].as_str().unwrap_or_default().contains(why), "{status}");
    }
    Ok(())
}

/// What stands in the store all the same, from before a rule: told of, without a run, until an edit mends it.
pub(crate) async fn stored(stage: &Stage) -> anyhow::Result<()> {
    let at = stage.this_minute();
    let last = at - minutes(60);
    for (name, field, value) in [("schedule", "schedule", FOUR_FIELDS), ("zone", "timeZone", "Mars/Olympus")] {
        let mut object =
            stage.create_overdue(cronjob(stage.api, name, &daily(at + minutes(600)), &json!({})), last).await?;
        stage.pass(2).await;
        object["spec"][field] = value.into();
        stage.cluster.store_unvalidated(stage.api, &object).await?;
    }
    // The edit itself is told of, and what it left.
    let edit = stage.api.unparseable_edit(FOUR_FIELDS);
    stage.expect("schedule", Picture::last(last).said([edit.clone()])).await?;
    let bad_zone = stage.api.bad_zone("Mars/Olympus");
    // Any other change makes the controller look again.
    for name in ["schedule", "zone"] {
        let path = stage.cronjob_path(name);
        let mut object = stage.get(&path).await?;
        object["metadata"]["labels"] = json!({"looked": "again"});
        stage.cluster.store_unvalidated(stage.api, &object).await?;
    }
    let step = stage.api.unparseable(FOUR_FIELDS, FIELDS_ERROR);
    stage.expect("schedule", Picture::last(last).said([edit.clone(), step.clone()])).await?;
    stage.expect("zone", Picture::last(last).said([bad_zone.clone()])).await?;
    let coming = stage.coming_minute(20);
    stage.patch_cronjob("schedule", &json!({"schedule": daily(coming)})).await?;
    stage.patch_cronjob("zone", &json!({"schedule": daily(coming), "timeZone": "Etc/UTC"})).await?;
    stage.until(coming).await;
    for (cronjob, said) in [("schedule", vec![edit, step]), ("zone", vec![bad_zone])] {
        let name = job_name(cronjob, coming);
        let created = stage.api.created(&stage.namespace, cronjob, &name);
        stage.expect(cronjob, Picture::last(coming).running([name]).said(said).said([created])).await?;
    }
    Ok(())
}

/// A schedule without any instant is let in and told of.
pub(crate) async fn never_fires(stage: &Stage) -> anyhow::Result<()> {
    let last = stage.this_minute();
    stage.create_overdue(cronjob(stage.api, "c", "0 0 31 2 *", &json!({})), last).await?;
    stage.expect("c", Picture::last(last).said([stage.api.never_fires("0 0 31 2 *")])).await
}
