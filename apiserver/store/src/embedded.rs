//! The store in one file, by redb: the default, for one server process.
//!
//! # Guarantees
//! - An acknowledged commit has been fsynced; what was not acknowledged is there whole or not at
//!   all after a crash.
//! - Readers and watches see only what is durable, and never wait for a writer.
//! - Memory does not grow with the number of keys or of revisions: a cache of pages and a ring of
//!   recent commits are all there is, both bounded.
//!
//! # Flow
//! `queue` says whose commit is next; `writer` owns the file and commits in groups; `snapshot` reads one revision of the file; `watch`
//! follows the log and then memory; `compaction` says what may be forgotten; `parts` keeps what many
//! values have in common; `open` and `format` know the bytes, which `FORMAT.md` describes.

mod compaction;
pub(crate) mod format;
pub(crate) mod open;
pub(crate) mod parts;
mod queue;
mod snapshot;
mod watch;
mod writer;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::RwLock;
use redb::StorageBackend;
use runtime::Tasks;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::compaction::Schedule;
use self::open::{Birth, Opened};
use self::queue::Queue;
use self::snapshot::Snapshot;
use self::writer::{Position, Request, Writer};
use crate::history::History;
use crate::{
    CommitError, Figures, Identity, Key, Page, Range, ReadError, Record, Revision, Store, Txn,
    WatchMessage, commit,
};

pub use self::open::OpenError;

/// The most commits that wait for the writer: two full groups, so that the next is ready when one
/// is done. Waiting costs no memory to speak of, as the values are the requests' own; how many
/// requests there may be is the server's to bound.
const QUEUE: usize = 512;

/// How an [`EmbeddedStore`] behaves.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedOptions {
    /// How long history is kept at least: watches and pages may resume this far back.
    pub history: Duration,
    /// How often older history is forgotten.
    pub compaction_interval: Duration,
    /// Bytes of memory for pages of the file.
    pub cache_bytes: usize,
    /// Bytes of memory for recent commits, which watches read without touching the disk.
    pub recent_bytes: usize,
}

/// A store in one file.
#[derive(Debug)]
pub struct EmbeddedStore {
    shared: Arc<Shared>,
    identity: Identity,
    requests: Arc<Queue>,
    /// To ask for its length.
    file: Option<File>,
}

/// What the store, its writer and its watches share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The last durable state; `None` once closed. Always at or after the end of `history`.
    snapshot: RwLock<Option<Arc<Snapshot>>>,
    history: History,
    /// Free places in the queue of requests.
    queue: Semaphore,
    /// Reads that are under way.
    reads: Tasks,
    /// Cancelled when the writer has released the file.
    ended: CancellationToken,
}

// === impl EmbeddedOptions ===

impl Default for EmbeddedOptions {
    /// Five to six minutes of history, 1 MiB of pages, 2 MiB of recent commits. What is read at all is
    /// in the system's cache as well, so pages are few, those near the root: four times as many did
    /// not make commits quicker. A cache that follows the store keeps recent events of its own, so
    /// these are for its way there only.
    fn default() -> Self {
        Self {
            history: Duration::from_secs(300),
            compaction_interval: Duration::from_secs(60),
            cache_bytes: 1 << 20,
            recent_bytes: 2 << 20,
        }
    }
}

// === impl EmbeddedStore ===

impl EmbeddedStore {
    /// Opens the store in the file at `path`, and makes one there when there is no file.
    ///
    /// Blocks on the disk: milliseconds, and after a crash under load up to about a second for each
    /// gigabyte.
    ///
    /// # Errors
    /// As [`OpenError`] says.
    pub fn open(path: &Path, options: EmbeddedOptions) -> Result<Arc<Self>, OpenError> {
        let file = match open::file(path)? {
            Some(file) => Some(file),
            None => {
                open::make(path, &Birth::new(), |_| Ok::<_, OpenError>(()))?;
                open::file(path)?
            }
        };
        let (backend, file) =
            file.ok_or_else(|| OpenError::Io(std::io::ErrorKind::NotFound.into()))?;
        Self::start(open::open(backend, options.cache_bytes)?, Some(file), &options)
    }

    /// Opens the store on a disk of the caller's own making.
    ///
    /// # Errors
    /// As [`OpenError`] says.
    pub fn open_on(
        disk: impl StorageBackend,
        options: &EmbeddedOptions,
    ) -> Result<Arc<Self>, OpenError> {
        Self::start(open::open(disk, options.cache_bytes)?, None, options)
    }

