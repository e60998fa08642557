//! Writes of one turn of a connection go out together.
//!
//! An HTTP/2 connection flushes after nearly every frame. When a hundred watches on one connection
//! have an event each, that would be a hundred TLS records and system calls. Here what the
//! connection writes is gathered, and its task flushes when the connection has nothing more to do.
//!
//! # Guarantees
//! - Bytes stay in order; nothing waits beyond the turn in which it was written.
//! - At most [`LIMIT`] bytes are gathered; beyond that the writer waits for the peer as before.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are gathered at most: a few TLS records.
const LIMIT: usize = 64 * 1024;

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
}

/// Both sides of a stream.
pub(super) fn coalesce<T>(inner: T) -> (Coalesced<T>, Flusher<T>) {
    let state = Arc::new(Mutex::new(State { inner, gathered: BytesMut::new() }));
    (Coalesced(state.clone()), Flusher(state))
}

// === impl Flusher ===

impl<T: AsyncWrite + Unpin> Flusher<T> {
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

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.gathered.is_empty() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.gathered))?;
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
            return Pin::new(&mut state.inner).poll_write(cx, bytes);
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
            return Pin::new(&mut state.inner).poll_write_vectored(cx, parts);
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

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Runs a connection to its end, flushing after each of its turns.
    async fn drive<T: AsyncWrite + Unpin>(
        flusher: &Flusher<T>,
        connection: impl Future<Output = io::Result<()>>,
    ) -> io::Result<()> {
        let mut connection = std::pin::pin!(connection);
        poll_fn(|cx| {
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
}
