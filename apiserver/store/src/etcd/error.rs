//! What a call to etcd can end with, and what that means for the store's callers.

use crate::{CommitError, ReadError};

/// gRPC's codes, as far as they matter here.
pub(super) mod code {
    pub(crate) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(crate) const OUT_OF_RANGE: u32 = 11;
    pub(crate) const UNAVAILABLE: u32 = 14;
}

/// Why a call gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// It never left this process, so it did nothing.
    #[error("etcd cannot be reached: {0}")]
    Unsent(String),
    /// The connection broke, or the answer did not come in time: it may have happened.
    #[error("no answer from etcd: {0}")]
    Unanswered(String),
    /// etcd refused.
    #[error("etcd answered: {message} (code {code})")]
    Status {
        /// gRPC's code.
        code: u32,
        /// etcd's words.
        message: String,
    },
    /// What came is not what etcd sends.
    #[error("etcd sent what cannot be understood: {0}")]
    Garbled(String),
    /// The database has reached its quota, and takes no writes.
    #[error(
        "etcd is out of space (alarm NOSPACE): compact and defragment it, then disarm the alarm"
    )]
    NoSpace,
    /// An endpoint that belongs to another etcd cluster than the first one seen.
    #[error("the etcd endpoints belong to different clusters")]
    OtherCluster,
}

// === impl Error ===

impl Error {
    /// From a status other than 0.
    pub(super) fn status(code: u32, message: String) -> Self {
        if code == code::RESOURCE_EXHAUSTED && message.contains("database space exceeded") {
            return Self::NoSpace;
        }
        Self::Status { code, message }
    }

    /// An answer that does not say where it comes from.
    pub(super) fn headless() -> Self {
        Self::Garbled("an answer without a header".into())
    }

    /// Whether the call did nothing, for certain.
    pub(super) fn is_unsent(&self) -> bool {
        matches!(self, Self::Unsent(_))
    }

    /// Whether another endpoint may do better.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Unsent(_) | Self::Unanswered(_) | Self::OtherCluster => true,
            Self::Status { code, .. } => *code == code::UNAVAILABLE,
            Self::Garbled(_) | Self::NoSpace => false,
        }
    }

    pub(super) fn is_compacted(&self) -> bool {
        self.is_out_of_range("revision has been compacted")
    }

    pub(super) fn is_future(&self) -> bool {
        self.is_out_of_range("future revision")
    }

    pub(super) fn is_too_large(&self) -> bool {
        matches!(self, Self::Status { message, .. } if message.contains("request is too large"))
    }

    fn is_out_of_range(&self, text: &str) -> bool {
        matches!(self, Self::Status { code, message }
            if *code == code::OUT_OF_RANGE && message.contains(text))
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

impl From<Error> for CommitError {
    fn from(error: Error) -> Self {
        Self::Unavailable(Box::new(error))
    }
}
