//! The one thread that writes.
//!
//! # Flow
//! It takes a group of what waits, as the queue's fairness has it, evaluates each commit on the state that the ones
//! before it leave, writes all of them in one transaction of the file, which ends in an fsync, then
//! shows the new state to readers, then to watches, and then answers. So the cost of an fsync is
//! shared by all who wait for one, and nobody sees what is not durable.
//!
//! # Guarantees
//! - A commit is answered with a revision only after the fsync that covers it.
//! - When the file cannot be written, nothing of the group is answered with success, and as it is
//!   then unknown what the disk holds, no later commit is tried: a restart reads what is there.
//! - A panic of this thread ends the process: a half-known state must not serve.

use std::error::Error;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redb::{Database, Durability, WriteTransaction};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Shared;
use super::compaction::Schedule;
use super::format;
use super::parts::Parts;
use super::parts::put::{forget, put};
use super::queue::{Group, Queue, Woken};
use super::snapshot::{Snapshot, find};
use crate::{Change, CommitError, ReadError, Revision, Txn, commit};

/// How long a group waits for as many commits as the last one had: a small part of an fsync, and
/// enough for tasks that were woken to do their next commit. A lone client never waits.
const GATHER: Duration = Duration::from_micros(200);

/// The log entries that one transaction removes: some milliseconds, which no commit notices.
const TRIM_ENTRIES: u64 = 512;

/// The length from which every transaction saves the allocator's state. Below it, opening after a
/// crash walks the file, which takes about a second for each gigabyte; above it that would take too
/// long, and commits pay for a second fsync instead.
const SAVE_ALWAYS_BYTES: u64 = 512 << 20;

/// After this long without a commit, the allocator's state is saved once, so that a crash of a
/// server at rest costs the next start nothing.
const REST: Duration = Duration::from_millis(100);

/// Where the answer to a request goes.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, CommitError>>;

/// What is asked of the writer.
#[derive(Debug)]
pub(crate) enum Request {
    /// To commit.
    Commit(Txn, Answer<Revision>),
    /// To forget history before a revision.
    Compact(Revision, Answer<()>),
}

/// The writer's own state.
pub(crate) struct Writer {
    pub(crate) database: Database,
    pub(crate) shared: Arc<Shared>,
    pub(crate) requests: Arc<Queue>,
    pub(crate) schedule: Schedule,
    /// The file, to ask for its length; `None` on other disks.
    pub(crate) file: Option<File>,
    pub(crate) position: Position,
    /// How many commits of the last group somebody waited for.
    pub(crate) expected: usize,
    /// Whether the last transaction left the allocator's state unsaved.
    pub(crate) unsaved: bool,
    /// Whether a compaction has begun: none does at start.
    pub(crate) trimming: bool,
    pub(crate) failed: bool,
    pub(crate) buffer: Vec<u8>,
}

/// Where the store stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// The last commit.
    pub(crate) revision: Revision,
    /// The oldest revision whose state can be read.
    pub(crate) oldest: Revision,
    /// The log holds nothing up to here.
    pub(crate) trimmed: Revision,
    /// The minor version of the file's format.
    pub(crate) minor: u32,
}

/// Answers that wait for the group's fsync.
#[derive(Default)]
struct Answers {
    commits: Vec<(Answer<Revision>, Result<Revision, CommitError>)>,
    compacts: Vec<Answer<()>>,
}

/// What a group did to the store, before it is durable.
struct Outcome {
    position: Position,
    commits: Vec<Vec<Change>>,
    dirty: bool,
}

// === impl Writer ===

impl Writer {
    /// Serves requests until nobody can send any more.
    pub(crate) fn run(mut self) {
        let _guard = AbortOnPanic;
        loop {
            match self.requests.wait(self.patience()) {
                Woken::Ready => {
                    let begin = Instant::now();
                    let (group, requests) = self.gather();
                    self.serve(requests);
                    self.requests.served(&group, begin.elapsed());
                }
                Woken::Late => self.serve(Vec::new()),
                Woken::Closed => break,
            }
        }
        *self.shared.snapshot.write() = None;
        self.shared.history.close();
        let Self { database, shared, .. } = self;
        // This saves the allocator's state and releases the file.
        drop(database);
        shared.ended.cancel();
    }

    /// How long to wait for requests before there is something to do without them.
    fn patience(&self) -> Duration {
        let until_tick = self.schedule.next.saturating_duration_since(Instant::now());
        if self.failed {
            until_tick
        } else if self.trimming {
            Duration::ZERO
        } else if self.unsaved {
            until_tick.min(REST)
        } else {
            until_tick
        }
    }

    /// Takes what waits, and for a moment what comes, until the group is as large as the last one.
    ///
    /// Clients that wait for their commits come back together, but not at the same instant: without
    /// this the first of them would have an fsync of its own, and all others wait for a second.
    fn gather(&mut self) -> (Group, Vec<Request>) {
        let deadline = Instant::now() + GATHER;
        let (mut group, mut requests) = (Group::default(), Vec::new());
        loop {
            let wait = (!requests.is_empty() && group.urgent() < self.expected).then_some(deadline);
            let Some(request) = self.requests.next(&mut group, wait) else { break };
            requests.push(request);
        }
        self.expected = group.urgent();
        self.shared.queue.add_permits(requests.len());
        (group, requests)
    }

    /// Serves a group. Who is not answered, as its request is dropped, takes the store to be
    /// unavailable.
    fn serve(&mut self, group: Vec<Request>) {
        let due = self.due();
        if self.failed {
            return;
        }
        let mut answers = Answers::default();
        match self.transact(group, due, &mut answers) {
            Ok(()) => answers.send(),
            Err(error) => tracing::error!(error = &error as &dyn Error, "commits failed"),
        }
    }

