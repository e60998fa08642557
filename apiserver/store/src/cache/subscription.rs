//! A running watch of the cache.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use super::watchers::Scopes;
use super::{Cache, Event};
use crate::Revision;

/// A running watch of the cache.
#[derive(Debug)]
pub struct Subscription {
    pub(super) backlog: VecDeque<Arc<Event>>,
    pub(super) events: mpsc::Receiver<Arc<Event>>,
    pub(super) scopes: Scopes,
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
        // Read first: what is applied has been queued or put aside, and what was aside is queued before
        // its scope is no longer behind, so an empty queue then means caught up.
        let applied = self.cache.revision();
        let is_behind = self.scopes.is_behind();
        let is_empty = self.backlog.is_empty() && self.events.is_empty();
        (!is_behind && is_empty && !self.events.is_closed()).then_some(applied)
    }
}
