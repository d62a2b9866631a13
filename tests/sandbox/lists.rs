//! Lists: order, pages, selectors, revisions.

use serde_json::{Value, json};

use crate::common::*;

fn names(reply: &Reply) -> Vec<String> {
    let items = reply.body["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_is_ordered_by_key_and_carries_the_revision_of_the_store() {
    let sandbox = sandbox();
    for name in ["b", "a-b", "a", "c"] {
        post(&sandbox, CONFIGMAPS, &configmap(name, "1")).await;
    }
    let last = post(&sandbox, JOBS, &job("x")).await;
    let list = get(&sandbox, CONFIGMAPS).await;
    assert_eq!(names(&list), ["a", "a-b", "b", "c"]);
    assert_eq!(list.revision(), last.revision());
    assert_eq!((list.text("/kind"), list.text("/apiVersion")), ("ConfigMapList", "v1"));
    assert_eq!(list.body["items"][0]["kind"], Value::Null, "built-in items carry no kind");
    post(&sandbox, VOLCANO, &volcano_cronjob("v")).await;
    assert_eq!(get(&sandbox, VOLCANO).await.text("/items/0/kind"), "CronJob", "custom ones do");
}

#[tokio::test(start_paused = true)]
async fn pages_are_of_one_moment_whatever_happens_between_them() {
    let sandbox = sandbox();
    for number in 0..10 {
        post(&sandbox, CONFIGMAPS, &configmap(&format!("m{number}"), "old")).await;
    }
    let first = get(&sandbox, &format!("{CONFIGMAPS}?limit=4")).await;
    assert_eq!((names(&first).len(), &first.body["metadata"]["remainingItemCount"]), (4, &json!(6)));
    delete(&sandbox, &format!("{CONFIGMAPS}/m5"), &Value::Null).await;
    merge(&sandbox, &format!("{CONFIGMAPS}/m6"), &json!({ "data": { "k": "new" } })).await;
    post(&sandbox, CONFIGMAPS, &configmap("m55", "new")).await;
    let next = format!("{CONFIGMAPS}?limit=4&continue={}", first.text("/metadata/continue"));
    let second = get(&sandbox, &next).await;
    assert_eq!(names(&second), ["m4", "m5", "m6", "m7"]);
    assert_eq!(second.text("/items/2/data/k"), "old");
    assert_eq!(second.revision(), first.revision());
    assert_eq!(second.body["metadata"]["remainingItemCount"], 2);
    let last = get(&sandbox, &format!("{CONFIGMAPS}?continue={}", second.text("/metadata/continue"))).await;
    assert_eq!((names(&last), last.text("/metadata/continue")), (vec!["m8".to_owned(), "m9".to_owned()], ""));
    let exact = format!("{CONFIGMAPS}?resourceVersion={}&resourceVersionMatch=Exact", first.revision());
    assert_eq!(names(&get(&sandbox, &exact).await).len(), 10);

    sandbox.compact(first.revision() + 1);
    let expired = get(&sandbox, &next).await;
    assert_eq!((expired.code, expired.text("/reason")), (410, "Expired"));
}

#[tokio::test(start_paused = true)]
async fn selectors_narrow_a_list_and_hide_the_remaining_count() {
    let sandbox = sandbox();
    for number in 0..4 {
        let mut object = job(&format!("j{number}"));
        object["metadata"]["labels"] = json!({ "parity": if number % 2 == 0 { "even" } else { "odd" } });
        post(&sandbox, JOBS, &object).await;
    }
    let even = get(&sandbox, &format!("{JOBS}?labelSelector=parity%20in%20(even)&limit=1")).await;
    assert_eq!((names(&even), &even.body["metadata"]["remainingItemCount"]), (vec!["j0".to_owned()], &Value::Null));
    let token = even.text("/metadata/continue");
    let rest = get(&sandbox, &format!("{JOBS}?labelSelector=parity%20in%20(even)&continue={token}")).await;
    assert_eq!(names(&rest), ["j2"]);
    merge(&sandbox, &format!("{JOBS}/j1/status"), &json!({ "status": { "succeeded": 1 } })).await;
    assert_eq!(names(&get(&sandbox, &format!("{JOBS}?fieldSelector=status.successful%3D1")).await), ["j1"]);
    assert_eq!(names(&get(&sandbox, &format!("{JOBS}?fieldSelector=metadata.name!%3Dj1")).await), ["j0", "j2", "j3"]);
    assert_eq!(names(&get(&sandbox, "/apis/batch/v1/jobs?fieldSelector=metadata.namespace%3Dother").await).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_can_be_asked_for() {
    let sandbox = sandbox();
    let created = post(&sandbox, JOBS, &job("a")).await;
    let mut wanted = request("GET", JOBS, "application/json", "");
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    wanted.headers_mut().insert("accept", accept.parse().unwrap());
    let list = try_send(&sandbox, wanted).await.unwrap();
    assert_eq!(list.text("/kind"), "PartialObjectMetadataList");
    assert_eq!(list.text("/items/0/kind"), "PartialObjectMetadata");
    assert_eq!(list.body["items"][0]["metadata"], created.body["metadata"]);
    assert_eq!(list.body["items"][0]["spec"], Value::Null);
}