    /// The revision to compact to, when its time has come.
    fn due(&mut self) -> Option<Revision> {
        let now = Instant::now();
        if now < self.schedule.next {
            return None;
        }
        let snapshot = self.shared.snapshot.read().clone()?;
        let due = self.schedule.tick(now, unix_millis(), self.position.revision, &snapshot);
        match due {
            Ok(due) => due.filter(|due| *due > self.position.oldest),
            Err(error) => {
                tracing::warn!(%error, "cannot tell what history to compact");
                None
            }
        }
    }

    fn transact(
        &mut self,
        group: Vec<Request>,
        due: Option<Revision>,
        answers: &mut Answers,
    ) -> Result<(), WriteError> {
        let quiet = group.is_empty();
        let mut write = self.database.begin_write()?;
        write.set_durability(Durability::Immediate)?;
        // An error here leaves the store as it was: the transaction is dropped.
        let outcome = self.write(&write, group, due, answers)?;
        let saving = quiet && self.unsaved && !self.trimming;
        if !outcome.dirty && !saving {
            return Ok(());
        }
        let save = saving || self.is_long();
        write.set_quick_repair(save);
        // From here on it is unknown what the disk holds, until the commit says that it succeeded.
        self.failed = true;
        write.commit()?;
        let Position { revision, oldest, .. } = outcome.position;
        let snapshot = Snapshot::new(&self.database, revision, oldest)?;
        self.failed = false;
        self.unsaved = !save;
        self.position = outcome.position;
        *self.shared.snapshot.write() = Some(Arc::new(snapshot));
        if !outcome.commits.is_empty() {
            self.shared.history.append(outcome.commits);
        }
        Ok(())
    }

    /// Evaluates and writes a group into a transaction that is not yet committed.
    fn write(
        &mut self,
        write: &WriteTransaction,
        group: Vec<Request>,
        due: Option<Revision>,
        answers: &mut Answers,
    ) -> Result<Outcome, WriteError> {
        let mut position = self.position;
        let mut commits = Vec::new();
        let mut objects = write.open_table(format::OBJECTS)?;
        let mut log = write.open_table(format::LOG)?;
        let mut parts =
            Parts::new(write.open_table(format::PARTS)?, write.open_table(format::PART_COUNTS)?);
        let time = unix_millis();
        let mut compact = due;
        for request in group {
            let (txn, answer) = match request {
                Request::Commit(txn, answer) => (txn, answer),
                Request::Compact(before, answer) => {
                    compact = compact.max(Some(before));
                    answers.compacts.push(answer);
                    continue;
                }
            };
            let revision = position.revision.next();
            let changes =
                commit::evaluate(txn, revision, |key| find(&objects, Some(parts.table()), key));
            let result = match changes.map_err(WriteError::Read)? {
                Ok(changes) if changes.is_empty() => Ok(position.revision),
                Ok(changes) => {
                    let mut written = Vec::with_capacity(changes.len());
                    for change in &changes {
                        written.push(put(&mut objects, &mut parts, &mut self.buffer, change)?);
                    }
                    let raw = changes.iter().zip(&written);
                    let raw = raw.map(|(change, written)| written.logged(change));
                    format::encode_entry(&mut self.buffer, time, raw);
                    log.insert(revision.0, self.buffer.as_slice())?;
                    position.revision = revision;
                    commits.push(changes);
                    Ok(revision)
                }
                Err(conflict) => Err(conflict),
            };
            answers.commits.push((answer, result));
        }
        let mut dirty = !commits.is_empty();
        if let Some(before) = compact.map(|before| before.min(position.revision))
            && before > position.oldest
        {
            position.oldest = before;
            self.trimming = true;
            let mut meta = write.open_table(format::META)?;
            meta.insert(format::META_OLDEST, before.0.to_be_bytes().as_slice())?;
            dirty = true;
        }
        if self.trimming {
            if position.trimmed < position.oldest {
                let until = position.oldest.0.min(position.trimmed.0 + TRIM_ENTRIES);
                let parted = !parts.is_empty()?;
                log.retain_in(..=until, |_, entry| {
                    if parted {
                        forget(&mut parts, entry);
                    }
                    false
                })?;
                position.trimmed = Revision(until);
                dirty = true;
            }
            self.trimming = position.trimmed < position.oldest;
        }
        if parts.added && position.minor < format::WITH_PARTS {
            position.minor = format::WITH_PARTS;
            let version = format!("{}.{}", format::MAJOR, position.minor);
            write.open_table(format::META)?.insert(format::META_FORMAT, version.as_bytes())?;
        }
        parts.settle()?;
        Ok(Outcome { position, commits, dirty })
    }

    fn is_long(&self) -> bool {
        let length = self.file.as_ref().and_then(|file| file.metadata().ok());
        length.is_some_and(|metadata| metadata.len() > SAVE_ALWAYS_BYTES)
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("position", &self.position).finish_non_exhaustive()
    }
}

// === impl Answers ===

impl Answers {
    /// Answers everybody. Who no longer listens has given up; the commit stands anyway.
    fn send(self) {
        for (answer, outcome) in self.commits {
            drop(answer.send(outcome));
        }
        for answer in self.compacts {
            drop(answer.send(Ok(())));
        }
    }
}

/// Why a group could not be committed.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    /// The present state could not be read.
    #[error("evaluate commits")]
    Read(#[source] ReadError),
    /// The file could not be written.
    #[error("write the store")]
    Storage(#[source] redb::Error),
}

// === impl WriteError ===

impl<E: Into<redb::Error>> From<E> for WriteError {
    fn from(error: E) -> Self {
        Self::Storage(error.into())
    }
}

/// Ends the process when the thread that holds it panics.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("the store's writer panicked");
            std::process::abort();
        }
    }
}

fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
