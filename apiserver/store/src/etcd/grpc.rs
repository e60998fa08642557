//! gRPC on one HTTP/2 connection: messages out, messages and a status back.
//!
//! # Guarantees
//! - A message is held up to a bound, and no more of a stream than its reader asked for and HTTP/2's
//!   window allows.
//! - An error says whether the call can have had an effect ([`Error::Unsent`]).

use std::convert::Infallible;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::Stream;
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use prost::Message;

use super::error::Error;

/// The largest message that is taken. Pages and fragments are asked for in a few megabytes; what an
/// answer can exceed that by is one object and its predecessor, or a burst of changes that a server
/// could not split.
const MAX_MESSAGE: usize = 512 << 20;

/// What is sent.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Calls over one connection. Cloning is cheap.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    sender: SendRequest<Body>,
    origin: Uri,
}

/// The messages of an answer, as they come.
#[derive(Debug)]
pub(super) struct Messages {
    body: Incoming,
    buffer: BytesMut,
}

// === impl Channel ===

impl Channel {
    pub(super) fn new(sender: SendRequest<Body>, origin: Uri) -> Self {
        Self { sender, origin }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// One message there and one back.
    pub(super) async fn unary<T: Message + Default>(
        self,
        path: &'static str,
        message: &impl Message,
    ) -> Result<T, Error> {
        let body = UnsyncBoxBody::new(Full::new(framed(message)));
        let mut messages = self.call(path, body).await?;
        let answer = messages.next().await?;
        let answer = answer.ok_or_else(|| Error::Garbled("an empty answer".into()))?;
        // The status comes behind the message.
        match messages.next().await? {
            Some(_) => Err(Error::Garbled("two answers to one call".into())),
            None => decode(answer),
        }
    }

    /// A stream there and one back.
    pub(super) async fn stream(
        self,
        path: &'static str,
        requests: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Result<Messages, Error> {
        let frames = futures::StreamExt::map(requests, |bytes| Ok(Frame::data(bytes)));
        self.call(path, UnsyncBoxBody::new(StreamBody::new(frames))).await
    }

    async fn call(mut self, path: &'static str, body: Body) -> Result<Messages, Error> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = with_path(&self.origin, path)?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        // A member that has lost its leader says so, rather than let the call wait for one.
        headers.insert("hasleader", HeaderValue::from_static("true"));
        self.sender.ready().await.map_err(|error| Error::Unsent(said(&error)))?;
        let response = self.sender.send_request(request).await.map_err(|error| {
            let text = said(&error);
            if error.is_canceled() { Error::Unsent(text) } else { Error::Unanswered(text) }
        })?;
        // A call that fails at once has its status among the headers.
        status_in(response.headers()).unwrap_or(Ok(()))?;
        if response.status() != http::StatusCode::OK {
            return Err(Error::Garbled(format!("HTTP status {}", response.status())));
        }
        Ok(Messages { body: response.into_body(), buffer: BytesMut::new() })
    }
}

// === impl Messages ===

impl Messages {
    /// The next message; `None` after the last, when the call has ended well. Nothing is lost when
    /// the future is dropped before it is ready.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(message) = take_message(&mut self.buffer)? {
                return Ok(Some(message));
            }
            let frame = match self.body.frame().await {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(Error::Unanswered(said(&error))),
                None => return Err(Error::Unanswered("the stream broke off".into())),
            };
            match frame.into_data() {
                Ok(data) => self.buffer.extend_from_slice(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    let status = status_in(&trailers);
                    status.unwrap_or_else(|| Err(Error::Garbled("no status".into())))?;
                    return Ok(None);
                }
            }
        }
    }
}

/// A message with the five bytes before it.
pub(super) fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(5 + length);
    out.put_u8(0);
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode(&mut out).expect("a growing buffer has room");
    out.freeze()
}

pub(super) fn decode<T: Message + Default>(message: Bytes) -> Result<T, Error> {
    T::decode(message).map_err(|error| Error::Garbled(error.to_string()))
}

/// Takes the first message of the buffer, if it is there whole.
fn take_message(buffer: &mut BytesMut) -> Result<Option<Bytes>, Error> {
    let Some((head, _)) = buffer.split_first_chunk::<5>() else { return Ok(None) };
    let [compressed, length @ ..] = *head;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if compressed != 0 {
        return Err(Error::Garbled("a compressed message".into()));
    }
    if length > MAX_MESSAGE {
        return Err(Error::Garbled(format!("a message of {length} bytes")));
    }
    if buffer.len() - 5 < length {
        return Ok(None);
    }
    buffer.advance(5);
    Ok(Some(buffer.split_to(length).freeze()))
}

/// The call's end, if it is told here.
fn status_in(headers: &HeaderMap) -> Option<Result<(), Error>> {
    let text = headers.get("grpc-status")?.to_str().unwrap_or_default();
    let Ok(code) = text.parse::<u32>() else {
        return Some(Err(Error::Garbled("a status that is no number".into())));
    };
    if code == 0 {
        return Some(Ok(()));
    }
    let message = headers.get("grpc-message").map_or("", |text| text.to_str().unwrap_or_default());
    Some(Err(Error::status(code, message.to_owned())))
}

fn with_path(origin: &Uri, path: &'static str) -> Result<Uri, Error> {
    let mut parts = origin.clone().into_parts();
    parts.path_and_query = Some(http::uri::PathAndQuery::from_static(path));
    Uri::from_parts(parts).map_err(|error| Error::Unsent(error.to_string()))
}

/// An error with its causes, as HTTP's own texts say little without them.
pub(super) fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::error::code;
    use super::*;

    #[test]
    fn messages_are_taken_whole() {
        let mut buffer = BytesMut::new();
        let frame = [0, 0, 0, 0, 3, b'a', b'b', b'c', 0, 0, 0, 0, 0, 0];
        let mut taken = Vec::new();
        for byte in frame {
            buffer.put_u8(byte);
            taken.extend(take_message(&mut buffer).unwrap());
        }
        assert_eq!(taken, ["abc".as_bytes(), b""]);
        assert_eq!(buffer.as_ref(), [0]);
        for bad in [[1, 0, 0, 0, 1], [0, 255, 255, 255, 255]] {
            assert!(take_message(&mut BytesMut::from(bad.as_ref())).is_err());
        }
    }

    #[test]
    fn statuses() {
        let told = |status: &'static str, message: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-status", HeaderValue::from_static(status));
            headers.insert("grpc-message", HeaderValue::from_static(message));
            status_in(&headers).unwrap()
        };
        assert!(status_in(&HeaderMap::new()).is_none());
        assert!(told("0", "").is_ok());
        assert!(matches!(told("x", ""), Err(Error::Garbled(_))));
        let full = told("8", "etcdserver: mvcc: database space exceeded");
        assert!(matches!(full, Err(Error::NoSpace)));
        let gone = told("11", "etcdserver: mvcc: required revision has been compacted");
        assert!(gone.unwrap_err().is_compacted());
        let none = told("14", "etcdserver: no leader").unwrap_err();
        assert!(none.is_local());
        assert!(matches!(none, Error::Status { code: code::UNAVAILABLE, .. }));
    }
}
