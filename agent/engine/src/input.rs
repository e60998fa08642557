//! What the engine is told.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

/// A moment. All decisions go by `clock`, which only grows; `wall` is for what people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Time since some fixed moment of this process.
    pub clock: Duration,
    /// The time of day.
    pub wall: Timestamp,
}

/// What a watch showed. Objects are whole, as the server sent them, with `apiVersion` and `kind`
/// as far as the server sends them (items of lists may lack them).
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A list has begun; it replaces what was known.
    InitStart,
    /// An object is in the list, was created, or has changed.
    Applied(Value),
    /// An object is gone, or no longer selected: its last state.
    Deleted(Value),
    /// The list is complete.
    InitDone {
        /// The list's resource version.
        resource_version: String,
    },
    /// Nothing changed up to this resource version.
    Bookmark {
        /// The resource version.
        resource_version: String,
    },
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The server has answered.
    Answer {
        /// The HTTP status code.
        status: u16,
        /// The body: an object, or a `Status`; null where there was none or it was no JSON.
        body: Value,
        /// The header `Retry-After`, if it was there.
        retry_after: Option<Duration>,
    },
    /// There was no answer: what was asked may have been done or not.
    Failed(Failure),
}

/// Why there was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server could not be reached, or the connection broke: other requests to it fail too.
    Unreachable,
    /// This one request took too long.
    Timeout,
    /// The driver gives up requests under way, as it stops.
    Cancelled,
}

// === impl Outcome ===

impl Outcome {
    /// An answer without `Retry-After`.
    pub fn answer(status: u16, body: Value) -> Self {
        Self::Answer { status, body, retry_after: None }
    }
}
