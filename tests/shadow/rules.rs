//! Every deviation rule that can show in Jobs and deletions is named where the peer, for its reason, does otherwise.

use std::time::Duration;

use cronjob_controller::controllers::shadow::{Difference, Record};
use cronjob_controller::reconcile::Rule;
use cronjob_controller::sandbox::faults::{Hold, Release};
use serde_json::{Value, json};

use crate::common::{Peer, Watcher, pass_until};
use crate::world::{World, cronjob, cronjobs, jobs, volcano_cronjob, volcano_cronjobs};

const START: &str = "2026-03-01T10:00:10Z";
const FIRST: &str = "2026-03-01T10:01:00Z";
const SECOND: &str = "2026-03-01T10:02:00Z";
const THIRD: &str = "2026-03-01T10:03:00Z";

/// A world with the CronJob `cj` of one API, and its shadow.
struct Scene {
    world: World,
    watcher: Watcher,
    volcano: bool,
}

impl Scene {
    async fn new(volcano: bool, start: &str, schedule: &str, spec: Value) -> Self {
        let world = World::new(start);
        let make = if volcano { volcano_cronjob } else { cronjob };
        world.create(&make("cj", schedule, spec)).await;
        let watcher = Watcher::start(&world).await;
        Self { world, watcher, volcano }
    }

    async fn minutely(volcano: bool, spec: Value) -> Self {
        Self::new(volcano, START, "* * * * *", spec).await
    }

    fn peer(&self) -> Peer<'_> {
        Peer { world: &self.world, volcano: self.volcano }
    }

    async fn pass_until(&self, due: &str, after_s: i64) {
        pass_until(&self.world, due, after_s).await;
    }

    /// Ends it; of what differs there must be just this, in all records.
    async fn shows(self, difference: Difference, rule: Rule) -> Vec<Record> {
        let differing = self.watcher.differing();
        self.watcher.end().await;
        self.world.end().await;
        let found: Vec<_> = differing.iter().map(|record| (record.difference, record.rule)).collect();
        assert!(!found.is_empty(), "nothing differs");
        assert!(found.iter().all(|it| *it == (difference, Some(rule.name()))), "{rule:?}: {differing:#?}");
        differing
    }
}

