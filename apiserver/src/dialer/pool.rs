//! Connections kept for the next call to the same place.

use std::time::Duration;

use machinery::ClusterName;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::connection::Connection;

/// Connections that are kept: about one for each webhook that a busy server calls, of some 20 KB.
const MOST: usize = 64;

/// How long one is kept. Servers close idle connections after a minute or so.
const KEPT: Duration = Duration::from_secs(30);

/// What a connection was made for. Only a call for the same may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) cluster: ClusterName,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) trust: [u8; 32],
}

/// Idle connections, the longest kept first.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: Mutex<Vec<(Place, Instant, Connection)>>,
}

// === impl Pool ===

impl Pool {
    /// A connection to a place.
    pub(super) fn take(&self, place: &Place) -> Option<Connection> {
        let mut idle = self.idle.lock();
        let now = Instant::now();
        idle.retain(|(_, since, _)| now.duration_since(*since) < KEPT);
        let at = idle.iter().rposition(|(kept, _, _)| kept == place)?;
        Some(idle.remove(at).2)
    }

    /// Keeps a connection.
    pub(super) fn keep(&self, place: Place, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() >= MOST {
            idle.remove(0);
        }
        idle.push((place, Instant::now(), connection));
    }
}
