//! Why a token is not taken.

use std::borrow::Cow;

/// Why a token is not taken. The text is for whoever asked for a review of it, and for the log: a
/// caller is told nothing but 401.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Refusal {
    text: Cow<'static, str>,
    absent: bool,
}

// === impl Refusal ===

impl Refusal {
    /// It is no token of anybody, as far as can be told here.
    pub(crate) fn unknown() -> Self {
        Self { text: Cow::Borrowed("invalid bearer token"), absent: false }
    }

    /// It is somebody's, and not good.
    pub(crate) fn wrong(why: impl Into<Cow<'static, str>>) -> Self {
        Self { text: format!("[invalid bearer token, {}]", why.into()).into(), absent: false }
    }

    /// It is somebody's, and something that it rests on is not there, or not there yet.
    pub(crate) fn absent(why: impl Into<Cow<'static, str>>) -> Self {
        Self { absent: true, ..Self::wrong(why) }
    }

    /// Whether it may be good once what has just been written can be seen.
    pub(crate) fn is_absent(&self) -> bool {
        self.absent
    }
}
