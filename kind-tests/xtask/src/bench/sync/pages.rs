//! The agent's own pages, as the benchmark reads them.

use anyhow::{Result, ensure};
use contract::{SYNC_OBJECTS, SYNC_REQUESTS, SYNC_WRITES};
use kind_tests::agent::sum_at;
use kind_tests::eventually;

/// The agent's own pages.
pub(in crate::bench) struct Pages {
    port: u16,
}

// === impl Pages ===

impl Pages {
    pub(in crate::bench) fn new(port: u16) -> Self {
        Self { port }
    }

    /// Waits until nothing is under way.
    pub(in crate::bench) fn settle(&self) -> Result<()> {
        let mut last = f64::NAN;
        eventually("the agent to have nothing to do", || {
            let now = self.sum(SYNC_REQUESTS)?;
            let calm = (now - last).abs() < f64::EPSILON;
            last = now;
            let pending = self.sum(&format!("{SYNC_OBJECTS}{{state=\"pending\"}}"))?;
            ensure!(calm && pending < 1.0, "{pending} objects wait");
            Ok(())
        })
    }

    /// Writes so far, on both sides.
    pub(in crate::bench) fn writes(&self) -> Result<f64> {
        self.sum(SYNC_WRITES)
    }

    /// Requests of the engine so far.
    pub(in crate::bench) fn requests(&self) -> Result<f64> {
        self.sum(SYNC_REQUESTS)
    }

    /// Copies that were applied so far.
    pub(in crate::bench) fn applies(&self) -> Result<f64> {
        self.sum(&format!("{SYNC_REQUESTS}{{kind=\"apply\",outcome=\"ok\"}}"))
    }

    fn sum(&self, prefix: &str) -> Result<f64> {
        sum_at(self.port, prefix)
    }
}
