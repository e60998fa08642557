//! What a request gives the audit log, from its first line to its answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName};
use jiff::Timestamp;

use super::audit::AuditId;
use super::request_info::RequestInfo;
use super::{App, Seen, method_verb};
use crate::audit::{Asked, AskedResource, Audit, ObjectRef, Record, Request, Stage};
use crate::auth::UserInfo;
use crate::registry::ClusterScope;

/// Proxies say here whom they speak for. Clients may as well: it is told, and believed by nobody.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Likewise.
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Addresses that are told at most.
const MAX_ADDRESSES: usize = 16;

/// Bytes of a client's own texts that are told.
const MAX_TEXT: usize = 1024;

/// A request as it came.
#[derive(Clone, Copy)]
pub(super) struct Heard<'a> {
    pub(super) parts: &'a Parts,
    pub(super) remote: SocketAddr,
    pub(super) id: &'a AuditId,
    pub(super) now: Timestamp,
}

/// A watch of which something is to be told when it ends.
#[derive(Debug)]
pub(crate) struct Watched {
    audit: Arc<Audit>,
    record: Arc<Record>,
}

// === impl App ===

impl App {
    /// What is to be told of a request, and tells that it has come.
    pub(super) async fn heard(
        &self,
        heard: Heard<'_>,
        user: Option<&Arc<UserInfo>>,
        info: Option<&RequestInfo<'_>>,
    ) -> Option<Arc<Record>> {
        let audit = self.audit.as_ref()?;
        let resource = info.and_then(|info| info.resource.as_ref());
        let asked = Asked {
            user: user.map(|user| &**user),
            verb: match info {
                Some(info) if resource.is_some() => info.verb.as_str(),
                _ => method_verb(&heard.parts.method),
            },
            path: info.map_or_else(|| heard.parts.uri.path(), |info| info.path),
            resource: resource.map(|path| AskedResource {
                group: path.group,
                resource: path.resource,
                subresource: path.subresource,
                namespace: path.namespace,
                name: path.name,
            }),
        };
        let record = audit.record(&asked, || request(heard, asked.verb, user, info))?;
        if user.is_some() {
            audit.tell(&record, Stage::RequestReceived, 0, heard.now).await;
        }
        Some(record)
    }

    /// Tells of an answer.
    pub(super) async fn answered(&self, seen: &Seen, panicked: bool, code: u16) {
        let (Some(audit), Some(record)) = (&self.audit, &seen.record) else { return };
        let stage = match (panicked, seen.watch) {
            (true, _) => Stage::Panic,
            (false, true) => Stage::ResponseStarted,
            (false, false) => Stage::ResponseComplete,
        };
        audit.tell(record, stage, code, Timestamp::now()).await;
    }

    /// Tells of the end of a watch, when it comes.
    pub(super) fn watched(&self, record: Option<&Arc<Record>>) -> Option<Watched> {
        let (audit, record) = (self.audit.clone()?, record?.clone());
        Some(Watched { audit, record })
    }
}

fn request(
    heard: Heard<'_>,
    verb: &'static str,
    user: Option<&Arc<UserInfo>>,
    info: Option<&RequestInfo<'_>>,
) -> Request {
    let Heard { parts, remote, id, now } = heard;
    let resource = info.and_then(|info| info.resource.as_ref());
    let agent = parts.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
    let uri = parts.uri.path_and_query().map_or("", |uri| uri.as_str());
    Request {
        id: id.to_string(),
        uri: uri.to_owned(),
        verb,
        cluster: match info.map(|info| &info.cluster) {
            Some(ClusterScope::One(cluster)) => cluster.to_string(),
            Some(ClusterScope::All) => "*".to_owned(),
            None => String::new(),
        },
        user: user.cloned(),
        source_ips: source_ips(&parts.headers, remote.ip()),
        user_agent: agent.unwrap_or_default().chars().take(MAX_TEXT).collect(),
        object: resource.map(|path| ObjectRef {
            resource: path.resource.to_owned(),
            namespace: path.namespace.to_owned(),
            name: path.name.to_owned(),
            api_group: path.group.to_owned(),
            api_version: path.version.to_owned(),
            subresource: path.subresource.to_owned(),
        }),
        received: now,
    }
}

/// Whom proxies name, in their order, and who is connected (upstream's `SourceIPs`).
fn source_ips(headers: &HeaderMap, remote: IpAddr) -> Vec<String> {
    let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let forwarded = text(FORWARDED_FOR).unwrap_or_default().split(',');
    let mut addresses: Vec<IpAddr> =
        forwarded.filter_map(|address| address.trim().parse().ok()).take(MAX_ADDRESSES).collect();
    if let Some(real) = text(REAL_IP).and_then(|address| address.trim().parse().ok())
        && !addresses.contains(&real)
    {
        addresses.push(real);
    }
    let remote = remote.to_canonical();
    if addresses.last() != Some(&remote) {
        addresses.push(remote);
    }
    addresses.iter().map(IpAddr::to_string).collect()
}

// === impl Watched ===

impl Drop for Watched {
    fn drop(&mut self) {
        // A watch ends wherever it is dropped, and nothing can wait there.
        self.audit.tell_now(&self.record, Stage::ResponseComplete, 200, Timestamp::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let check = |forwarded: &str, real: &str, remote: &str, expect: &[&str]| {
            let mut headers = HeaderMap::new();
            for (name, value) in [(FORWARDED_FOR, forwarded), (REAL_IP, real)] {
                if !value.is_empty() {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            assert_eq!(source_ips(&headers, remote.parse().unwrap()), expect);
        };
        check("", "", "10.0.0.1", &["10.0.0.1"]);
        check("", "", "::ffff:10.0.0.1", &["10.0.0.1"]);
        check(
            "1.1.1.1, 2.2.2.2",
            "3.3.3.3",
            "4.4.4.4",
            &["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"],
        );
        check("1.1.1.1", "1.1.1.1", "1.1.1.1", &["1.1.1.1"]);
        check("<script>, 5.5.5.5", "x", "4.4.4.4", &["5.5.5.5", "4.4.4.4"]);
    }
}