#[tokio::test(start_paused = true)]
async fn deadline_zero_is_never_started_by_the_peers() {
    for volcano in [false, true] {
        let scene = Scene::minutely(volcano, json!({"startingDeadlineSeconds": 0})).await;
        scene.pass_until(THIRD, 20).await;
        assert_eq!(scene.shows(Difference::NotStarted, Rule::DeadlineZero).await.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn deadline_saturates_where_the_peers_overflow() {
    let scene = Scene::minutely(false, json!({"startingDeadlineSeconds": 9_223_372_037_i64})).await;
    scene.pass_until(SECOND, 20).await;
    scene.shows(Difference::NotStarted, Rule::DeadlineSaturates).await;
}

#[tokio::test(start_paused = true)]
async fn every_keeps_anchor_where_the_peers_move_it() {
    // Never, as the window is shorter than the step.
    let scene = Scene::new(false, START, "@every 1m", json!({"startingDeadlineSeconds": 30})).await;
    scene.pass_until(THIRD, 20).await;
    scene.shows(Difference::NotStarted, Rule::EveryKeepsAnchor).await;
    // Down for a while, it comes back with a grid that begins at the window.
    let scene = Scene::new(true, START, "@every 5m", json!({"startingDeadlineSeconds": 400})).await;
    scene.pass_until("2026-03-01T10:05:10Z", 0).await;
    scene.peer().run("cj", "2026-03-01T10:05:10Z").await;
    scene.pass_until("2026-03-01T10:20:00Z", 0).await;
    scene.peer().run("cj", "2026-03-01T10:18:20Z").await;
    scene.pass_until("2026-03-01T10:20:40Z", 0).await;
    let unexplained = ("2026-03-01T10:10:10Z".to_owned(), Difference::NotStarted, Some("unexplained"));
    let moved = ("2026-03-01T10:15:10Z".to_owned(), Difference::Elsewhere, Some("every-keeps-anchor"));
    assert_eq!(scene.watcher.found()[1..3], [unexplained, moved]);
    scene.watcher.end().await;
    scene.world.end().await;
}

#[tokio::test(start_paused = true)]
async fn exact_newest_where_the_peers_estimate_jumps_past_it() {
    let scene = Scene::new(false, "2026-03-01T00:00:30Z", "0,1 0 * * *", json!({"concurrencyPolicy": "Forbid"})).await;
    scene.pass_until("2026-03-01T00:01:00Z", 1).await;
    let held = scene.peer().run("cj", "2026-03-01T00:01:00Z").await;
    scene.pass_until("2026-03-02T00:02:00Z", 0).await;
    scene.peer().finish("cj", &held, "Complete").await;
    scene.pass_until("2026-03-02T00:10:00Z", 0).await;
    let differing = scene.shows(Difference::NotStarted, Rule::ExactNewest).await;
    assert_eq!(differing[0].due, "2026-03-02T00:01:00Z");
}

#[tokio::test(start_paused = true)]
async fn foreign_requeues_where_the_peer_sleeps_after_a_taken_name() {
    let scene = Scene::minutely(false, json!({})).await;
    let mut foreign = scene.peer().job("cj", FIRST);
    foreign["metadata"]["ownerReferences"] = json!([]);
    scene.world.create(&foreign).await;
    scene.pass_until(THIRD, 0).await;
    assert_eq!(scene.watcher.found()[0], (FIRST.to_owned(), Difference::None, None));
    assert_eq!(scene.watcher.records()[0].planned.action, "exists");
    let differing = scene.shows(Difference::NotStarted, Rule::ForeignRequeues).await;
    assert_eq!(differing[0].due, SECOND);
}

#[tokio::test(start_paused = true)]
async fn status_always_written_where_volcano_sleeps_after_a_failed_write() {
    let scene = Scene::minutely(true, json!({})).await;
    scene.pass_until(FIRST, 1).await;
    scene.peer().start("cj", FIRST).await;
    scene.pass_until(THIRD, 0).await;
    let differing = scene.shows(Difference::NotStarted, Rule::StatusAlwaysWritten).await;
    assert_eq!(differing[0].due, SECOND);
}

#[tokio::test(start_paused = true)]
async fn snapshot_iteration_where_volcano_loses_its_place() {
    let scene = Scene::minutely(true, json!({"concurrencyPolicy": "Allow"})).await;
    let mut running = Vec::new();
    for due in ["2026-03-01T10:01:00Z", "2026-03-01T10:02:00Z", "2026-03-01T10:03:00Z"] {
        scene.pass_until(due, 1).await;
        running.push(scene.peer().run("cj", due).await);
    }
    scene.pass_until(THIRD, 30).await;
    let replace = json!({"spec": {"concurrencyPolicy": "Replace"}});
    scene.world.patch(volcano_cronjobs(), "default", "cj", &replace).await;
    scene.pass_until("2026-03-01T10:04:00Z", 1).await;
    scene.peer().delete(&running[0]).await;
    scene.peer().delete(&running[2]).await;
    scene.pass_until("2026-03-01T10:05:00Z", 0).await;
    scene.shows(Difference::NotStarted, Rule::SnapshotIteration).await;
}

#[tokio::test(start_paused = true)]
async fn same_name_other_uid_holds_the_peers_slot_for_ever() {
    let scene = Scene::minutely(false, json!({"concurrencyPolicy": "Forbid"})).await;
    scene.pass_until(FIRST, 1).await;
    let name = scene.peer().run("cj", FIRST).await;
    scene.world.pass(Duration::from_secs(5)).await;
    scene.peer().end(&name, "Complete").await;
    // Gone and made anew by somebody, under the same name.
    let mut foreign = scene.peer().job("cj", FIRST);
    foreign["metadata"]["ownerReferences"] = json!([]);
    scene
        .world
        .request(
            http::Method::DELETE,
            &format!("/apis/batch/v1/namespaces/default/jobs/{name}"),
            &json!({"propagationPolicy": "Background"}),
        )
        .await
        .unwrap();
    scene.world.create(&foreign).await;
    scene.pass_until(THIRD, 0).await;
    let found = scene.watcher.differing();
    let not_started: Vec<_> = found.iter().filter(|it| it.difference == Difference::NotStarted).collect();
    assert_eq!(not_started[0].rule, Some(Rule::SameNameOtherUid.name()), "{found:#?}");
    scene.watcher.end().await;
    scene.world.end().await;
}

#[tokio::test(start_paused = true)]
async fn own_run_readopted_counts_for_forbid_and_replace() {
    for (policy, difference) in [("Forbid", Difference::Started), ("Replace", Difference::Kept)] {
        for volcano in [false, true] {
            let scene = Scene::minutely(volcano, json!({"concurrencyPolicy": policy})).await;
            scene.pass_until(FIRST, 1).await;
            scene.peer().start("cj", FIRST).await;
            scene.pass_until(SECOND, 1).await;
            scene.peer().run("cj", SECOND).await;
            scene.pass_until(SECOND, 40).await;
            scene.shows(difference, Rule::OwnRunReadopted).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn own_run_recorded_is_not_started_twice() {
    let scene = Scene::minutely(false, json!({"successfulJobsHistoryLimit": 0})).await;
    scene.pass_until(FIRST, 1).await;
    let run = scene.peer().start("cj", FIRST).await;
    let name = run["metadata"]["name"].as_str().unwrap();
    scene.world.pass(Duration::from_secs(5)).await;
    scene.peer().end(name, "Complete").await;
    scene.peer().delete(name).await;
    scene.peer().run("cj", FIRST).await;
    scene.pass_until(FIRST, 50).await;
    scene.shows(Difference::Started, Rule::OwnRunRecorded).await;
}

#[tokio::test(start_paused = true)]
async fn edit_floor_holds_back_what_the_new_schedule_had_before() {
    for volcano in [false, true] {
        let scene = Scene::new(volcano, START, "0 0 1 1 *", json!({})).await;
        scene.pass_until(FIRST, 20).await;
        let resource = if volcano { volcano_cronjobs() } else { cronjobs() };
        scene.world.patch(resource, "default", "cj", &json!({"spec": {"schedule": "1 * * * *"}})).await;
        scene.pass_until(FIRST, 21).await;
        scene.peer().run("cj", FIRST).await;
        scene.pass_until(FIRST, 40).await;
        scene.shows(Difference::Started, Rule::EditFloor).await;
    }
}

#[tokio::test(start_paused = true)]
async fn consistent_live_copy_counts_for_the_decision() {
    let scene = Scene::minutely(true, json!({"concurrencyPolicy": "Forbid"})).await;
    scene.world.sandbox.hold_cache(volcano_cronjobs(), Hold { until: Release::Told, lists: true });
    scene.pass_until(FIRST, 1).await;
    scene.peer().run("cj", FIRST).await;
    scene.pass_until(SECOND, 1).await;
    scene.peer().run("cj", SECOND).await;
    scene.pass_until(SECOND, 20).await;
    scene.shows(Difference::Started, Rule::ConsistentLiveCopy).await;
}

#[tokio::test(start_paused = true)]
async fn owner_by_uid_keeps_the_jobs_of_others() {
    let scene = Scene::minutely(false, json!({"successfulJobsHistoryLimit": 0, "suspend": true})).await;
    let mut other = scene.peer().job("cj", FIRST);
    other["metadata"]["name"] = json!("cj-of-a-workflow");
    other["metadata"]["annotations"] = json!({});
    other["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "example.com/v1", "kind": "Workflow", "name": "cj", "uid": "another", "controller": true,
    }]);
    scene.world.create(&other).await;
    scene.peer().end("cj-of-a-workflow", "Complete").await;
    scene.world.pass(Duration::from_secs(2)).await;
    scene.peer().delete("cj-of-a-workflow").await;
    scene.world.pass(Duration::from_secs(5)).await;
    let differing = scene.shows(Difference::Deleted, Rule::OwnerByUid).await;
    assert_eq!(differing[0].seen.deletions, ["cj-of-a-workflow"]);
}

#[tokio::test(start_paused = true)]
async fn terminated_is_failed_and_goes_with_history() {
    let scene = Scene::minutely(true, json!({"failedJobsHistoryLimit": 0})).await;
    scene.pass_until(FIRST, 1).await;
    let name = scene.peer().run("cj", FIRST).await;
    scene.world.pass(Duration::from_secs(5)).await;
    scene.peer().finish("cj", &name, "Terminated").await;
    scene.pass_until(FIRST, 45).await;
    scene.shows(Difference::Kept, Rule::TerminatedIsFailed).await;
}

#[tokio::test(start_paused = true)]
async fn stuck_walk_where_the_peers_search_stands_still() {
    let spec = json!({"timeZone": "Pacific/Chatham"});
    let scene = Scene::new(false, "2026-04-04T14:00:00Z", "50 3 * * *", spec).await;
    scene.pass_until("2026-04-04T14:05:00Z", 1).await;
    scene.peer().run("cj", "2026-04-04T14:05:00Z").await;
    scene.pass_until("2026-04-05T16:00:00Z", 0).await;
    scene.shows(Difference::NotStarted, Rule::StuckWalk).await;
}

/// Rules that show in events, status or delays alone, that come to the same Jobs within the 30 s, or that a shadow does not meet: its own
/// writes never fail, and it looks at a CronJob only when that or a Job of it changes.
const WITHOUT_JOBS: [Rule; 14] = [
    Rule::AheadSpeaks,
    // The shadow asks nobody, and its peer writes no such entries.
    Rule::NamelessEntryDropped,
    Rule::OnlyOwnDeleted,
    // Instants of one minute are one case.
    Rule::MinuteTaken,
    Rule::FreedNameWakes,
    Rule::UnreadableJobStays,
    Rule::HistoryRetried,
    Rule::GetInNamespace,
    Rule::NoParserPanic,
    Rule::HistoryInPortions,
    Rule::MissSpeaks,
    Rule::BadScheduleSpeaks,
    Rule::DeleteNotfoundOk,
    Rule::NeverAsleep,
];

#[test]
fn every_other_rule_has_a_scene_here() {
    let scenes = include_str!("rules.rs");
    for rule in Rule::ALL {
        let named = scenes.contains(&format!("async fn {}", rule.name().replace('-', "_")));
        assert!(named || WITHOUT_JOBS.contains(rule), "no scene for {}", rule.name());
    }
}

#[tokio::test(start_paused = true)]
async fn history_in_portions_comes_to_the_same_deletions() {
    let mut scene = Scene::new(false, START, "0 0 1 1 *", json!({"successfulJobsHistoryLimit": 200})).await;
    for minute in 0..70 {
        let due = crate::world::at(START) - chrono::TimeDelta::minutes(minute);
        let name = scene.peer().start("cj", &due.format("%Y-%m-%dT%H:%M:00Z").to_string()).await;
        scene.peer().end(name["metadata"]["name"].as_str().unwrap(), "Complete").await;
    }
    scene.peer().record("cj", &json!({"lastScheduleTime": START})).await;
    scene.world.pass(Duration::from_secs(60)).await;
    let before = scene.watcher.differing().len();
    scene.world.start();
    scene.world.patch(cronjobs(), "default", "cj", &json!({"spec": {"successfulJobsHistoryLimit": 0}})).await;
    scene.world.pass(Duration::from_secs(60)).await;
    assert_eq!(scene.world.list(jobs()).await.len(), 0);
    assert_eq!(scene.watcher.differing().len(), before, "{:#?}", &scene.watcher.differing()[before..]);
    scene.watcher.end().await;
    scene.world.end().await;
}
