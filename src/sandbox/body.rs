//! The body of an answer: bytes at once, or a watch that goes on.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::{BoxStream, Stream};
use http_body::{Body, Frame, SizeHint};

/// Body of every answer of the sandbox.
pub struct SandboxBody {
    kind: Kind,
}

enum Kind {
    /// `None` once it has been read.
    Whole(Option<Bytes>),
    Watch(BoxStream<'static, Bytes>),
}

impl SandboxBody {
    /// A body that is known at once.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { kind: Kind::Whole((!bytes.is_empty()).then_some(bytes)) }
    }

    /// A body that lasts as long as the stream.
    pub fn watch(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { kind: Kind::Watch(Box::pin(stream)) }
    }
}

impl fmt::Debug for SandboxBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Whole(_) => "SandboxBody::Whole",
            Kind::Watch(_) => "SandboxBody::Watch",
        })
    }
}

impl Body for SandboxBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().kind {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Watch(stream) => stream.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Watch(_) => SizeHint::default(),
        }
    }
}
