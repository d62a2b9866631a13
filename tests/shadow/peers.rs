//! A peer that does right, that skips, that starts elsewhere, that is late, that deletes and keeps wrongly.

use std::time::Duration;

use cronjob_controller::controllers::shadow::Difference;
use serde_json::json;

use crate::common::{Peer, Watcher, pass_until};
use crate::world::{World, cronjob, cronjobs};

const START: &str = "2026-03-01T10:00:10Z";
const FIRST: &str = "2026-03-01T10:01:00Z";
const SECOND: &str = "2026-03-01T10:02:00Z";
const THIRD: &str = "2026-03-01T10:03:00Z";

/// A world with one CronJob, each minute, and its shadow.
async fn scene(spec: serde_json::Value) -> (World, Watcher) {
    let world = World::new(START);
    world.create(&cronjob("cj", "* * * * *", spec)).await;
    let watcher = Watcher::start(&world).await;
    (world, watcher)
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_started_in_time_agrees() {
    let (world, watcher) = scene(json!({})).await;
    let peer = Peer { world: &world, volcano: false };
    pass_until(&world, FIRST, 0).await;
    world.pass(Duration::from_millis(120)).await;
    let name = peer.run("cj", FIRST).await;
    world.pass(Duration::from_secs(3)).await;
    let record = watcher.records().pop().unwrap();
    assert_eq!((record.difference, record.rule, &*record.due), (Difference::None, None, FIRST), "{record:?}");
    assert_eq!((record.planned.action, record.planned.job.as_deref()), ("start", Some(&*name)));
    assert_eq!((record.seen.job.as_deref(), record.seen.at.as_deref()), (Some(&*name), Some(FIRST)));
    let uid = world.sandbox.get(crate::world::jobs(), "default", &name).unwrap()["metadata"]["uid"].clone();
    assert_eq!(json!(record.seen.uid), uid);
    let summary = watcher.end().await;
    assert_eq!((summary.records, summary.open), (1, 0));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_started_is_told_once_the_next_has_come_and_does_not_echo() {
    let (world, watcher) = scene(json!({})).await;
    let peer = Peer { world: &world, volcano: false };
    pass_until(&world, SECOND, -2).await;
    assert_eq!(watcher.found(), []);
    pass_until(&world, SECOND, 0).await;
    assert_eq!(watcher.found(), [(FIRST.to_owned(), Difference::NotStarted, Some("unexplained"))]);
    world.pass(Duration::from_millis(100)).await;
    peer.run("cj", SECOND).await;
    pass_until(&world, THIRD, -2).await;
    assert_eq!(watcher.found()[1..], [(SECOND.to_owned(), Difference::None, None)]);
    let metrics = watcher.metrics();
    for line in [
        "cron_shadow_instants_total{controller=\"kubernetes-cronjob\",difference=\"not-started\"} 1\n",
        "cron_shadow_instants_total{controller=\"kubernetes-cronjob\",difference=\"none\"} 1\n",
        "cron_shadow_differences_total{controller=\"kubernetes-cronjob\",rule=\"unexplained\"} 1\n",
        "cron_shadow_differences_total{controller=\"volcano-cronjob\",rule=\"deadline-zero\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    let summary = watcher.end().await;
    assert_eq!(summary.differences, [("none", 1), ("not-started", 1)].into());
    assert_eq!(summary.rules, [("unexplained", 1)].into());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_of_another_minute_is_told_as_elsewhere() {
    let (world, watcher) = scene(json!({})).await;
    let peer = Peer { world: &world, volcano: false };
    pass_until(&world, FIRST, 1).await;
    let name = peer.run("cj", "2026-03-01T09:17:00Z").await;
    peer.record("cj", &json!({"lastScheduleTime": FIRST})).await;
    pass_until(&world, SECOND, 0).await;
    let record = watcher.differing().pop().unwrap();
    assert_eq!((&*record.due, record.difference, record.rule), (FIRST, Difference::Elsewhere, Some("unexplained")));
    assert_eq!(record.seen.job.as_deref(), Some(&*name));
    assert_eq!(watcher.records().len(), 1, "{:?}", watcher.records());
    watcher.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_run_beside_the_right_one_is_told_as_started() {
    let (world, watcher) = scene(json!({})).await;
    let peer = Peer { world: &world, volcano: false };
    pass_until(&world, FIRST, 1).await;
    peer.run("cj", FIRST).await;
    let double = peer.start("cj", "2026-03-01T10:00:00Z").await;
    world.pass(Duration::from_secs(10)).await;
    assert_eq!(watcher.found()[0], (FIRST.to_owned(), Difference::None, None));
    let record = watcher.differing().pop().unwrap();
    assert_eq!((record.difference, record.planned.action), (Difference::Started, "none"));
    assert_eq!(json!(record.seen.job), double["metadata"]["name"]);
    watcher.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_comes_late_is_told_apart_from_one_that_does_not_come() {
    let (world, watcher) = scene(json!({})).await;
    let peer = Peer { world: &world, volcano: false };
    pass_until(&world, FIRST, 29).await;
    peer.run("cj", FIRST).await;
    pass_until(&world, SECOND, 45).await;
    peer.run("cj", SECOND).await;
    world.pass(Duration::from_secs(2)).await;
    assert_eq!(
        watcher.found(),
        [(FIRST.to_owned(), Difference::None, None), (SECOND.to_owned(), Difference::Late, None)]
    );
    assert!(watcher.records()[1].message.ends_with("45 s after its time"));
    // Later than the next instant: first it is missing, then it comes after all.
    pass_until(&world, THIRD, 63).await;
    assert_eq!(watcher.found()[2], (THIRD.to_owned(), Difference::NotStarted, Some("unexplained")));
    peer.run("cj", THIRD).await;
    world.pass(Duration::from_secs(8)).await;
    assert_eq!(watcher.found()[3], (THIRD.to_owned(), Difference::Late, None));
    watcher.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_we_would_not_make_is_told() {
    let (world, watcher) = scene(json!({})).await;
    let peer = Peer { world: &world, volcano: false };
    pass_until(&world, FIRST, 1).await;
    let name = peer.run("cj", FIRST).await;
    pass_until(&world, FIRST, 20).await;
    peer.delete(&name).await;
    world.pass(Duration::from_secs(5)).await;
    let record = watcher.differing().pop().unwrap();
    assert_eq!((record.difference, record.rule, &*record.due), (Difference::Deleted, Some("unexplained"), FIRST));
    assert_eq!(record.seen.deletions, [name]);
    watcher.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn history_is_judged_on_what_is_deleted_and_on_what_is_kept() {
    let (world, watcher) = scene(json!({"successfulJobsHistoryLimit": 1})).await;
    let peer = Peer { world: &world, volcano: false };
    let mut names = Vec::new();
    for due in [FIRST, SECOND, THIRD] {
        pass_until(&world, due, 1).await;
        names.push(peer.run("cj", due).await);
        world.pass(Duration::from_secs(5)).await;
        peer.finish("cj", names.last().unwrap(), "Complete").await;
        if due == SECOND {
            peer.delete(&names[0]).await;
        }
    }
    assert_eq!(watcher.differing(), []);
    let third = watcher.records().pop().unwrap();
    assert_eq!(
        (&*third.due, third.planned.deletions, third.seen.deletions),
        (THIRD, vec![names[0].clone()], vec![names[0].clone()])
    );
    // The second lies beyond the limit since the third has ended.
    world.pass(Duration::from_secs(35)).await;
    let record = watcher.differing().pop().unwrap();
    assert_eq!((record.difference, record.rule, &*record.due), (Difference::Kept, Some("unexplained"), SECOND));
    assert_eq!(record.planned.deletions, [names[1].clone()]);
    peer.delete(&names[1]).await;
    world.pass(Duration::from_secs(5)).await;
    let record = watcher.differing().pop().unwrap();
    assert_eq!((record.difference, record.rule), (Difference::Late, None));
    watcher.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn replace_is_judged_on_the_job_that_makes_room() {
    let (world, watcher) = scene(json!({"concurrencyPolicy": "Replace"})).await;
    let peer = Peer { world: &world, volcano: false };
    pass_until(&world, FIRST, 1).await;
    let first = peer.run("cj", FIRST).await;
    pass_until(&world, SECOND, 1).await;
    peer.delete(&first).await;
    peer.record("cj", &json!({"active": []})).await;
    let second = peer.run("cj", SECOND).await;
    pass_until(&world, THIRD, -2).await;
    let record = watcher.records().pop().unwrap();
    assert_eq!((record.difference, record.planned.action), (Difference::None, "replace"), "{record:?}");
    assert_eq!((record.planned.deletions, record.seen.deletions), (vec![first.clone()], vec![first]));
    pass_until(&world, THIRD, 1).await;
    peer.run("cj", THIRD).await;
    world.pass(Duration::from_secs(35)).await;
    let record = watcher.differing().pop().unwrap();
    assert_eq!((record.difference, record.planned.deletions), (Difference::Kept, vec![second]));
    watcher.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_held_up_by_forbid_may_start_when_the_slot_is_free() {
    let (world, watcher) = scene(json!({"concurrencyPolicy": "Forbid"})).await;
    let peer = Peer { world: &world, volcano: false };
    pass_until(&world, FIRST, 1).await;
    let first = peer.run("cj", FIRST).await;
    pass_until(&world, SECOND, 10).await;
    peer.finish("cj", &first, "Complete").await;
    peer.run("cj", SECOND).await;
    pass_until(&world, THIRD, 10).await;
    let third = "cj-29539323".to_owned();
    assert_eq!(watcher.differing(), []);
    // The same much later: the slot is freed after the instant was judged.
    pass_until(&world, THIRD, 40).await;
    assert_eq!(watcher.found().last().unwrap(), &(THIRD.to_owned(), Difference::None, None));
    assert_eq!(watcher.records().pop().unwrap().planned.action, "skip");
    peer.finish("cj", "cj-29539322", "Complete").await;
    assert_eq!(peer.run("cj", THIRD).await, third);
    world.pass(Duration::from_secs(5)).await;
    assert_eq!(watcher.differing(), []);
    assert_eq!(watcher.records().pop().unwrap().seen.job, Some(third));
    watcher.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn edits_about_the_time_of_an_instant_are_no_differences() {
    let (world, watcher) = scene(json!({})).await;
    let peer = Peer { world: &world, volcano: false };
    // Suspended just before, or just after and not seen by the peer in time.
    pass_until(&world, FIRST, 0).await;
    world.patch(cronjobs(), "default", "cj", &json!({"spec": {"suspend": true}})).await;
    pass_until(&world, SECOND, -10).await;
    world.patch(cronjobs(), "default", "cj", &json!({"spec": {"suspend": false}})).await;
    peer.run("cj", FIRST).await;
    pass_until(&world, SECOND, 0).await;
    world.patch(cronjobs(), "default", "cj", &json!({"spec": {"suspend": true}})).await;
    peer.run("cj", SECOND).await;
    pass_until(&world, THIRD, 20).await;
    world.patch(cronjobs(), "default", "cj", &json!({"spec": {"suspend": false, "schedule": "0 0 1 1 *"}})).await;
    pass_until(&world, THIRD, 90).await;
    assert_eq!(watcher.differing(), []);
    watcher.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn jobs_that_go_by_themselves_or_with_their_cronjob_are_no_differences() {
    let mut object = cronjob("ttl", "* * * * *", json!({}));
    object["spec"]["jobTemplate"]["spec"]["ttlSecondsAfterFinished"] = json!(0);
    let world = World::new(START);
    world.create(&object).await;
    world.create(&cronjob("brief", "* * * * *", json!({}))).await;
    let watcher = Watcher::start(&world).await;
    let peer = Peer { world: &world, volcano: false };
    pass_until(&world, FIRST, 1).await;
    let name = peer.run("ttl", FIRST).await;
    peer.run("brief", FIRST).await;
    world.pass(Duration::from_secs(5)).await;
    peer.finish("ttl", &name, "Complete").await;
    peer.delete(&name).await;
    world.delete(cronjobs(), "default", "brief").await;
    pass_until(&world, SECOND, -10).await;
    assert_eq!(watcher.differing(), []);
    watcher.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn jobs_made_by_hand_are_nobodys_runs() {
    let (world, watcher) = scene(json!({})).await;
    let peer = Peer { world: &world, volcano: false };
    let mut manual = peer.job("cj", FIRST);
    manual["metadata"]["name"] = json!("cj-manual-abc");
    manual["metadata"]["annotations"] = json!({"cronjob.kubernetes.io/instantiate": "manual"});
    world.create(&manual).await;
    world.pass(Duration::from_secs(10)).await;
    assert_eq!(watcher.records(), []);
    watcher.end().await;
    world.end().await;
}
