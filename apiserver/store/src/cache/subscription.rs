//! A running watch of the cache.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use super::{Cache, Event};
use crate::Revision;

/// A running watch of the cache.
#[derive(Debug)]
pub struct Subscription {
    pub(super) backlog: VecDeque<Arc<Event>>,
    pub(super) events: mpsc::Receiver<Arc<Event>>,
    pub(super) cache: Arc<Cache>,
}

// === impl Subscription ===

impl Subscription {
    /// The next event; `None` when the watch was ended because it fell behind, or at shutdown.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        match self.backlog.pop_front() {
            Some(event) => Some(event),
            None => self.events.recv().await,
        }
    }

    /// As [`Subscription::next`], for streams.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<Event>>> {
        match self.backlog.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None => self.events.poll_recv(cx),
        }
    }

    /// The next event if it waits already.
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        self.backlog.pop_front().or_else(|| self.events.try_recv().ok())
    }

    /// The revision up to which everything has been taken from this subscription, or `None` when
    /// events still wait. A bookmark may carry it.
    pub fn progress(&mut self) -> Option<Revision> {
        // Read first: what is applied has been queued, so an empty queue then means caught up.
        let applied = self.cache.revision();
        (self.backlog.is_empty() && self.events.is_empty() && !self.events.is_closed())
            .then_some(applied)
    }
}
