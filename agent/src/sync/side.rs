//! The two API servers, and how their paths are made.

use client::{Ask, Error, Link, Told};
use engine::{Request, Side};
use http::Method;

/// What the upstream server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A hub with logical clusters.
    Hub,
    /// A plain Kubernetes API server.
    Plain,
}

/// The upstream server.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// A link to its root: what stands before `/clusters/…` of a hub.
    pub link: Link,
    /// What it is.
    pub shape: Shape,
}

// === impl Upstream ===

impl Upstream {
    /// What stands before a path of a logical cluster; `*` for all.
    pub(crate) fn base(&self, cluster: &str) -> String {
        match self.shape {
            Shape::Hub => format!("/clusters/{cluster}"),
            Shape::Plain => String::new(),
        }
    }
}

/// Sends a request of the engine.
pub(super) async fn send(
    upstream: &Upstream,
    downstream: &Link,
    request: Request,
) -> Result<Told, Error> {
    let path = request.path();
    let (link, path) = match (request.side, &request.cluster) {
        (Side::Upstream, Some(cluster)) => {
            (&upstream.link, format!("{}{path}", upstream.base(cluster)))
        }
        (Side::Upstream, None) => (&upstream.link, path),
        (Side::Downstream, _) => (downstream, path),
    };
    let method = match request.method {
        engine::Method::Get => Method::GET,
        engine::Method::Post => Method::POST,
        engine::Method::Patch => Method::PATCH,
        engine::Method::Delete => Method::DELETE,
    };
    let (content_type, accept) = (request.content_type, request.accept);
    link.ask(Ask { method, path: &path, content_type, accept, body: request.body.into() }).await
}

/// A word for metrics.
pub(super) fn name(side: Side) -> &'static str {
    match side {
        Side::Upstream => "upstream",
        Side::Downstream => "downstream",
    }
}
