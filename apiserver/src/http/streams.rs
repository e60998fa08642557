//! Where the streams of an HTTP/2 connection run.
//!
//! A request is answered by a task of its own, so that the requests of one connection use all
//! cores. A watch moves from there to the task of its connection as soon as it waits for events:
//! client-go runs all watches of a process over one connection, and an event for a hundred of them
//! then wakes one task, which takes all hundred frames and writes them together, where a hundred
//! tasks would each wake the connection for one frame.
//!
//! A connection with thousands of watches is kept from making all others wait: one turn takes
//! [`BUDGET`], and what is left then waits for a [`Turns`] of which there are fewer than cores. So does
//! a stream with much to send at once, as a large list or the beginning of a watch: it gives a stretch
//! in each turn. So of such connections and streams only a few want to run at a time, and whoever does
//! little waits behind those few. Nor does another thread wait long: one that has worked without rest
//! keeps its core for some milliseconds from whoever was woken since (the store's writer, whose disk has
//! answered, or a client on the same machine), so a turn ends by offering its core to them.
//!
//! Invariant: a stream is polled by one task at a time, the one that owns it.

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;

use futures::task::AtomicWaker;
use hyper::rt::Executor;
use parking_lot::Mutex;
use runtime::{Tasks, cores};
use slab::Slab;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::coop::{Unconstrained, unconstrained};
use tokio::time::Instant;
use tokio_util::sync::PollSemaphore;
use tracing::Span;

type Stream = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a stream says of itself while it is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Nothing,
    /// It will wait for long.
    Waits,
    /// It has more to send, and lets others run first.
    GoesOn,
}

thread_local! {
    /// What the stream says that this thread polls.
    static SAYS: Cell<Says> = const { Cell::new(Says::Nothing) };
}

/// Says of the stream being polled that it sends little and lives long.
pub(super) fn waits() {
    SAYS.set(Says::Waits);
}

/// Says of the stream being polled that it has much to send.
pub(super) fn goes_on() {
    SAYS.set(Says::GoesOn);
}

/// Rounds over the streams that are ready in one turn. A stream that has sent is ready once more,
/// mostly for nothing; one that goes on for longer waits for the next turn.
const ROUNDS: usize = 3;

/// How long the streams of one turn may take: some fifty frames, of which the cost of writing them
/// together is a small part, and little for who waits for the same core.
const BUDGET: Duration = Duration::from_micros(500);

/// Turns of connections with more to do than one turn takes, shared by all of them in order.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<Semaphore>);

/// One turn. Its end lets another connection or stream have the next one, and another thread the core.
#[derive(Debug)]
pub(super) struct Turn(Option<OwnedSemaphorePermit>);

/// Waits for turns, for one connection or stream.
struct PollTurn(PollSemaphore);

/// Runs the streams of one connection: hyper's executor.
#[derive(Clone)]
pub(super) struct Streams {
    tasks: Tasks,
    shared: Arc<Shared>,
    turns: Turns,
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
    /// What was ready when the last turn's time was over.
    left: Vec<usize>,
    turns: PollTurn,
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
pub(super) fn streams(tasks: Tasks, turns: &Turns) -> (Streams, Settled) {
    let shared = Arc::new(Shared::default());
    let settled = Settled {
        shared: shared.clone(),
        streams: Slab::new(),
        left: Vec::new(),
        turns: turns.poll(),
    };
    (Streams { tasks, shared, turns: turns.clone() }, settled)
}

// === impl Turns ===

impl Turns {
    /// Half of the cores are for them at most.
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new((cores() / 2).max(1))))
    }

    fn poll(&self) -> PollTurn {
        PollTurn(PollSemaphore::new(self.0.clone()))
    }
}

// === impl Turn ===

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.0.take());
        std::thread::yield_now();
    }
}

// === impl PollTurn ===

impl PollTurn {
    fn poll_acquire(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        // The semaphore is never closed; without it there would be no turns to wait for.
        self.0.poll_acquire(cx).map(Turn)
    }
}