    fn start(
        opened: Opened,
        file: Option<File>,
        options: &EmbeddedOptions,
    ) -> Result<Arc<Self>, OpenError> {
        let Opened { database, identity, revision, oldest, trimmed, minor } = opened;
        let snapshot = Snapshot::new(&database, revision, oldest)?;
        let shared = Arc::new(Shared {
            snapshot: RwLock::new(Some(Arc::new(snapshot))),
            history: History::new(revision, options.recent_bytes),
            queue: Semaphore::new(QUEUE),
            reads: Tasks::new(),
            ended: CancellationToken::new(),
        });
        let requests = Arc::new(Queue::default());
        let length = file.as_ref().map(File::try_clone).transpose().map_err(OpenError::Io)?;
        let interval = options.compaction_interval.max(Duration::from_millis(1));
        let writer = Writer {
            database,
            shared: shared.clone(),
            requests: requests.clone(),
            schedule: Schedule::new(options.history, interval, Instant::now(), revision),
            file,
            position: Position { revision, oldest, trimmed, minor },
            expected: 0,
            unsaved: true,
            trimming: false,
            failed: false,
            buffer: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("store-writer".to_owned());
        thread.spawn(move || writer.run()).map_err(OpenError::Io)?;
        Ok(Arc::new(Self { shared, identity, requests, file: length }))
    }

    /// Hands a request to the writer and waits for its answer.
    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, CommitError>>) -> Request,
    ) -> Result<T, CommitError> {
        let (answer, answered) = oneshot::channel();
        let place = self.shared.queue.acquire().await.map_err(|_closed| commit_closed())?;
        if !self.requests.push(request(answer)) {
            return Err(commit_closed());
        }
        // The writer gives the place back when it takes the request out of the queue.
        place.forget();
        let lost = || CommitError::Unavailable("the store cannot be written".into());
        answered.await.unwrap_or_else(|_dropped| Err(lost()))
    }
}

#[async_trait]
impl Store for EmbeddedStore {
    async fn commit(&self, txn: Txn) -> Result<Revision, CommitError> {
        commit::check(&txn)?;
        self.ask(|answer| Request::Commit(txn, answer)).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Record>, ReadError> {
        let key = key.clone();
        self.shared.read(move |snapshot, _| snapshot.get(&key)).await
    }

    async fn range(&self, range: Range, at: Option<Revision>) -> Result<Page, ReadError> {
        self.shared.read(move |snapshot, history| snapshot.range(range, at, history)).await
    }

    async fn watch(
        &self,
        after: Revision,
    ) -> Result<BoxStream<'static, Result<WatchMessage, ReadError>>, ReadError> {
        self.shared.snapshot()?.readable(after)?;
        Ok(watch::follow(self.shared.clone(), after).boxed())
    }

    async fn revision(&self) -> Result<Revision, ReadError> {
        Ok(self.shared.snapshot()?.revision)
    }

    async fn oldest(&self) -> Result<Revision, ReadError> {
        Ok(self.shared.snapshot()?.oldest)
    }

    async fn compact(&self, before: Revision) -> Result<(), CommitError> {
        self.ask(|answer| Request::Compact(before, answer)).await
    }

    fn forget_recent(&self, until: Revision) {
        // The file's log has them, too.
        self.shared.history.forget(until);
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn figures(&self) -> Figures {
        let (commits, bytes) = self.shared.history.size();
        let waiting = QUEUE.saturating_sub(self.shared.queue.available_permits());
        let mut numbers = vec![
            ("recentCommits", commits as u64),
            ("recentBytes", bytes as u64),
            ("waitingCommits", waiting as u64),
        ];
        if let Some(file) = self.file.as_ref().and_then(|file| file.metadata().ok()) {
            numbers.push(("fileBytes", file.len()));
        }
        Figures { backend: "embedded", numbers }
    }

    async fn close(&self) {
        self.requests.close();
        self.shared.queue.close();
        self.shared.ended.cancelled().await;
        // Reads hold their snapshot and end by themselves.
        self.shared.reads.shutdown(Duration::from_secs(5)).await;
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        // The writer ends, and releases the file.
        self.requests.close();
    }
}

// === impl Shared ===

impl Shared {
    fn snapshot(&self) -> Result<Arc<Snapshot>, ReadError> {
        self.snapshot.read().clone().ok_or_else(closed)
    }

    /// Reads the last durable state, off the executor.
    async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Snapshot, &History) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let snapshot = self.snapshot()?;
        let shared = self.clone();
        let read = self.reads.spawn_blocking(move || read(&snapshot, &shared.history));
        read.await.unwrap_or_else(|error| Err(ReadError::Unavailable(error.into())))
    }
}

fn closed() -> ReadError {
    ReadError::Unavailable("store is closed".into())
}

fn commit_closed() -> CommitError {
    CommitError::Unavailable("store is closed".into())
}

#[cfg(test)]
mod tests;
