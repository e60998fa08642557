//! Why a patch was refused.

use crate::MAX_DEPTH;

/// Why a patch was refused. Each variant is one way for a server to answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is no patch of its format: 400 `BadRequest` with this text.
    #[error("{0}")]
    Malformed(String),
    /// The patch is well formed but doesn't fit the document: a failing `test`, a missing path.
    ///
    /// Upstream answers 422 `Invalid` with the fixed text "the server rejected our request due to
    /// an error in our request" and keeps the cause to itself; this text names it.
    #[error("{0}")]
    Failed(String),
    /// A `test` fails: the document is not what the patch is for. For most callers as
    /// [`Failed`](Self::Failed).
    #[error("{0}")]
    TestFailed(String),
    /// The patch and the document can't be merged under the schema: a list item without its merge
    /// key, elements of different types, a field that the type lacks.
    ///
    /// Upstream lets these errors through as 500 with an empty reason and this text as message,
    /// though the client is at fault.
    #[error("{0}")]
    Unmergeable(String),
    /// A JSON patch has more operations than are allowed: 413 `RequestEntityTooLarge`.
    #[error("The allowed maximum operations in a JSON patch is {max}, got {got}")]
    TooManyOperations {
        /// The limit.
        max: usize,
        /// How many operations the patch has.
        got: usize,
    },
    /// Applying the patch would cost more memory or time than a request may (422 upstream).
    #[error("{0}")]
    TooLarge(String),
}

impl PatchError {
    pub(crate) fn too_deep() -> Self {
        Self::Malformed(format!("exceeded max depth of {MAX_DEPTH}"))
    }
}
