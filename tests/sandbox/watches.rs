//! Lists and watches as controllers use them.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};

use crate::common::*;

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
