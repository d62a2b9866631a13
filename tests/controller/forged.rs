//! Jobs and statuses that somebody forged so that they look like this controller's own: no run is held back by them without a word, and
//! nobody else's Job is touched.

use std::time::Duration;

use serde_json::{Value, json};

use crate::hostile::{Kind, kinds};
use crate::world::{World, at, run_of};

const MINUTES: usize = 5;

/// A world with the CronJob `victim`, minutely, where nothing has started yet.
async fn world(kind: &Kind, spec: Value) -> World {
    let world = World::new("2026-03-01T10:00:30Z");
    world.create(&(kind.make)("victim", "* * * * *", spec)).await;
    world
}

async fn pass(world: &World) {
    world.pass(Duration::from_secs(60 * MINUTES as u64 + 15)).await;
}

/// A Job of `victim`, as whoever may create Jobs can make it look, for a run of that instant.
async fn forge(world: &World, kind: &Kind, due: &str) -> Value {
    let cronjob = world.sandbox.get(kind.cronjobs, "default", "victim").unwrap();
    let api = cronjob["apiVersion"].clone();
    let prefix = if api == "batch/v1" { "batch.kubernetes.io" } else { "volcano.sh" };
    let owner = json!({"apiVersion": api, "kind": "CronJob", "name": "victim", "uid": cronjob["metadata"]["uid"], "controller": true});
    let job = json!({"apiVersion": api, "kind": "Job", "metadata": {"namespace": "default", "name": run_of("victim", due),
            "annotations": {format!("{prefix}/cronjob-scheduled-timestamp"): due}, "ownerReferences": [owner]},
        "spec": cronjob["spec"]["jobTemplate"]["spec"]});
    world.create(&job).await;
    job
}

#[tokio::test(start_paused = true)]
async fn a_job_of_the_year_2200_holds_back_no_run() {
    for kind in kinds() {
        for finished in [false, true] {
            let mut world = world(&kind, json!({})).await;
            let job = forge(&world, &kind, "2200-01-01T00:00:00Z").await;
            let name = job["metadata"]["name"].as_str().unwrap();
            assert_eq!(name, "victim-120968640");
            if finished {
                let mut stored = world.sandbox.get(kind.jobs, "default", name).unwrap();
                stored["status"] = json!({"startTime": "2026-03-01T10:00:00Z", "completionTime": "2026-03-01T10:00:10Z",
                    "conditions": [{"type": "Complete", "status": "True"}], "state": {"phase": "Completed"}});
                assert!(world.sandbox.store_unvalidated(kind.jobs, &stored));
            }
            world.start();
            pass(&world).await;
            let told = format!("{:?} {finished}: {:?}", kind.flavor, world.said("victim"));
            assert_eq!(world.times_said("victim", "SuccessfulCreate"), MINUTES, "{told}");
            let last = world.status(kind.cronjobs, "default", "victim")["lastScheduleTime"].clone();
            assert!(at(last.as_str().unwrap()) <= world.clock.wall(), "{last}");
            let unexpected = world.times_said("victim", "UnexpectedJob") + world.times_said("victim", "OrphanedJob");
            assert_eq!(unexpected, usize::from(!finished), "{told}");
            world.end().await;
        }
    }
}
