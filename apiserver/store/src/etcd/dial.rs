//! Connections to the endpoints of an etcd cluster: TCP, TLS where asked, HTTP/2.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use runtime::{Authorities, Tasks};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tracing::{debug, info_span};

use super::grpc::{Channel, said};

/// How long one endpoint has to be connected to before the next is tried.
const PER_ENDPOINT: Duration = Duration::from_secs(3);

/// A connection that is silent for so long is asked whether it lives, and given up if it does not
/// say so. etcd refuses to be asked more often than every 5 seconds.
const ASK_AFTER: Duration = Duration::from_secs(15);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Bytes that may be on their way to one reader, and over one connection: a page, and several.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Files for TLS, as PEM. They are read again for each connection, so that they can be renewed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Authorities of the servers' certificates; the system's if not given.
    pub authorities: Option<PathBuf>,
    /// The client's certificate and its key.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// One address of an etcd cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    origin: Uri,
    host: String,
    port: u16,
    tls: bool,
}

// === impl Endpoint ===

impl Endpoint {
    /// From `http://host:port` or `https://host:port`; without a scheme it is `http`.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri = whole.parse::<Uri>().map_err(|_| "it is not a URL")?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err("its scheme is neither http nor https"),
        };
        let authority = uri.authority().ok_or("it has no host")?.clone();
        if uri.path_and_query().is_some_and(|path| path.as_str() != "/") {
            return Err("it has a path");
        }
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err("its host is wrong");
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(2379);
        let origin = Uri::builder()
            .scheme(if tls { "https" } else { "http" })
            .authority(authority)
            .path_and_query("/")
            .build();
        Ok(Self { origin: origin.map_err(|_| "it is not a URL")?, host, port, tls })
    }

    /// Connects. The connection lives until it breaks, all its users are gone, or `tasks` end.
    ///
    /// # Errors
    /// What was in the way, as text.
    pub(super) async fn connect(&self, files: &TlsFiles, tasks: &Tasks) -> Result<Channel, String> {
        let work = async {
            let tcp = TcpStream::connect((self.host.as_str(), self.port))
                .await
                .map_err(|error| said(&error))?;
            // Without it only latency is worse.
            tcp.set_nodelay(true).ok();
            if !self.tls {
                return self.handshake(tcp, tasks).await;
            }
            let config = Arc::new(config(files)?);
            let name = ServerName::try_from(self.host.clone()).map_err(|error| said(&error))?;
            let stream = TlsConnector::from(config).connect(name, tcp).await;
            self.handshake(stream.map_err(|error| said(&error))?, tasks).await
        };
        let done = tokio::time::timeout(PER_ENDPOINT, work).await;
        let done = done.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        done.map_err(|error| format!("{}: {error}", self.origin))
    }

    async fn handshake(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        tasks: &Tasks,
    ) -> Result<Channel, String> {
        let made = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(ASK_AFTER)
            .keep_alive_timeout(ANSWER_WITHIN)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = made.map_err(|error| said(&error))?;
        let (cancelled, origin) = (tasks.cancellation().clone(), self.origin.clone());
        drop(tasks.spawn(info_span!("etcd connection"), async move {
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    debug!(%origin, error = said(&error), "connection ended");
                },
                () = cancelled.cancelled() => {}
            }
        }));
        Ok(Channel::new(sender, self.origin.clone()))
    }
}

fn config(files: &TlsFiles) -> Result<ClientConfig, String> {
    let authorities = match &files.authorities {
        Some(path) => {
            let given: Authorities = certificates(path)?.into_iter().collect();
            if given.is_empty() {
                return Err(format!("{} holds no certificate", path.display()));
            }
            given
        }
        None => Authorities::system(),
    };
    let builder = authorities.client().map_err(|error| said(&error))?;
    let mut config = match &files.client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let bytes = fs::read(key).map_err(|error| format!("{}: {error}", key.display()))?;
            let key = PrivateKeyDer::from_pem_slice(&bytes)
                .map_err(|_| format!("{} holds no private key", key.display()))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| said(&error))?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(format!("{} holds no certificate", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        let check = |text: &str, expect: Result<(&str, u16, bool, &str), &str>| {
            let parsed = Endpoint::parse(text);
            let got = parsed.as_ref().map(|endpoint| {
                (endpoint.host.as_str(), endpoint.port, endpoint.tls, endpoint.origin.to_string())
            });
            let got =
                got.as_ref().map(|(host, port, tls, origin)| (*host, *port, *tls, origin.as_str()));
            assert_eq!(got.map_err(|error| **error), expect, "{text}");
        };
        check("127.0.0.1:2379", Ok(("127.0.0.1", 2379, false, "http://127.0.0.1:2379/")));
        check("http://a:1/", Ok(("a", 1, false, "http://a:1/")));
        check("https://[::1]:2", Ok(("::1", 2, true, "https://[::1]:2/")));
        check("https://etcd", Ok(("etcd", 2379, true, "https://etcd/")));
        check("unix://x", Err("its scheme is neither http nor https"));
        check("http://a/b", Err("it has a path"));
        check("http://u:p@a", Err("its host is wrong"));
        check("http://", Err("it is not a URL"));
    }

    #[test]
    fn files_that_are_not_there_are_named() {
        let files = TlsFiles { authorities: Some("/nowhere/ca".into()), client: None };
        assert!(config(&files).unwrap_err().starts_with("/nowhere/ca: "));
    }

    #[test]
    fn files_without_a_certificate_are_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_path_buf();
        for text in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            fs::write(&path, text).unwrap();
            let files = TlsFiles { authorities: Some(path.clone()), client: None };
            let refused = config(&files).unwrap_err();
            assert_eq!(refused, format!("{} holds no certificate", path.display()));
        }
    }
}
