//! A server to test, and a client that shows every byte of its answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiserver::{Builder, Running, Server};
use base64::Engine;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, Connection, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The longest that anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The administrator's token of every server here.
pub(crate) const TOKEN: &str = "a-token-of-the-administrator";

/// Names the endpoints of an etcd that the tests of servers in this process are to run over.
const ETCD_VARIABLE: &str = "KCP_TEST_ETCD";

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Admin,
    Anonymous,
}

/// A server in this process, or several that share a store.
pub(crate) struct Hub {
    running: Running,
    /// Others over the same store. Each connection goes to the next of all.
    others: Vec<Running>,
    connections: AtomicUsize,
    /// Where servers that share a store have their keys in common.
    _root: Option<tempfile::TempDir>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// One request to make.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

// === impl Hub ===

impl Hub {
    pub(crate) async fn start() -> Self {
        Self::start_with(|server| server.allow_outbound(apiserver::Network::loopback())).await
    }

    /// A server that is set up by `with`, beyond what every server here has.
    ///
    /// Where the environment names an etcd, it is two servers over a fresh prefix there.
    pub(crate) async fn start_with(with: impl Fn(Builder) -> Builder) -> Self {
        if let Ok(servers) = std::env::var(ETCD_VARIABLE) {
            return Self::replicas(&servers, with).await;
        }
        let store = store::MemoryStore::new(store::memory::Options::default());
        let server = with(Server::builder(store).admin_token(TOKEN));
        Self::of(server.start().await.unwrap())
    }

    /// A server that runs already, with that token.
    pub(crate) fn of(running: Running) -> Self {
        Self { running, others: Vec::new(), connections: AtomicUsize::new(0), _root: None }
    }

    /// Two servers over one etcd.
    async fn replicas(servers: &str, with: impl Fn(Builder) -> Builder) -> Self {
        let root = tempfile::tempdir().unwrap();
        let options = store::EtcdOptions {
            endpoints: servers.split(',').map(str::to_owned).collect(),
            tls: store::etcd::TlsFiles::default(),
            prefix: format!("/test/{}", uuid::Uuid::new_v4()),
            compaction_interval: None,
        };
        let start = async || {
            let store = store::EtcdStore::open(&options).await.unwrap();
            let server = Server::builder(store).admin_token(TOKEN).root_directory(root.path());
            with(server).start().await.unwrap()
        };
        let (first, second) = (start().await, start().await);
        Self { others: vec![second], _root: Some(root), ..Self::of(first) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> &str {
        self.running.kubeconfig()
    }

    /// Where each of the servers listens.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(&self.running).chain(&self.others).map(Running::address)
    }

    pub(crate) async fn shutdown(self) {
        self.running.shutdown().await;
        for other in self.others {
            other.shutdown().await;
        }
    }

    /// How many servers there are.
    pub(crate) fn servers(&self) -> usize {
        self.others.len() + 1
    }

    /// Where the next connection goes.
    fn next_address(&self) -> SocketAddr {
        let turn = self.connections.fetch_add(1, Ordering::Relaxed) % self.servers();
        let other = turn.checked_sub(1).and_then(|turn| self.others.get(turn));
        other.unwrap_or(&self.running).address()
    }

    /// A TLS connection, by ALPN `protocol`, with or without the administrator's certificate.
    pub(crate) async fn connect(&self, who: Who, protocol: &[u8]) -> TlsStream<TcpStream> {
        let holder = (who == Who::Admin).then_some(self);
        self.connect_with(holder, protocol).await
    }

    /// A TLS connection with the certificate of `holder`'s administrator.
    pub(crate) async fn connect_with(
        &self,
        holder: Option<&Self>,
        protocol: &[u8],
    ) -> TlsStream<TcpStream> {
        let (address, ca) = self.current().await;
        let holder = holder.map(|holder| holder.running.kubeconfig());
        connect(address, &ca, holder, protocol).await
    }

    /// A TLS connection over HTTP/2 with a certificate and its key as PEM, or without one.
    pub(crate) async fn connect_as(&self, pair: Option<&(String, String)>) -> TlsStream<TcpStream> {
        let (address, ca) = self.current().await;
        connect_by(address, &ca, pair, b"h2").await
    }

    /// The server of the next connection, once it has what was written so far, and its authority.
    async fn current(&self) -> (SocketAddr, Vec<u8>) {
        let ca = pem(self.running.kubeconfig(), "certificate-authority-data");
        let address = self.next_address();
        if !self.others.is_empty() {
            // What admits a write follows the store, as in every server of several, some
            // milliseconds later: a read waits for it.
            let stream = connect(address, &ca, Some(self.running.kubeconfig()), b"h2").await;
            let read = ask_over(stream, &Ask::get("/api/v1/namespaces/default")).await;
            assert_eq!(read.status, StatusCode::OK, "{read:?}");
        }
        (address, ca)
    }

    /// One request on a connection of its own, over HTTP/2.
    pub(crate) async fn ask(&self, who: Who, ask: Ask) -> Answer {
        let stream = self.connect(who, b"h2").await;
        ask_over(stream, &ask).await
    }

    /// As the administrator.
    pub(crate) async fn admin(&self, ask: Ask) -> Answer {
        self.ask(Who::Admin, ask).await
    }

    /// GET as the administrator.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.admin(Ask::get(path)).await
    }
}

/// A TLS connection, by ALPN `protocol`, with the certificate in a kubeconfig or without one.
pub(crate) async fn connect(
    address: SocketAddr,
    ca: &[u8],
    kubeconfig: Option<&str>,
    protocol: &[u8],
) -> TlsStream<TcpStream> {
    let pair = kubeconfig.map(|holder| {
        let text = |field| String::from_utf8(pem(holder, field)).unwrap();
        (text("client-certificate-data"), text("client-key-data"))
    });
    connect_by(address, ca, pair.as_ref(), protocol).await
}

/// A TLS connection, by ALPN `protocol`, with a certificate and its key as PEM or without one.
pub(crate) async fn connect_by(
    address: SocketAddr,
    ca: &[u8],
    pair: Option<&(String, String)>,
    protocol: &[u8],
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match pair {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = CertificateDer::from_pem_slice(certificate.as_bytes());
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![chain.unwrap()], key).unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    let tcp = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap()
}

/// The PEM text under a field of a kubeconfig.
pub(crate) fn pem(kubeconfig: &str, field: &str) -> Vec<u8> {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix(field));
    let data = line.unwrap().trim_start_matches(": ");
    base64::engine::general_purpose::STANDARD.decode(data).unwrap()
}

