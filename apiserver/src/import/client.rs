//! The smallest client of a Kubernetes API: requests one after the other, over HTTP/1.1 and TLS.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use machinery::kubeconfig::{Access, Identity};
use runtime::{Authorities, Tasks};
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tracing::debug_span;

/// How long one request may take; the longest answers, OpenAPI documents, are some megabytes.
const LONGEST: Duration = Duration::from_secs(60);

/// The longest answer that is read, ten times the OpenAPI document of a large cluster.
const LARGEST: usize = 64 << 20;

/// A client of one server.
pub(crate) struct Client {
    address: Address,
    tls: TlsConnector,
    authorization: Option<HeaderValue>,
    connection: Option<SendRequest<Full<Bytes>>>,
    tasks: Tasks,
}

/// Where the server is.
#[derive(Clone, Debug)]
struct Address {
    /// What names it in a URL, as `host:6443`.
    authority: String,
    host: String,
    port: u16,
    /// What all paths begin with, without a slash at its end.
    path: String,
    server_name: ServerName<'static>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// What the kubeconfig holds is of no use.
    #[error("the {0} in the kubeconfig can't be used")]
    Material(&'static str, #[source] Cause),
    /// Nobody is there.
    #[error("{address} does not answer")]
    Connect {
        /// Where.
        address: String,
        /// Why.
        #[source]
        source: Cause,
    },
    /// The connection broke.
    #[error("{address} gave no answer to {method} {path}")]
    Broken {
        /// Where.
        address: String,
        /// What was asked.
        method: Method,
        /// Of what.
        path: String,
        /// Why.
        #[source]
        source: Cause,
    },
    /// It took too long.
    #[error("{address} did not answer {method} {path} within {} s", LONGEST.as_secs())]
    Late {
        /// Where.
        address: String,
        /// What was asked.
        method: Method,
        /// Of what.
        path: String,
    },
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

// === impl Client ===

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Client {
    /// A client; it connects when it is first asked.
    ///
    /// # Errors
    /// When the address, a certificate or a key is none.
    pub(crate) fn new(access: &Access, tasks: &Tasks) -> Result<Self, ClientError> {
        let authorization = match &access.identity {
            // A file's token has been read before.
            Identity::Certificate { .. } | Identity::TokenFile(_) => None,
            Identity::Token(token) => {
                let header = HeaderValue::from_str(&format!("Bearer {token}"));
                let mut header = header.map_err(|e| ClientError::Material("token", e.into()))?;
                header.set_sensitive(true);
                Some(header)
            }
        };
        Ok(Self {
            address: Address::of(access)?,
            tls: TlsConnector::from(Arc::new(tls(access)?)),
            authorization,
            connection: None,
            tasks: tasks.clone(),
        })
    }

    /// GET, in one of the forms that `accept` names.
    pub(crate) async fn get(&mut self, path: &str, accept: &str) -> Result<Answer, ClientError> {
        self.send(&Method::GET, path, accept, None).await
    }

    /// Any request with a body of JSON.
    pub(crate) async fn write(
        &mut self,
        method: &Method,
        path: &str,
        body: &Value,
    ) -> Result<Answer, ClientError> {
        self.send(method, path, "application/json", Some(body.to_string().into())).await
    }

    async fn send(
        &mut self,
        method: &Method,
        path: &str,
        accept: &str,
        body: Option<Bytes>,
    ) -> Result<Answer, ClientError> {
        let reused = self.connection.is_some();
        let attempt = self.try_send(method, path, accept, body.clone()).await;
        match attempt {
            // A server may end an idle connection at any time. What is written here can be
            // written twice: it names its object and, for a change, the version changed.
            Err(ClientError::Broken { .. }) if reused => {
                self.try_send(method, path, accept, body).await
            }
            attempt => attempt,
        }
    }

    async fn try_send(
        &mut self,
        method: &Method,
        path: &str,
        accept: &str,
        body: Option<Bytes>,
    ) -> Result<Answer, ClientError> {
        let address = self.address.authority.clone();
        let exchange = tokio::time::timeout(LONGEST, self.exchange(method, path, accept, body));
        match exchange.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                self.connection = None;
                Err(error)
            }
            Err(_elapsed) => {
                self.connection = None;
                Err(ClientError::Late { address, method: method.clone(), path: path.to_owned() })
            }
        }
    }

