//! Where the streams of an HTTP/2 connection run.
//!
//! A request is answered by a task of its own, so that the requests of one connection use all
//! cores. A watch moves from there to the task of its connection as soon as it waits for events:
//! client-go runs all watches of a process over one connection, and an event for a hundred of them
//! then wakes one task, which takes all hundred frames and writes them together, where a hundred
//! tasks would each wake the connection for one frame.
//!
//! Invariant: a stream is polled by one task at a time, the one that owns it.

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;
use hyper::rt::Executor;
use parking_lot::Mutex;
use runtime::Tasks;
use slab::Slab;
use tokio::task::coop::{Unconstrained, unconstrained};
use tracing::Span;

type Stream = Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    /// Whether the stream that this thread polls has said that it will wait for long.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// Says of the stream being polled that it sends little and lives long.
pub(super) fn waits() {
    WAITS.set(true);
}

/// Rounds over the streams that are ready in one turn. A stream that has sent is ready once more,
/// mostly for nothing; one that goes on for longer waits for the next turn.
const ROUNDS: usize = 3;

/// Runs the streams of one connection: hyper's executor.
#[derive(Clone)]
pub(super) struct Streams {
    tasks: Tasks,
    shared: Arc<Shared>,
}

/// What wakers and other tasks leave for the connection's task.
#[derive(Default)]
struct Shared {
    /// Streams on the way to the connection.
    moving: Mutex<Vec<Stream>>,
    /// Numbers of the streams that have something to do, each once.
    ready: Mutex<Vec<usize>>,
    connection: AtomicWaker,
}

/// The streams that run in their connection's task.
pub(super) struct Settled {
    shared: Arc<Shared>,
    streams: Slab<Running>,
}

struct Running {
    /// It sends as much as its buffer takes: the runtime's budget is one for the whole task, and
    /// would end a turn after a dozen streams.
    stream: Unconstrained<Stream>,
    ready: Arc<Ready>,
    waker: Waker,
}

/// Wakes one stream.
struct Ready {
    number: usize,
    queued: AtomicBool,
    shared: Arc<Shared>,
}

/// A new connection's executor, and the part to poll with the connection.
pub(super) fn streams(tasks: Tasks) -> (Streams, Settled) {
    let shared = Arc::new(Shared::default());
    let settled = Settled { shared: shared.clone(), streams: Slab::new() };
    (Streams { tasks, shared }, settled)
}

// === impl Streams ===

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let shared = self.shared.clone();
        let mut stream: Option<Stream> = Some(Box::pin(future));
        let task = poll_fn(move |cx| {
            let Some(running) = &mut stream else { return Poll::Ready(()) };
            WAITS.set(false);
            if running.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if !WAITS.replace(false) {
                return Poll::Pending;
            }
            shared.moving.lock().extend(stream.take());
            shared.connection.wake();
            Poll::Ready(())
        });
        drop(self.tasks.spawn(Span::none(), task));
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

// === impl Settled ===

impl Settled {
    /// Polls the streams that have something to do. They wake `cx`; the connection is to be polled
    /// after them, since they fill what it sends.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        self.shared.connection.register(cx.waker());
        let arrived = std::mem::take(&mut *self.shared.moving.lock());
        arrived.into_iter().for_each(|stream| self.settle(stream));
        for _ in 0..ROUNDS {
            let ready = std::mem::take(&mut *self.shared.ready.lock());
            if ready.is_empty() {
                return;
            }
            ready.into_iter().for_each(|number| self.run(number));
        }
        if !self.shared.ready.lock().is_empty() {
            cx.waker().wake_by_ref();
        }
    }

    fn settle(&mut self, stream: Stream) {
        let entry = self.streams.vacant_entry();
        let queued = AtomicBool::new(false);
        let ready = Arc::new(Ready { number: entry.key(), queued, shared: self.shared.clone() });
        let waker = Waker::from(ready.clone());
        entry.insert(Running { stream: unconstrained(stream), ready: ready.clone(), waker });
        // Its last waker was that of the task it comes from.
        ready.wake();
    }

    fn run(&mut self, number: usize) {
        let Some(running) = self.streams.get_mut(number) else { return };
        // From here on a wake queues the stream again.
        running.ready.queued.store(false, Ordering::Release);
        let mut cx = Context::from_waker(&running.waker);
        if Pin::new(&mut running.stream).poll(&mut cx).is_ready() {
            self.streams.remove(number);
        }
    }
}

// === impl Ready ===

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.shared.ready.lock().push(self.number);
            self.shared.connection.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::StreamExt;
    use futures::channel::mpsc;

    use super::*;

    /// Streams that wait move to the connection, go on there, and end with it.
    #[tokio::test]
    async fn waiting_streams_move() {
        let tasks = Tasks::new();
        let (streams, mut settled) = streams(tasks);
        let (send, mut receive) = mpsc::unbounded::<u8>();
        let (done, mut heard) = mpsc::unbounded();
        streams.execute(async move {
            let next = |receive: &mut mpsc::UnboundedReceiver<u8>, cx: &mut Context<'_>| {
                waits();
                receive.poll_next_unpin(cx)
            };
            while let Some(byte) = poll_fn(|cx| next(&mut receive, cx)).await {
                done.unbounded_send(byte).unwrap();
            }
        });
        let until_settled = poll_fn(|cx| {
            settled.poll(cx);
            if settled.streams.is_empty() { Poll::Pending } else { Poll::Ready(()) }
        });
        tokio::time::timeout(Duration::from_secs(10), until_settled).await.unwrap();
        send.unbounded_send(7).unwrap();
        let heard_it = poll_fn(|cx| {
            settled.poll(cx);
            heard.poll_next_unpin(cx)
        });
        assert_eq!(tokio::time::timeout(Duration::from_secs(10), heard_it).await.unwrap(), Some(7));
        drop(settled);
        assert!(send.unbounded_send(8).is_err());
    }

    /// A stream that ends by itself never reaches the connection.
    #[tokio::test]
    async fn short_streams_stay() {
        let (streams, settled) = streams(Tasks::new());
        let (done, heard) = tokio::sync::oneshot::channel();
        streams.execute(async move {
            tokio::task::yield_now().await;
            done.send(()).unwrap();
        });
        heard.await.unwrap();
        assert!(settled.shared.moving.lock().is_empty());
    }
}
