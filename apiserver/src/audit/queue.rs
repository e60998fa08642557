//! From requests to the writer: bounded by bytes, so that large bodies can't pile up.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use runtime::Tasks;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tracing::{info_span, warn};

use super::files::Out;
use crate::metrics::AuditMetrics;

/// Events that wait to be written: upstream's buffer.
const EVENTS: usize = 10_000;

/// Their bytes, in units of [`UNIT`]: 32 MiB, ten of the largest.
const UNITS: u32 = 32 << 10;

/// Bytes of a unit.
const UNIT: usize = 1 << 10;

/// Events that are written together.
const BATCH: usize = 256;

type Item = (Bytes, OwnedSemaphorePermit);

/// The way to the writer.
#[derive(Debug)]
pub(super) struct Queue {
    sender: mpsc::Sender<Item>,
    room: Arc<Semaphore>,
    metrics: AuditMetrics,
}

// === impl Queue ===

impl Queue {
    /// Starts the writer, which ends with `tasks` once all that was sent is written.
    pub(super) fn start(out: Out, metrics: AuditMetrics, tasks: &Tasks) -> Self {
        let (sender, receiver) = mpsc::channel(EVENTS);
        let room = Arc::new(Semaphore::new(UNITS as usize));
        let writer = write(receiver, out, metrics.clone(), tasks.clone());
        drop(tasks.spawn(info_span!("audit"), writer));
        Self { sender, room, metrics }
    }

    /// Bytes that wait to be written, rounded up for each event.
    pub(super) fn waiting(&self) -> usize {
        (UNITS as usize).saturating_sub(self.room.available_permits()) * UNIT
    }

    /// Sends an event; waits for room.
    pub(super) async fn send(&self, line: Bytes) {
        let room = self.room.clone().acquire_many_owned(units(&line)).await;
        let Ok(room) = room else { return self.metrics.lost.inc() };
        match self.sender.send((line, room)).await {
            Ok(()) => self.metrics.events.inc(),
            Err(_ended) => self.metrics.lost.inc(),
        }
    }

    /// Sends an event if there is room.
    pub(super) fn try_send(&self, line: Bytes) {
        let room = self.room.clone().try_acquire_many_owned(units(&line));
        let sent = room.is_ok_and(|room| self.sender.try_send((line, room)).is_ok());
        if sent { self.metrics.events.inc() } else { self.metrics.lost.inc() }
    }
}

/// The room that an event takes; one that is larger than all takes all.
fn units(line: &Bytes) -> u32 {
    u32::try_from(line.len().div_ceil(UNIT)).unwrap_or(UNITS).clamp(1, UNITS)
}

async fn write(mut receiver: mpsc::Receiver<Item>, out: Out, metrics: AuditMetrics, tasks: Tasks) {
    let out = Arc::new(Mutex::new(out));
    let ended = tasks.cancellation().clone();
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        tokio::select! {
            biased;
            () = ended.cancelled(), if !receiver.is_closed() => receiver.close(),
            count = receiver.recv_many(&mut batch, BATCH) => {
                if count == 0 {
                    return;
                }
                let (file, items) = (out.clone(), std::mem::take(&mut batch));
                // A disk may be slow: the threads that answer requests do not wait for it.
                let written = tasks.spawn_blocking(move || {
                    let mut file = file.lock();
                    let lost = items.iter().filter(|(line, _)| file.write(line).is_err()).count();
                    // What a buffer held may be lost as well; it counts as one.
                    lost + usize::from(file.flush().is_err())
                });
                let lost = written.await.unwrap_or(count);
                if lost > 0 {
                    warn!(lost, "audit events could not be written");
                    metrics.lost.inc_by(lost as u64);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[tokio::test]
    async fn what_was_sent_is_written_in_order_and_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let metrics = Metrics::new().audit;
        let tasks = Tasks::new();
        let out = Out::file(&path, u64::MAX, 0, 0).unwrap();
        let queue = Queue::start(out, metrics.clone(), &tasks);
        for number in 0..2000 {
            queue.send(format!("{number}\n").into()).await;
        }
        queue.try_send(Bytes::from_static(b"last\n"));
        // Larger than the whole queue: waits for all of it, and fits.
        queue.send(vec![b'x'; 40 << 20].into()).await;
        assert_eq!(tasks.shutdown(std::time::Duration::from_secs(20)).await, 0);
        let written = std::fs::read_to_string(&path).unwrap();
        let mut expect: String = (0..2000).map(|number| format!("{number}\n")).collect();
        expect.push_str("last\n");
        assert!(written.starts_with(&expect) && written.len() == expect.len() + (40 << 20));
        assert_eq!((metrics.events.get(), metrics.lost.get()), (2002, 0));
        queue.send(Bytes::from_static(b"late\n")).await;
        assert_eq!(metrics.lost.get(), 1);
    }
}
