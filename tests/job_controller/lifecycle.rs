//! Suspended and resumed, managed by others, adopted and released, deleted after its end, refused and unreadable.

use cronjob_controller::controllers::Registration;
use cronjob_controller::jobs::Mandate;
use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::faults::{Fault, Hold, Release};
use serde_json::{Value, json};

use crate::world::*;

/// I18.
#[tokio::test(start_paused = true)]
async fn a_job_is_suspended_and_resumed() {
    let mut world = World::new();
    let job = world.create("susp", json!({"parallelism": 2, "suspend": true})).await;
    world.settle().await;
    assert_eq!((world.conditions("susp"), world.active("susp").await.len()), (vec!["Suspended".into()], 0));
    assert_eq!(world.status("susp")["startTime"], Value::Null);
    world.restart().await;
    world.patch("susp", json!({"spec": {"suspend": false}})).await;
    world.settle().await;
    assert_eq!((world.conditions("susp").len(), world.active("susp").await.len()), (0, 2));
    let started = world.status("susp")["startTime"].clone();
    assert!(started.is_string());
    world.patch("susp", json!({"spec": {"suspend": true}})).await;
    world.settle().await;
    assert_eq!((world.conditions("susp"), world.numbers("susp")), (vec!["Suspended".into()], [0, 0, 0, 0]));
    assert_eq!(world.status("susp")["startTime"], Value::Null);
    world.pass(60).await;
    world.patch("susp", json!({"spec": {"suspend": false}})).await;
    world.settle().await;
    assert!(world.status("susp")["startTime"].as_str() > started.as_str());
    let events = world.events(&job).await;
    for reason in ["Suspended", "Resumed"] {
        assert!(events.iter().any(|said| said == reason), "{reason} in {events:?}");
    }
    world.check_finalizers().await;
    world.end().await;
}

/// I18: nothing to do is done while suspended, too.
#[tokio::test(start_paused = true)]
async fn a_suspended_job_without_completions_completes() {
    let world = World::new();
    world.create("none", json!({"suspend": true, "completions": 0, "parallelism": 0})).await;
    world.settle().await;
    assert!(world.conditions("none").contains(&"Complete".to_owned()));
    world.end().await;
}

/// I19.
#[tokio::test(start_paused = true)]
async fn a_template_that_is_changed_with_the_resumption_is_the_one_that_runs() {
    let world = World::new();
    world.create("mut", json!({"suspend": true})).await;
    let placed = json!({"spec": {"suspend": false, "template": {"spec": {"nodeSelector": {"zone": "a"}}}}});
    world.patch("mut", placed).await;
    world.settle().await;
    assert_eq!(world.active("mut").await[0]["spec"]["nodeSelector"], json!({"zone": "a"}));
    let again = json!({"spec": {"template": {"spec": {"nodeSelector": {"zone": "b"}}}}});
    assert!(world.try_patch("mut", again).await.is_err());
    world.end().await;
}

/// I21.
#[tokio::test(start_paused = true)]
async fn jobs_of_other_managers_are_left_alone() {
    let world = World::new();
    for (name, manager) in [
        ("nobodys", None),
        ("built-in", Some("kubernetes.io/job-controller")),
        ("ours", Some(OURS)),
        ("theirs", Some("acme.io/theirs")),
    ] {
        world.create(name, json!({"managedBy": manager})).await;
    }
    world.settle().await;
    for name in ["nobodys", "built-in", "ours"] {
        assert_eq!(world.active(name).await.len(), 1, "{name}");
    }
    assert_eq!((world.active("theirs").await.len(), world.status("theirs")), (0, json!({})));
    let series = "job_controller_jobs_by_external_controller_total{controller_name=\"acme.io/theirs\"}";
    assert_eq!(world.metric(series), 1.0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn beside_the_built_in_controller_only_marked_jobs_are_ours() {
    let mut world = World::new();
    world.kill().await;
    world.options.mandate = Mandate::marked(OURS);
    world.start();
    world.create("nobodys", json!({})).await;
    world.create("ours", json!({"managedBy": OURS})).await;
    world.settle().await;
    assert_eq!((world.active("nobodys").await.len(), world.active("ours").await.len()), (0, 1));
    // A Pod that the other one counts keeps its finalizer, whatever becomes of it.
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "nobodys",
        "uid": world.job("nobodys")["metadata"]["uid"], "controller": true});
    let pod = world
        .create_pod(&json!({"metadata": {"name": "p", "finalizers": [TRACKING], "ownerReferences": [owner]},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}))
        .await;
    world.succeed(&pod).await;
    world.delete_pod(&pod).await;
    world.settle().await;
    assert!(world.all_pods().await.iter().any(|pod| name_of(pod) == "p" && is_tracked(pod)));
    assert_eq!(world.counts()[0].engine.cells, 1);
    world.end().await;
}

