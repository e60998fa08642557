//! What the clients of a link send their requests to.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{AUTHORIZATION, HOST, USER_AGENT};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use kube::client::Body;

use super::Inner;
use super::body::{Answer, Bounds};
use super::connection::Unanswered;
use crate::Error;

/// How often a request is given to another connection, if one ends before it is sent.
const ATTEMPTS: usize = 3;

/// The largest answer that is taken: ten times the OpenAPI document of a large cluster, and the
/// longest line of a watch, which holds one object.
const LARGEST: usize = 64 << 20;

/// What a request is, as far as connections go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A watch.
    Watch,
    /// Anything about Leases that is no watch: a heartbeat waits for nothing.
    Lease,
    /// Anything else.
    Call,
}

/// Sends requests to one path of a server.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) inner: Arc<Inner>,
    /// What stands before the path of each request.
    pub(crate) path: Arc<str>,
}

// === impl Service ===

impl tower::Service<Request<Body>> for Service {
    type Response = Response<Answer>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (inner, path) = (self.inner.clone(), self.path.clone());
        Box::pin(async move { inner.send(request, &path).await })
    }
}

// === impl Inner ===

impl Inner {
    /// Sends a request to what is below `path`, over a connection of its class.
    pub(crate) async fn send(
        &self,
        mut request: Request<Body>,
        path: &str,
    ) -> Result<Response<Answer>, Error> {
        let class = Class::of(request.uri());
        let server = &self.settings.server;
        let broken = || Error::Broken(server.host.clone());
        *request.uri_mut() = absolute(server, path, request.uri()).ok_or_else(broken)?;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(self.settings.user_agent));
        let token = self.token.lock().clone();
        if let Some(token) = &token {
            headers.insert(AUTHORIZATION, token.header().await?);
        }
        for _ in 0..ATTEMPTS {
            let generation = self.generation.load(Ordering::Acquire);
            let slot = self.pool(class).take(&self.dialer, generation, &self.opened).await?;
            let headers = request.headers_mut();
            headers.remove(HOST);
            if slot.is_http1()
                && let Ok(host) = HeaderValue::from_str(server.authority.as_str())
            {
                headers.insert(HOST, host);
            }
            let sent = tokio::time::timeout(class.patience(), slot.send(request));
            let Ok(answered) = sent.await else {
                slot.spoil_if_http1();
                return Err(Error::Late { host: server.host.clone(), what: "answer" });
            };
            match answered {
                Ok(response) => {
                    if response.status() == StatusCode::UNAUTHORIZED {
                        if let Some(token) = &token {
                            token.refused();
                        }
                        self.unauthorized.send_modify(|count| *count = count.wrapping_add(1));
                    }
                    let bounds = class.bounds(slot.is_http1());
                    let host = server.host.clone();
                    return Ok(response.map(|body| Answer::new(body, slot, host, bounds)));
                }
                Err(Unanswered::Unsent(unsent)) => request = *unsent,
                Err(Unanswered::Failed(error)) => return Err(error),
            }
            // The form of HTTP/1.1 has lost the rest.
            if let Some(uri) = absolute(server, "", request.uri()) {
                *request.uri_mut() = uri;
            }
        }
        Err(broken())
    }
}

/// The whole URI of a request. Paths come from API clients and begin with a slash.
fn absolute(server: &crate::Server, path: &str, uri: &Uri) -> Option<Uri> {
    let rest = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTPS);
    parts.authority = Some(server.authority.clone());
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{path}{rest}")).ok()?);
    Uri::from_parts(parts).ok()
}

// === impl Class ===

impl Class {
    /// What a request is.
    fn of(uri: &Uri) -> Self {
        let watches = |pair: &str| matches!(pair, "watch=true" | "watch=1");
        if uri.query().is_some_and(|query| query.split('&').any(watches)) {
            return Self::Watch;
        }
        let mut parts = uri.path().split('/');
        let lease = parts.any(|part| part == "coordination.k8s.io") && parts.any(|p| p == "leases");
        if lease { Self::Lease } else { Self::Call }
    }

    /// How long the head of the answer may take. API servers give up after a minute; a heartbeat that
    /// is late must be tried again while the Lease lives.
    fn patience(self) -> Duration {
        Duration::from_secs(match self {
            Self::Watch => 30,
            Self::Lease => 8,
            Self::Call => 65,
        })
    }

    /// What the body of the answer is held to.
    fn bounds(self, http1: bool) -> Bounds {
        let watch = self == Self::Watch;
        let quiet = match self {
            // Pings tell whether the server is there. Where there are none, watches end within five
            // minutes, as their clients ask.
            Self::Watch => http1.then(|| Duration::from_secs(330)),
            Self::Lease => Some(Duration::from_secs(8)),
            Self::Call => Some(Duration::from_secs(30)),
        };
        Bounds { largest: LARGEST, by_line: watch, quiet }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_requests() {
        let check = |uri: &str, expect: Class| {
            assert_eq!(Class::of(&uri.parse().unwrap()), expect, "{uri}");
        };
        check("/api/v1/pods?&watch=true&timeoutSeconds=290", Class::Watch);
        check("/api/v1/pods?limit=500", Class::Call);
        check("/api/v1/namespaces/a/pods/watch", Class::Call);
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        check(&format!("{leases}/a"), Class::Lease);
        check(&format!("/clusters/a{leases}/a?fieldManager=x"), Class::Lease);
        check(&format!("{leases}?watch=1"), Class::Watch);
        check("/apis/x.io/v1/leases", Class::Call);
    }

    #[test]
    fn paths_are_joined() {
        let check = |server: &str, path: &str, uri: &str, expect: &str| {
            let joined = absolute(&server.parse().unwrap(), path, &uri.parse().unwrap());
            assert_eq!(joined.unwrap().to_string(), expect);
        };
        check("https://a:1/x", "/x", "/api?a=b", "https://a:1/x/api?a=b");
        check("https://a", "/clusters/*", "/api/v1/pods", "https://a/clusters/*/api/v1/pods");
        check("https://[::1]:6443", "", "/api", "https://[::1]:6443/api");
    }
}
