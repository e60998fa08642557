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
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::info_span;

type Answer = dyn Fn(&Value) -> Response<Full<Bytes>> + Send + Sync;

/// A running webhook.
pub(crate) struct Hook {
    address: SocketAddr,
    ca: String,
    seen: Arc<Mutex<Vec<Value>>>,
    lines: Arc<Lines>,
    tasks: Tasks,
}

/// The connections that are open, and how to close them.
#[derive(Default)]
struct Lines {
    close: Mutex<CancellationToken>,
    open: watch::Sender<usize>,
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
        let (tasks, seen, lines) = (Tasks::new(), Arc::default(), Arc::<Lines>::default());
        let told = Arc::clone(&seen);
        let serving =
            serve(listener, acceptor, Arc::new(answer), told, lines.clone(), tasks.clone());
        drop(tasks.spawn(info_span!("hook"), serving));
        Self { address, ca, seen, lines, tasks }
    }

    /// Closes all connections, as a program does that is restarted. New ones are taken.
    pub(crate) async fn hang_up(&self) {
        std::mem::take(&mut *self.lines.close.lock()).cancel();
        self.lines.open.subscribe().wait_for(|open| *open == 0).await.unwrap();
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
        *self.lines.open.borrow()
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
    lines: Arc<Lines>,
    tasks: Tasks,
) {
    let stop = tasks.cancellation().clone();
    while let Some(Ok((stream, _))) = stop.run_until_cancelled(listener.accept()).await {
        let (acceptor, answer, seen) = (acceptor.clone(), answer.clone(), seen.clone());
        let close = lines.close.lock().clone();
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
            let serving = hyper::server::conn::http1::Builder::new().serve_connection(io, service);
            let mut serving = std::pin::pin!(serving);
            // A client may go away at any time.
            if close.run_until_cancelled(serving.as_mut()).await.is_none() {
                serving.as_mut().graceful_shutdown();
                serving.await.ok();
            }
        };
        let (stop, lines) = (stop.clone(), lines.clone());
        lines.open.send_modify(|open| *open += 1);
        drop(tasks.spawn(info_span!("connection"), async move {
            stop.run_until_cancelled(one).await;
            lines.open.send_modify(|open| *open -= 1);
        }));
    }
}
