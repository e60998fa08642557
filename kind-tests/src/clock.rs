//! Elapsed time. There is no async runtime here whose clock a test could pause.
#![expect(clippy::disallowed_types, reason = "no async runtime here")]

use std::time::{Duration, Instant};

/// A stopwatch that runs from its creation.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

// === impl Stopwatch ===

impl Stopwatch {
    /// Starts counting.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
