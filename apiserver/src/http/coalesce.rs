//! Writes of one turn of a connection go out together.
//!
//! An HTTP/2 connection flushes after nearly every frame. When a hundred watches on one connection
//! have an event each, that would be a hundred TLS records and system calls. Here what the
//! connection writes is gathered, and its task flushes when the connection has nothing more to do.
//!
//! # Guarantees
//! - Bytes stay in order; nothing waits beyond the turn in which it was written, but for what is more
//!   than one turn takes.
//! - At most [`LIMIT`] bytes are gathered; beyond that the writer waits for the peer as before.
//! - One turn writes [`ALLOWANCE`] bytes and a little more; then the writer waits for the next one, as
//!   if the peer took no more.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are gathered at most: a few TLS records.
const LIMIT: usize = 64 * 1024;

/// Bytes that are written in one turn: they take some tenths of a millisecond to encrypt and to hand
/// over, for which others wait.
const ALLOWANCE: usize = 128 * 1024;

/// A stream whose flushes are done by its [`Flusher`].
#[derive(Debug)]
pub(super) struct Coalesced<T>(Arc<Mutex<State<T>>>);

/// Writes out what has been gathered.
#[derive(Debug)]
pub(super) struct Flusher<T>(Arc<Mutex<State<T>>>);

#[derive(Debug)]
struct State<T> {
    inner: T,
    gathered: BytesMut,
    /// Bytes written in this turn.
    written: usize,
}

/// Both sides of a stream.
pub(super) fn coalesce<T>(inner: T) -> (Coalesced<T>, Flusher<T>) {
    let state = Arc::new(Mutex::new(State { inner, gathered: BytesMut::new(), written: 0 }));
    (Coalesced(state.clone()), Flusher(state))
}

// === impl Flusher ===

impl<T: AsyncWrite + Unpin> Flusher<T> {
    /// Whether the last turn wrote all that it might, so that there may be more.
    pub(super) fn is_full(&self) -> bool {
        self.0.lock().written >= ALLOWANCE
    }

    /// Begins a turn.
    pub(super) fn begin(&self) {
        self.0.lock().written = 0;
    }

    /// Flushes at the end of a turn; `cx` is woken when a peer that had to be waited for takes more.
    ///
    /// # Errors
    /// Those of a write.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().poll_out(cx)
    }
}

// === impl State ===

impl<T: AsyncWrite + Unpin> State<T> {
    /// Writes out and flushes everything.
    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.gathered.is_empty() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    /// Whether this turn may write more; if not, the next one comes by itself.
    fn poll_allowed(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.written < ALLOWANCE {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.gathered.is_empty() {
            ready!(self.poll_allowed(cx));
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.gathered))?;
            self.written += written;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.gathered.advance(written);
        }
        // An idle connection keeps no buffer.
        self.gathered = BytesMut::new();
        Poll::Ready(Ok(()))
    }
}

// === impl Coalesced ===

