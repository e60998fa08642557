//! One connection: made to a checked address, used by one call at a time.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::CallError;

/// How long one address has before the next is tried.
const PER_ADDRESS: Duration = Duration::from_secs(5);

/// A connection that speaks HTTP/1.1.
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Moves the bytes; polled by the call that uses the connection. None when it has ended.
    driver: Option<Pin<Box<Driver>>>,
}

type Driver = http1::Connection<TokioIo<TlsStream<TcpStream>>, Full<Bytes>>;

/// Why an exchange failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: CallError,
    /// Whether the connection ended before anything came back: one that was kept may just have
    /// been closed, and a new one may do.
    pub(super) unseen: bool,
}

// === impl Connection ===

impl Connection {
    /// Connects to the first address that answers.
    pub(super) async fn open(
        addresses: &[SocketAddr],
        host: &str,
        config: Arc<ClientConfig>,
    ) -> Result<Self, CallError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| CallError::Url("its host is wrong"))?;
        let mut last = CallError::Timeout;
        let mut stream = None;
        for address in addresses {
            match tokio::time::timeout(PER_ADDRESS, TcpStream::connect(address)).await {
                Ok(Ok(connected)) => {
                    stream = Some(connected);
                    break;
                }
                Ok(Err(error)) => last = CallError::connect(&error),
                Err(_) => last = CallError::Connect("i/o timeout"),
            }
        }
        let stream = stream.ok_or(last)?;
        // Without it only latency is worse.
        stream.set_nodelay(true).ok();
        let stream = TlsConnector::from(config).connect(name, stream).await;
        let stream = stream.map_err(|error| CallError::handshake(&error, host))?;
        let made = http1::Builder::new().max_headers(64).handshake(TokioIo::new(stream)).await;
        let (sender, driver) = made.map_err(|_| CallError::Broken)?;
        Ok(Self { sender, driver: Some(Box::pin(driver)) })
    }

    /// Whether another call can use it.
    pub(super) fn is_open(&self) -> bool {
        self.driver.is_some() && !self.sender.is_closed()
    }

    /// Sends a request and reads all of the answer.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        most: usize,
    ) -> Result<(StatusCode, Bytes), Failed> {
        let Self { sender, driver: held } = self;
        // Put back when the exchange has gone well.
        let gone = Failed { error: CallError::Broken, unseen: true };
        let mut driver = held.take().ok_or(gone)?;
        let answer = async {
            let unseen = |_| Failed { error: CallError::Broken, unseen: true };
            sender.ready().await.map_err(unseen)?;
            let response = sender.send_request(request).await.map_err(unseen)?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, most).collect().await.map_err(|error| {
                let too_large = error.downcast_ref::<LengthLimitError>().is_some();
                let error = if too_large { CallError::TooLarge(most) } else { CallError::Broken };
                Failed { error, unseen: false }
            })?;
            Ok((parts.status, body.to_bytes()))
        };
        tokio::pin!(answer);
        let early = tokio::select! {
            biased;
            outcome = &mut answer => Some(outcome),
            _ended = driver.as_mut() => None,
        };
        match early {
            Some(outcome) => {
                *held = outcome.is_ok().then_some(driver);
                outcome
            }
            None => {
                // What came before the end can still be read. What the driver holds can't become
                // anything: while it is there, an unsent request waits for ever.
                drop(driver);
                answer.await
            }
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("open", &self.is_open()).finish_non_exhaustive()
    }
}
