//! What every process tells about itself over plain HTTP: `/healthz`, `/readyz` and `/metrics`.
//!
//! Invariants: nothing else is served, no request has a body that is read, and no answer holds
//! anything of a request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus::{Encoder, Registry, TextEncoder};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tracing::{debug, info_span};

use crate::Tasks;

/// Connections at a time: probes and scrapers are few, and whoever else comes waits.
const MOST_CONNECTIONS: usize = 32;

/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// How long one connection may last; scrapers open another.
const LIFETIME: Duration = Duration::from_secs(300);

/// What is told about a process.
pub trait Pages: Send + Sync + 'static {
    /// Whether it still does its work; what is wrong, if it doesn't. A process that doesn't is
    /// started anew.
    ///
    /// # Errors
    /// What is wrong.
    fn healthy(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether it can do its work now.
    ///
    /// # Errors
    /// What it waits for.
    fn ready(&self) -> Result<(), String>;

    /// Its metrics.
    fn metrics(&self) -> &Registry;
}

/// Serves the pages until the tasks are cancelled, and returns where.
///
/// # Errors
/// When the address cannot be listened on.
pub async fn serve(
    address: SocketAddr,
    pages: Arc<dyn Pages>,
    tasks: &Tasks,
) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let accept = accept(listener, pages, tasks.clone());
    drop(tasks.spawn(info_span!("pages"), accept));
    Ok(bound)
}

async fn accept(listener: TcpListener, pages: Arc<dyn Pages>, tasks: Tasks) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let cancelled = tasks.cancellation().clone();
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        let Some((permit, accepted)) = cancelled.run_until_cancelled(next).await else { return };
        match accepted {
            Ok((stream, _peer)) => {
                let (pages, cancelled) = (pages.clone(), cancelled.clone());
                let connection = async move {
                    let _permit = permit;
                    let served = tokio::time::timeout(LIFETIME, connection(stream, pages));
                    cancelled.run_until_cancelled(served).await;
                };
                drop(tasks.spawn(info_span!("page"), connection));
            }
            // Out of descriptors, most likely: others have to end first.
            Err(error) => {
                debug!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, pages: Arc<dyn Pages>) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = answer(&*pages, request.method(), request.uri().path());
        async move { Ok::<_, std::convert::Infallible>(answer) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        debug!(%error, "a connection broke off");
    }
}

fn answer(pages: &dyn Pages, method: &Method, path: &str) -> Response<Full<Bytes>> {
    if method != Method::GET && method != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is served\n".into());
    }
    let told = |state: Result<(), String>| match state {
        Ok(()) => text(StatusCode::OK, "ok\n".into()),
        Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    };
    match path {
        "/healthz" | "/livez" => told(pages.healthy()),
        "/readyz" => told(pages.ready()),
        "/metrics" => metrics(pages.metrics()),
        _ => text(StatusCode::NOT_FOUND, "not found\n".into()),
    }
}

fn metrics(registry: &Registry) -> Response<Full<Bytes>> {
    let mut body = Vec::new();
    let encoder = TextEncoder::new();
    if encoder.encode(&registry.gather(), &mut body).is_err() {
        return text(StatusCode::INTERNAL_SERVER_ERROR, "metrics cannot be written\n".into());
    }
    let mut response = Response::new(Full::from(body));
    let kind = header::HeaderValue::from_static(prometheus::TEXT_FORMAT);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use prometheus::IntCounter;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    struct Process {
        ready: bool,
        registry: Registry,
    }

    impl Pages for Process {
        fn ready(&self) -> Result<(), String> {
            if self.ready { Ok(()) } else { Err("waiting for the hub".into()) }
        }

        fn metrics(&self) -> &Registry {
            &self.registry
        }
    }

    async fn ask(address: SocketAddr, head: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{head} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn pages_are_served() {
        let registry = Registry::new();
        let counter = IntCounter::new("kcp_things_total", "Things.").unwrap();
        registry.register(Box::new(counter.clone())).unwrap();
        counter.inc();
        let tasks = Tasks::new();
        let pages = Arc::new(Process { ready: false, registry });
        let address = serve("127.0.0.1:0".parse().unwrap(), pages, &tasks).await.unwrap();
        for (head, status, body) in [
            ("GET /healthz", "200 OK", "ok"),
            ("GET /readyz", "503", "waiting for the hub"),
            ("GET /metrics", "200 OK", "kcp_things_total 1"),
            ("GET /secrets", "404", "not found"),
            ("POST /healthz", "405", "only GET"),
        ] {
            let answer = ask(address, head).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
            assert!(answer.contains(body), "{head}: {answer}");
        }
        assert_eq!(tasks.shutdown(Duration::from_secs(5)).await, 0);
    }
}
