//! The scheduler's edge: requests wait for their turn, and give seats back by being dropped.

use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::scheduler::{Entered, Flow, Limits, Scheduler, Ticket};
use crate::metrics::LevelMetrics;

/// Hands out seats.
#[derive(Debug)]
pub(super) struct Gate {
    scheduler: Mutex<Scheduler<oneshot::Sender<()>>>,
    patience: Duration,
    metrics: LevelMetrics,
}

/// Seats of one request; given back when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    gate: Arc<Gate>,
    /// None of the exempt take from others.
    taken: Option<(Flow, u32)>,
}

/// Why there was no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Too many wait.
    Full,
    /// The wait was too long.
    TimedOut,
}

/// A wait, which ends when it is dropped.
struct Wait<'g> {
    gate: &'g Arc<Gate>,
    flow: Flow,
    weight: u32,
    ticket: Ticket,
    /// Whether the seats are somebody else's to give back by now.
    over: bool,
}

// === impl Gate ===

impl Gate {
    pub(super) fn new(limits: Limits, patience: Duration, metrics: LevelMetrics) -> Arc<Self> {
        Arc::new(Self { scheduler: Mutex::new(Scheduler::new(limits)), patience, metrics })
    }

    /// A seat for those who need not wait.
    pub(super) fn exempt(self: &Arc<Self>) -> Seat {
        self.metrics.exempt.inc();
        Seat { gate: self.clone(), taken: None }
    }

    /// Looks at who has what.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Scheduler<oneshot::Sender<()>>) -> T) -> T {
        look(&self.scheduler.lock())
    }

    /// Waits for seats.
    ///
    /// # Errors
    /// When too many wait, or it takes too long.
    pub(super) async fn enter(self: &Arc<Self>, flow: Flow, weight: u32) -> Result<Seat, Refused> {
        // Made for those who wait alone. It outlives the wait, so that a call finds it.
        let mut turn = None;
        let (entered, weight) = {
            let mut scheduler = self.scheduler.lock();
            let entered = scheduler.enter(flow, weight, || {
                let (told, heard) = oneshot::channel();
                turn = Some(heard);
                told
            });
            if matches!(entered, Entered::Waits(_)) {
                self.call(&mut scheduler);
            }
            self.metrics.seats.set(scheduler.used().into());
            (entered, scheduler.fit(weight))
        };
        match entered {
            Entered::Seated => {}
            Entered::Full => {
                self.metrics.full.inc();
                return Err(Refused::Full);
            }
            Entered::Waits(ticket) => {
                let since = Instant::now();
                let mut wait = Wait { gate: self, flow, weight, ticket, over: false };
                let turn = OptionFuture::from(turn.as_mut());
                let called = tokio::time::timeout(self.patience, turn).await;
                self.metrics.waited.observe(since.elapsed().as_secs_f64());
                if called.is_err() {
                    // Its turn may have come just now: dropping the wait gives the seats back.
                    self.metrics.timed_out.inc();
                    return Err(Refused::TimedOut);
                }
                wait.over = true;
            }
        }
        self.metrics.dispatched.inc();
        Ok(Seat { gate: self.clone(), taken: Some((flow, weight)) })
    }

    /// Calls those whose turn it is.
    fn call(&self, scheduler: &mut Scheduler<oneshot::Sender<()>>) {
        while let Some((flow, weight, told)) = scheduler.next() {
            if told.send(()).is_err() {
                scheduler.leave(flow, weight);
            }
        }
        self.metrics.waiting.set(i64::try_from(scheduler.waiting()).unwrap_or(i64::MAX));
    }

    fn leave(&self, flow: Flow, weight: u32) {
        let mut scheduler = self.scheduler.lock();
        scheduler.leave(flow, weight);
        if scheduler.waiting() > 0 {
            self.call(&mut scheduler);
        }
        self.metrics.seats.set(scheduler.used().into());
    }
}

// === impl Seat ===

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some((flow, weight)) = self.taken.take() {
            self.gate.leave(flow, weight);
        }
    }
}

// === impl Wait ===

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let cancelled = {
            let mut scheduler = self.gate.scheduler.lock();
            let cancelled = scheduler.cancel(self.flow, self.ticket);
            // What is next may be narrower now.
            self.gate.call(&mut scheduler);
            cancelled
        };
        // It was called, and nobody heard: the receiver outlives this wait.
        if !cancelled {
            self.gate.leave(self.flow, self.weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::metrics::Metrics;

    const FLOW: Flow = Flow { cluster: 1, user: 1 };
    const OTHER: Flow = Flow { cluster: 2, user: 1 };

    fn gate(seats: u32) -> Arc<Gate> {
        let limits = Limits { seats, user: 2, cluster: 2, all: 10 };
        Gate::new(limits, Duration::from_secs(15), Metrics::new().flow.level("reads"))
    }

    #[tokio::test(start_paused = true)]
    async fn turns_come_and_waits_end() {
        let gate = gate(1);
        let first = gate.enter(FLOW, 1).await.unwrap();
        let mut second = Box::pin(gate.enter(FLOW, 1));
        assert!(second.as_mut().now_or_never().is_none());
        let mut third = Box::pin(gate.enter(FLOW, 1));
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(gate.enter(FLOW, 1).await.unwrap_err(), Refused::Full);
        // One who goes away leaves no seat taken, whether called or not.
        drop(third);
        drop(first);
        drop(second);
        assert_eq!(gate.scheduler.lock().used(), 0);
        let first = gate.enter(FLOW, 1).await.unwrap();
        let exempt = gate.exempt();
        let (refused, late) = tokio::join!(gate.enter(OTHER, 1), async {
            tokio::time::sleep(Duration::from_secs(14)).await;
            gate.enter(FLOW, 1).await
        });
        assert_eq!(refused.unwrap_err(), Refused::TimedOut);
        assert_eq!(late.unwrap_err(), Refused::TimedOut);
        drop((first, exempt));
        assert_eq!(gate.scheduler.lock().used(), 0);
        drop(gate.enter(OTHER, 100).await.unwrap());
    }

    #[tokio::test]
    async fn many_at_once_never_exceed_the_seats() {
        let gate = Gate::new(
            Limits { seats: 3, user: 100, cluster: 100, all: 1000 },
            Duration::from_secs(15),
            Metrics::new().flow.level("reads"),
        );
        let work = (0..60_u64).map(|number| {
            let gate = gate.clone();
            async move {
                let seat = gate.enter(Flow { cluster: number % 7, user: 1 }, 1).await.unwrap();
                for _ in 0..3 {
                    assert!(gate.scheduler.lock().used() <= 3);
                    tokio::task::yield_now().await;
                }
                drop(seat);
            }
        });
        futures::future::join_all(work).await;
        let scheduler = gate.scheduler.lock();
        assert_eq!((scheduler.used(), scheduler.waiting()), (0, 0));
    }
}
