//! One connection, and the streams that are taken of it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::rt::{Read, Write};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::MOST_STREAMS;
use crate::Error;

/// A connection.
pub(crate) struct Connection {
    sender: Sender,
    host: Arc<str>,
    generation: u64,
    streams: AtomicUsize,
    /// The most streams that the server takes, as it says.
    limit: Arc<AtomicUsize>,
    /// Whether the last stream did not end well: such a connection is not used again.
    bad: AtomicBool,
    idle_since: Mutex<Instant>,
}

enum Sender {
    Http2(http2::SendRequest<Body>),
    /// Taken by the one request that is under way.
    Http1(Mutex<Option<http1::SendRequest<Body>>>),
}

/// A stream of a connection, as long as it is in use.
pub(crate) struct Slot {
    connection: Arc<Connection>,
}

/// Why a request was not answered.
pub(crate) enum Unanswered {
    /// The connection is at its end and has not begun to send it: another one will do.
    Unsent(Box<Request<Body>>),
    /// It may have been sent.
    Failed(Error),
}

// === impl Connection ===

impl Connection {
    pub(crate) fn of_http2(
        sender: http2::SendRequest<Body>,
        generation: u64,
        host: Arc<str>,
    ) -> Arc<Self> {
        Self::new(Sender::Http2(sender), MOST_STREAMS, generation, host)
    }

    pub(crate) fn of_http1(
        sender: http1::SendRequest<Body>,
        generation: u64,
        host: Arc<str>,
    ) -> Arc<Self> {
        Self::new(Sender::Http1(Mutex::new(Some(sender))), 1, generation, host)
    }

    fn new(sender: Sender, limit: usize, generation: u64, host: Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            sender,
            host,
            generation,
            streams: AtomicUsize::new(0),
            limit: Arc::new(AtomicUsize::new(limit)),
            bad: AtomicBool::new(false),
            idle_since: Mutex::new(Instant::now()),
        })
    }

    /// Where the number of streams is noted that the server takes.
    pub(crate) fn limit(&self) -> &Arc<AtomicUsize> {
        &self.limit
    }

    /// The generation that it was made in.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn is_http1(&self) -> bool {
        matches!(self.sender, Sender::Http1(_))
    }

    /// Whether it can still take requests, now or later.
    pub(crate) fn is_open(&self) -> bool {
        let closed = match &self.sender {
            Sender::Http2(sender) => sender.is_closed(),
            Sender::Http1(sender) => {
                sender.lock().as_ref().is_some_and(|sender| sender.is_closed())
            }
        };
        !closed && !self.bad.load(Ordering::Acquire)
    }

    /// How many streams are in use.
    #[cfg(test)]
    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::Acquire)
    }

    /// Since when it has had no stream; `None` if it has one.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        (self.streams.load(Ordering::Acquire) == 0).then(|| *self.idle_since.lock())
    }

    /// Takes a stream. Callers hold the lock of the pool, so two never take the last one.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Slot> {
        let ready = match &self.sender {
            Sender::Http2(sender) => sender.is_ready(),
            // It becomes ready a moment after its last answer, which its sender waits for.
            Sender::Http1(_) => self.is_open(),
        };
        // A server that says 0 for now is asked again later.
        let limit = self.limit.load(Ordering::Acquire).min(MOST_STREAMS);
        if !ready || self.streams.load(Ordering::Acquire) >= limit {
            return None;
        }
        self.streams.fetch_add(1, Ordering::AcqRel);
        Some(Slot { connection: self.clone() })
    }
}

// === impl Slot ===

impl Slot {
    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let outcome = match &self.connection.sender {
            Sender::Http2(sender) => sender.clone().try_send_request(request).await,
            Sender::Http1(sender) => {
                // In the form of HTTP/1.1 the host is a header and the path is all of the URI.
                let uri = request.uri().path_and_query().map(|path| path.as_str().parse());
                if let Some(Ok(uri)) = uri {
                    *request.uri_mut() = uri;
                }
                let taken = sender.lock().take();
                let Some(mut taken) = taken else {
                    return Err(Unanswered::Unsent(Box::new(request)));
                };
                if taken.ready().await.is_err() {
                    self.spoil();
                    return Err(Unanswered::Unsent(Box::new(request)));
                }
                let outcome = taken.try_send_request(request).await;
                *sender.lock() = Some(taken);
                outcome
            }
        };
        outcome.map_err(|error| self.unanswered(error))
    }

    /// The connection is not to be used again.
    pub(crate) fn spoil(&self) {
        self.connection.bad.store(true, Ordering::Release);
    }

    /// A connection of HTTP/1.1 that has an answer left to read is of no more use.
    pub(crate) fn spoil_if_http1(&self) {
        if self.is_http1() {
            self.spoil();
        }
    }

    pub(crate) fn is_http1(&self) -> bool {
        self.connection.is_http1()
    }

    fn unanswered(&self, mut error: TrySendError<Request<Body>>) -> Unanswered {
        match error.take_message() {
            Some(request) => {
                self.spoil();
                Unanswered::Unsent(Box::new(request))
            }
            None => {
                debug!(error = %error.error(), "a request was not answered");
                Unanswered::Failed(Error::Broken(self.connection.host.clone()))
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Who gave up before the answer has left no sender to use again.
        if let Sender::Http1(sender) = &self.connection.sender
            && sender.lock().is_none()
        {
            self.spoil();
        }
        *self.connection.idle_since.lock() = Instant::now();
        self.connection.streams.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Moves the bytes of a connection until it ends, and notes how many streams the server takes.
pub(crate) async fn drive_http2<T>(
    driver: http2::Connection<T, Body, hyper_util::rt::TokioExecutor>,
    limit: Arc<AtomicUsize>,
    stop: CancellationToken,
) where
    T: Read + Write + Unpin + Send + 'static,
{
    let mut driver = driver;
    let moving = std::future::poll_fn(|cx| {
        let state = std::pin::Pin::new(&mut driver).poll(cx);
        if state.is_pending() {
            limit.store(driver.current_max_send_streams(), Ordering::Release);
        }
        state
    });
    tokio::select! {
        ended = moving => debug!(error = ?ended.err().map(|e| e.to_string()), "connection ended"),
        () = stop.cancelled() => {}
    }
}

/// Moves the bytes of a connection until it ends.
pub(crate) async fn drive_http1<T>(driver: http1::Connection<T, Body>, stop: CancellationToken)
where
    T: Read + Write + Unpin + Send + 'static,
{
    tokio::select! {
        ended = driver => debug!(error = ?ended.err().map(|e| e.to_string()), "connection ended"),
        () = stop.cancelled() => {}
    }
}
