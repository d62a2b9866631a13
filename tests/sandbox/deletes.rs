//! Deletion: finalizers, preconditions, what becomes of dependents, namespaces.

use serde_json::{Value, json};

use crate::common::*;

fn background() -> Value {
    json!({ "propagationPolicy": "Background" })
}

fn owned_by(mut object: Value, owners: &[&Reply]) -> Value {
    let references = owners.iter().enumerate().map(|(index, owner)| {
        json!({
            "apiVersion": owner.text("/apiVersion"), "kind": owner.text("/kind"), "name": owner.text("/metadata/name"),
            "uid": owner.text("/metadata/uid"), "controller": index == 0 && owner.text("/kind") == "CronJob", "blockOwnerDeletion": true,
        })
    });
    object["metadata"]["ownerReferences"] = references.collect();
    object
}

#[tokio::test(start_paused = true)]
async fn an_object_with_finalizers_stays_until_the_last_one_goes() {
    let sandbox = sandbox();
    let mut object = cronjob("a");
    object["metadata"]["finalizers"] = json!(["example.com/f"]);
    post(&sandbox, CRONJOBS, &object).await;
    let path = format!("{CRONJOBS}/a");
    let marked = delete(&sandbox, &path, &background()).await;
    assert_eq!((marked.code, marked.text("/metadata/deletionTimestamp")), (200, "2026-03-08T12:00:00Z"));
    assert_eq!(marked.body["metadata"]["generation"], 2);
    assert_eq!(delete(&sandbox, &path, &background()).await.body, marked.body, "a second delete changes nothing");
    let added =
        merge(&sandbox, &path, &json!({ "metadata": { "finalizers": ["example.com/f", "example.com/g"] } })).await;
    assert_eq!((added.code, added.text("/details/causes/0/reason")), (422, "FieldValueForbidden"));
    let freed = merge(&sandbox, &path, &json!({ "metadata": { "finalizers": null } })).await;
    assert_eq!(freed.code, 200);
    assert_eq!(get(&sandbox, &path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_delete_may_say_which_object_it_means() {
    let sandbox = sandbox();
    let created = post(&sandbox, CONFIGMAPS, &configmap("a", "1")).await;
    let path = format!("{CONFIGMAPS}/a");
    for precondition in [json!({ "uid": "another" }), json!({ "resourceVersion": "1" })] {
        let refused = delete(&sandbox, &path, &json!({ "preconditions": precondition })).await;
        assert_eq!((refused.code, refused.text("/reason")), (409, "Conflict"), "{precondition}");
        assert!(refused.text("/message").contains("in the precondition"), "{}", refused.body);
    }
    let right = json!({ "preconditions": {
        "uid": created.text("/metadata/uid"), "resourceVersion": created.text("/metadata/resourceVersion"),
    } });
    let gone = delete(&sandbox, &path, &right).await;
    assert_eq!((gone.code, gone.text("/status"), gone.text("/details/name")), (200, "Success", "a"));
    assert_eq!(delete(&sandbox, &path, &Value::Null).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn the_collector_takes_what_lost_every_owner_and_leaves_the_rest() {
    let sandbox = sandbox();
    let first = post(&sandbox, CRONJOBS, &cronjob("first")).await;
    let second = post(&sandbox, CRONJOBS, &cronjob("second")).await;
    post(&sandbox, JOBS, &owned_by(job("of-first"), &[&first])).await;
    post(&sandbox, JOBS, &owned_by(job("of-both"), &[&first, &second])).await;
    post(&sandbox, JOBS, &job("of-nobody")).await;
    delete(&sandbox, &format!("{CRONJOBS}/first"), &background()).await;
    assert_eq!(get(&sandbox, JOBS).await.body["items"].as_array().unwrap().len(), 3, "not before its step");
    assert_eq!(sandbox.gc_step(), 2);
    assert_eq!(sandbox.gc_step(), 0);
    assert_eq!(get(&sandbox, &format!("{JOBS}/of-first")).await.code, 404);
    let kept = get(&sandbox, &format!("{JOBS}/of-both")).await;
    assert_eq!(kept.body["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    assert_eq!(get(&sandbox, &format!("{JOBS}/of-nobody")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_never_was_counts_as_absent_and_collection_cascades() {
    let sandbox = sandbox();
    let ghost = post(&sandbox, &format!("{CRONJOBS}?dryRun=All"), &cronjob("ghost")).await;
    let job = post(&sandbox, JOBS, &owned_by(job("child"), &[&ghost])).await;
    let pod = json!({ "metadata": { "name": "grandchild" }, "spec": pod_spec() });
    post(&sandbox, "/api/v1/namespaces/default/pods", &owned_by(pod, &[&job])).await;
    assert_eq!((sandbox.gc_step(), sandbox.gc_step(), sandbox.gc_step()), (1, 1, 0));
    assert_eq!(get(&sandbox, "/api/v1/namespaces/default/pods/grandchild").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn orphaned_dependents_lose_the_reference_and_jobs_orphan_by_default() {
    let sandbox = sandbox();
    let job = post(&sandbox, JOBS, &job("a")).await;
    let pod = json!({ "metadata": { "name": "p" }, "spec": pod_spec() });
    post(&sandbox, "/api/v1/namespaces/default/pods", &owned_by(pod, &[&job])).await;
    let marked = delete(&sandbox, &format!("{JOBS}/a"), &Value::Null).await;
    assert_eq!(marked.body["metadata"]["finalizers"], json!(["orphan"]));
    let warning = marked.headers["warning"].to_str().unwrap();
    assert!(warning.starts_with("299 - \"child pods are preserved by default"), "{warning}");
    while sandbox.gc_step() > 0 {}
    assert_eq!(get(&sandbox, &format!("{JOBS}/a")).await.code, 404);
    let pod = get(&sandbox, "/api/v1/namespaces/default/pods/p").await;
    assert_eq!((pod.code, &pod.body["metadata"]["ownerReferences"]), (200, &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_waits_for_dependents() {
    let sandbox = sandbox();
    let owner = post(&sandbox, CRONJOBS, &cronjob("a")).await;
    let mut child = owned_by(job("child"), &[&owner]);
    child["metadata"]["finalizers"] = json!(["example.com/slow"]);
    post(&sandbox, JOBS, &child).await;
    let marked = delete(&sandbox, &format!("{CRONJOBS}/a?propagationPolicy=Foreground"), &Value::Null).await;
    assert_eq!(marked.body["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    while sandbox.gc_step() > 0 {}
    assert_eq!(get(&sandbox, &format!("{CRONJOBS}/a")).await.code, 200);
    merge(&sandbox, &format!("{JOBS}/child"), &json!({ "metadata": { "finalizers": null } })).await;
    while sandbox.gc_step() > 0 {}
    assert_eq!(get(&sandbox, &format!("{CRONJOBS}/a")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_collection_spares_what_is_not_selected() {
    let sandbox = sandbox();
    for name in ["a", "b"] {
        let mut object = configmap(name, "1");
        object["metadata"]["labels"] = json!({ "name": name });
        post(&sandbox, CONFIGMAPS, &object).await;
    }
    let gone = delete(&sandbox, &format!("{CONFIGMAPS}?labelSelector=name=a"), &Value::Null).await;
    assert_eq!(gone.text("/items/0/metadata/name"), "a");
    let left = get(&sandbox, CONFIGMAPS).await;
    assert_eq!((left.body["items"].as_array().unwrap().len(), left.text("/items/0/metadata/name")), (1, "b"));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_goes_lets_nothing_in_and_empties_itself() {
    let sandbox = sandbox();
    let missing = post(&sandbox, "/apis/batch/v1/namespaces/work/jobs", &job("a")).await;
    assert_eq!((missing.code, missing.text("/message")), (404, "namespaces \"work\" not found"));
    let namespace = post(&sandbox, "/api/v1/namespaces", &json!({ "metadata": { "name": "work" } })).await;
    assert_eq!(namespace.text("/status/phase"), "Active");
    assert_eq!(post(&sandbox, "/apis/batch/v1/namespaces/work/jobs", &job("a")).await.code, 201);
    let marked = delete(&sandbox, "/api/v1/namespaces/work", &Value::Null).await;
    assert_eq!(marked.text("/status/phase"), "Terminating");
    let refused = post(&sandbox, "/apis/batch/v1/namespaces/work/jobs", &job("b")).await;
    assert_eq!((refused.code, refused.text("/reason")), (403, "Forbidden"));
    assert_eq!(
        refused.text("/message"),
        "jobs.batch \"b\" is forbidden: unable to create new content in namespace work because it is being terminated"
    );
    assert_eq!(refused.text("/details/causes/0/reason"), "NamespaceTerminating");
    assert_eq!(get(&sandbox, "/apis/batch/v1/namespaces/work/jobs/a").await.code, 200, "not before its step");
    assert_eq!(sandbox.namespace_step(), 2);
    assert_eq!(get(&sandbox, "/api/v1/namespaces/work").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn the_background_task_does_all_of_it_on_the_clock_and_events_expire() {
    let sandbox = sandbox();
    let (tracker, cancel) = (tokio_util::task::TaskTracker::new(), tokio_util::sync::CancellationToken::new());
    let (background_sandbox, token) = (sandbox.clone(), cancel.clone());
    tracker.spawn(async move { background_sandbox.run_background(token).await });
    let owner = post(&sandbox, CRONJOBS, &cronjob("a")).await;
    post(&sandbox, JOBS, &owned_by(job("child"), &[&owner])).await;
    let event = json!({ "metadata": { "name": "e" }, "involvedObject": { "namespace": "default" } });
    post(&sandbox, "/api/v1/namespaces/default/events", &event).await;
    delete(&sandbox, &format!("{CRONJOBS}/a"), &background()).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(get(&sandbox, &format!("{JOBS}/child")).await.code, 404);
    tokio::time::sleep(std::time::Duration::from_secs(3500)).await;
    assert_eq!(get(&sandbox, "/api/v1/namespaces/default/events/e").await.code, 200);
    tokio::time::sleep(std::time::Duration::from_secs(200)).await;
    assert_eq!(get(&sandbox, "/api/v1/namespaces/default/events/e").await.code, 404);
    cancel.cancel();
    tracker.close();
    tracker.wait().await;
}
