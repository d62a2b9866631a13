//! Scripted API servers and objects for the tests of this room.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use tower::BoxError;

use super::reflector::Cached;
use crate::model::{ObjectKey, Uid};

/// The smallest object that can be cached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thing {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    pub(crate) version: Box<str>,
    pub(crate) owner: Option<Uid>,
}

impl Thing {
    /// An object whose uid is `uid-<name>`.
    pub(crate) fn new(namespace: &str, name: &str, version: &str) -> Self {
        Self {
            key: ObjectKey::new(namespace, name),
            uid: format!("uid-{name}").into(),
            version: version.into(),
            owner: None,
        }
    }

    pub(crate) fn owned_by(self, uid: &str) -> Self {
        Self { owner: Some(uid.to_owned().into()), ..self }
    }

    /// Decodes the JSON form that [`thing_json`] writes; a `bad` field makes it unreadable.
    pub(crate) fn decode(raw: &RawValue) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Wire {
            metadata: Meta,
            bad: Option<bool>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Meta {
            namespace: String,
            name: String,
            uid: String,
            resource_version: String,
        }
        let wire: Wire = serde_json::from_str(raw.get()).map_err(|e| e.to_string())?;
        if wire.bad.is_some() {
            return Err("field bad: is set".into());
        }
        let m = wire.metadata;
        Ok(Self { uid: m.uid.into(), ..Self::new(&m.namespace, &m.name, &m.resource_version) })
    }
}

impl Cached for Thing {
    const UNOWNED_ARE_INDEXED: bool = true;

    fn key(&self) -> &ObjectKey {
        &self.key
    }
    fn uid(&self) -> &Uid {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.version
    }
    fn owner(&self) -> Option<&Uid> {
        self.owner.as_ref()
    }
}

/// JSON of a thing in namespace `ns`.
pub(crate) fn thing_json(name: &str, uid: &str, version: &str) -> String {
    format!(r#"{{"metadata":{{"namespace":"ns","name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#)
}

/// A body that yields what is sent into the channel, and ends when the sender is dropped.
pub(crate) fn channel_body() -> (mpsc::UnboundedSender<Result<Bytes, BoxError>>, ServerBody) {
    let (send, receive) = mpsc::unbounded();
    (send, StreamBody::new(receive.map(|chunk: Result<Bytes, BoxError>| chunk.map(Frame::data)).boxed()))
}

pub(crate) type ServerBody = StreamBody<futures::stream::BoxStream<'static, Result<Frame<Bytes>, BoxError>>>;

/// A body of fixed chunks.
pub(crate) fn fixed_body(chunks: &[&str]) -> ServerBody {
    let (send, body) = channel_body();
    for chunk in chunks {
        send.unbounded_send(Ok(Bytes::copy_from_slice(chunk.as_bytes()))).unwrap();
    }
    body
}

/// A client-side body of fixed chunks.
pub(crate) async fn body_of(chunks: &[&str]) -> Body {
    let server = Server::default();
    let body = fixed_body(chunks);
    server.answer(move |_| reply(200, body));
    server.client().send(Request::get("/").body(Body::empty()).unwrap()).await.unwrap().into_body()
}

/// What a scripted server does with one request.
type Reply = BoxFuture<'static, Result<Response<ServerBody>, BoxError>>;

/// An immediate answer.
pub(crate) fn reply(code: u16, body: ServerBody) -> Reply {
    futures::future::ready(Ok(Response::builder().status(code).body(body).unwrap())).boxed()
}

/// An immediate refusal with a Status, and Retry-After if `retry_after_s` is not zero.
pub(crate) fn refusal(code: u16, reason: &str, retry_after_s: u64) -> Reply {
    let status = format!(r#"{{"kind":"Status","code":{code},"reason":"{reason}","message":"refused: {reason}"}}"#);
    let mut response = Response::builder().status(code);
    if retry_after_s > 0 {
        response = response.header("retry-after", retry_after_s);
    }
    futures::future::ready(Ok(response.body(fixed_body(&[&status])).unwrap())).boxed()
}

/// A connection that breaks before an answer.
pub(crate) fn broken() -> Reply {
    futures::future::ready(Err("connection reset by peer".into())).boxed()
}

/// No answer, ever.
pub(crate) fn silence() -> Reply {
    futures::future::pending().boxed()
}

/// One request as a scripted server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) uri: String,
    pub(crate) body: String,
}

type Script = Box<dyn FnOnce(&Seen) -> Reply + Send>;

type Rule = Box<dyn FnMut(&Seen) -> Reply + Send>;

/// A server that answers requests from a script, in order of arrival; beyond the script by a rule, without one not at all.
#[derive(Clone, Default)]
pub(crate) struct Server {
    replies: Arc<Mutex<VecDeque<Script>>>,
    rest: Arc<Mutex<Option<Rule>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Adds an answer to the script.
    pub(crate) fn answer(&self, f: impl FnOnce(&Seen) -> Reply + Send + 'static) {
        self.replies.lock().unwrap().push_back(Box::new(f));
    }

    /// Sets the rule for requests beyond the script.
    pub(crate) fn answer_rest(&self, f: impl FnMut(&Seen) -> Reply + Send + 'static) {
        *self.rest.lock().unwrap() = Some(Box::new(f));
    }

    /// What has arrived so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Method and URI of what has arrived so far.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.seen().iter().map(|s| format!("{} {}", s.method, s.uri)).collect()
    }

    /// A client of this server.
    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.serve(request).await }
        });
        Client::new(service, "default")
    }

    async fn serve(&self, request: Request<Body>) -> Result<Response<ServerBody>, BoxError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let seen = Seen {
            method: head.method.to_string(),
            uri: head.uri.to_string(),
            body: String::from_utf8(body.to_vec())?,
        };
        self.seen.lock().unwrap().push(seen.clone());
        let script = self.replies.lock().unwrap().pop_front();
        let reply = match script {
            Some(script) => script(&seen),
            None => self.rest.lock().unwrap().as_mut().map_or_else(silence, |rule| rule(&seen)),
        };
        reply.await
    }
}

/// Lets every task that can run do so, without moving paused time.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}
