//! A connection whose peer does not take what is sent ends after a while.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Ends a connection with [`io::ErrorKind::TimedOut`] when bytes wait longer than `patience` for
/// the peer to take any. Idle connections are left alone; the timer runs only while bytes wait.
#[derive(Debug)]
pub(crate) struct StallGuard<T> {
    inner: T,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

// === impl StallGuard ===

impl<T> StallGuard<T> {
    /// Guards a connection.
    pub(crate) fn new(inner: T, patience: Duration) -> Self {
        Self { inner, patience, waiting: None }
    }

    /// Passes progress on, and turns a wait that lasts too long into an error.
    fn watch<R>(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + patience)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for StallGuard<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for StallGuard<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.watch(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.watch(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.watch(cx, outcome)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stops_is_cut_off_and_a_slow_one_is_not() {
        let (ours, mut theirs) = duplex(16);
        let mut guarded = StallGuard::new(ours, Duration::from_secs(60));
        let writer = async {
            guarded.write_all(&[7; 64]).await.unwrap();
            guarded.write_all(&[7; 64]).await.unwrap_err().kind()
        };
        let reader = async {
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_secs(50)).await;
                theirs.read_exact(&mut [0; 16]).await.unwrap();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            kind = writer => assert_eq!(kind, io::ErrorKind::TimedOut),
            () = reader => unreachable!("it never ends"),
        }
    }
}
