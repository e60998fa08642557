//! HTTP: from a connection to an answer.
//!
//! A request goes down one ladder, [`App::serve`]: id, panic guard, counting, path and query,
//! authentication, authorization, logical cluster, deadline, handler. Nothing here touches the
//! store; the registry answers in objects, `encode` gives them their form, and `status` alone
//! knows the codes of failures.

mod audit;
mod auditing;
pub(crate) mod body;
mod coalesce;
mod deadline;
mod debug;
mod encode;
pub(crate) mod fairness;
mod handler;
mod health;
mod issuer;
mod listener;
pub(crate) mod negotiate;
mod query;
pub mod reading;
mod request_info;
mod stall;
mod status;
mod streams;
mod version;
mod warnings;

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use jiff::Timestamp;
use machinery::ClusterName;
use prometheus::IntGauge;
use rustls_pki_types::CertificateDer;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, debug_span};

use crate::audit::{Audit, Record};
use crate::auth::authn::{Authenticator, Peer};
use crate::auth::authz::{self, Attributes, Decision, Grant};
use crate::auth::{Place, UserInfo, impersonation};
use crate::catalog::{Access, Catalog};
use crate::discovery::Discovery;
use crate::metrics::{Labels, Metrics, Series};
use crate::openapi::OpenApi;
use crate::registry::{ClusterScope, Error, Reason, Registry};
use audit::{AUDIT_ID, AuditId};
use auditing::Heard;
use body::Body;
use deadline::time_limit;
use fairness::Fairness;
use negotiate::{Encoding, Offers};
use query::Query;
use request_info::{PathError, RequestInfo, decode_path};

pub(crate) use audit::AuditIds;
pub(crate) use deadline::parse_duration;
pub(crate) use debug::Debugging;
pub(crate) use health::Health;
pub(crate) use issuer::IssuerPages;
pub(crate) use listener::{Ends, bind, listen};

/// Everything that answers requests.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) registry: Arc<Registry>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) authenticator: Authenticator,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) discovery: Discovery,
    pub(crate) openapi: Arc<OpenApi>,
    pub(crate) health: Health,
    /// What those are told who trust the issuer of our tokens.
    pub(crate) issuer: IssuerPages,
    /// Ends watches, so that connections can drain.
    pub(crate) ending: CancellationToken,
    pub(crate) ids: AuditIds,
    pub(crate) fairness: Fairness,
    /// The audit log, where there is one.
    pub(crate) audit: Option<Arc<Audit>>,
    /// What is for those who debug the server, where that is wanted.
    pub(crate) debug: Option<Debugging>,
}

/// One request on its way, without its body.
#[derive(Clone, Copy)]
struct Call<'a> {
    parts: &'a Parts,
    info: &'a RequestInfo<'a>,
    query: &'a Query<'a>,
    user: &'a Arc<UserInfo>,
    /// Whether the caller was let in because they may create the logical cluster.
    creating: bool,
    now: Timestamp,
    id: &'a AuditId,
    /// The caller, as fairness counts them.
    caller: fairness::Caller,
    /// What the audit log is told.
    record: Option<&'a Arc<Record>>,
}

/// What is known of a request once it is answered, for counting and for the log.
#[derive(Default)]
struct Seen {
    user: Option<Arc<UserInfo>>,
    series: Option<Arc<Series>>,
    /// A watch counts its own end.
    watch: bool,
    /// It took as long as the caller wanted, which says nothing of the server.
    as_long_as_asked: bool,
    record: Option<Arc<Record>>,
}

/// Counts a request while it is worked on, however that ends: a client that goes away takes the
/// future of its request along.
struct InFlight<'a>(&'a IntGauge);

// === impl InFlight ===

