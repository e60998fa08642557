//! One watch of everything that belongs to the store.
//!
//! It reads only when it is polled: what its reader does not take waits in etcd, which goes back to
//! its history for it. Of that, compaction is the end.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::assemble::{Assembler, Ended};
use super::error::Error;
use super::grpc::{Messages, decode, framed};
use super::layout::Span;
use super::proto::{
    WatchAction, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
};
use super::{Inner, wire};
use crate::{ReadError, Revision, WatchMessage};

/// How long a change that is on its way has before etcd is asked how far the watch has come: a
/// reader mostly waits for a commit, and its change comes by itself.
const ON_ITS_WAY: Duration = Duration::from_millis(2);

/// How long until it is asked again. It gives no answer while the watch catches up.
const AGAIN: Duration = Duration::from_millis(50);

/// Requests on their way: the first, and one for progress.
const REQUESTS: usize = 2;

/// Follows one of etcd's watches.
struct Follower {
    inner: Arc<Inner>,
    messages: Messages,
    /// Ends the watch when it is dropped.
    requests: mpsc::Sender<Bytes>,
    assembler: Assembler,
    ready: VecDeque<WatchMessage>,
    wanted: watch::Receiver<Revision>,
    /// When etcd is to be asked how far it has come, if the watch is not as far as is wanted.
    ask_at: Option<Instant>,
}

/// The changes after `after`, and those that the store has had by `present`, at least, at once.
pub(super) async fn follow(
    inner: Arc<Inner>,
    after: Revision,
    present: Revision,
) -> Result<impl Stream<Item = Result<WatchMessage, ReadError>> + Send + use<>, Error> {
    let Span { start: key, end: range_end } = inner.layout.everything();
    let create = WatchCreateRequest {
        key,
        range_end,
        start_revision: wire(after).saturating_add(1),
        progress_notify: true,
        prev_kv: true,
        fragment: true,
    };
    let (requests, mut waiting) = mpsc::channel(REQUESTS);
    let first = WatchRequest { action: Some(WatchAction::Create(create)) };
    let sent = requests.send(framed(&first)).await;
    sent.map_err(|_| Error::Unsent("the watch has ended".into()))?;
    let messages = inner.client.watch(stream::poll_fn(move |cx| waiting.poll_recv(cx))).await?;
    let mut ready = VecDeque::new();
    if present == after {
        // That there is nothing to catch up with is said at once.
        ready.push_back(WatchMessage::Progress(after));
    }
    let wanted = inner.position.wanted();
    let follower = Follower {
        assembler: Assembler::new(inner.layout.clone(), after),
        inner,
        messages,
        requests,
        ready,
        wanted,
        ask_at: None,
    };
    Ok(stream::try_unfold(follower, |mut follower| async move {
        let message = follower.next().await?;
        Ok(Some((message, follower)))
    }))
}

// === impl Follower ===

impl Follower {
    /// The next message. An error is the end.
    async fn next(&mut self) -> Result<WatchMessage, ReadError> {
        loop {
            if self.inner.tasks.cancellation().is_cancelled() {
                return Err(ReadError::Unavailable("store is closed".into()));
            }
            if let Some(message) = self.ready.pop_front() {
                return Ok(message);
            }
            let behind = *self.wanted.borrow_and_update() > self.assembler.reached();
            if !behind {
                self.ask_at = None;
            } else if self.ask_at.is_none() {
                self.ask_at = Some(Instant::now() + ON_ITS_WAY);
            }
            let ask_at = self.ask_at;
            let time_to_ask = async move {
                match ask_at {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                message = self.messages.next() => {
                    let message = message?.ok_or_else(|| {
                        ReadError::Unavailable("etcd has ended the watch".into())
                    })?;
                    self.take(message)?;
                }
                changed = self.wanted.changed() => {
                    // The sender is the store's, which we hold.
                    if changed.is_err() {
                        return Err(ReadError::Unavailable("store is closed".into()));
                    }
                }
                () = time_to_ask => {
                    self.ask_at = Some(Instant::now() + AGAIN);
                    let action = WatchAction::Progress(WatchProgressRequest {});
                    let request = framed(&WatchRequest { action: Some(action) });
                    // While one waits to be sent, another would change nothing.
                    if let Err(mpsc::error::TrySendError::Closed(_)) = self.requests.try_send(request) {
                        return Err(ReadError::Unavailable("the watch's stream has ended".into()));
                    }
                }
                () = self.inner.tasks.cancellation().cancelled() => {}
            }
        }
    }

    fn take(&mut self, message: Bytes) -> Result<(), ReadError> {
        let answer: WatchResponse = decode(message)?;
        self.inner.client.check(answer.header)?;
        let progress = answer.events.is_empty();
        let assembled = self.assembler.take(answer).map_err(|ended| self.read_error(ended))?;
        if progress {
            // A member that lags may have answered: it is asked again, soon.
            self.ask_at = None;
        }
        if let Some(revision) = assembled.compacted {
            self.inner.position.forgotten(revision);
        }
        self.ready.extend(assembled.messages);
        Ok(())
    }

    fn read_error(&self, ended: Ended) -> ReadError {
        match ended {
            Ended::Compacted(revision) => {
                self.inner.position.forgotten(revision);
                ReadError::Compacted { oldest: revision }
            }
            Ended::PreviousCompacted => {
                let oldest = self.inner.position.oldest().max(self.assembler.reached().next());
                ReadError::Compacted { oldest }
            }
            Ended::Cancelled(reason) => {
                ReadError::Unavailable(format!("etcd has cancelled the watch: {reason}").into())
            }
            Ended::Broken(what) => ReadError::Corrupt(what),
        }
    }
}
