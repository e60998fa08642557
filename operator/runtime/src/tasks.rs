//! Tracked tasks: nothing runs that shutdown does not know of.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};

/// The tasks of one process (or of one server, where a process holds several).
///
/// Cloning is cheap; all clones share one cancellation and one set of tasks.
#[derive(Clone, Debug)]
pub struct Tasks {
    cancellation: CancellationToken,
    tracker: TaskTracker,
}

/// How many tasks can run at the same moment: the cores that this process may use, or 1 if nobody can
/// tell.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

// === impl Tasks ===

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl Tasks {
    /// An empty set with a cancellation of its own.
    pub fn new() -> Self {
        Self { cancellation: CancellationToken::new(), tracker: TaskTracker::new() }
    }

    /// The token that tasks watch to know that they should end.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Spawns `future` in `span` and tracks it until it ends.
    #[allow(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub fn spawn<F>(&self, span: Span, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(self.tracker.track_future(future.instrument(span)))
    }

    /// Spawns blocking work (CPU above about a millisecond, or synchronous I/O) and tracks it.
    pub fn spawn_blocking<F, T>(&self, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.tracker.spawn_blocking(work)
    }

    /// Asks every task to end. Returns at once.
    pub fn cancel(&self) {
        self.cancellation.cancel();
    }

    /// Cancels, then waits for the tasks to end, at most `patience`.
    ///
    /// Returns the number of tasks that were still running when patience ran out.
    pub async fn shutdown(&self, patience: Duration) -> usize {
        self.cancellation.cancel();
        self.tracker.close();
        match tokio::time::timeout(patience, self.tracker.wait()).await {
            Ok(()) => 0,
            Err(_elapsed) => self.tracker.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn shutdown_cancels_and_counts_what_does_not_end() {
        let tasks = Tasks::new();
        let cancelled = tasks.cancellation().clone();
        tasks.spawn(Span::none(), async move { cancelled.cancelled().await });
        let stuck = tasks.spawn(Span::none(), std::future::pending::<()>());
        assert_eq!(tasks.shutdown(Duration::from_secs(5)).await, 1);
        stuck.abort();
    }
}
