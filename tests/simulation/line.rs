//! The way of one replica to the server, which may be held, cut, or shut for ever; and the fuse that kills it at one of its writes.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use cronjob_controller::latest::Latest;
use cronjob_controller::sandbox::body::SandboxBody;
use cronjob_controller::sandbox::service::{Disconnected, SandboxService};
use futures::future::BoxFuture;
use futures::stream;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use tokio::sync::mpsc;
use tower::Service;

/// What a line lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// Nothing, in either direction, until it is open again.
    Held,
    /// Nothing: connections break.
    Cut,
    /// Nothing ever again: the process is dead.
    Shut,
}

/// Kills at a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fuse {
    /// Writes to let pass first.
    pub(crate) writes: u32,
    /// Whether the last one is applied before the end comes.
    pub(crate) applied: bool,
}

/// Clones are the same line.
#[derive(Clone)]
pub(crate) struct Line {
    inner: SandboxService,
    state: Latest<State>,
    fuse: Arc<Mutex<Option<Fuse>>>,
    /// Says that the fuse has blown.
    blown: mpsc::UnboundedSender<(usize, u32)>,
    me: (usize, u32),
}

/// Whoever steers a line.
pub(crate) struct Switch {
    pub(crate) state: Latest<State>,
    pub(crate) fuse: Arc<Mutex<Option<Fuse>>>,
}

/// A line of the `me.1`-th process of replica `me.0`.
pub(crate) fn line(
    inner: SandboxService,
    me: (usize, u32),
    blown: mpsc::UnboundedSender<(usize, u32)>,
) -> (Line, Switch) {
    let state = Latest::new(State::Open);
    let fuse = Arc::new(Mutex::new(None));
    (Line { inner, state: state.clone(), fuse: fuse.clone(), blown, me }, Switch { state, fuse })
}

/// What a write does to the fuse.
enum Burns {
    No,
    /// It blows; whether the write is applied first.
    Blows(bool),
}

impl Line {
    fn burn(&self, method: &Method) -> Burns {
        let mut fuse = self.fuse.lock().unwrap();
        match &mut *fuse {
            Some(lit) if method != Method::GET => match lit.writes.checked_sub(1) {
                Some(left) => {
                    lit.writes = left;
                    Burns::No
                }
                None => {
                    let applied = lit.applied;
                    *fuse = None;
                    Burns::Blows(applied)
                }
            },
            _ => Burns::No,
        }
    }

    async fn send(mut self, request: Request<Body>) -> Result<Response<LineBody>, Disconnected> {
        pass(&self.state).await?;
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        if let Burns::Blows(applied) = self.burn(request.method()) {
            if applied {
                let _lost = self.inner.call(request).await;
            }
            let _driver_is_gone = self.blown.send(self.me);
            return std::future::pending().await;
        }
        let answer = tokio::select! {
            biased;
            _ = self.state.wait_for(|state| *state == State::Cut) => return Err(Disconnected),
            answer = self.inner.call(request) => answer?,
        };
        pass(&self.state).await?;
        let (parts, body) = answer.into_parts();
        let body =
            if is_watch { watched(body, self.state) } else { body.map_err(|never| match never {}).boxed_unsync() };
        Ok(Response::from_parts(parts, body))
    }
}

/// Waits until the line lets something through.
async fn pass(state: &Latest<State>) -> Result<(), Disconnected> {
    match state.wait_for(|state| matches!(state, State::Open | State::Cut)).await {
        State::Open => Ok(()),
        _ => Err(Disconnected),
    }
}

pub(crate) type LineBody = UnsyncBoxBody<Bytes, Disconnected>;

/// A watch's frames, as far as the line lets them through.
fn watched(body: SandboxBody, state: Latest<State>) -> LineBody {
    let frames = stream::unfold((body, state), |(mut body, state)| async move {
        let frame = tokio::select! {
            biased;
            _ = state.wait_for(|state| *state == State::Cut) => return None,
            frame = body.frame() => frame?,
        };
        pass(&state).await.ok()?;
        let frame: Frame<Bytes> = match frame {
            Ok(frame) => frame,
            Err(never) => match never {},
        };
        Some((Ok(frame), (body, state)))
    });
    StreamBody::new(frames).boxed_unsync()
}

impl Service<Request<Body>> for Line {
    type Response = Response<LineBody>;
    type Error = Disconnected;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