/// Begins HTTP/2 over a connection: what sends requests, and what moves the bytes while it is polled.
pub(crate) async fn multiplex(
    stream: TlsStream<TcpStream>,
) -> (SendRequest<Full<Bytes>>, Connection<TokioIo<TlsStream<TcpStream>>, Full<Bytes>, TokioExecutor>)
{
    http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap()
}

/// One request over a connection, by HTTP/2.
pub(crate) async fn ask_over(stream: TlsStream<TcpStream>, ask: &Ask) -> Answer {
    let work = async {
        let (mut sender, connection) = multiplex(stream).await;
        let request = ask.request("https://localhost");
        tokio::select! {
            answer = async { Answer::of(sender.send_request(request).await.unwrap()).await } => answer,
            ended = connection => panic!("connection ended: {ended:?}"),
        }
    };
    tokio::time::timeout(PATIENCE, work).await.expect("the server answers in time")
}

// === impl Ask ===

impl Ask {
    pub(crate) fn new(method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), headers: Vec::new(), body: Bytes::new() }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn json(self, value: &Value) -> Self {
        self.header("content-type", "application/json").body(value.to_string())
    }

    pub(crate) fn request(&self, base: &str) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = format!("{base}{}", self.path).parse().unwrap();
        for (name, value) in &self.headers {
            let value = HeaderValue::from_str(value).unwrap();
            request.headers_mut().append(HeaderName::from_static(name), value);
        }
        request
    }
}

// === impl Answer ===

impl Answer {
    async fn of(response: http::Response<hyper::body::Incoming>) -> Self {
        Self::whole(response).await.unwrap()
    }

    /// An answer, or none when its body ends too early.
    pub(crate) async fn whole(response: http::Response<hyper::body::Incoming>) -> Option<Self> {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        Some(Self { status: parts.status, headers: parts.headers, body })
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// That the body is a `Status` of this code and reason; gives its message.
    #[track_caller]
    pub(crate) fn fails(&self, code: u16, reason: &str) -> String {
        let status = self.json();
        assert_eq!(self.status.as_u16(), code, "{status}");
        assert_eq!((&status["kind"], &status["apiVersion"]), (&"Status".into(), &"v1".into()));
        assert_eq!((&status["status"], &status["code"]), (&"Failure".into(), &code.into()));
        assert_eq!(status["reason"], reason, "{status}");
        status["message"].as_str().unwrap().to_owned()
    }
}
