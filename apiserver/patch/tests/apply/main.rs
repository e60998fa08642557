//! Server-side apply against upstream's answers, and its laws.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod laws;
mod openapi;
mod oracle;
