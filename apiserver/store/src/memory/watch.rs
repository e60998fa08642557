//! Watches of the memory store.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::stream;
use tokio::sync::watch;

use super::Options;
use crate::history::{Head, History, Recent};
use crate::{ReadError, Revision, WatchMessage};

/// The changes after `after`, from history and then as they happen.
pub(super) fn follow(
    history: Arc<History>,
    after: Revision,
    options: &Options,
) -> impl Stream<Item = Result<WatchMessage, ReadError>> + Send + use<> {
    let head = history.subscribe();
    let follower = Follower {
        history,
        head,
        position: after,
        phase: Phase::CatchingUp,
        delay: options.watch_delay,
        max_lag: options.max_lag.unwrap_or(u64::MAX),
    };
    stream::unfold(follower, |mut follower| async move {
        let message = follower.next().await?;
        Some((message, follower))
    })
}

struct Follower {
    history: Arc<History>,
    head: watch::Receiver<Head>,
    position: Revision,
    phase: Phase,
    delay: Duration,
    max_lag: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Delivers what had happened before the watch began.
    CatchingUp,
    /// Waits for what happens.
    Live,
    /// Has said why it ended.
    Ended,
}

// === impl Follower ===

impl Follower {
    async fn next(&mut self) -> Option<Result<WatchMessage, ReadError>> {
        loop {
            if self.phase == Phase::Ended {
                return None;
            }
            let lag = self.history.last().0 - self.position.0;
            if self.phase == Phase::Live && lag > self.max_lag {
                return self.end(ReadError::Lagged);
            }
            match self.history.after(self.position) {
                Recent::Changes(changes) => {
                    self.position = changes.last().map_or(self.position, |last| last.revision);
                    return Some(Ok(WatchMessage::Changes(changes)));
                }
                Recent::Gone => return self.end(ReadError::Lagged),
                Recent::Nothing if self.phase == Phase::CatchingUp => {
                    self.phase = Phase::Live;
                    return Some(Ok(WatchMessage::Progress(self.position)));
                }
                Recent::Nothing => {}
            }
            let position = self.position;
            let news = self.head.wait_for(|head| head.closed || head.revision > position).await;
            if news.map_or(true, |head| head.closed && head.revision <= position) {
                return self.end(ReadError::Unavailable("store is closed".into()));
            }
            if !self.delay.is_zero() {
                tokio::time::sleep(self.delay).await;
            }
        }
    }

    fn end(&mut self, error: ReadError) -> Option<Result<WatchMessage, ReadError>> {
        self.phase = Phase::Ended;
        Some(Err(error))
    }
}
