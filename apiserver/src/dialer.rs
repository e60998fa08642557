//! The one way out: every call that a tenant can cause goes through here.
//!
//! Webhooks, conversions and the like are named by tenants, and the server sits in networks that
//! tenants don't. So a call goes by HTTPS only; the name is resolved here, every address is
//! checked, and the connection is made to an address that passed, so that a name can't change its
//! mind in between. There are no proxies and no redirects. Answers are bounded in size and time,
//! and what a remote server says never becomes part of an error: else a tenant could read what
//! this server can reach.
//!
//! Calls in flight are bounded for each logical cluster and for all together. Connections are kept
//! for a while, each for one logical cluster, address and set of authorities. No task is behind
//! them: a kept connection moves only while a call uses it.

mod address;
mod connection;
mod error;
mod limits;
mod pool;
mod trust;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Method, Uri};
use http_body_util::Full;
use machinery::ClusterName;
use machinery::network::Reachable;

pub(crate) use error::CallError;
pub use machinery::network::Network;

use connection::{Connection, Failed};
use limits::Limits;
use pool::{Place, Pool};
use trust::Trust;

/// What outbound calls are made with. Shared by the whole server.
#[derive(Debug)]
pub(crate) struct Dialer {
    reachable: Reachable,
    trust: Trust,
    limits: Limits,
    pool: Pool,
}

/// One exchange of JSON.
#[derive(Clone, Debug)]
pub(crate) struct Call<'c> {
    /// The logical cluster that causes it.
    pub(crate) cluster: &'c ClusterName,
    /// Where to: `https://host[:port][/path][?query]`.
    pub(crate) url: &'c str,
    /// Certificate authorities as PEM in base64; the system's if empty.
    pub(crate) ca_bundle: &'c str,
    /// The longest that all of it may take.
    pub(crate) timeout: Duration,
    /// What is sent, with a POST.
    pub(crate) body: Bytes,
    /// The most bytes of an answer.
    pub(crate) max_answer: usize,
}

/// A URL taken apart.
struct Destination {
    host: String,
    port: u16,
    /// The `Host` header: as the URL has it.
    authority: HeaderValue,
    path: Uri,
}

// === impl Dialer ===

impl Dialer {
    /// A dialer that reaches public and private addresses, and of the special ones only those in
    /// `allowed`.
    pub(crate) fn new(allowed: Vec<Network>) -> Self {
        Self {
            reachable: Reachable::new(allowed),
            trust: Trust::default(),
            limits: Limits::default(),
            pool: Pool::default(),
        }
    }

    /// Makes a call. Returns the body of an answer of success.
    ///
    /// # Errors
    /// Whatever kept it from being made or answered, without a word of the answer.
    pub(crate) async fn post(&self, call: Call<'_>) -> Result<Bytes, CallError> {
        self.call(Method::POST, call).await
    }

    /// As [`post`](Self::post), for a document that is there to be read.
    ///
    /// # Errors
    /// The same.
    pub(crate) async fn get(&self, call: Call<'_>) -> Result<Bytes, CallError> {
        self.call(Method::GET, call).await
    }

    async fn call(&self, method: Method, call: Call<'_>) -> Result<Bytes, CallError> {
        let timeout = call.timeout;
        let work = Box::pin(self.work(&method, call));
        tokio::time::timeout(timeout, work).await.unwrap_or(Err(CallError::Timeout))
    }

    async fn work(&self, method: &Method, call: Call<'_>) -> Result<Bytes, CallError> {
        let destination = Destination::parse(call.url)?;
        let _permits = self.limits.enter(call.cluster).await;
        let (trust, config) = self.trust.config(call.ca_bundle).await?;
        let place = Place {
            cluster: call.cluster.clone(),
            host: destination.host.clone(),
            port: destination.port,
            trust,
        };
        let request = || {
            let mut request = http::Request::new(Full::new(call.body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = destination.path.clone();
            let headers = request.headers_mut();
            headers.insert(HOST, destination.authority.clone());
            if *method == Method::POST {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
            headers.insert(USER_AGENT, HeaderValue::from_static("kcp-apiserver-admission"));
            request
        };
        if let Some(mut kept) = self.pool.take(&place) {
            match kept.exchange(request(), call.max_answer).await {
                // It was closed meanwhile: nobody has seen the request.
                Err(Failed { unseen: true, .. }) => {}
                outcome => return self.settle(place, kept, outcome),
            }
        }
        let addresses =
            address::resolve(&self.reachable, &destination.host, destination.port).await?;
        let mut fresh = Connection::open(&addresses, &destination.host, config).await?;
        let outcome = fresh.exchange(request(), call.max_answer).await;
        self.settle(place, fresh, outcome)
    }

    fn settle(
        &self,
        place: Place,
        connection: Connection,
        outcome: Result<(http::StatusCode, Bytes), Failed>,
    ) -> Result<Bytes, CallError> {
        let (status, body) = outcome.map_err(|failed| failed.error)?;
        if connection.is_open() {
            self.pool.keep(place, connection);
        }
        if status.is_success() { Ok(body) } else { Err(CallError::Status(status.as_u16())) }
    }
}

// === impl Destination ===

impl Destination {
    fn parse(url: &str) -> Result<Self, CallError> {
        let uri: Uri = url.parse().map_err(|_| CallError::Url("it can't be parsed"))?;
        if uri.scheme_str() != Some("https") {
            return Err(CallError::Url("its scheme is not https"));
        }
        let authority = uri.authority().ok_or(CallError::Url("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(CallError::Url("it has user information"));
        }
        let written = authority.host();
        let host = written.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = host.unwrap_or(written);
        if host.is_empty() {
            return Err(CallError::Url("it has no host"));
        }
        // The parser leaves out a port that is no number of 16 bits.
        let rest = authority.as_str().strip_prefix(written).unwrap_or_default();
        let port = match rest.strip_prefix(':').unwrap_or(rest) {
            "" => 443,
            port => port.parse().map_err(|_| CallError::Url("its port is wrong"))?,
        };
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        Ok(Self {
            host: host.to_owned(),
            port,
            authority: HeaderValue::from_str(authority.as_str())
                .map_err(|_| CallError::Url("its host is wrong"))?,
            path: path.parse().map_err(|_| CallError::Url("its path is wrong"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let check = |url: &str, expect: Option<(&str, u16, &str)>| {
            let parsed = Destination::parse(url).ok();
            let parsed = parsed.as_ref().map(|d| (&*d.host, d.port, d.path.to_string()));
            let parsed = parsed.as_ref().map(|(host, port, path)| (*host, *port, &**path));
            assert_eq!(parsed, expect, "{url}");
        };
        check("https://a.example", Some(("a.example", 443, "/")));
        check("https://a.example:8443/x/y?z=1", Some(("a.example", 8443, "/x/y?z=1")));
        check("https://[::1]:1/x", Some(("::1", 1, "/x")));
        for wrong in [
            "http://a.example",
            "https://u:p@a.example/",
            "a.example",
            "",
            "https://",
            "https://a:99999/",
            "https://a b/",
            "/x",
        ] {
            check(wrong, None);
        }
    }
}
