//! A webhook to test with: an HTTPS server that answers as it is told, and remembers questions.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use runtime::Tasks;
use rustls::ServerConfig;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tracing::info_span;

type Answer = dyn Fn(&Value) -> Response<Full<Bytes>> + Send + Sync;

/// A running webhook.
pub(crate) struct Hook {
    address: SocketAddr,
    ca: String,
    seen: Arc<Mutex<Vec<Value>>>,
    tasks: Tasks,
}

impl Hook {
    /// A webhook that answers each review with what `answer` makes of it.
    pub(crate) async fn start(answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::start_raw(move |review| {
            let mut response = Response::new(Full::from(answer(review).to_string()));
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert(http::header::CONTENT_TYPE, json);
            response
        })
        .await
    }

    /// A webhook that answers with whole responses.
    pub(crate) async fn start_raw(
        answer: impl Fn(&Value) -> Response<Full<Bytes>> + Send + Sync + 'static,
    ) -> Self {
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        // Its authority is nowhere: who is given the certificate itself believes that.
        let params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        let authority = rcgen::KeyPair::generate().unwrap();
        let authority = rcgen::Issuer::new(params, authority);
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        let ca = base64::engine::general_purpose::STANDARD.encode(certificate.pem());
        let key = rustls_pki_types::PrivateKeyDer::try_from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.unwrap())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tasks, seen) = (Tasks::new(), Arc::default());
        let serving = serve(listener, acceptor, Arc::new(answer), Arc::clone(&seen), tasks.clone());
        drop(tasks.spawn(info_span!("hook"), serving));
        Self { address, ca, seen, tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// The certificate, as a `caBundle`.
    pub(crate) fn ca(&self) -> &str {
        &self.ca
    }

    /// The questions so far.
    pub(crate) fn seen(&self) -> Vec<Value> {
        self.seen.lock().clone()
    }

    /// The questions since the last time.
    pub(crate) fn take_seen(&self) -> Vec<Value> {
        std::mem::take(&mut self.seen.lock())
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    answer: Arc<Answer>,
    seen: Arc<Mutex<Vec<Value>>>,
    tasks: Tasks,
) {
    let stop = tasks.cancellation().clone();
    while let Some(Ok((stream, _))) = stop.run_until_cancelled(listener.accept()).await {
        let (acceptor, answer, seen) = (acceptor.clone(), answer.clone(), seen.clone());
        let one = async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(|request: Request<Incoming>| {
                let (answer, seen) = (answer.clone(), seen.clone());
                async move {
                    let body = request.into_body().collect().await?.to_bytes();
                    // Who only reads sends nothing.
                    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
                    seen.lock().push(review.clone());
                    Ok::<_, hyper::Error>(answer(&review))
                }
            });
            let io = TokioIo::new(stream);
            // A client may go away at any time.
            hyper::server::conn::http1::Builder::new().serve_connection(io, service).await.ok();
        };
        let stop = stop.clone();
        drop(tasks.spawn(info_span!("connection"), async move {
            stop.run_until_cancelled(one).await;
        }));
    }
}