// === impl Streams ===

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let (shared, turns) = (self.shared.clone(), self.turns.clone());
        let mut stream: Option<Stream> = Some(Box::pin(future));
        // Whoever once had much to send takes turns to its end: it is asked again whenever its reader
        // has room.
        let mut in_turn: Option<PollTurn> = None;
        let task = poll_fn(move |cx| {
            let Some(running) = &mut stream else { return Poll::Ready(()) };
            let _turn = match &mut in_turn {
                Some(turns) => Some(ready!(turns.poll_acquire(cx))),
                None => None,
            };
            SAYS.set(Says::Nothing);
            if running.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            match SAYS.replace(Says::Nothing) {
                Says::Nothing => Poll::Pending,
                Says::GoesOn => {
                    in_turn.get_or_insert_with(|| turns.poll());
                    Poll::Pending
                }
                Says::Waits => {
                    shared.moving.lock().extend(stream.take());
                    shared.connection.wake();
                    Poll::Ready(())
                }
            }
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
    /// Waits for a turn, for a connection that has much to do apart from its streams.
    pub(super) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        self.turns.poll_acquire(cx)
    }

    /// Polls the streams that have something to do. They wake `cx`; the connection is to be polled
    /// after them, since they fill what it sends. What is returned, which is `turn` if there is one, is
    /// to be held to the end of that.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, mut turn: Option<Turn>) -> Option<Turn> {
        self.shared.connection.register(cx.waker());
        let arrived = std::mem::take(&mut *self.shared.moving.lock());
        arrived.into_iter().for_each(|stream| self.settle(stream));
        if !self.left.is_empty() && turn.is_none() {
            match self.turns.poll_acquire(cx) {
                Poll::Ready(taken) => turn = Some(taken),
                Poll::Pending => return None,
            }
        }
        let end = Instant::now() + BUDGET;
        for _ in 0..ROUNDS {
            let mut ready = std::mem::take(&mut self.left);
            ready.append(&mut self.shared.ready.lock());
            if ready.is_empty() {
                return turn;
            }
            let mut ready = ready.into_iter();
            for number in ready.by_ref() {
                self.run(number);
                if Instant::now() >= end {
                    break;
                }
            }
            self.left.extend(ready);
            if !self.left.is_empty() {
                break;
            }
        }
        if !self.left.is_empty() || !self.shared.ready.lock().is_empty() {
            cx.waker().wake_by_ref();
        }
        turn
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
    use futures::StreamExt;
    use futures::channel::mpsc;

    use super::*;

    /// Streams that wait move to the connection, go on there, and end with it.
    #[tokio::test]
    async fn waiting_streams_move() {
        let tasks = Tasks::new();
        let (streams, mut settled) = streams(tasks, &Turns::new());
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
            drop(settled.poll(cx, None));
            if settled.streams.is_empty() { Poll::Pending } else { Poll::Ready(()) }
        });
        tokio::time::timeout(Duration::from_secs(10), until_settled).await.unwrap();
        send.unbounded_send(7).unwrap();
        let heard_it = poll_fn(|cx| {
            drop(settled.poll(cx, None));
            heard.poll_next_unpin(cx)
        });
        assert_eq!(tokio::time::timeout(Duration::from_secs(10), heard_it).await.unwrap(), Some(7));
        drop(settled);
        assert!(send.unbounded_send(8).is_err());
    }

    /// One turn takes so long and no longer; what is left waits for those that are left elsewhere.
    #[tokio::test]
    async fn long_turns_are_parted() {
        let turns = Turns(Arc::new(Semaphore::new(1)));
        let (streams, mut settled) = streams(Tasks::new(), &turns);
        let (done, mut heard) = mpsc::unbounded();
        for number in 0..20 {
            let done = done.clone();
            let work = async move {
                let mut rested = false;
                poll_fn(|_| {
                    waits();
                    if std::mem::replace(&mut rested, true) {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
                let begin = Instant::now();
                while begin.elapsed() < BUDGET / 4 {}
                done.unbounded_send(number).unwrap();
            };
            streams.execute(work);
        }
        let moved = async {
            while settled.shared.moving.lock().len() < 20 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), moved).await.unwrap();
        let mut count = || std::iter::from_fn(|| heard.try_recv().ok()).count();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(settled.poll(&mut cx, None).is_none());
        let first = count();
        assert!((1..=5).contains(&first), "{first}");
        let other = turns.0.clone().try_acquire_owned().unwrap();
        assert!(settled.poll(&mut cx, None).is_none());
        assert_eq!(count(), 0);
        drop(other);
        let mut all = first;
        while all < 20 {
            let turn = settled.poll(&mut cx, None);
            assert!(turn.is_some(), "{all}");
            assert_eq!(turns.0.available_permits(), 0);
            all += count();
        }
    }

    /// A stream with much to send goes on only in its turn, and lets go of that between.
    #[tokio::test]
    async fn long_streams_take_turns() {
        let turns = Turns(Arc::new(Semaphore::new(1)));
        let (streams, _settled) = streams(Tasks::new(), &turns);
        let held = turns.0.clone().try_acquire_owned().unwrap();
        let (done, mut heard) = mpsc::unbounded();
        let permits = turns.0.clone();
        streams.execute(async move {
            for number in 0..3 {
                done.unbounded_send((number, permits.available_permits())).unwrap();
                let mut rested = false;
                poll_fn(|cx| {
                    if std::mem::replace(&mut rested, true) {
                        return Poll::Ready(());
                    }
                    goes_on();
                    cx.waker().wake_by_ref();
                    Poll::Pending
                })
                .await;
            }
        });
        assert_eq!(heard.next().await, Some((0, 0)));
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert!(heard.try_recv().is_err(), "it waits for its turn");
        drop(held);
        assert_eq!(heard.next().await, Some((1, 0)));
        assert_eq!(heard.next().await, Some((2, 0)));
        assert_eq!(heard.next().await, None);
        assert_eq!(turns.0.available_permits(), 1);
    }

    /// A stream that ends by itself never reaches the connection.
    #[tokio::test]
    async fn short_streams_stay() {
        let (streams, settled) = streams(Tasks::new(), &Turns::new());
        let (done, heard) = tokio::sync::oneshot::channel();
        streams.execute(async move {
            tokio::task::yield_now().await;
            done.send(()).unwrap();
        });
        heard.await.unwrap();
        assert!(settled.shared.moving.lock().is_empty());
    }
}
