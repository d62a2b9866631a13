//! Creating, changing and reading objects.

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
    let bogus: Value = json!({ "metadata": { "resourceVersion": "1" } });
    assert_eq!(merge(&sandbox, &path, &bogus).await.code, 409);
}
