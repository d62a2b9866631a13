//! The body of a watch as a sequence of lines.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use kube::client::Body;
use thiserror::Error;

/// The server refuses objects beyond a few MB; a line beyond this is no frame of a watch.
const MAX_LINE_BYTES: usize = 64 << 20;

/// Why no further line comes.
#[derive(Debug, Error)]
pub(crate) enum LinesError {
    /// The connection broke.
    #[error("the stream broke")]
    Broken(#[source] kube::Error),
    /// A line without end.
    #[error("a line of the stream is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
}

/// Cuts a body into its lines.
#[derive(Debug)]
pub(crate) struct Lines {
    body: Body,
    buffer: BytesMut,
    /// Bytes of the buffer known to hold no newline.
    searched: usize,
}

impl Lines {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, buffer: BytesMut::new(), searched: 0 }
    }

    /// The next line without its newline; `None` at the end of the body. A last line without newline was cut off and is
    /// dropped. May be dropped and called again without losing bytes.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, LinesError> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.buffer.len() > MAX_LINE_BYTES {
                return Err(LinesError::TooLong);
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(LinesError::Broken(error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }

    fn take_line(&mut self) -> Option<Bytes> {
        let fresh = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(at) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + at + 1);
        line.truncate(line.len() - 1);
        self.searched = 0;
        Some(line.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::body_of;

    async fn lines(chunks: &[&str]) -> Vec<String> {
        let mut lines = Lines::new(body_of(chunks).await);
        let mut out = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            out.push(String::from_utf8(line.to_vec()).unwrap());
        }
        out
    }

    #[tokio::test]
    async fn chunks_and_lines_need_not_agree() {
        assert_eq!(lines(&["a", "b\ncd\n", "", "\ne", "f\n"]).await, ["ab", "cd", "", "ef"]);
    }

    #[tokio::test]
    async fn a_line_cut_off_by_the_end_is_dropped() {
        assert_eq!(lines(&["whole\nhal"]).await, ["whole"]);
        assert!(lines(&[]).await.is_empty());
    }
}
