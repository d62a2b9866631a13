//! Requests and answers of lists and watches.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{HeaderValue, Request};
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{ObjectKey, Uid};

/// Annotation of the bookmark that ends the initial objects of a streamed list (KEP-3157).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// One line of a watch.
#[derive(Debug, Deserialize)]
pub(crate) struct Frame<'a> {
    /// ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'a, str>,
    /// The object, the Status of an ERROR, or an object with nothing but a resource version.
    #[serde(borrow)]
    pub(crate) object: &'a RawValue,
}

/// One page of a list. Servers send `items: null` for an empty list of some kinds.
#[derive(Debug, Deserialize)]
pub(crate) struct Page<'a> {
    #[serde(default)]
    pub(crate) metadata: PageMeta,
    #[serde(borrow)]
    pub(crate) items: Option<Vec<&'a RawValue>>,
}

/// `metadata` of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PageMeta {
    pub(crate) resource_version: String,
    /// Token of the next page; absent or empty on the last one.
    #[serde(rename = "continue")]
    pub(crate) next: Option<String>,
}

/// The metadata that can still be read of an object that as a whole cannot.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Probe {
    metadata: ProbeMeta,
}

/// What stands in the place of a text and is none counts as absent, but for the name, without which nothing can be said.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProbeMeta {
    namespace: Value,
    name: String,
    uid: Value,
    resource_version: Value,
    annotations: Value,
}

fn owned(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Name and version of an object, read from its metadata alone.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    pub(crate) version: String,
    /// Whether it is the bookmark behind the initial objects.
    pub(crate) ends_initial: bool,
}

/// Reads the metadata of an object; `None` when not even that is possible.
pub(crate) fn identity(object: &RawValue) -> Option<Identity> {
    let Probe { metadata } = serde_json::from_str(object.get()).ok()?;
    Some(Identity {
        key: ObjectKey::new(owned(&metadata.namespace), metadata.name),
        uid: owned(&metadata.uid).into(),
        version: owned(&metadata.resource_version),
        ends_initial: metadata.annotations[INITIAL_EVENTS_END] == "true",
    })
}

/// The requests of one reflector.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    /// Path of the collection.
    pub(crate) path: String,
    pub(crate) label_selector: Option<String>,
    pub(crate) field_selector: Option<String>,
    pub(crate) page_size: u32,
}

impl Requests {
    /// A page of a consistent list: no resource version, so the newest state there is.
    pub(crate) fn page(&self, next: Option<&str>) -> Result<Request<Body>, http::Error> {
        let mut query = self.query();
        query.add("limit", &self.page_size.to_string());
        if let Some(token) = next {
            query.add("continue", token);
        }
        query.request()
    }

    /// A watch that first shows all objects of the newest state, then a bookmark, then what happens.
    pub(crate) fn streamed_list(&self, timeout: Duration) -> Result<Request<Body>, http::Error> {
        let mut query = self.watching(timeout);
        query.add("sendInitialEvents", "true");
        query.add("resourceVersionMatch", "NotOlderThan");
        query.request()
    }

    /// A watch of what happened after `version`.
    pub(crate) fn watch(&self, version: &str, timeout: Duration) -> Result<Request<Body>, http::Error> {
        let mut query = self.watching(timeout);
        query.add("resourceVersion", version);
        query.request()
    }

    fn watching(&self, timeout: Duration) -> Query {
        let mut query = self.query();
        query.add("watch", "true");
        query.add("allowWatchBookmarks", "true");
        query.add("timeoutSeconds", &timeout.as_secs().to_string());
        query
    }

    fn query(&self) -> Query {
        let mut query = Query { uri: self.path.clone(), separator: '?' };
        if let Some(selector) = &self.label_selector {
            query.add("labelSelector", selector);
        }
        if let Some(selector) = &self.field_selector {
            query.add("fieldSelector", selector);
        }
        query
    }
}

/// A path with a growing query.
struct Query {
    uri: String,
    separator: char,
}

impl Query {
    fn add(&mut self, name: &str, value: &str) {
        self.uri.push(std::mem::replace(&mut self.separator, '&'));
        self.uri.push_str(name);
        self.uri.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                self.uri.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(self.uri, "%{byte:02X}");
            }
        }
    }

    fn request(self) -> Result<Request<Body>, http::Error> {
        Request::get(self.uri)
            .header(ACCEPT, HeaderValue::from_static("application/json"))
            // Servers from 1.37 on may compress watches frame by frame; a frame must be readable when it arrives.
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"))
            .body(Body::empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_whatever_the_order_of_its_fields() {
        for line in [r#"{"type":"ADDED","object":{"a":1}}"#, r#"{"object":{"a":1},"type":"ADDED"}"#] {
            let frame: Frame<'_> = serde_json::from_str(line).unwrap();
            assert_eq!((&*frame.kind, frame.object.get()), ("ADDED", r#"{"a":1}"#));
        }
    }

    #[test]
    fn an_empty_list_may_have_null_for_items() {
        let page: Page<'_> = serde_json::from_str(r#"{"metadata":{"resourceVersion":"7"},"items":null}"#).unwrap();
        assert_eq!((page.metadata.resource_version.as_str(), page.items.is_none()), ("7", true));
    }

    #[test]
    fn queries_are_escaped() {
        let requests = Requests {
            path: "/api/v1/pods".into(),
            label_selector: Some("a in (b,c)".into()),
            field_selector: Some("d!=e".into()),
            page_size: 500,
        };
        let page = requests.page(Some("x+/=")).unwrap();
        assert_eq!(
            page.uri(),
            "/api/v1/pods?labelSelector=a%20in%20%28b%2Cc%29&fieldSelector=d%21%3De&limit=500&continue=x%2B%2F%3D"
        );
    }

    #[test]
    fn the_bookmark_behind_the_initial_objects_is_told_by_its_annotation() {
        let raw = |text: &str| serde_json::from_str::<Box<RawValue>>(text).unwrap();
        let end = raw(r#"{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#);
        let other = raw(r#"{"metadata":{"resourceVersion":"9","annotations":null}}"#);
        assert!(identity(&end).unwrap().ends_initial);
        assert!(!identity(&other).unwrap().ends_initial);
    }

    #[test]
    fn an_object_is_known_by_its_name_whatever_the_rest_of_its_metadata_is() {
        let text = r#"{"metadata":{"namespace":"s","name":"n","uid":7,"resourceVersion":null,"annotations":true}}"#;
        let raw = serde_json::from_str::<Box<RawValue>>(text).unwrap();
        let identity = identity(&raw).unwrap();
        assert_eq!((identity.key.to_string().as_str(), identity.uid.is_empty(), &*identity.version), ("s/n", true, ""));
    }
}
