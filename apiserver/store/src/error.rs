//! What can go wrong, in the few terms that callers act on.

use crate::{Key, Record, Revision};

/// Why a commit did not happen.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// A compare failed; nothing was written.
    #[error("conflict on {key}")]
    Conflict {
        /// The key whose compare failed.
        key: Key,
        /// What the key holds; `None` when it is absent.
        current: Option<Box<Record>>,
    },
    /// A value or the whole commit is larger than the store takes.
    #[error("commit of {size} bytes is larger than {limit}")]
    TooLarge {
        /// Bytes asked for.
        size: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The commit breaks the rules of its form, as two writes to one resource.
    #[error("malformed commit: {0}")]
    Malformed(&'static str),
    /// The store cannot be written now; the commit may or may not have happened.
    #[error("store unavailable")]
    Unavailable(#[source] Cause),
}

/// Why a read gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// History starts later than the asked revision.
    #[error("revision is compacted, oldest is {oldest}")]
    Compacted {
        /// The oldest readable revision.
        oldest: Revision,
    },
    /// The asked revision has not happened yet.
    #[error("revision is in the future, current is {current}")]
    Future {
        /// The last revision that has happened.
        current: Revision,
    },
    /// A watch fell too far behind and was ended.
    #[error("watch fell behind")]
    Lagged,
    /// The store holds something that it cannot have written.
    #[error("store is corrupt: {0}")]
    Corrupt(String),
    /// The store cannot be read now.
    #[error("store unavailable")]
    Unavailable(#[source] Cause),
}

/// The cause of an error, as its backend had it.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
