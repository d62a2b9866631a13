//! Watches as controllers use them.

use std::time::Duration;

use bytes::Bytes;
use cronjob_controller::sandbox::body::SandboxBody;
use cronjob_controller::sandbox::{Options, Sandbox};
use futures::{StreamExt, TryStreamExt};
use http_body_util::BodyExt;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tower::Service;

use crate::common::*;

/// An open watch, read line by line.
struct Frames {
    body: SandboxBody,
    buffer: Vec<u8>,
}

impl Frames {
    async fn open(sandbox: &Sandbox, path: &str) -> Self {
        let response = sandbox.service().call(request("GET", path, "application/json", "")).await.unwrap();
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), buffer: Vec::new() }
    }

    /// The next line as it came; `None` at the end of the stream.
    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap());
            }
            let chunk: Bytes = self.body.frame().await?.unwrap().into_data().unwrap();
            self.buffer.extend_from_slice(&chunk);
        }
    }

    async fn next(&mut self) -> Option<(String, Value)> {
        let frame: Value = serde_json::from_str(&self.line().await?).unwrap();
        Some((frame["type"].as_str().unwrap().to_owned(), frame["object"].clone()))
    }

    /// Type and name of the next frame.
    async fn short(&mut self) -> (String, String) {
        let (event, object) = self.next().await.unwrap();
        (event, object["metadata"]["name"].as_str().unwrap_or_default().to_owned())
    }
}

