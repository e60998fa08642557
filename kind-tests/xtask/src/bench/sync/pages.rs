//! The agent's own pages, as the benchmark reads them.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Result, ensure};
use contract::{SYNC_OBJECTS, SYNC_REQUESTS, SYNC_WRITES};
use kind_tests::eventually;

/// The agent's own pages.
pub(super) struct Pages {
    port: u16,
}

// === impl Pages ===

impl Pages {
    pub(super) fn new(port: u16) -> Self {
        Self { port }
    }

    /// Waits until nothing is under way.
    pub(super) fn settle(&self) -> Result<()> {
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
    pub(super) fn writes(&self) -> Result<f64> {
        self.sum(SYNC_WRITES)
    }

    /// Requests of the engine so far.
    pub(super) fn requests(&self) -> Result<f64> {
        self.sum(SYNC_REQUESTS)
    }

    /// Copies that were applied so far.
    pub(super) fn applies(&self) -> Result<f64> {
        self.sum(&format!("{SYNC_REQUESTS}{{kind=\"apply\",outcome=\"ok\"}}"))
    }

    /// The sum of all series that begin so.
    fn sum(&self, prefix: &str) -> Result<f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        ensure!(text.starts_with("HTTP/1.1 200"), "the agent's metrics can't be read");
        let values = text.lines().filter(|line| line.starts_with(prefix));
        Ok(values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }
}
