//! The body of an answer, while it holds its stream.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use super::connection::Slot;
use crate::Error;

/// What a body is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The most bytes.
    pub(crate) largest: usize,
    /// Whether they are counted in each line, and not in all.
    pub(crate) by_line: bool,
    /// How long nothing may come.
    pub(crate) quiet: Option<Duration>,
}

/// The body of an answer.
pub(crate) struct Answer {
    body: Incoming,
    /// Given back when the body has ended.
    slot: Option<Slot>,
    host: Arc<str>,
    bounds: Bounds,
    counted: usize,
    alarm: Option<Pin<Box<Sleep>>>,
}

// === impl Answer ===

impl Answer {
    pub(crate) fn new(body: Incoming, slot: Slot, host: Arc<str>, bounds: Bounds) -> Self {
        let ended = body.is_end_stream();
        let alarm =
            bounds.quiet.filter(|_| !ended).map(|quiet| Box::pin(tokio::time::sleep(quiet)));
        Self { body, slot: (!ended).then_some(slot), host, bounds, counted: 0, alarm }
    }

    fn fail(&mut self, error: Error) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(slot) = self.slot.take() {
            slot.spoil_if_http1();
        }
        Poll::Ready(Some(Err(error)))
    }

    /// Counts what has come; false if it is too much.
    fn count(&mut self, data: &[u8]) -> bool {
        let last = data.iter().rposition(|byte| *byte == b'\n').filter(|_| self.bounds.by_line);
        self.counted = match last {
            Some(at) => data.len() - at - 1,
            None => self.counted.saturating_add(data.len()),
        };
        self.counted <= self.bounds.largest
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if frame.data_ref().is_some_and(|data| !this.count(data)) {
                    let (host, most) = (this.host.clone(), this.bounds.largest);
                    return this.fail(Error::TooLarge { host, most });
                }
                if let (Some(alarm), Some(quiet)) = (&mut this.alarm, this.bounds.quiet) {
                    alarm.as_mut().reset(Instant::now() + quiet);
                }
                if this.body.is_end_stream() {
                    this.slot = None;
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(_))) => {
                let host = this.host.clone();
                this.fail(Error::Broken(host))
            }
            Poll::Ready(None) => {
                this.slot = None;
                Poll::Ready(None)
            }
            Poll::Pending => {
                let rings = |alarm: &mut Pin<Box<Sleep>>| alarm.as_mut().poll(cx).is_ready();
                if this.alarm.as_mut().is_some_and(rings) {
                    let host = this.host.clone();
                    return this.fail(Error::Late { host, what: "send the rest of an answer" });
                }
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
