//! Making a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use machinery::network::Reachable;
use runtime::Tasks;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tracing::debug_span;

use super::MOST_STREAMS;
use super::connection::{Connection, drive_http1, drive_http2};
use super::trust::Trust;
use crate::{Error, Server};

/// How long one address has before the next is tried.
const PER_ADDRESS: Duration = Duration::from_secs(5);

/// The most addresses of one name that are tried.
const MOST_ADDRESSES: usize = 4;

/// How long TLS and the first words of HTTP may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How often a connection is pinged, and how long the answer may take: a peer that is gone without a
/// word is noticed within 20 s, half of what a Lease lives. A ping and its answer are 34 bytes.
const PING: Duration = Duration::from_secs(10);

/// Bytes of one answer that may be under way before they are read.
const STREAM_WINDOW: u32 = 256 << 10;

/// Bytes of all answers of a connection that may be.
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Makes connections to one server.
pub(crate) struct Dialer {
    pub(crate) server: Server,
    pub(crate) name: ServerName<'static>,
    pub(crate) reachable: Option<Reachable>,
    pub(crate) trust: Trust,
    pub(crate) tasks: Tasks,
}

// === impl Dialer ===

impl Dialer {
    /// Opens a connection.
    pub(crate) async fn open(&self, generation: u64) -> Result<Arc<Connection>, Error> {
        let host = &self.server.host;
        let config = self.trust.config().await?;
        let stream = self.connect().await?;
        // Without it only latency is worse.
        stream.set_nodelay(true).ok();
        let late = |what| Error::Late { host: host.clone(), what };
        let handshake = TlsConnector::from(config).connect(self.name.clone(), stream);
        let stream = tokio::time::timeout(HANDSHAKE, handshake)
            .await
            .map_err(|_| late("agree on TLS"))?
            .map_err(|error| Error::handshake(host, &error))?;
        let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = TokioIo::new(stream);
        let broken = |_| Error::Broken(host.clone());
        let span = debug_span!("connection", %host, http2 = two);
        if two {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .initial_max_send_streams(MOST_STREAMS)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .keep_alive_interval(PING)
                .keep_alive_timeout(PING)
                .keep_alive_while_idle(true);
            let made = tokio::time::timeout(HANDSHAKE, builder.handshake(stream)).await;
            let (sender, driver) = made.map_err(|_| late("begin HTTP/2"))?.map_err(broken)?;
            let connection = Connection::of_http2(sender, generation, host.clone());
            let limit = connection.limit().clone();
            self.tasks.spawn(span, drive_http2(driver, limit, self.tasks.cancellation().clone()));
            Ok(connection)
        } else {
            let made = http1::Builder::new().max_headers(64).handshake(stream);
            let made = tokio::time::timeout(HANDSHAKE, made).await;
            let (sender, driver) = made.map_err(|_| late("begin HTTP"))?.map_err(broken)?;
            self.tasks.spawn(span, drive_http1(driver, self.tasks.cancellation().clone()));
            Ok(Connection::of_http1(sender, generation, host.clone()))
        }
    }

    /// Connects to the first address that answers.
    async fn connect(&self) -> Result<TcpStream, Error> {
        let host = &self.server.host;
        let mut last = Error::Unknown(host.clone());
        for address in self.addresses().await? {
            match tokio::time::timeout(PER_ADDRESS, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = Error::connect(host, &error),
                Err(_) => last = Error::Connect { host: host.clone(), why: "timed out" },
            }
        }
        Err(last)
    }

    /// The addresses that may be connected to. The name is resolved here and the addresses that
    /// passed are used, so that it can't change its mind in between.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let (host, port) = (&self.server.host, self.server.port);
        let mut found: Vec<SocketAddr> = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => {
                let looked = tokio::net::lookup_host((&**host, port));
                match tokio::time::timeout(PER_ADDRESS, looked).await {
                    Ok(Ok(found)) => found.take(MOST_ADDRESSES).collect(),
                    Ok(Err(_)) | Err(_) => Vec::new(),
                }
            }
        };
        if found.is_empty() {
            return Err(Error::Unknown(host.clone()));
        }
        if let Some(rule) = &self.reachable {
            found.retain(|address| rule.permits(address.ip()));
        }
        if found.is_empty() { Err(Error::Refused(host.clone())) } else { Ok(found) }
    }
}