impl<'a> InFlight<'a> {
    fn new(gauge: &'a IntGauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

// === impl App ===

impl App {
    /// What the certificates of a new connection say of its client.
    pub(crate) fn peer(&self, chain: Option<&[CertificateDer<'_>]>) -> Peer {
        self.authenticator.peer(chain)
    }

    /// Answers one request, whatever it is.
    pub(crate) async fn serve<B>(
        &self,
        peer: &Peer,
        remote: SocketAddr,
        request: Request<B>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let started = Instant::now();
        let (parts, mut body) = request.into_parts();
        let id = self.ids.of(&parts.headers);
        let span =
            debug_span!("request", audit_id = %id, method = %parts.method, path = parts.uri.path());
        let inflight = InFlight::new(match parts.method {
            Method::GET | Method::HEAD => &self.metrics.reading,
            _ => &self.metrics.mutating,
        });
        let mut seen = Seen::default();
        let heard = Heard { parts: &parts, remote, id: &id, now: Timestamp::now() };
        let work = self.answer(peer, heard, &mut body, &mut seen).instrument(span.clone());
        let answer = AssertUnwindSafe(work).catch_unwind().await;
        body::take_rest(&parts.headers, body).await;
        drop(inflight);
        let panicked = answer.is_err();
        let mut response = answer.unwrap_or_else(|panic| {
            self.metrics.panics.inc();
            let error = Error::internal(panic_text(&*panic));
            status::failure(&error, Encoding::Json, id.as_str(), seen.record.as_deref())
        });
        let code = response.status().as_u16();
        self.answered(&seen, panicked, code).await;
        let elapsed = started.elapsed();
        let series = seen
            .series
            .unwrap_or_else(|| self.metrics.series(&Labels::path(method_label(&parts.method))));
        series.answered(code);
        if !seen.watch && !seen.as_long_as_asked {
            series.duration.observe(elapsed.as_secs_f64());
        }
        let user = seen.user.as_ref().map_or("", |user| user.name.as_str());
        debug!(parent: &span, code, user, elapsed_us = elapsed.as_micros(), "answered");
        finish(&mut response, &parts, &id);
        response
    }

    async fn answer<B>(
        &self,
        peer: &Peer,
        heard: Heard<'_>,
        body: B,
        seen: &mut Seen,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        match self.admit(peer, heard, body, seen).await {
            Ok(response) => response,
            Err(error) => failure(&error, heard.parts, heard.id, seen.record.as_deref()),
        }
    }

    /// Reads, authenticates and authorizes a request, then hands it to its handler.
    async fn admit<B>(
        &self,
        peer: &Peer,
        heard: Heard<'_>,
        body: B,
        seen: &mut Seen,
    ) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let Heard { parts, id, now, .. } = heard;
        // What is wrong with the head is told to those who are known.
        let path = decode_path(parts.uri.path());
        let query = Query::parse(parts.uri.query());
        let parsed = path.as_deref().ok().zip(query.as_ref().ok()).map(|(path, query)| {
            let watch = query.flag("watch").unwrap_or(false);
            RequestInfo::parse(&parts.method, path, watch, query.text("fieldSelector"))
        });
        let place = match &parsed {
            Some(Ok(info)) if info.names_cluster => Place::Named(&info.cluster),
            _ => Place::Unnamed,
        };
        let user = match self.authenticator.authenticate(peer, &parts.headers, place, now).await {
            Ok(user) => user,
            Err(error) => {
                let info = parsed.as_ref().and_then(|parsed| parsed.as_ref().ok());
                seen.record = self.heard(heard, None, info).await;
                return Err(error);
            }
        };
        seen.user = Some(user.clone());
        let (Ok(path), Ok(query), Some(parsed)) = (&path, &query, parsed) else {
            seen.record = self.heard(heard, Some(&user), None).await;
            path?;
            query?;
            return refuse_path(PathError::NotFound);
        };
        let info = match parsed {
            Ok(info) => at_home(info, &user),
            Err(error) => {
                seen.record = self.heard(heard, Some(&user), None).await;
                let attributes = Attributes::Path { verb: method_verb(&parts.method), path };
                let root = ClusterScope::One(ClusterName::root());
                self.registry.authorizer().permit(&user, &root, &attributes)?;
                return refuse_path(error);
            }
        };
        seen.record = self.heard(heard, Some(&user), Some(&info)).await;
        let record = seen.record.clone();
        let user = self.acting(user, &info.cluster, parts, record.as_deref())?;
        seen.user = Some(user.clone());
        let asked = attributes(&info, &parts.method);
        let grant = self.permit(&user, &info.cluster, &asked, record.as_deref())?;
        let creating = matches!(grant, Grant::Creator);
        if !creating
            && !authz::is_public(info.path)
            && self.catalog.access(&user, &info.cluster) == Access::Denied
        {
            let verb = info.verb.as_str();
            let path = machinery::field::go_quote(path);
            let name = machinery::field::go_quote(&user.name);
            let text = format!("forbidden: User {name} cannot {verb} path {path}");
            return Err(Error::generic(Reason::Forbidden, text));
        }
        let limit = time_limit(&info, query)?;
        let caller = self.fairness.caller(&user, &info.cluster);
        let call = Call {
            parts,
            info: &info,
            query,
            user: &user,
            creating,
            now,
            id,
            caller,
            record: record.as_ref(),
        };
        let work = self.handle(call, body, seen);
        match tokio::time::timeout(limit, work).await {
            Ok(answer) => answer,
            Err(_elapsed) => {
                let text = "Timeout: request did not complete within the allotted timeout";
                Err(Error::new(Reason::Timeout, text))
            }
        }
    }
}

impl App {
    /// The one that a caller acts as: itself, mostly.
    fn acting(
        &self,
        caller: Arc<UserInfo>,
        scope: &ClusterScope,
        parts: &Parts,
        record: Option<&Record>,
    ) -> Result<Arc<UserInfo>, Error> {
        let Some(impersonation) = impersonation::read(&parts.headers)? else { return Ok(caller) };
        let user = impersonation.allow(&caller, scope, self.registry.authorizer())?;
        debug!(caller = caller.name, user = user.name, "acts as another");
        let user = Arc::new(user);
        if let Some(record) = record {
            record.acts_as(&user);
        }
        Ok(user)
    }

    /// Whether a request may go on; the audit log is told why.
    fn permit(
        &self,
        user: &UserInfo,
        scope: &ClusterScope,
        asked: &Attributes<'_>,
        record: Option<&Record>,
    ) -> Result<Grant, Error> {
        let permitted = self.registry.authorizer().permit(user, scope, asked);
        if let Some(record) = record {
            match &permitted {
                Ok(grant) => record.decided(true, Decision::Allow(grant.clone()).reason()),
                Err(_refused) => record.decided(false, ""),
            }
        }
        permitted
    }
}

/// A path that names no logical cluster leads to the caller's own, if it has one.
fn at_home<'a>(mut info: RequestInfo<'a>, user: &UserInfo) -> RequestInfo<'a> {
    if let (false, Some(home)) = (info.names_cluster, &user.home) {
        info.cluster = ClusterScope::One(home.clone());
    }
    info
}

