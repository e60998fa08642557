//! The listener: TCP, TLS, and HTTP/2 or HTTP/1.1 as the client chooses by ALPN.
//!
//! Every connection has bounds on what it may cost before a request is understood: time for the
//! handshake, size of headers, number of streams, bytes buffered for a reader that does not read.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use runtime::Tasks;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::{Span, debug, warn};

use super::body::Body;
use super::coalesce::coalesce;
use super::stall::StallGuard;
use super::streams::{Streams, Turns, streams};
use super::{App, InFlight};

/// Time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Time for a request's headers on HTTP/1.1. It also ends idle connections: clients of Go and of
/// hyper end theirs after 90 s, so they never meet a closing server.
const HEADERS: Duration = Duration::from_secs(120);

/// Time in which a client must take some bytes that wait for it.
const STALL: Duration = Duration::from_secs(60);

/// Largest request head, in bytes. URLs with selectors are the longest part.
const MAX_HEAD: u32 = 128 * 1024;

/// Streams of one HTTP/2 connection: client-go runs all watches of a process over one.
const MAX_STREAMS: u32 = 1000;

/// Bytes buffered for each HTTP/2 stream whose reader is slow.
const STREAM_BUFFER: usize = 64 * 1024;

/// How connections end.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// No new ones; open ones end when their requests have been answered.
    pub(crate) stop: CancellationToken,
    /// Open ones end at once.
    pub(crate) cut: CancellationToken,
}

/// Accepts connections until they are to end.
pub(crate) async fn listen(
    listener: TcpListener,
    tls: TlsAcceptor,
    app: Arc<App>,
    tasks: Tasks,
    ends: Ends,
) {
    let turns = Turns::new();
    loop {
        let accepted = tokio::select! {
            () = ends.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // The connection broke already, or files ran out: others must end first.
                debug!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        let (tls, app, ends) = (tls.clone(), app.clone(), ends.clone());
        let streams = (tasks.clone(), turns.clone());
        tasks.spawn(Span::none(), async move {
            let metrics = app.metrics.clone();
            let _open = InFlight::new(&metrics.connections);
            let ended = tokio::select! {
                ended = serve(stream, peer, tls, app, streams, ends.stop) => ended,
                () = ends.cut.cancelled() => Ok(()),
            };
            if let Err(error) = ended {
                debug!(%peer, %error, "connection ended");
            }
        });
    }
}

async fn serve(
    stream: TcpStream,
    remote: SocketAddr,
    tls: TlsAcceptor,
    app: Arc<App>,
    streams: (Tasks, Turns),
    stop: CancellationToken,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let stream = StallGuard::new(stream, STALL);
    let handshake = tokio::time::timeout(HANDSHAKE, tls.accept(stream));
    let stream = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        done = handshake => done.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??,
    };
    let (_, session) = stream.get_ref();
    let peer = Arc::new(app.peer(session.peer_certificates()));
    let http2 = session.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request| {
        let (app, peer) = (app.clone(), peer.clone());
        async move { Ok::<_, Infallible>(app.serve(&peer, remote, request).await) }
    });
    if http2 {
        return serve_http2(stream, service, streams, &stop).await;
    }
    let connection = http1_settings().serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    ended.map_err(io::Error::other)
}

/// One turn of a connection: its watches fill what it sends, it sends and reads, and what it wrote
/// goes out together.
async fn serve_http2<S>(
    stream: TlsStream<StallGuard<TcpStream>>,
    service: S,
    (tasks, turns): (Tasks, Turns),
    stop: &CancellationToken,
) -> io::Result<()>
where
    S: HttpService<Incoming, ResBody = Body, Error = Infallible>,
    S::Future: Send + 'static,
{
    let (streams, mut settled) = streams(tasks, &turns);
    let (stream, flusher) = coalesce(stream);
    let connection = http2_settings(streams).serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut stopping = pin!(stop.cancelled());
    let mut stopped = false;
    poll_fn(|cx| {
        if !stopped && stopping.as_mut().poll(cx).is_ready() {
            stopped = true;
            connection.as_mut().graceful_shutdown();
        }
        // Who had more to write than one turn takes goes on when it is called.
        let turn = if flusher.is_full() { Some(ready!(settled.poll_turn(cx))) } else { None };
        flusher.begin();
        // Held until this turn has written.
        let _turn = settled.poll(cx, turn);
        if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return Poll::Ready(ended.map_err(io::Error::other));
        }
        match flusher.poll(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    })
    .await
}

fn http2_settings(streams: Streams) -> http2::Builder<Streams> {
    let mut settings = http2::Builder::new(streams);
    settings
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD)
        .max_send_buf_size(STREAM_BUFFER)
        .initial_stream_window_size(256 * 1024)
        .initial_connection_window_size(4 * 1024 * 1024)
        // A client that opens and resets streams in a row is cut off early.
        .max_pending_accept_reset_streams(50)
        .max_local_error_reset_streams(200)
        // Finds peers that vanished: a half-open connection ends within 50 s.
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    settings
}

fn http1_settings() -> http1::Builder {
    let mut settings = http1::Builder::new();
    settings
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(MAX_HEAD as usize)
        .half_close(false);
    settings
}

/// Binds the server's address.
///
/// # Errors
/// When it is in use or not ours.
pub(crate) async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await.inspect_err(|error| warn!(%address, %error, "bind failed"))
}
