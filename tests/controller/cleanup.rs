//! What users reported of finished Jobs that stay, of Jobs that go and should not, and of deletions that never end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::faults::{Hold, Release};
use cronjob_controller::sandbox::resources::{Resource, find};
use cronjob_controller::sandbox::store::Store;
use cronjob_controller::sandbox::tap::{Served, Tap};
use http::Method;
use serde_json::{Value, json};

use crate::world::{World, at, cronjob, cronjobs, jobs, volcano_cronjob, volcano_cronjobs, volcano_jobs};

fn pods() -> &'static Resource {
    find("", "v1", "pods").unwrap()
}

/// How many Jobs of `k` are there that ended this way.
async fn ended(world: &World, condition: &str) -> usize {
    let holds = |job: &&Value| {
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        conditions.filter(|held| held["type"] == condition && held["status"] == "True").count() == 1
    };
    world.list(jobs()).await.iter().filter(holds).count()
}

/// Lets `runs` runs of `k` come and end, the even ones well; `check` sees how many have ended well and badly, a second after each.
async fn alternate(world: &World, runs: usize, check: impl AsyncFn(usize, usize)) {
    for number in 0..runs {
        world.pass(Duration::from_secs(59)).await;
        let newest = world.job_names(jobs(), "k").await.pop().unwrap();
        world.finish("default", &newest, if number % 2 == 0 { "Complete" } else { "Failed" }).await;
        world.pass(Duration::from_secs(1)).await;
        check(number / 2 + 1, number.div_ceil(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn exactly_the_limits_are_kept_a_moment_after_each_end() {
    for (successful, failed) in [(3, 1), (0, 0)] {
        let mut world = World::new("2026-03-01T10:00:30Z");
        let limits = json!({"successfulJobsHistoryLimit": successful, "failedJobsHistoryLimit": failed});
        world.create(&cronjob("k", "* * * * *", limits)).await;
        world.start();
        alternate(&world, 20, async |well, badly| {
            assert_eq!(ended(&world, "Complete").await, well.min(successful));
            assert_eq!(ended(&world, "Failed").await, badly.min(failed));
        })
        .await;
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn limits_that_are_absent_are_three_and_one_and_a_stored_null_keeps_all() {
    for (stored_null, kept) in [(false, (3, 1)), (true, (10, 10))] {
        let mut world = World::new("2026-03-01T10:00:30Z");
        let nulls = json!({"successfulJobsHistoryLimit": null, "failedJobsHistoryLimit": null});
        world.create(&cronjob("k", "* * * * *", nulls.clone())).await;
        if stored_null {
            // The server fills in what is null; an object that another release stored may lack it.
            let mut object = world.sandbox.get(cronjobs(), "default", "k").unwrap();
            assert_eq!(object["spec"]["successfulJobsHistoryLimit"], 3);
            for limit in nulls.as_object().unwrap().keys() {
                object["spec"][limit] = Value::Null;
            }
            world.sandbox.store_unvalidated(cronjobs(), &object);
        }
        world.start();
        alternate(&world, 20, async |_, _| {}).await;
        assert_eq!((ended(&world, "Complete").await, ended(&world, "Failed").await), kept);
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn lowered_limits_hold_at_once_for_what_is_there() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let limits = |limit: u32| json!({"successfulJobsHistoryLimit": limit, "failedJobsHistoryLimit": limit});
    world.create(&cronjob("k", "* * * * *", limits(10))).await;
    world.start();
    alternate(&world, 15, async |_, _| {}).await;
    assert_eq!((ended(&world, "Complete").await, ended(&world, "Failed").await), (8, 7));
    let newest = world.job_names(jobs(), "k").await.split_off(13);
    world.patch(cronjobs(), "default", "k", &json!({"spec": limits(1)})).await;
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.job_names(jobs(), "k").await, newest);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_removed_job_go_with_it_and_those_of_a_kept_one_stay() {
    // What a Job leaves that fails at once, with a back-off limit of 6.
    const PODS: usize = 7;
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({"failedJobsHistoryLimit": 1}))).await;
    world.start();
    for _run in 0..4 {
        world.pass(Duration::from_secs(50)).await;
        let name = world.job_names(jobs(), "k").await.pop().unwrap();
        let job = world.sandbox.get(jobs(), "default", &name).unwrap();
        for number in 0..PODS {
            let owner = json!([{
                "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"], "controller": true,
            }]);
            let metadata = json!({"name": format!("{name}-{number}"), "ownerReferences": owner});
            let spec = job["spec"]["template"]["spec"].clone();
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
            world.request(Method::POST, "/api/v1/namespaces/default/pods", &pod).await.unwrap();
        }
        world.finish("default", &name, "Failed").await;
        // The garbage collector of the server comes by.
        world.pass(Duration::from_secs(10)).await;
        let kept = world.list(jobs()).await;
        assert_eq!(kept.iter().map(|job| job["metadata"]["name"].as_str().unwrap()).collect::<Vec<_>>(), [&name]);
        let path = format!("/api/v1/{}", pods().plural);
        let left = world.request(Method::GET, &path, &Value::Null).await.unwrap();
        let left = left["items"].as_array().unwrap();
        assert_eq!(left.len(), PODS);
        assert!(left.iter().all(|pod| pod["metadata"]["ownerReferences"][0]["name"] == name.as_str()));
    }
    world.end().await;
}

/// Groups and bodies of the deletions of Jobs that were asked for.
#[derive(Default)]
struct Deletions(Mutex<Vec<(&'static str, Value)>>);

impl Tap for Deletions {
    fn on_written(&self, _: &Store) {}

    fn on_served(&self, served: &Served<'_>) {
        if served.call.verb == Verb::Delete && served.call.resource.plural == "jobs" {
            let body = serde_json::from_slice(&served.call.body).unwrap_or_default();
            self.0.lock().unwrap().push((served.call.resource.group, body));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_deletion_by_replace_and_by_history_takes_the_pods_along() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let deletions = Arc::new(Deletions::default());
    assert!(world.sandbox.listen(deletions.clone()));
    let replace = json!({"concurrencyPolicy": "Replace"});
    let no_history = json!({"successfulJobsHistoryLimit": 0});
    world.create(&cronjob("replace", "* * * * *", replace.clone())).await;
    world.create(&cronjob("k", "* * * * *", no_history.clone())).await;
    world.create(&volcano_cronjob("replace", "* * * * *", replace)).await;
    world.create(&volcano_cronjob("k", "* * * * *", no_history)).await;
    world.start();
    for _minute in 0..3 {
        world.pass(Duration::from_secs(60)).await;
        let name = world.job_names(jobs(), "k").await.pop().unwrap();
        world.finish("default", &name, "Complete").await;
        let name = world.job_names(volcano_jobs(), "k").await.pop().unwrap();
        set_phase(&world, &name, "Completed").await;
    }
    world.pass(Duration::from_secs(5)).await;
    let deletions = deletions.0.lock().unwrap().clone();
    // Replace twice and history three times, of each API, each the very Job that was looked at. For Jobs of batch/v1 the server's default
    // would be to leave the Pods; for kinds of definitions it is the background, and Volcano's controller leaves it at that.
    let (kubernetes, volcano): (Vec<_>, Vec<_>) = deletions.into_iter().partition(|(group, _)| *group == "batch");
    assert_eq!((kubernetes.len(), volcano.len()), (5, 5));
    assert!(kubernetes.iter().all(|(_, body)| body["propagationPolicy"] == "Background"), "{kubernetes:#?}");
    assert!(volcano.iter().all(|(_, body)| body["propagationPolicy"].is_null()), "{volcano:#?}");
    assert!(kubernetes.iter().chain(&volcano).all(|(_, body)| body["preconditions"]["uid"].is_string()));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn jobs_that_only_the_cache_still_shows_are_asked_for_once_and_silently() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("k", "* * * * *", json!({}))).await;
    world.start();
    for _run in 0..3 {
        world.pass(Duration::from_secs(60)).await;
        let name = world.job_names(jobs(), "k").await.pop().unwrap();
        world.finish("default", &name, "Complete").await;
    }
    world.pass(Duration::from_secs(5)).await;
    world.sandbox.hold_cache(jobs(), Hold { until: Release::Told, lists: true });
    let gone = world.job_names(jobs(), "k").await;
    for name in &gone {
        world.delete(jobs(), "default", name).await;
    }
    world.sandbox.requests().reset();
    world.patch(cronjobs(), "default", "k", &json!({"spec": {"successfulJobsHistoryLimit": 0}})).await;
    world.pass(Duration::from_secs(6_000)).await;
    assert_eq!(world.times_said("k", "SuccessfulCreate"), 103, "a hundred runs went by");
    assert_eq!(world.sandbox.requests().of(Verb::Delete, "batch", "jobs"), 3);
    assert_eq!(world.times_said("k", "SuccessfulDelete") + world.times_said("k", "FailedDelete"), 0);
    // The watch breaks, the new list shows what there is, and what comes to an end is cleaned away as ever.
    world.sandbox.heal();
    world.sandbox.cut_watches();
    world.pass(Duration::from_secs(60)).await;
    assert_eq!(world.counts()[0].jobs, world.list(jobs()).await.len());
    let newest = world.job_names(jobs(), "k").await.pop().unwrap();
    world.finish("default", &newest, "Complete").await;
    world.pass(Duration::from_secs(1)).await;
    assert!(world.sandbox.get(jobs(), "default", &newest).is_none());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn jobs_whose_owner_is_not_this_cronjob_by_controller_group_and_uid_are_left_alone() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    let spec = json!({
        "concurrencyPolicy": "Replace", "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0, "suspend": true,
    });
    world.create(&cronjob("k", "* * * * *", spec)).await;
    let uid = world.sandbox.get(cronjobs(), "default", "k").unwrap()["metadata"]["uid"].clone();
    let template = cronjob("k", "", json!({}))["spec"]["jobTemplate"]["spec"].clone();
    let owner = |api_version: &str, uid: &Value, controller: bool| json!({"apiVersion": api_version, "kind": "CronJob", "name": "k", "uid": uid, "controller": controller});
    let strangers = [
        ("no-controller", owner("batch/v1", &uid, false)),
        ("another-group", owner("apps/v1", &uid, true)),
        ("another-uid", owner("batch/v1", &json!("11111111-2222-3333-4444-555555555555"), true)),
    ];
    for (name, owner) in strangers {
        for end in ["Complete", "Failed", "not"] {
            let name = format!("{name}-{}", end.to_lowercase());
            let metadata = json!({"namespace": "default", "name": name, "ownerReferences": [owner]});
            let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template});
            world.create(&job).await;
            if end != "not" {
                world.finish("default", &name, end).await;
            }
        }
    }
    world.sandbox.requests().reset();
    world.start();
    world.pass(Duration::from_secs(10)).await;
    world.patch(cronjobs(), "default", "k", &json!({"spec": {"suspend": false}})).await;
    world.pass(Duration::from_secs(50)).await;
    let own = format!("k-{}", at("2026-03-01T10:01:00Z").timestamp() / 60);
    assert_eq!(world.sandbox.requests().of(Verb::Delete, "batch", "jobs"), 0);
    let said: Vec<_> = world.said("k").into_iter().map(|said| (said.reason, said.message)).collect();
    assert_eq!(said, [("SuccessfulCreate", format!("Created job {own}"))]);
    let status = world.status(cronjobs(), "default", "k");
    assert_eq!((status["active"].as_array().unwrap().len(), &status["lastSuccessfulTime"]), (1, &Value::Null));
    world.end().await;
}

/// Sets the phase of a Volcano Job, as its controller does.
async fn set_phase(world: &World, name: &str, phase: &str) {
    let at = world.clock.wall().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let status = json!({"status": {"state": {"phase": phase, "lastTransitionTime": at}}});
    let path = format!("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/{name}/status");
    world.request(Method::PATCH, &path, &status).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn terminated_volcano_jobs_are_cleaned_up_with_the_failed_ones() {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&volcano_cronjob("v", "* * * * *", json!({"failedJobsHistoryLimit": 1}))).await;
    world.start();
    let mut newest = String::new();
    for _run in 0..5 {
        world.pass(Duration::from_secs(60)).await;
        newest = world.job_names(volcano_jobs(), "v").await.pop().unwrap();
        set_phase(&world, &newest, "Terminated").await;
    }
    world.pass(Duration::from_secs(5)).await;
    assert_eq!(world.job_names(volcano_jobs(), "v").await, [newest]);
    let status = world.status(volcano_cronjobs(), "default", "v");
    assert_eq!((&status["active"], &status["lastSuccessfulTime"]), (&Value::Null, &Value::Null), "{status}");
    world.end().await;
}
