//! Whatever is written in whatever order: a list of an older moment is what a list was then, and a watch from there leads to
//! what a list is now.

use std::collections::BTreeMap;

use cronjob_controller::sandbox::Sandbox;
use http_body_util::BodyExt;
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::Service;

use crate::common::*;

#[derive(Debug, Clone)]
enum Op {
    Create(u8),
    Label(u8, bool),
    Data(u8, u8),
    Delete(u8),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (0..6_u8).prop_map(Op::Create),
        3 => (0..6_u8, any::<bool>()).prop_map(|(name, on)| Op::Label(name, on)),
        2 => (0..6_u8, 0..3_u8).prop_map(|(name, data)| Op::Data(name, data)),
        2 => (0..6_u8).prop_map(Op::Delete),
    ];
    proptest::collection::vec(op, 1..40)
}

async fn apply(sandbox: &Sandbox, op: &Op) {
    let path = |name: &u8| format!("{CONFIGMAPS}/m{name}");
    match op {
        Op::Create(name) => post(sandbox, CONFIGMAPS, &configmap(&format!("m{name}"), "0")).await,
        Op::Label(name, on) => {
            merge(sandbox, &path(name), &json!({ "metadata": { "labels": { "on": on.to_string() } } })).await
        }
        Op::Data(name, data) => merge(sandbox, &path(name), &json!({ "data": { "k": data.to_string() } })).await,
        Op::Delete(name) => delete(sandbox, &path(name), &Value::Null).await,
    };
}

type State = BTreeMap<String, Value>;

async fn list(sandbox: &Sandbox, query: &str) -> State {
    let reply = get(sandbox, &format!("{CONFIGMAPS}?{query}")).await;
    let items = reply.body["items"].as_array().unwrap().iter();
    items.map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), item.clone())).collect()
}

/// The state that a watch from `revision` leads to.
async fn follow(sandbox: &Sandbox, mut state: State, revision: u64, selector: &str) -> State {
    let path = format!("{CONFIGMAPS}?watch=1&timeoutSeconds=1&resourceVersion={revision}&{selector}");
    let response = sandbox.service().call(request("GET", &path, "application/json", "")).await.unwrap();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let frame: Value = serde_json::from_slice(line).unwrap();
        let mut object = frame["object"].clone();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let shell = object.as_object_mut().unwrap();
        shell.remove("kind");
        shell.remove("apiVersion");
        let known = state.contains_key(&name);
        match frame["type"].as_str().unwrap() {
            "ADDED" => assert!(!known && state.insert(name, object).is_none()),
            "MODIFIED" => assert!(known && state.insert(name, object).is_some()),
            "DELETED" => assert!(state.remove(&name).is_some()),
            other => panic!("{other}"),
        }
    }
    state
}

async fn check(ops: Vec<Op>) {
    const ON: &str = "labelSelector=on%3Dtrue";
    let sandbox = sandbox();
    let revision = || sandbox.with_store(|store| store.revision());
    let mut moments = BTreeMap::new();
    for op in &ops {
        moments.insert(revision(), (list(&sandbox, "").await, list(&sandbox, ON).await));
        apply(&sandbox, op).await;
    }
    let (all_now, on_now) = (list(&sandbox, "").await, list(&sandbox, ON).await);
    for (revision, (all, on)) in moments {
        let exact = format!("resourceVersionMatch=Exact&resourceVersion={revision}");
        assert_eq!(list(&sandbox, &exact).await, all);
        assert_eq!(list(&sandbox, &format!("{exact}&{ON}")).await, on);
        assert_eq!(follow(&sandbox, all, revision, "").await, all_now);
        assert_eq!(follow(&sandbox, on, revision, ON).await, on_now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn older_lists_are_what_they_were_and_watches_lead_to_the_present(ops in ops()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(check(ops));
    }
}