impl<T: AsyncRead + Unpin> AsyncRead for Coalesced<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().inner).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Coalesced<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock();
        if state.gathered.len() + bytes.len() > LIMIT {
            ready!(state.poll_drain(cx))?;
        }
        if bytes.len() >= LIMIT {
            ready!(state.poll_allowed(cx));
            let written = ready!(Pin::new(&mut state.inner).poll_write(cx, bytes))?;
            state.written += written;
            return Poll::Ready(Ok(written));
        }
        state.gathered.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut state = self.0.lock();
        if state.gathered.len() + length > LIMIT {
            ready!(state.poll_drain(cx))?;
        }
        if length >= LIMIT {
            ready!(state.poll_allowed(cx));
            let written = ready!(Pin::new(&mut state.inner).poll_write_vectored(cx, parts))?;
            state.written += written;
            return Poll::Ready(Ok(written));
        }
        for part in parts {
            state.gathered.extend_from_slice(part);
        }
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        if state.gathered.is_empty() {
            return Pin::new(&mut state.inner).poll_flush(cx);
        }
        // The flusher does it at the end of this turn.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        ready!(state.poll_out(cx))?;
        Pin::new(&mut state.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Runs a connection to its end, flushing after each of its turns.
    async fn drive<T: AsyncWrite + Unpin>(
        flusher: &Flusher<T>,
        connection: impl Future<Output = io::Result<()>>,
    ) -> io::Result<()> {
        let mut connection = std::pin::pin!(connection);
        poll_fn(|cx| {
            flusher.begin();
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                return Poll::Ready(ended);
            }
            match flusher.poll(cx) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Writes `chunks` of `size` bytes, each flushed as HTTP/2 does, then shuts down.
    async fn carry(chunks: usize, size: usize, pipe: usize) {
        let (ours, mut theirs) = duplex(pipe);
        let (mut stream, flusher) = coalesce(ours);
        let connection = async move {
            for at in 0..chunks {
                stream.write_all(&vec![u8::try_from(at % 251).unwrap(); size]).await?;
                stream.flush().await?;
            }
            stream.shutdown().await
        };
        let reader = async {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).await.unwrap();
            all
        };
        let (written, all) = tokio::join!(drive(&flusher, connection), reader);
        written.unwrap();
        let expected = (0..chunks).flat_map(|at| vec![u8::try_from(at % 251).unwrap(); size]);
        assert!(all == expected.collect::<Vec<_>>(), "{chunks} of {size} through {pipe}");
    }

    #[tokio::test]
    async fn bytes_arrive_whole_and_in_order() {
        for (chunks, size, pipe) in
            [(0, 0, 16), (1, 1, 16), (500, 100, 64), (20, 40_000, 1000), (3, 200_000, 4096)]
        {
            carry(chunks, size, pipe).await;
        }
    }

    #[tokio::test]
    async fn what_is_written_in_one_turn_goes_out_at_its_end() {
        let (ours, mut theirs) = duplex(1024);
        let (mut stream, flusher) = coalesce(ours);
        let connection = async move {
            stream.write_all(b"one").await?;
            stream.flush().await?;
            stream.write_all(b"two").await?;
            stream.flush().await?;
            std::future::pending::<io::Result<()>>().await
        };
        let mut buffer = [0; 16];
        let read = tokio::select! {
            ended = drive(&flusher, connection) => panic!("{ended:?}"),
            read = theirs.read(&mut buffer) => read.unwrap(),
        };
        assert_eq!(&buffer[..read], b"onetwo");
    }

    /// A peer that takes everything gets it turn by turn, and every turn asks for the next one.
    #[test]
    fn a_turn_writes_so_much_and_no_more() {
        const ALL: usize = 1 << 20;
        let (ours, _theirs) = duplex(ALL);
        let (mut stream, flusher) = coalesce(ours);
        let (waker, woken) = told();
        let mut cx = Context::from_waker(&waker);
        let (mut written, mut turns) = (0, 0);
        while written < ALL {
            flusher.begin();
            let before = written;
            while written < ALL {
                match Pin::new(&mut stream).poll_write(&mut cx, &[0; 16 * 1024]) {
                    Poll::Ready(taken) => written += taken.unwrap(),
                    Poll::Pending => break,
                }
            }
            let flushed = flusher.poll(&mut cx);
            assert!(written - before <= ALLOWANCE + 2 * LIMIT, "{}", written - before);
            if written < ALL {
                assert!(flusher.is_full());
                assert!(woken.swap(false, Ordering::Relaxed), "turn {turns}");
                assert!(flushed.is_pending());
            }
            turns += 1;
            assert!(turns < 20);
        }
        assert!(turns >= ALL / (ALLOWANCE + 2 * LIMIT));
    }

    /// A waker that tells whether it was used.
    fn told() -> (std::task::Waker, Arc<AtomicBool>) {
        struct Told(Arc<AtomicBool>);
        impl std::task::Wake for Told {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let woken = Arc::new(AtomicBool::new(false));
        (Arc::new(Told(woken.clone())).into(), woken)
    }
}
