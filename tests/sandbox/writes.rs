//! Creating, changing and reading objects.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::common::*;

#[tokio::test(start_paused = true)]
async fn a_created_object_has_identity_and_a_revision_of_its_own() {
    let sandbox = sandbox();
    let first = post(&sandbox, JOBS, &job("a")).await;
    assert_eq!(first.code, 201, "{}", first.body);
    assert_eq!(first.text("/metadata/creationTimestamp"), "2026-03-08T12:00:00Z");
    assert_eq!(first.text("/metadata/namespace"), "default");
    assert_eq!(first.text("/metadata/uid").len(), 36);
    assert_eq!(first.body["metadata"]["generation"], 1);
    let second = post(&sandbox, JOBS, &job("b")).await;
    assert_eq!(second.revision(), first.revision() + 1);
    assert_eq!(get(&sandbox, &format!("{JOBS}/a")).await.body, first.body);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_takes_no_revision() {
    let sandbox = sandbox();
    let created = post(&sandbox, CRONJOBS, &cronjob("a")).await;
    let path = format!("{CRONJOBS}/a");
    let same = put(&sandbox, &path, &created.body).await;
    assert_eq!((same.code, &same.body), (200, &created.body));
    let empty = merge(&sandbox, &path, &json!({})).await;
    assert_eq!(empty.body, created.body);
    assert_eq!(sandbox.with_store(|store| store.revision()), created.revision());
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_has_a_suffix_and_a_taken_one_is_refused() {
    let sandbox = sandbox();
    let mut object = job("x");
    object["metadata"] = json!({ "generateName": "run-" });
    let created = post(&sandbox, JOBS, &object).await;
    let name = created.text("/metadata/name");
    assert!(name.starts_with("run-") && name.len() == 9, "{name}");
    let again = post(&sandbox, JOBS, &job(name)).await;
    assert_eq!((again.code, again.text("/reason")), (409, "AlreadyExists"));
    assert_eq!(again.text("/message"), format!("jobs.batch \"{name}\" already exists"));
    assert_eq!(again.body["details"], json!({ "name": name, "group": "batch", "kind": "jobs" }));
}

#[tokio::test(start_paused = true)]
async fn a_stale_put_conflicts_in_the_words_of_the_real_server() {
    let sandbox = sandbox();
    let created = post(&sandbox, CRONJOBS, &cronjob("a")).await;
    let path = format!("{CRONJOBS}/a");
    merge(&sandbox, &path, &json!({ "spec": { "suspend": true } })).await;
    let stale = put(&sandbox, &path, &created.body).await;
    assert_eq!((stale.code, stale.text("/reason")), (409, "Conflict"));
    assert_eq!(
        stale.text("/message"),
        "Operation cannot be fulfilled on cronjobs.batch \"a\": the object has been modified; please apply your changes \
         to the latest version and try again"
    );
    assert_eq!(stale.body["details"], json!({ "name": "a", "group": "batch", "kind": "cronjobs" }));
    let patch = json!({ "metadata": { "resourceVersion": created.text("/metadata/resourceVersion") } });
    assert_eq!(merge(&sandbox, &path, &patch).await.code, 409, "a patch may say which version it means");
    let other = json!({ "metadata": { "uid": "another" } });
    assert_eq!(merge(&sandbox, &path, &other).await.code, 422, "but cannot make it another object");
}

#[tokio::test(start_paused = true)]
async fn of_two_writers_of_one_version_exactly_one_wins() {
    let sandbox = sandbox();
    let api: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    let created: ConfigMap =
        api.create(&PostParams::default(), &serde_json::from_value(configmap("a", "0")).unwrap()).await.unwrap();
    for round in 0..50 {
        let current = api.get("a").await.unwrap();
        let write = |text: String| {
            let mut mine = current.clone();
            mine.data = Some([("k".to_owned(), text)].into());
            let api = api.clone();
            async move { api.replace("a", &PostParams::default(), &mine).await }
        };
        let (one, two) = tokio::join!(write(format!("{round} one")), write(format!("{round} two")));
        assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1);
    }
    assert_ne!(api.get("a").await.unwrap().metadata.resource_version, created.metadata.resource_version);
}

#[tokio::test(start_paused = true)]
async fn a_put_without_a_version_passes_for_built_in_kinds_only() {
    let sandbox = sandbox();
    post(&sandbox, CRONJOBS, &cronjob("a")).await;
    let mut object = cronjob("a");
    object["spec"]["suspend"] = true.into();
    assert_eq!(put(&sandbox, &format!("{CRONJOBS}/a"), &object).await.code, 200);

    post(&sandbox, VOLCANO, &volcano_cronjob("a")).await;
    let refused = put(&sandbox, &format!("{VOLCANO}/a"), &volcano_cronjob("a")).await;
    assert_eq!((refused.code, refused.text("/reason")), (422, "Invalid"));
    assert_eq!(refused.text("/details/causes/0/field"), "metadata.resourceVersion");
    let want = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert!(refused.text("/message").ends_with(want), "{}", refused.body);
}

#[tokio::test(start_paused = true)]
async fn generation_counts_changes_of_the_spec_alone() {
    let sandbox = sandbox();
    for (collection, object) in [(CRONJOBS, cronjob("a")), (VOLCANO, volcano_cronjob("a"))] {
        assert_eq!(post(&sandbox, collection, &object).await.code, 201);
        let path = format!("{collection}/a");
        let generation = |reply: &Reply| reply.body["metadata"]["generation"].as_i64().unwrap();
        let labelled = merge(&sandbox, &path, &json!({ "metadata": { "labels": { "a": "b" } } })).await;
        assert_eq!(generation(&labelled), 1);
        let suspended = merge(&sandbox, &path, &json!({ "spec": { "suspend": true } })).await;
        assert_eq!(generation(&suspended), 2);
        let status = json!({ "status": { "lastScheduleTime": "2026-03-08T12:00:00Z" } });
        let ran = merge(&sandbox, &format!("{path}/status"), &status).await;
        assert_eq!((generation(&ran), ran.text("/status/lastScheduleTime")), (2, "2026-03-08T12:00:00Z"));
        let ignored = merge(&sandbox, &path, &json!({ "status": { "lastScheduleTime": null } })).await;
        assert_eq!(ignored.body, ran.body, "the main resource keeps the stored status");
    }
}

#[tokio::test(start_paused = true)]
async fn the_status_subresource_takes_metadata_of_built_in_kinds_only() {
    let sandbox = sandbox();
    let change = json!({
        "metadata": { "labels": { "a": "b" } }, "spec": { "suspend": true },
        "status": { "lastScheduleTime": "2026-03-08T12:00:00Z" },
    });
    post(&sandbox, CRONJOBS, &cronjob("a")).await;
    post(&sandbox, VOLCANO, &volcano_cronjob("a")).await;
    let built_in = merge(&sandbox, &format!("{CRONJOBS}/a/status"), &change).await;
    let custom = merge(&sandbox, &format!("{VOLCANO}/a/status"), &change).await;
    assert_eq!(built_in.text("/metadata/labels/a"), "b");
    assert_eq!(custom.body["metadata"]["labels"], Value::Null);
    for reply in [built_in, custom] {
        assert_eq!(reply.text("/status/lastScheduleTime"), "2026-03-08T12:00:00Z");
        assert_ne!(reply.body["spec"]["suspend"], true);
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_of_status_removes_labels_that_it_does_not_carry() {
    let sandbox = sandbox();
    let mut object = cronjob("a");
    object["metadata"]["labels"] = json!({ "team": "x" });
    post(&sandbox, CRONJOBS, &object).await;
    let put_back = put(&sandbox, &format!("{CRONJOBS}/a/status"), &cronjob("a")).await;
    assert_eq!((put_back.code, &put_back.body["metadata"]["labels"]), (200, &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_goes_through_all_checks_and_stores_nothing() {
    let sandbox = sandbox();
    let before = sandbox.with_store(|store| store.revision());
    let tried = post(&sandbox, &format!("{JOBS}?dryRun=All"), &job("a")).await;
    assert_eq!((tried.code, tried.text("/metadata/name")), (201, "a"));
    assert_eq!(get(&sandbox, &format!("{JOBS}/a")).await.code, 404);
    post(&sandbox, JOBS, &job("a")).await;
    assert_eq!(post(&sandbox, &format!("{JOBS}?dryRun=All"), &job("a")).await.code, 409);
    let patched = merge(&sandbox, &format!("{JOBS}/a?dryRun=All"), &json!({ "spec": { "suspend": true } })).await;
    assert_eq!(patched.body["spec"]["suspend"], true);
    delete(&sandbox, &format!("{JOBS}/a?dryRun=All&propagationPolicy=Background"), &Value::Null).await;
    assert_eq!(sandbox.with_store(|store| store.revision()), before + 1);
}

#[tokio::test(start_paused = true)]
async fn each_patch_format_does_what_it_says() {
    let sandbox = sandbox();
    post(&sandbox, CONFIGMAPS, &configmap("a", "1")).await;
    let path = format!("{CONFIGMAPS}/a");
    let steps = json!([
        { "op": "test", "path": "/data/k", "value": "1" },
        { "op": "add", "path": "/data/n", "value": "2" },
    ]);
    let patch = |kind: &str, body: &Value| request("PATCH", &path, kind, &body.to_string());
    let patched = try_send(&sandbox, patch("application/json-patch+json", &steps)).await.unwrap();
    assert_eq!(patched.body["data"], json!({ "k": "1", "n": "2" }));
    let refuted = json!([{ "op": "test", "path": "/data/k", "value": "9" }]);
    assert_eq!(try_send(&sandbox, patch("application/json-patch+json", &refuted)).await.unwrap().code, 422);
    let merged = merge(&sandbox, &path, &json!({ "data": { "k": null } })).await;
    assert_eq!(merged.body["data"], json!({ "n": "2" }));
    let strategic = patch("application/strategic-merge-patch+json", &json!({ "data": { "s": "3" } }));
    assert_eq!(try_send(&sandbox, strategic).await.unwrap().body["data"], json!({ "n": "2", "s": "3" }));
    let apply = patch("application/apply-patch+yaml", &json!({}));
    assert_eq!(try_send(&sandbox, apply).await.unwrap().code, 415);

    post(&sandbox, VOLCANO, &volcano_cronjob("a")).await;
    let custom = request("PATCH", &format!("{VOLCANO}/a"), "application/strategic-merge-patch+json", "{}");
    let refused = try_send(&sandbox, custom).await.unwrap();
    assert_eq!((refused.code, refused.text("/reason")), (415, "UnsupportedMediaType"));
}

#[tokio::test(start_paused = true)]
async fn events_of_one_api_are_events_of_the_other() {
    let sandbox = sandbox();
    let event = json!({
        "metadata": { "name": "a.1" }, "involvedObject": { "kind": "CronJob", "namespace": "default", "name": "a" },
        "reason": "SuccessfulCreate", "message": "Created job a-1", "type": "Normal",
        "source": { "component": "cronjob-controller" }, "count": 1,
    });
    let created = post(&sandbox, "/api/v1/namespaces/default/events", &event).await;
    assert_eq!(created.code, 201, "{}", created.body);
    let path = "/apis/events.k8s.io/v1/namespaces/default/events/a.1";
    let seen = get(&sandbox, path).await;
    assert_eq!((seen.text("/note"), seen.text("/regarding/name")), ("Created job a-1", "a"));
    assert_eq!(seen.text("/apiVersion"), "events.k8s.io/v1");
    assert_eq!(seen.text("/deprecatedSource/component"), "cronjob-controller");
    let fixed = merge(&sandbox, path, &json!({ "deprecatedCount": 2 })).await;
    assert_eq!((fixed.code, fixed.text("/details/causes/0/field")), (422, "count"), "what that API does not change");
    merge(&sandbox, "/api/v1/namespaces/default/events/a.1", &json!({ "count": 2 })).await;
    let fields = "involvedObject.name=a,involvedObject.kind=CronJob,reason=SuccessfulCreate";
    let list = get(&sandbox, &format!("/api/v1/namespaces/default/events?fieldSelector={fields}")).await;
    assert_eq!(list.body["items"][0]["count"], 2, "{}", list.body);
    let none = get(&sandbox, "/api/v1/events?fieldSelector=involvedObject.name=b").await;
    assert_eq!(none.body["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_lease_needs_its_version_and_a_put_makes_a_missing_one() {
    let sandbox = sandbox();
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let mut lease =
        json!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "", "leaseDurationSeconds": 15 } });
    assert_eq!(put(&sandbox, path, &lease).await.code, 201);
    assert_eq!(put(&sandbox, path, &lease).await.code, 422);
    lease["metadata"]["resourceVersion"] = "1".into();
    assert_eq!(put(&sandbox, path, &lease).await.code, 409);
    let mut zero = get(&sandbox, path).await.body;
    zero["spec"]["leaseDurationSeconds"] = 0.into();
    let refused = put(&sandbox, path, &zero).await;
    assert_eq!((refused.code, refused.text("/details/causes/0/field")), (422, "spec.leaseDurationSeconds"));
}

#[tokio::test(start_paused = true)]
async fn pod_logs_come_from_the_side_table() {
    let sandbox = sandbox();
    let pod = json!({ "metadata": { "name": "p" }, "spec": pod_spec() });
    post(&sandbox, "/api/v1/namespaces/default/pods", &pod).await;
    sandbox.set_log("default", "p", "c", "hello\n");
    let log = get(&sandbox, "/api/v1/namespaces/default/pods/p/log?container=c").await;
    assert_eq!((log.code, &log.body), (200, &Value::from("hello\n")));
    assert_eq!(log.headers["content-type"], "text/plain");
    assert_eq!(get(&sandbox, "/api/v1/namespaces/default/pods/q/log").await.code, 404);
}
