//! The revisioned key-value store: one trait, several backends, and the watch cache above them.
//!
//! It knows nothing of HTTP, of kinds or of what its values mean. Start at [`Store`]: atomic
//! commits guarded by compares, reads at a revision, and one ordered stream of changes. The
//! format on disk is in `FORMAT.md`.

pub mod cache;
mod commit;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod embedded;
mod error;
pub mod etcd;
mod history;
mod key;
pub mod memory;
pub mod object;
pub mod sealed;
pub mod transfer;
mod types;
mod undo;

use std::fmt;

use async_trait::async_trait;
use futures::stream::BoxStream;

pub use commit::{MAX_COMMIT_BYTES, MAX_COMMIT_OPS};
pub use embedded::{EmbeddedOptions, EmbeddedStore, OpenError};
pub use error::{Cause, CommitError, ReadError};
pub use etcd::{EtcdOptions, EtcdStore};
pub use key::{Key, KeyPrefix};
pub use memory::MemoryStore;
pub use sealed::SealedStore;
pub use types::{
    Change, Compare, Expect, Figures, Identity, Op, Page, Range, Record, Revision, Txn, Urgency,
    WatchMessage,
};

/// A revisioned key-value store.
///
/// # Guarantees
/// - Revisions are strictly increasing over the whole store; a commit has exactly one, and every
///   change of that commit carries it.
/// - A commit that was acknowledged survives the end of the process and, but for the memory
///   backend, a power cut.
/// - Reads without a revision are linearizable: they see every commit acknowledged before them.
/// - A watch delivers every change after its start exactly once, in revision order, the changes of
///   one commit together in one message.
/// - Changes and states at revisions not below the last compaction can be read.
///
/// # Assumptions
/// - A commit never holds two keys of one resource, so that a watch of a resource that is resumed
///   at a revision misses nothing. The store checks it ([`CommitError::Malformed`]).
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Applies all operations of `txn`, if all its compares hold.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] with the present record of the first compare that fails; nothing
    /// was written then. [`CommitError::Unavailable`] may leave open whether the commit happened.
    async fn commit(&self, txn: Txn) -> Result<Revision, CommitError>;

    /// The present record of `key`.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn get(&self, key: &Key) -> Result<Option<Record>, ReadError>;

    /// Records of `range` in key order: as they were at `at`, or are now.
    ///
    /// # Errors
    /// [`ReadError::Compacted`] when history no longer reaches back to `at`,
    /// [`ReadError::Future`] when `at` has not happened yet.
    async fn range(&self, range: Range, at: Option<Revision>) -> Result<Page, ReadError>;

    /// The changes after `after`, from history first and then as they happen, without end.
    ///
    /// A stream that falls too far behind ends with an error; the reader starts again from the
    /// last revision that it has seen. No reader ever delays a writer.
    ///
    /// # Errors
    /// [`ReadError::Compacted`] and [`ReadError::Future`] as for [`Store::range`].
    async fn watch(
        &self,
        after: Revision,
    ) -> Result<BoxStream<'static, Result<WatchMessage, ReadError>>, ReadError>;

    /// The revision of the last commit.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn revision(&self) -> Result<Revision, ReadError>;

    /// The oldest revision whose state and later changes can still be read.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn oldest(&self) -> Result<Revision, ReadError>;

    /// Forgets history before `before`: states at and changes after it stay readable.
    ///
    /// # Errors
    /// When the store cannot be written.
    async fn compact(&self, before: Revision) -> Result<(), CommitError>;

    /// Lets go of what it keeps in memory of commits up to `until` and has elsewhere as well, as nobody
    /// is to ask for that soon. What can be read stays the same.
    fn forget_recent(&self, _until: Revision) {}

    /// Who this store is: made with it and kept for ever.
    fn identity(&self) -> &Identity;

    /// What it knows of itself, at once: it neither waits nor asks anybody.
    fn figures(&self) -> Figures;

    /// Ends background work and closes files. Commits that were acknowledged are safe without it.
    async fn close(&self);
}