/// What an authorizer is asked of a request.
fn attributes<'a>(info: &'a RequestInfo<'a>, method: &Method) -> Attributes<'a> {
    match &info.resource {
        Some(path) => Attributes::Resource {
            verb: info.verb.as_str(),
            group: path.group,
            resource: path.resource,
            name: if path.name.is_empty() { path.pinned } else { path.name },
            subresource: path.subresource,
            namespace: path.namespace,
        },
        None => Attributes::Path { verb: method_verb(method), path: info.path },
    }
}

fn refuse_path(error: PathError) -> Result<Response<Body>, Error> {
    match error {
        PathError::NotFound => Ok(not_found_page()),
        PathError::Cluster(name) => {
            let invalid = machinery::key::InvalidClusterName(name);
            Err(Error::bad_request(invalid.to_string()))
        }
    }
}

/// Headers that every answer has, and no body for HEAD.
fn finish(response: &mut Response<Body>, parts: &Parts, id: &AuditId) {
    let length = response.body().length();
    let headers = response.headers_mut();
    headers.insert(AUDIT_ID, id.header());
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    if parts.method == Method::HEAD {
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        *response.body_mut() = Body::empty();
    }
}

/// An error as the answer, in the encoding that the client prefers.
fn failure(error: &Error, parts: &Parts, id: &AuditId, record: Option<&Record>) -> Response<Body> {
    let offers = Offers { protobuf: true, ..Offers::default() };
    let accepted = negotiate::accept(&parts.headers, offers).unwrap_or_default();
    status::failure(error, accepted.encoding, id.as_str(), record)
}

/// What stands where nothing is.
fn not_found_page() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn text(code: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = code;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn json(bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(negotiate::JSON));
    response
}

/// The method as the verb of a non-resource path. The set is closed.
fn method_verb(method: &Method) -> &'static str {
    match *method {
        // HEAD is allowed wherever GET is.
        Method::GET | Method::HEAD => "get",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "other",
    }
}

/// The method as a metric's label. The set is closed.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "OTHER",
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.unwrap_or_default())
}
