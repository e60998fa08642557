//! Bodies: what is answered, in pieces of bounded size, and what is read, up to a limit.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

use super::fairness::Share;
use super::streams;
use crate::registry::{Error, Reason};

/// The largest request body, in bytes, as upstream has it.
pub(crate) const MAX_BODY: usize = 3 * 1024 * 1024;

/// Bytes of a body that are taken though nobody needs them: most objects are smaller.
const MAX_REST: u64 = 64 * 1024;

/// How long they may take: they are mostly there, in the same packet as the head.
const REST_PATIENCE: Duration = Duration::from_millis(100);

/// Bytes and frames that a body gives at a stretch; then others are let run.
const STRETCH: (usize, usize) = (64 * 1024, 64);

/// The body of an answer.
pub(crate) struct Body {
    inner: Inner,
    /// What it has given since others ran.
    given: (usize, usize),
}

enum Inner {
    Full(Bytes),
    /// Made while it is sent, piece by piece: a slow reader costs one piece.
    Pieces(Box<dyn Pieces>),
    /// Made by events.
    Stream(BoxStream<'static, Bytes>),
}

/// A body that is made piece by piece as the connection takes it.
pub(crate) trait Pieces: Send {
    /// The next piece, of bounded size and not empty; `None` at the end.
    fn next_piece(&mut self) -> Option<Bytes>;

    /// The bytes still to come, if that is known.
    fn remaining(&self) -> Option<u64>;
}

// === impl Body ===

impl Body {
    fn of(inner: Inner) -> Self {
        Self { inner, given: (0, 0) }
    }

    /// No bytes.
    pub(crate) fn empty() -> Self {
        Self::full(Bytes::new())
    }

    /// These bytes.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::of(Inner::Full(bytes.into()))
    }

    /// Bytes made on the way.
    pub(crate) fn pieces(pieces: impl Pieces + 'static) -> Self {
        Self::of(Inner::Pieces(Box::new(pieces)))
    }

    /// Bytes as they come; each item is sent at once.
    pub(crate) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::of(Inner::Stream(stream.boxed()))
    }

    /// The length, if it is known before the body is made.
    pub(crate) fn length(&self) -> Option<u64> {
        match &self.inner {
            Inner::Full(bytes) => Some(bytes.len() as u64),
            Inner::Pieces(pieces) => pieces.remaining(),
            Inner::Stream(_) => None,
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("length", &self.length()).finish()
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.given.0 >= STRETCH.0 || self.given.1 >= STRETCH.1 {
            self.given = (0, 0);
            streams::goes_on();
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = match &mut self.inner {
            Inner::Full(bytes) if bytes.is_empty() => None,
            Inner::Full(bytes) => Some(std::mem::take(bytes)),
            Inner::Pieces(pieces) => pieces.next_piece(),
            Inner::Stream(stream) => match stream.poll_next_unpin(cx) {
                Poll::Ready(next) => next,
                Poll::Pending => {
                    self.given = (0, 0);
                    streams::waits();
                    return Poll::Pending;
                }
            },
        };
        let length = next.as_ref().map_or(0, Bytes::len);
        self.given = (self.given.0 + length, self.given.1 + 1);
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.inner, Inner::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        self.length().map(SizeHint::with_exact).unwrap_or_default()
    }
}

/// Takes what a client has sent along with a request that was answered without it, as one that is
/// refused. Of HTTP/2, what comes for a stream that is over already counts as a fault of the
/// client, whose connection ends after some of them, and with it the requests of others behind the
/// same proxy.
pub(crate) async fn take_rest<B>(headers: &HeaderMap, mut body: B)
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let waits_for_us = headers.contains_key(EXPECT);
    if body.is_end_stream() || waits_for_us || body.size_hint().lower() > MAX_REST {
        return;
    }
    let taken = async {
        let mut left = MAX_REST;
        while left > 0
            && let Some(Ok(frame)) = body.frame().await
        {
            left = left.saturating_sub(frame.data_ref().map_or(0, |data| data.len() as u64));
        }
    };
    // Who is slower, or sends more, is not waited for.
    let _late = tokio::time::timeout(REST_PATIENCE, taken).await;
}

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It is the client's fault.
    Refused(Error),
    /// There is no memory for it now.
    NoMemory,
}

/// Reads a request's body, at most [`MAX_BODY`] bytes of it, for as long as `memory` grows.
///
/// # Errors
/// [`Reason::RequestEntityTooLarge`] as soon as there is more, without reading on; a bad request
/// when the client gives up.
pub(crate) async fn read<B>(
    headers: &HeaderMap,
    mut body: B,
    memory: &mut Share,
) -> Result<Bytes, ReadError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    if announced > MAX_BODY as u64 {
        return Err(too_large());
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            ReadError::Refused(Error::bad_request("the body of the request ended too early"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > MAX_BODY {
            return Err(too_large());
        }
        if !memory.grow(data.len()) {
            return Err(ReadError::NoMemory);
        }
        // Most bodies are one frame, which is then taken as it is.
        if first.is_empty() && rest.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.reserve(usize::try_from(announced).unwrap_or(0).max(first.len() + data.len()));
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.extend_from_slice(&data);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

fn too_large() -> ReadError {
    let message = format!("Request entity too large: limit is {MAX_BODY}");
    ReadError::Refused(Error::new(Reason::RequestEntityTooLarge, message))
}

#[cfg(test)]
mod tests {
    use http_body_util::{Full, StreamBody};

    use super::*;
    use crate::http::fairness::Shares;

    fn frames(parts: &[&'static [u8]]) -> impl HttpBody<Data = Bytes> + Unpin {
        let frames: Vec<Result<_, Infallible>> =
            parts.iter().map(|part| Ok(Frame::data(Bytes::from_static(part)))).collect();
        StreamBody::new(futures::stream::iter(frames))
    }

    fn memory() -> Share {
        Shares::new(4 * MAX_BODY, usize::MAX).open(1)
    }

    #[tokio::test]
    async fn bodies_are_joined_and_limited() {
        let none = HeaderMap::new();
        let read_all = |parts| {
            let none = none.clone();
            let mut memory = memory();
            async move { read(&none, frames(parts), &mut memory).await }
        };
        assert_eq!(read_all(&[]).await.unwrap(), "");
        assert_eq!(read_all(&[b"ab", b"c", b"", b"d"]).await.unwrap(), "abcd");
        let most = Full::new(Bytes::from(vec![0; MAX_BODY]));
        assert_eq!(read(&none, most, &mut memory()).await.unwrap().len(), MAX_BODY);
        let more = Full::new(Bytes::from(vec![0; MAX_BODY + 1]));
        let error = read(&none, more, &mut memory()).await.unwrap_err();
        let ReadError::Refused(error) = error else { panic!("{error:?}") };
        assert_eq!(error.reason(), Reason::RequestEntityTooLarge);
        let mut little = Shares::new(10, usize::MAX).open(1);
        let error = read(&none, frames(&[b"12345", b"6"]), &mut little).await.unwrap_err();
        assert!(matches!(error, ReadError::NoMemory));
        let mut announced = HeaderMap::new();
        announced.insert(CONTENT_LENGTH, http::HeaderValue::from(MAX_BODY + 1));
        // Nothing is read: this body would never end.
        let endless =
            StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
        assert!(read(&announced, endless, &mut memory()).await.is_err());
    }
}
