//! A watch that goes on until its task is dropped: every object of a kind, as the administrator sees it.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

/// What was seen of an object.
pub(crate) enum Seen<T> {
    Applied(T),
    Deleted(T),
}

/// Lists, then follows; never returns. `ready` is told when the list has been seen.
///
/// # Panics
/// When something may have been missed.
pub(crate) async fn follow<T>(api: Api<T>, ready: tokio::sync::oneshot::Sender<()>, mut on_seen: impl FnMut(Seen<T>))
where
    T: Resource + Clone + DeserializeOwned + Debug,
{
    let list = api.list(&ListParams::default()).await.unwrap();
    let mut version = list.metadata.resource_version.unwrap();
    list.items.into_iter().for_each(|object| on_seen(Seen::Applied(object)));
    ready.send(()).unwrap();
    loop {
        let events = match api.watch(&WatchParams::default().timeout(290), &version).await {
            Ok(events) => events,
            Err(error) => {
                eprintln!("watch: {error}");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let mut events = events.boxed();
        while let Some(event) = events.next().await {
            match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    version = object.resource_version().unwrap();
                    on_seen(Seen::Applied(object));
                }
                Ok(WatchEvent::Deleted(object)) => {
                    version = object.resource_version().unwrap();
                    on_seen(Seen::Deleted(object));
                }
                Ok(WatchEvent::Bookmark(mark)) => version = mark.metadata.resource_version,
                Ok(WatchEvent::Error(status)) => panic!("the watch may have missed something: {status:?}"),
                Err(_broken) => break,
            }
        }
    }
}
