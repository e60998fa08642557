//! The connections of one class.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::connection::{Connection, Slot};
use super::dial::Dialer;
use crate::Error;

/// How long a connection without streams is kept beside others.
const KEPT: Duration = Duration::from_secs(60);

/// Connections of one class; those that are asked first stand first, so that the last run dry.
#[derive(Default)]
pub(crate) struct Pool {
    kept: Mutex<Vec<Arc<Connection>>>,
    /// Held by who opens a connection: others wait, and then find it. With when opening failed last,
    /// and why.
    opening: tokio::sync::Mutex<Option<(Instant, Error)>>,
}

// === impl Pool ===

impl Pool {
    /// A stream of a connection that was made in this generation, by whose dialer others are opened;
    /// `opened` counts those.
    pub(crate) async fn take(
        &self,
        dialer: &Dialer,
        generation: u64,
        opened: &watch::Sender<u64>,
    ) -> Result<Slot, Error> {
        let asked = Instant::now();
        if let Some(slot) = self.take_kept(generation) {
            return Ok(slot);
        }
        let mut failed = self.opening.lock().await;
        if let Some(slot) = self.take_kept(generation) {
            return Ok(slot);
        }
        // Who waited while it failed has failed as well: else many would fail one after the other.
        if let Some((at, error)) = &*failed
            && *at >= asked
        {
            return Err(error.clone());
        }
        // Rare, and large: watches live long and wait for it once.
        match Box::pin(dialer.open(generation)).await {
            Ok(connection) => {
                *failed = None;
                if !connection.is_http1() {
                    opened.send_modify(|opened| *opened += 1);
                }
                let mut kept = self.kept.lock();
                kept.push(connection.clone());
                connection.take().ok_or_else(|| Error::Broken(dialer.server.host.clone()))
            }
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// How many connections can take requests.
    pub(crate) fn open(&self, generation: u64) -> usize {
        let kept = self.kept.lock();
        kept.iter().filter(|kept| kept.is_open() && kept.generation() == generation).count()
    }

    /// How many streams are in use.
    #[cfg(test)]
    pub(crate) fn streams(&self) -> usize {
        self.kept.lock().iter().map(|kept| kept.streams()).sum()
    }

    fn take_kept(&self, generation: u64) -> Option<Slot> {
        let mut kept = self.kept.lock();
        // Those of before end with their last stream, once nobody here holds them.
        kept.retain(|kept| kept.is_open() && kept.generation() == generation);
        let slot = kept.iter().find_map(Connection::take);
        let mut first = true;
        kept.retain(|kept| {
            let idle = kept.idle_since().is_some_and(|since| since.elapsed() >= KEPT);
            std::mem::take(&mut first) || !idle
        });
        slot
    }
}
