//! Requests and answers as bytes, for programs to which all kinds are alike.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;

use super::Link;
use super::body::Answer;
use crate::Error;

/// A request.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The method.
    pub method: Method,
    /// Path and query, below the server's own path; it begins with a slash.
    pub path: &'a str,
    /// The body's media type; empty for none.
    pub content_type: &'a str,
    /// What is accepted as an answer.
    pub accept: &'a str,
    /// The body.
    pub body: Bytes,
}

/// A whole answer.
#[derive(Clone)]
pub struct Told {
    /// The status code.
    pub status: StatusCode,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Bytes,
}

/// The lines of an answer that goes on, as a watch does.
pub struct Lines {
    answer: Answer,
    buffer: BytesMut,
    /// So many bytes at the beginning of the buffer have no end of a line.
    seen: usize,
}

/// Media type of JSON.
pub const JSON: &str = "application/json";

// === impl Ask ===

impl<'a> Ask<'a> {
    /// A GET of JSON.
    pub fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, content_type: "", accept: JSON, body: Bytes::new() }
    }

    /// A request with a body.
    pub fn with(method: Method, path: &'a str, content_type: &'a str, body: Vec<u8>) -> Self {
        Self { method, path, content_type, accept: JSON, body: body.into() }
    }
}

// === impl Link ===

impl Link {
    /// Makes a request and reads the whole answer, whatever its status is.
    ///
    /// # Errors
    /// When there is no answer, or not all of it.
    pub async fn ask(&self, ask: Ask<'_>) -> Result<Told, Error> {
        let (status, headers, answer) = self.begin(ask).await?;
        let body = answer.collect().await?.to_bytes();
        Ok(Told { status, retry_after: retry_after(&headers), body })
    }

    /// Makes a request whose answer is read by lines. An answer that is no success is read whole.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn follow(&self, ask: Ask<'_>) -> Result<Result<Lines, Told>, Error> {
        let (status, headers, answer) = self.begin(ask).await?;
        if status.is_success() {
            return Ok(Ok(Lines { answer, buffer: BytesMut::new(), seen: 0 }));
        }
        let body = answer.collect().await?.to_bytes();
        Ok(Err(Told { status, retry_after: retry_after(&headers), body }))
    }

    async fn begin(&self, ask: Ask<'_>) -> Result<(StatusCode, HeaderMap, Answer), Error> {
        let mut request = Request::new(Body::from(ask.body));
        *request.method_mut() = ask.method;
        let wrong = |_| Error::Material { what: "path", why: "it is none".into() };
        *request.uri_mut() = ask.path.parse().map_err(wrong)?;
        for (header, value) in [(CONTENT_TYPE, ask.content_type), (ACCEPT, ask.accept)] {
            if let Ok(value) = HeaderValue::from_str(value)
                && !value.is_empty()
            {
                request.headers_mut().insert(header, value);
            }
        }
        // What a request takes is given back when its answer has begun.
        let path = self.inner.settings.server.path();
        let response = Box::pin(self.inner.send(request, path)).await?;
        let (parts, body) = response.into_parts();
        Ok((parts.status, parts.headers, body))
    }
}

/// The seconds that a server asks to wait; the other form, a date, is not used by API servers.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

// === impl Lines ===

impl Lines {
    /// The next line, without its end; `None` when the answer has ended. What has no end of a line is
    /// no line. Cancelling it loses nothing.
    ///
    /// # Errors
    /// When the answer breaks off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let fresh = self.buffer.get(self.seen..).unwrap_or_default();
            if let Some(at) = fresh.iter().position(|byte| *byte == b'\n') {
                let mut line = self.buffer.split_to(self.seen + at + 1);
                line.truncate(self.seen + at);
                self.seen = 0;
                return Ok(Some(line.freeze()));
            }
            self.seen = self.buffer.len();
            match self.answer.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("buffered", &self.buffer.len()).finish_non_exhaustive()
    }
}

/// Bodies hold secrets, so they are left out.
impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Told")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
