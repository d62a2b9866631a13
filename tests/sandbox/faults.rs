//! Faults on demand.

use std::time::Duration;

use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::counters::NO_ANSWER;
use cronjob_controller::sandbox::faults::{Action, Fault, Hold, Release};
use cronjob_controller::sandbox::resources;
use cronjob_controller::sandbox::store::Store;
use cronjob_controller::sandbox::tap::{Served, Tap};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::time::timeout;
use tower::Service;

use crate::common::*;

#[tokio::test(start_paused = true)]
async fn a_refusal_hits_what_it_is_aimed_at_as_often_as_it_says() {
    let sandbox = sandbox();
    let aimed = Fault::refuse(429, Some(3)).on(Verb::Create).resource("batch", "jobs").name("a").skip(1).times(2);
    sandbox.faults().install(aimed);
    let mut codes = Vec::new();
    for name in ["a", "b", "a", "a", "a"] {
        let reply = post(&sandbox, JOBS, &job(name)).await;
        codes.push(reply.code);
        if reply.code == 429 {
            assert_eq!(
                (&reply.headers["retry-after"], &reply.body["details"]["retryAfterSeconds"]),
                (&"3".parse().unwrap(), &3.into())
            );
        }
    }
    assert_eq!(codes, [201, 201, 429, 429, 409]);
    assert_eq!(sandbox.requests().of(Verb::Create, "batch", "jobs"), 5);
    assert_eq!(sandbox.requests().sum(|key| key.code == 429), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_leaves_its_effect() {
    let sandbox = sandbox();
    sandbox.faults().install(Fault::lost_answer().on(Verb::Create).times(1));
    assert!(try_send(&sandbox, request("POST", JOBS, "application/json", &job("a").to_string())).await.is_none());
    assert_eq!(get(&sandbox, &format!("{JOBS}/a")).await.code, 200);
    assert_eq!(sandbox.requests().sum(|key| key.code == NO_ANSWER), 1);
    sandbox.faults().install(Fault::new(Action::LostRequest).on(Verb::Create).times(1));
    assert!(try_send(&sandbox, request("POST", JOBS, "application/json", &job("b").to_string())).await.is_none());
    assert_eq!(get(&sandbox, &format!("{JOBS}/b")).await.code, 404);
    let error = Api::<ConfigMap>::namespaced(sandbox.client(), "default");
    sandbox.faults().install(Fault::lost_answer().on(Verb::Get).times(1));
    assert!(matches!(error.get("x").await, Err(kube::Error::Service(_))));
}

#[tokio::test(start_paused = true)]
async fn a_duplicated_create_answers_the_second_one_and_delays_take_their_time() {
    let sandbox = sandbox();
    sandbox.faults().install(Fault::new(Action::Duplicate).on(Verb::Create).times(1));
    assert_eq!(post(&sandbox, JOBS, &job("a")).await.code, 409);
    let start = mono();
    sandbox.faults().install(Fault::new(Action::Delay(Duration::from_secs(3))).on(Verb::Get).times(1));
    sandbox.faults().install(Fault::new(Action::DelayAnswer(Duration::from_secs(4))).on(Verb::Get).times(1));
    assert_eq!(get(&sandbox, &format!("{JOBS}/a")).await.code, 200);
    assert_eq!(start.elapsed(), Duration::from_secs(7));
}

/// Names of the configmaps that a watch shows within a second.
async fn shown<S>(events: &mut S) -> Vec<String>
where
    S: futures::Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin,
{
    let mut names = Vec::new();
    while let Ok(Some(event)) = timeout(Duration::from_secs(1), events.next()).await {
        match event.unwrap() {
            WatchEvent::Added(object) => names.push(object.metadata.name.unwrap()),
            other => panic!("{other:?}"),
        }
    }
    names
}

#[tokio::test(start_paused = true)]
async fn a_stale_cache_hides_a_write_from_watches_until_it_is_released() {
    let sandbox = sandbox();
    let api: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    let quiet = WatchParams { bookmarks: false, ..WatchParams::default() };
    let mut events = api.watch(&quiet, "0").await.unwrap().boxed();
    sandbox.faults().install(Fault::stale_cache(Release::Writes(2)).on(Verb::Create).times(1));
    post(&sandbox, CONFIGMAPS, &configmap("a", "1")).await;
    assert_eq!(get(&sandbox, &format!("{CONFIGMAPS}/a")).await.code, 200, "a read sees it");
    assert_eq!(get(&sandbox, CONFIGMAPS).await.body["items"].as_array().unwrap().len(), 1, "and so does a list");
    post(&sandbox, CONFIGMAPS, &configmap("b", "1")).await;
    assert!(shown(&mut events).await.is_empty());
    post(&sandbox, CONFIGMAPS, &configmap("c", "1")).await;
    assert_eq!(shown(&mut events).await, ["a", "b", "c"]);

    sandbox.faults().install(Fault::stale_cache(Release::After(Duration::from_secs(30))).on(Verb::Create).times(1));
    let start = mono();
    post(&sandbox, CONFIGMAPS, &configmap("d", "1")).await;
    assert!(matches!(events.try_next().await, Ok(Some(WatchEvent::Added(_)))));
    assert_eq!(start.elapsed(), Duration::from_secs(30));

    let configmaps = resources::find("", "v1", "configmaps").unwrap();
    sandbox.hold_cache(configmaps, Hold { until: Release::Told, lists: true });
    post(&sandbox, CONFIGMAPS, &configmap("e", "1")).await;
    assert_eq!(
        get(&sandbox, CONFIGMAPS).await.body["items"].as_array().unwrap().len(),
        4,
        "a list from the held cache"
    );
    assert!(shown(&mut events).await.is_empty());
    sandbox.release_cache(configmaps);
    assert_eq!(shown(&mut events).await, ["e"]);
}

#[tokio::test(start_paused = true)]
async fn watches_can_be_cut_stalled_and_expired() {
    let sandbox = sandbox();
    let api: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    let params = WatchParams { bookmarks: false, ..WatchParams::default().timeout(100) };
    let from = sandbox.with_store(|store| store.revision()).to_string();
    let start = mono();

    sandbox.faults().install(Fault::new(Action::CutWatch(Duration::from_secs(5))).on(Verb::Watch).times(1));
    assert!(api.watch(&params, &from).await.unwrap().boxed().next().await.is_none());
    assert_eq!(start.elapsed(), Duration::from_secs(5));

    let mut open = api.watch(&params, &from).await.unwrap().boxed();
    sandbox.cut_watches();
    assert!(open.next().await.is_none());
    assert_eq!(start.elapsed(), Duration::from_secs(5));

    sandbox.faults().install(Fault::new(Action::ExpireWatch).on(Verb::Watch).times(1));
    match api.watch(&params, &from).await.unwrap().boxed().next().await {
        Some(Ok(WatchEvent::Error(status))) => assert_eq!(status.code, 410),
        other => panic!("{other:?}"),
    }

    sandbox.faults().install(Fault::new(Action::StallWatch).on(Verb::Watch).times(1));
    let mut stalled = api.watch(&params, &from).await.unwrap().boxed();
    post(&sandbox, CONFIGMAPS, &configmap("a", "1")).await;
    assert!(stalled.next().await.is_none());
    assert_eq!(start.elapsed(), Duration::from_secs(105));
}

#[tokio::test(start_paused = true)]
async fn healing_removes_every_fault() {
    let sandbox = sandbox();
    let id = sandbox.faults().install(Fault::refuse(500, None).probability(1.0));
    assert_eq!(get(&sandbox, JOBS).await.code, 500);
    sandbox.faults().remove(id);
    assert_eq!(get(&sandbox, JOBS).await.code, 200);
    sandbox.faults().install(Fault::refuse(503, None));
    assert_eq!(get(&sandbox, JOBS).await.code, 503);
    sandbox.heal();
    assert_ne!(get(&sandbox, JOBS).await.body, Value::Null);
    assert_eq!(sandbox.requests().sum(|key| key.code == 200), 2);
}

/// Writes down what it hears.
#[derive(Default)]
struct Ear(std::sync::Mutex<Vec<String>>);

impl Tap for Ear {
    fn on_written(&self, store: &Store) {
        self.0.lock().unwrap().push(format!("written {}", store.revision()));
    }

    fn on_served(&self, served: &Served<'_>) {
        let Served { client, call, code, revisions: (before, after) } = served;
        self.0.lock().unwrap().push(format!("{client} {} {code} +{}", call.verb, after - before));
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_one_client_leaves_others_alone_and_a_tap_hears_who_did_what() {
    let sandbox = sandbox();
    let ear = std::sync::Arc::new(Ear::default());
    assert!(sandbox.listen(ear.clone()));
    assert!(!sandbox.listen(ear.clone()), "one is enough");
    sandbox.faults().install(Fault::refuse(500, None).client("one"));
    let before = sandbox.with_store(Store::revision);
    for (mut service, name) in [
        (sandbox.service_of("one"), "a"),
        (sandbox.service_of("other"), "b"),
        (sandbox.service_without_faults("one"), "c"),
    ] {
        let body = job(name).to_string();
        service.call(request("POST", JOBS, "application/json", &body)).await.unwrap();
    }
    let heard = ear.0.lock().unwrap().clone();
    let written = |more: u64| format!("written {}", before + more);
    let expected =
        ["one create 500 +0", &written(1), "other create 201 +1", &written(2), "one create 201 +1"].map(str::to_owned);
    assert_eq!(heard, expected);
    assert_eq!(sandbox.faults().hits(), 1);
}