/// I21: recreated under the same name with another manager, while a step of the old one was queued.
#[tokio::test(start_paused = true)]
async fn a_name_that_changes_its_manager_changes_hands() {
    let world = World::new();
    world.create("hand", json!({})).await;
    world.settle().await;
    let pod = world.active("hand").await.remove(0);
    world.run(&pod).await;
    world.delete("hand", "Background").await;
    while world.job("hand") != Value::Null {
        world.pass(1).await;
    }
    world.create("hand", json!({"managedBy": "acme.io/theirs"})).await;
    world.pass(30).await;
    assert_eq!((world.active("hand").await.len(), world.status("hand")), (0, json!({})));
    world.end().await;
}

/// Conformance: adopt and release.
#[tokio::test(start_paused = true)]
async fn pods_are_adopted_and_released_by_their_labels() {
    let world = World::new();
    let job = world.create("ad", json!({"parallelism": 2, "completions": 2})).await;
    world.settle().await;
    let pod = world.active("ad").await.remove(0);
    world.patch_pod(&pod, json!({"metadata": {"ownerReferences": null}})).await;
    world.settle().await;
    let mine = world.pods_of("ad").await;
    assert_eq!(mine.len(), 2);
    assert!(mine.iter().all(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]));
    world.patch_pod(&pod, json!({"metadata": {"labels": null}})).await;
    world.settle().await;
    let all = world.all_pods().await;
    let released = all.iter().find(|it| it["metadata"]["uid"] == pod["metadata"]["uid"]).unwrap();
    assert_eq!((&released["metadata"]["ownerReferences"], is_tracked(released)), (&Value::Null, false));
    assert_eq!(world.active("ad").await.len(), 2);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn adopts_only_what_ends() {
    let world = World::new();
    world.create("ad", json!({})).await;
    world.settle().await;
    let labels = world.active("ad").await[0]["metadata"]["labels"].clone();
    world
        .create_pod(&json!({"metadata": {"name": "always", "labels": labels},
        "spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}]}}))
        .await;
    world.settle().await;
    assert_eq!(world.pods_of("ad").await.len(), 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_is_deleted_so_long_after_its_end() {
    let world = World::new();
    world.create("ttl", json!({"ttlSecondsAfterFinished": 60})).await;
    world.create("kept", json!({})).await;
    world.settle().await;
    for name in ["ttl", "kept"] {
        world.succeed(&world.active(name).await[0]).await;
    }
    world.pass(50).await;
    assert!(world.conditions("ttl").contains(&"Complete".to_owned()));
    world.patch("kept", json!({"spec": {"ttlSecondsAfterFinished": 100}})).await;
    world.pass(20).await;
    assert_eq!((world.job("ttl"), world.pods_of("ttl").await.len()), (Value::Null, 0));
    assert!(world.job("kept").is_object());
    world.pass(60).await;
    assert_eq!(world.job("kept"), Value::Null);
    assert_eq!(world.metric("ttl_after_finished_controller_job_deletion_duration_seconds_count"), 2.0);
    let counts = world.counts();
    assert_eq!((counts[0].engine.cells, counts[1].engine.cells), (0, 0));
    world.end().await;
}

/// I11: the Job's own events are late; one Pod is enough.
#[tokio::test(start_paused = true)]
async fn a_cache_of_jobs_that_is_behind_makes_no_second_pod() {
    for succeeds in [true, false] {
        let world = World::new();
        world.create("late", json!({"backoffLimit": 0})).await;
        world.settle().await;
        let pods = world.active("late").await;
        world.sandbox.hold_cache(jobs(), Hold { until: Release::Told, lists: true });
        if succeeds {
            world.succeed(&pods[0]).await
        } else {
            world.fail(&pods[0], 1).await
        }
        world.pass(60).await;
        world.sandbox.release_cache(jobs());
        world.pass(10).await;
        assert_eq!((world.pods_of("late").await.len(), world.conditions("late").len()), (1, 2));
        let numbers = if succeeds { [0, 1, 0, 0] } else { [0, 0, 1, 0] };
        assert_eq!(world.numbers("late"), numbers);
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_pods_that_is_behind_makes_no_second_pod() {
    let mut world = World::new();
    world.sandbox.hold_cache(pods(), Hold { until: Release::Told, lists: false });
    world.create("late", json!({"parallelism": 3, "completions": 3})).await;
    world.pass(60).await;
    assert_eq!(world.pods_of("late").await.len(), 3);
    world.sandbox.release_cache(pods());
    world.restart().await;
    world.pass(10).await;
    assert_eq!((world.pods_of("late").await.len(), world.numbers("late")), (3, [3, 0, 0, 0]));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_is_said_and_tried_again_by_slow_start() {
    let world = World::new();
    let fault = world.sandbox.faults().install(Fault::refuse(500, None).on(Verb::Create).resource("", "pods"));
    let job = world.create("quota", json!({"parallelism": 50, "completions": 50})).await;
    world.pass(3).await;
    let refused = world.sandbox.requests().sum(|key| key.verb == Verb::Create && key.resource == "pods");
    assert!((1..=4).contains(&refused), "{refused}");
    assert!(world.events(&job).await.contains(&"FailedCreate".to_owned()));
    world.sandbox.faults().remove(fault);
    world.pass(60).await;
    assert_eq!(world.active("quota").await.len(), 50);
    world.end().await;
}

/// A finalizer that could not be taken off an orphan is taken off later.
#[tokio::test(start_paused = true)]
async fn a_sweep_that_fails_is_repeated() {
    let world = World::new();
    world.create("gone", json!({"parallelism": 3})).await;
    world.settle().await;
    let fault = world.sandbox.faults().install(Fault::refuse(500, None).on(Verb::Patch).resource("", "pods"));
    world.delete("gone", "Background").await;
    world.pass(20).await;
    assert_eq!(world.all_pods().await.iter().filter(|pod| is_tracked(pod)).count(), 3);
    world.sandbox.faults().remove(fault);
    world.pass(60).await;
    assert_eq!(world.all_pods().await.len(), 0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn unreadable_job_speaks() {
    let world = World::new();
    let mut odd = job("odd", json!({}));
    odd["metadata"]["uid"] = json!("odd-uid");
    odd["spec"]["parallelism"] = json!("two");
    odd["spec"]["selector"] = json!({});
    world.sandbox.store_unvalidated(jobs(), &odd);
    world.create("sound", json!({})).await;
    world.settle().await;
    assert_eq!(world.active("sound").await.len(), 1);
    assert_eq!(world.events(&odd).await, ["UnreadableObject"]);
    world.end().await;
}

/// The Jobs that our CronJob controller starts name the manager that they are told to.
#[tokio::test(start_paused = true)]
async fn jobs_of_cronjobs_can_be_handed_to_the_job_controller() {
    let mut world = World::new();
    world.kill().await;
    world.options.mandate = Mandate::marked(OURS);
    world.options.job_managed_by = Some(OURS.into());
    world.start_these(&cronjob_controller::controllers::REGISTRY.iter().collect::<Vec<&Registration>>());
    let template = json!({"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    let cronjob = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
        "spec": {"schedule": "* * * * *", "jobTemplate": template}});
    world.request(http::Method::POST, "/apis/batch/v1/namespaces/default/cronjobs", &cronjob).await.unwrap();
    world.pass(70).await;
    let pods = world.all_pods().await;
    assert_eq!(pods.len(), 1);
    let started = world.job(pods[0]["metadata"]["ownerReferences"][0]["name"].as_str().unwrap());
    assert_eq!(started["spec"]["managedBy"], OURS);
    world.succeed(&pods[0]).await;
    world.settle().await;
    let path = "/apis/batch/v1/namespaces/default/cronjobs/tick";
    let status = world.request(http::Method::GET, path, &Value::Null).await.unwrap()["status"].clone();
    assert!(status["lastSuccessfulTime"].is_string(), "{status:#}");
    world.end().await;
}
