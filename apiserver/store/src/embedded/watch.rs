//! Watches of the embedded store: first from the log on disk, then from recent history in memory.

use std::sync::Arc;

use futures::{Stream, stream};
use tokio::sync::watch;

use super::Shared;
use crate::history::{Head, Recent};
use crate::{ReadError, Revision, WatchMessage};

/// The changes after `after`, which can be read now.
pub(super) fn follow(
    shared: Arc<Shared>,
    after: Revision,
) -> impl Stream<Item = Result<WatchMessage, ReadError>> + Send + use<> {
    let head = shared.history.subscribe();
    let follower = Follower { shared, head, position: after, phase: Phase::CatchingUp };
    stream::unfold(follower, |mut follower| async move {
        let message = follower.next().await?;
        Some((message, follower))
    })
}

struct Follower {
    shared: Arc<Shared>,
    head: watch::Receiver<Head>,
    /// Everything up to here has been delivered.
    position: Revision,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Delivers what had happened before the watch began, from disk where memory has it no more.
    CatchingUp,
    /// Waits for what happens. To fall out of recent history from here is to lag.
    Live,
    /// Has said why it ended.
    Ended,
}

// === impl Follower ===

impl Follower {
    async fn next(&mut self) -> Option<Result<WatchMessage, ReadError>> {
        loop {
            match (self.shared.history.after(self.position), self.phase) {
                (_, Phase::Ended) => return None,
                (Recent::Changes(changes), _) => {
                    self.position = changes.last().map_or(self.position, |last| last.revision);
                    return Some(Ok(WatchMessage::Changes(changes)));
                }
                (Recent::Gone, Phase::Live) => return self.end(ReadError::Lagged),
                (Recent::Gone, Phase::CatchingUp) => match self.read().await {
                    Ok(Some(message)) => return Some(Ok(message)),
                    Ok(None) => continue,
                    Err(error) => return self.end(error),
                },
                (Recent::Nothing, Phase::CatchingUp) => {
                    self.phase = Phase::Live;
                    return Some(Ok(WatchMessage::Progress(self.position)));
                }
                (Recent::Nothing, Phase::Live) => {}
            }
            let position = self.position;
            let news = self.head.wait_for(|head| head.closed || head.revision > position).await;
            if news.map_or(true, |head| head.closed && head.revision <= position) {
                return self.end(super::closed());
            }
        }
    }

    /// The next part of the log on disk.
    async fn read(&mut self) -> Result<Option<WatchMessage>, ReadError> {
        let position = self.position;
        let (changes, reached) =
            self.shared.read(move |snapshot, _| snapshot.changes(position)).await?;
        if reached == position {
            // Memory no longer has the next commit, so the log must.
            return Err(ReadError::Corrupt(format!("the log lacks the commit after {position}")));
        }
        self.position = reached;
        Ok((!changes.is_empty()).then_some(WatchMessage::Changes(changes)))
    }

    fn end(&mut self, error: ReadError) -> Option<Result<WatchMessage, ReadError>> {
        self.phase = Phase::Ended;
        Some(Err(error))
    }
}
