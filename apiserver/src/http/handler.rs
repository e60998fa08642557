//! Handlers: which part of the server answers a path.

mod pages;
mod resource;
mod verbs;

use std::sync::Arc;

use bytes::Bytes;
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Method, Response};
use machinery::GroupResource;

use super::body::Body;
use super::fairness::Seats;
use super::negotiate::{self, Offers, Shape};
use super::{App, Call, Seen, json, not_found_page, status, text, version};
use crate::auth::authz;
use crate::openapi::Surface;
use crate::registry::{ClusterScope, Error, Reason};
use pages::Page;

impl App {
    /// Answers a request that has been let in.
    pub(super) async fn handle<B>(
        &self,
        call: Call<'_>,
        body: B,
        seen: &mut Seen,
    ) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        match &call.info.resource {
            Some(path) => self.resource(call, path, body, seen).await,
            None => self.path(call, body, seen).await,
        }
    }

    /// Answers paths that are no resources; nearly all of them are read only.
    async fn path<B>(
        &self,
        call: Call<'_>,
        body: B,
        seen: &mut Seen,
    ) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let path = call.info.path.strip_suffix('/').unwrap_or(call.info.path);
        // What everybody may see costs nothing, and tells whether the server is well.
        let seat = match authz::is_public(call.info.path) {
            true => None,
            false => Some(self.fairness.seat(Seats::Read, call.caller, 1).await?),
        };
        let answer = match Page::of(path) {
            None => None,
            Some(Page::Index) => Some(self.index(call)),
            Some(Page::Version) => Some(json(version::version())),
            Some(Page::Metrics) => self.metrics_page(call),
            Some(Page::Issuer) => self.issuer_page(call, path),
            Some(Page::Groups) => Some(self.discovery_root(call, path)?),
            Some(Page::Group) => match self.discovery_page(call, path)? {
                Some(page) => Some(page),
                None => {
                    let group = path.strip_prefix("/apis/").and_then(|rest| rest.split('/').next());
                    return self.not_there(&call.info.cluster, group.unwrap_or_default());
                }
            },
            Some(Page::OpenApi) => {
                Some(self.openapi.whole(&self.surface(call), headers(call)).await?)
            }
            Some(Page::OpenApiParts) => self.openapi_page(call, path).await?,
            Some(Page::Health) => self.health.answer(path, call.query).await,
            Some(Page::Debug) => {
                // A profile takes its time, and has a bound of its own.
                drop(seat);
                return self.debug_page(call, path, body, seen).await;
            }
        };
        let Some(answer) = answer else { return Ok(not_found_page()) };
        if matches!(call.parts.method, Method::GET | Method::HEAD) {
            return Ok(answer);
        }
        Ok(method_not_allowed(None, "GET, HEAD", call))
    }

    /// The paths that there are.
    fn index(&self, call: Call<'_>) -> Response<Body> {
        let mut paths = Vec::new();
        let resources = self.catalog.resources(&call.info.cluster);
        for resource in resources.iter() {
            for served in resource.versions.iter().filter(|version| version.served) {
                if resource.group.is_empty() {
                    paths.push(format!("/api/{}", served.name));
                } else {
                    paths.push(format!("/apis/{}", resource.group));
                    paths.push(format!("/apis/{}/{}", resource.group, served.name));
                }
            }
        }
        paths.extend(Page::listed(self.debug_of(call).is_some()).map(str::to_owned));
        paths.sort_unstable();
        paths.dedup();
        json(serde_json::json!({ "paths": paths }).to_string())
    }

    /// Metrics are of the whole server, so they are in `root` alone.
    fn metrics_page(&self, call: Call<'_>) -> Option<Response<Body>> {
        let ClusterScope::One(cluster) = &call.info.cluster else { return None };
        cluster.is_root().then(|| {
            let types = self.registry.types();
            let builtin = |resource: &GroupResource| {
                types.resource(&resource.group, &resource.resource).is_some()
            };
            self.metrics.count_objects(self.registry.objects(), builtin);
            let mut page = text(http::StatusCode::OK, self.metrics.text());
            let media = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            page.headers_mut().insert(http::header::CONTENT_TYPE, media);
            page
        })
    }

    fn discovery_root(&self, call: Call<'_>, path: &str) -> Result<Response<Body>, Error> {
        let offers = Offers { discovery: true, ..Offers::default() };
        let accepted = negotiate::accept(&call.parts.headers, offers)?;
        let documents = self.documents(&call.info.cluster);
        let aggregated = accepted.shape == Shape::Discovery;
        let document = documents.root(path == "/api", aggregated);
        Ok(document.answer(&call.parts.headers, accepted.encoding))
    }

    /// `/api/V`, `/apis/G` and `/apis/G/V`; `None` where there is no such group or version.
    fn discovery_page(&self, call: Call<'_>, path: &str) -> Result<Option<Response<Body>>, Error> {
        let accepted = negotiate::accept(&call.parts.headers, Offers::default())?;
        let documents = self.documents(&call.info.cluster);
        let segments: Vec<&str> = path.trim_start_matches('/').splitn(4, '/').collect();
        let document = match segments.as_slice() {
            ["api", version] => documents.version("", version),
            ["apis", group] if !group.is_empty() => documents.group(group),
            ["apis", group, version] if !group.is_empty() => documents.version(group, version),
            _ => None,
        };
        Ok(document.map(|document| document.answer(&call.parts.headers, accepted.encoding)))
    }

    async fn openapi_page(
        &self,
        call: Call<'_>,
        path: &str,
    ) -> Result<Option<Response<Body>>, Error> {
        let Some(rest) = path.strip_prefix("/openapi/v3") else { return Ok(None) };
        let surface = self.surface(call);
        if rest.is_empty() {
            return self.openapi.index(&surface, headers(call)).await.map(Some);
        }
        let Some(rest) = rest.strip_prefix('/') else { return Ok(None) };
        let (hash, uri) = (call.query.get("hash"), &call.parts.uri);
        self.openapi.page(&surface, rest, hash, uri, headers(call)).await
    }

    fn surface(&self, call: Call<'_>) -> Surface {
        Surface::of(&self.catalog, &call.info.cluster)
    }

    fn documents(&self, scope: &ClusterScope) -> Arc<crate::discovery::Documents> {
        self.discovery.documents(&self.catalog.resources(scope))
    }
}

fn headers<'a>(call: Call<'a>) -> &'a HeaderMap {
    &call.parts.headers
}

/// The answer to a method that the path does not have; `error` says more than the usual text.
pub(super) fn method_not_allowed(
    error: Option<Error>,
    allow: &str,
    call: Call<'_>,
) -> Response<Body> {
    let error = error.unwrap_or_else(|| {
        let text = "the server does not allow this method on the requested resource";
        Error::generic(Reason::MethodNotAllowed, text)
    });
    let accepted = negotiate::accept(&call.parts.headers, Offers::default()).unwrap_or_default();
    let mut response =
        status::failure(&error, accepted.encoding, call.id.as_str(), call.record.map(Arc::as_ref));
    if let Ok(allow) = HeaderValue::from_str(allow) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}