    async fn exchange(
        &mut self,
        method: &Method,
        path: &str,
        accept: &str,
        body: Option<Bytes>,
    ) -> Result<Answer, ClientError> {
        let broken = |source: Cause| ClientError::Broken {
            address: self.address.authority.clone(),
            method: method.clone(),
            path: path.to_owned(),
            source,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address.path))
            .header(HOST, &self.address.authority)
            .header(USER_AGENT, concat!("kcp-apiserver/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, accept);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(body.unwrap_or_default()));
        let request = request.map_err(|error| broken(error.into()))?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.ready().await.map_err(|error| broken(error.into()))?;
        let response =
            connection.send_request(request).await.map_err(|error| broken(error.into()))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LARGEST).collect().await.map_err(broken)?.to_bytes();
        self.connection = Some(connection);
        Ok(Answer { status: head.status, body })
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let address = &self.address;
        let failed =
            |source: Cause| ClientError::Connect { address: address.authority.clone(), source };
        let tcp = TcpStream::connect((address.host.as_str(), address.port)).await;
        let tcp = tcp.map_err(|error| failed(error.into()))?;
        let name = address.server_name.clone();
        let tls = self.tls.connect(name, tcp).await.map_err(|error| failed(error.into()))?;
        let (sender, connection) =
            handshake(TokioIo::new(tls)).await.map_err(|error| failed(error.into()))?;
        // It ends with the sender; how it ended is known to whoever waits for an answer.
        drop(self.tasks.spawn(debug_span!("client"), connection));
        Ok(sender)
    }
}

// === impl Address ===

impl Address {
    fn of(access: &Access) -> Result<Self, ClientError> {
        let bad = |error: Cause| ClientError::Material("server", error);
        let uri: Uri = access.server.parse().map_err(|e: http::uri::InvalidUri| bad(e.into()))?;
        let host = uri.host().ok_or_else(|| bad("it names no host".into()))?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(443);
        let authority = uri.authority().map(|authority| {
            // An identity before the host would be sent on, and shown in errors.
            authority.as_str().rsplit('@').next().unwrap_or_default().to_owned()
        });
        let name = access.server_name.clone().unwrap_or_else(|| host.clone());
        let server_name = ServerName::try_from(name).map_err(|error| bad(error.into()))?;
        Ok(Self {
            authority: authority.unwrap_or_default(),
            host,
            port,
            path: uri.path().trim_end_matches('/').to_owned(),
            server_name,
        })
    }
}

// === impl Answer ===

impl Answer {
    /// The body as JSON; null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// What a failure says of itself, in one line.
    pub(crate) fn failure(&self) -> String {
        let status = self.json();
        match status.get("message").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            Some(message) => message.chars().take(1000).collect(),
            None => format!("the server answered {}", self.status),
        }
    }
}

fn tls(access: &Access) -> Result<ClientConfig, ClientError> {
    let bad = |what: &'static str| {
        move |error: rustls_pki_types::pem::Error| ClientError::Material(what, error.into())
    };
    let refused =
        |what: &'static str| move |error: rustls::Error| ClientError::Material(what, error.into());
    const AUTHORITY: &str = "certificate authority";
    let authorities = match &access.authority {
        None => Authorities::system(),
        Some(authority) => Authorities::of_bundle(authority),
    };
    if access.authority.is_some() && authorities.is_empty() {
        return Err(ClientError::Material(AUTHORITY, "it holds no certificate".into()));
    }
    let builder = authorities.client().map_err(refused(AUTHORITY))?;
    let mut config = match &access.identity {
        Identity::Token(_) | Identity::TokenFile(_) => builder.with_no_client_auth(),
        Identity::Certificate { chain, key } => {
            const CERTIFICATE: &str = "client certificate";
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
            let chain = chain.map_err(bad(CERTIFICATE))?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(bad("client key"))?;
            builder.with_client_auth_cert(chain, key).map_err(refused(CERTIFICATE))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