fn short(event: &str, name: &str) -> (String, String) {
    (event.to_owned(), name.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_typed_client_lists_and_watches_what_it_writes() {
    let sandbox = sandbox();
    let jobs: Api<Job> = Api::namespaced(sandbox.client(), "default");
    let typed: Job = serde_json::from_value(job("a")).unwrap();
    jobs.create(&PostParams::default(), &typed).await.unwrap();
    let list = jobs.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 1);
    let from = list.metadata.resource_version.unwrap();
    let mut events = jobs.watch(&WatchParams::default().timeout(290), &from).await.unwrap().boxed();
    jobs.delete("a", &DeleteParams::background()).await.unwrap();
    match events.try_next().await.unwrap().unwrap() {
        WatchEvent::Deleted(job) => assert_eq!(job.metadata.name.as_deref(), Some("a")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_replays_what_happened_after_its_revision_and_says_the_type_first() {
    let sandbox = sandbox();
    let created = post(&sandbox, CONFIGMAPS, &configmap("a", "1")).await;
    merge(&sandbox, &format!("{CONFIGMAPS}/a"), &json!({ "data": { "k": "2" } })).await;
    delete(&sandbox, &format!("{CONFIGMAPS}/a"), &Value::Null).await;
    let path = format!("{CONFIGMAPS}?watch=true&resourceVersion={}", created.revision() - 1);
    let mut frames = Frames::open(&sandbox, &path).await;
    assert!(frames.line().await.unwrap().starts_with("{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\""));
    let (event, modified) = frames.next().await.unwrap();
    assert_eq!((event.as_str(), &modified["data"]["k"]), ("MODIFIED", &json!("2")));
    let (event, deleted) = frames.next().await.unwrap();
    let revision = (created.revision() + 2).to_string();
    assert_eq!((event.as_str(), &deleted["metadata"]["resourceVersion"]), ("DELETED", &json!(revision)));
    assert_eq!(deleted["data"]["k"], "2");
}

#[tokio::test(start_paused = true)]
async fn without_a_revision_the_present_state_comes_first() {
    let sandbox = sandbox();
    for name in ["b", "a"] {
        post(&sandbox, CONFIGMAPS, &configmap(name, "1")).await;
    }
    for from in ["", "&resourceVersion=0"] {
        let mut frames = Frames::open(&sandbox, &format!("{CONFIGMAPS}?watch=1{from}&timeoutSeconds=5")).await;
        assert_eq!(frames.short().await, short("ADDED", "a"));
        assert_eq!(frames.short().await, short("ADDED", "b"));
        assert!(frames.next().await.is_none(), "ends at its timeout");
    }
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_marked_bookmark_and_the_stream_goes_on() {
    let sandbox = sandbox();
    let created = post(&sandbox, CONFIGMAPS, &configmap("a", "1")).await;
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut frames = Frames::open(&sandbox, &format!("{CONFIGMAPS}?{query}")).await;
    assert_eq!(frames.short().await, short("ADDED", "a"));
    let (event, end) = frames.next().await.unwrap();
    assert_eq!(event, "BOOKMARK");
    assert_eq!(end["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(end["metadata"]["resourceVersion"], created.text("/metadata/resourceVersion"));
    post(&sandbox, CONFIGMAPS, &configmap("b", "1")).await;
    assert_eq!(frames.short().await, short("ADDED", "b"));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_before_the_end() {
    let sandbox = sandbox();
    let start = mono();
    let from = sandbox.with_store(|store| store.revision());
    let query = format!("watch=true&allowWatchBookmarks=true&timeoutSeconds=150&resourceVersion={from}");
    let mut frames = Frames::open(&sandbox, &format!("{CONFIGMAPS}?{query}")).await;
    post(&sandbox, JOBS, &job("elsewhere")).await;
    let mut at_s = Vec::new();
    while let Some((event, object)) = frames.next().await {
        assert_eq!(
            (event.as_str(), &object["metadata"]["resourceVersion"]),
            ("BOOKMARK", &json!((from + 1).to_string()))
        );
        at_s.push(start.elapsed().as_secs());
    }
    assert_eq!(at_s, [60, 120, 148]);
    assert_eq!(start.elapsed().as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn to_a_selecting_watch_an_object_that_stops_matching_is_deleted() {
    let sandbox = sandbox();
    let mut frames = Frames::open(&sandbox, &format!("{CONFIGMAPS}?watch=1&labelSelector=on%3Dyes")).await;
    post(&sandbox, CONFIGMAPS, &configmap("a", "1")).await;
    let path = format!("{CONFIGMAPS}/a");
    let label = |value: &str| json!({ "metadata": { "labels": { "on": value } } });
    for value in ["yes", "no", "yes"] {
        merge(&sandbox, &path, &label(value)).await;
    }
    let last = sandbox.with_store(|store| store.revision());
    delete(&sandbox, &path, &Value::Null).await;
    assert_eq!(frames.short().await, short("ADDED", "a"));
    let (event, object) = frames.next().await.unwrap();
    assert_eq!((event.as_str(), &object["metadata"]["labels"]["on"]), ("DELETED", &json!("yes")));
    assert_eq!(object["metadata"]["resourceVersion"], json!((last - 1).to_string()));
    assert_eq!(frames.short().await, short("ADDED", "a"));
    assert_eq!(frames.short().await, short("DELETED", "a"));
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_revision_is_an_error_event_and_a_relist_recovers() {
    let sandbox = sandbox();
    let created = post(&sandbox, CONFIGMAPS, &configmap("a", "1")).await;
    sandbox.compact(created.revision());
    let stale = format!("{CONFIGMAPS}?watch=true&resourceVersion={}", created.revision() - 1);
    let mut frames = Frames::open(&sandbox, &stale).await;
    let (event, status) = frames.next().await.unwrap();
    assert_eq!((event.as_str(), &status["code"], &status["reason"]), ("ERROR", &json!(410), &json!("Expired")));
    assert!(status["message"].as_str().unwrap().starts_with("too old resource version: "));
    assert!(frames.next().await.is_none());
    let list = get(&sandbox, CONFIGMAPS).await;
    let mut frames =
        Frames::open(&sandbox, &format!("{CONFIGMAPS}?watch=true&resourceVersion={}", list.revision())).await;
    post(&sandbox, CONFIGMAPS, &configmap("b", "1")).await;
    assert_eq!(frames.short().await, short("ADDED", "b"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ahead_of_the_store_is_silent_until_the_store_is_there() {
    let sandbox = sandbox();
    let ahead = sandbox.with_store(|store| store.revision()) + 1;
    let mut frames = Frames::open(&sandbox, &format!("{CONFIGMAPS}?watch=true&resourceVersion={ahead}")).await;
    post(&sandbox, CONFIGMAPS, &configmap("a", "1")).await;
    post(&sandbox, CONFIGMAPS, &configmap("b", "1")).await;
    assert_eq!(frames.short().await, short("ADDED", "b"));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_the_log_has_left_behind_is_cut_off() {
    let sandbox = sandbox_with(7, Options { log_limit: 8, ..Options::default() });
    let mut frames = Frames::open(&sandbox, &format!("{CONFIGMAPS}?watch=true&resourceVersion=1")).await;
    for number in 0..20 {
        post(&sandbox, CONFIGMAPS, &configmap(&format!("m{number}"), "1")).await;
    }
    assert!(frames.next().await.is_none());
}

/// One run a minute, created and deleted in the same second, while the watch ends every 290 s: the two coincide at 1740 s.
#[tokio::test(start_paused = true)]
async fn over_a_long_time_no_create_and_delete_pair_is_lost_between_watches() {
    const RUNS: usize = 2000;
    let sandbox = sandbox();
    let jobs: Api<Job> = Api::namespaced(sandbox.client(), "default");
    let writer = async {
        for run in 0..RUNS {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let typed: Job = serde_json::from_value(job(&format!("run-{run}"))).unwrap();
            jobs.create(&PostParams::default(), &typed).await.unwrap();
            jobs.delete(&format!("run-{run}"), &DeleteParams::background()).await.unwrap();
        }
    };
    let reader = async {
        let (mut added, mut deleted, mut watches) = (0, 0, 0);
        let mut version = jobs.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
        while deleted < RUNS {
            watches += 1;
            let mut events = jobs.watch(&WatchParams::default().timeout(290), &version).await.unwrap().boxed();
            while let Some(event) = events.try_next().await.unwrap() {
                match event {
                    WatchEvent::Added(job) => (added, version) = (added + 1, job.metadata.resource_version.unwrap()),
                    WatchEvent::Deleted(job) => {
                        (deleted, version) = (deleted + 1, job.metadata.resource_version.unwrap());
                    }
                    WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
                    other => panic!("{other:?}"),
                }
                if deleted == RUNS {
                    break;
                }
            }
        }
        (added, deleted, watches)
    };
    let ((), (added, deleted, watches)) = tokio::join!(writer, reader);
    assert_eq!((added, deleted), (RUNS, RUNS));
    assert!(watches > 400, "{watches}");
}
