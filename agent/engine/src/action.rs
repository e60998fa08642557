//! Requests for the driver to make.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::GroupResource;

/// Names an action until its outcome is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u64);

/// A request to make. Its outcome has to be told by [`Engine::outcome`](crate::Engine::outcome),
/// whatever it is: until then nothing else is asked for the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Names it.
    pub id: ActionId,
    /// What it is for: for metrics and logs; the driver needs no other difference between kinds.
    pub kind: Kind,
    /// What to send.
    pub request: Request,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Reads an upstream object: evidence for a delete, or what is no longer held.
    GetUpstream,
    /// Reads what is downstream under a copy's name.
    GetDownstream,
    /// Reads a definition that is there, to see whether an apply would hurt.
    Check,
    /// Asks what an apply would change.
    DryRun,
    /// Applies a copy.
    Apply,
    /// Gives up fields of an object that is shared with others.
    GiveUp,
    /// Takes our marks off a copy that stays.
    Orphan,
    /// Deletes a copy.
    Delete,
    /// Adds our finalizer upstream.
    Claim,
    /// Removes our state label and finalizer upstream.
    Release,
    /// Sends a status up.
    Status,
    /// Applies to a copy's status what of it is the hub's.
    StatusDown,
    /// Sends a number of replicas up.
    Replicas,
    /// Applies an ObjectSync.
    Record,
    /// Deletes an ObjectSync.
    DeleteRecord,
    /// Creates a Kubernetes Event upstream. Best effort.
    Event,
    /// Reads a downstream namespace.
    GetNamespace,
    /// Makes a downstream namespace.
    CreateNamespace,
    /// Looks for what others have in a downstream namespace that we made.
    ListNamespace,
    /// Deletes a downstream namespace that we made.
    DeleteNamespace,
    /// Asks which physical cluster it is.
    Identify,
    /// Reads what is at the hub under the name of a downstream object.
    MirrorGet,
    /// Applies the mirror of a downstream object at the hub.
    MirrorApply,
    /// Sends the status of a downstream object to its mirror.
    MirrorStatus,
    /// Looks whether the object that a mirror was made of is there.
    FindSource,
    /// Deletes a mirror whose source is gone.
    MirrorDelete,
}

/// An API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The hub.
    Upstream,
    /// The physical cluster.
    Downstream,
}

/// An HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are HTTP's")]
pub enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

/// A request to a Kubernetes API server.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// Which server.
    pub side: Side,
    /// The logical cluster (`/clusters/<cluster>` before [`Request::path`]); `None` downstream.
    pub cluster: Option<Arc<str>>,
    /// The method.
    pub method: Method,
    /// The group and resource.
    pub resource: GroupResource,
    /// The version.
    pub version: Arc<str>,
    /// The namespace; empty for none.
    pub namespace: Arc<str>,
    /// The name; empty for the collection.
    pub name: Arc<str>,
    /// The subresource; empty for none.
    pub subresource: &'static str,
    /// The query, in order; values as they are, not yet escaped.
    pub query: Vec<(&'static str, String)>,
    /// The body's media type; empty where there is none.
    pub content_type: &'static str,
    /// What is accepted as an answer.
    pub accept: &'static str,
    /// The body; empty for none. It may hold secrets: it is never logged.
    pub body: Vec<u8>,
}

// === impl Kind ===

impl Kind {
    /// A word for metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::GetUpstream => "get_upstream",
            Self::GetDownstream => "get_downstream",
            Self::Check => "check",
            Self::DryRun => "dry_run",
            Self::Apply => "apply",
            Self::GiveUp => "give_up",
            Self::Orphan => "orphan",
            Self::Delete => "delete",
            Self::Claim => "claim",
            Self::Release => "release",
            Self::Status => "status",
            Self::StatusDown => "status_down",
            Self::Replicas => "replicas",
            Self::Record => "record",
            Self::DeleteRecord => "delete_record",
            Self::Event => "event",
            Self::GetNamespace => "get_namespace",
            Self::CreateNamespace => "create_namespace",
            Self::ListNamespace => "list_namespace",
            Self::DeleteNamespace => "delete_namespace",
            Self::Identify => "identify",
            Self::MirrorGet => "mirror_get",
            Self::MirrorApply => "mirror_apply",
            Self::MirrorStatus => "mirror_status",
            Self::FindSource => "find_source",
            Self::MirrorDelete => "mirror_delete",
        }
    }

    /// Whether it changes anything on a server.
    pub fn is_write(self) -> bool {
        !matches!(
            self,
            Self::GetUpstream
                | Self::GetDownstream
                | Self::Check
                | Self::DryRun
                | Self::GetNamespace
                | Self::ListNamespace
                | Self::Identify
                | Self::MirrorGet
                | Self::FindSource
        )
    }
}

// === impl Method ===

impl Method {
    /// As HTTP writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

// === impl Request ===

impl Request {
    /// The path and query, without the logical cluster's prefix, ready for a request line:
    /// `/apis/apps/v1/namespaces/shop/deployments/web?fieldManager=kcp-syncer`.
    pub fn path(&self) -> String {
        let mut path = String::with_capacity(128);
        if self.resource.group.is_empty() {
            path.push_str("/api");
        } else {
            path.push_str("/apis/");
            escape(&self.resource.group, &mut path);
        }
        let namespaces = if self.namespace.is_empty() { "" } else { "namespaces" };
        for part in [
            &*self.version,
            namespaces,
            &self.namespace,
            &self.resource.resource,
            &self.name,
            self.subresource,
        ] {
            if !part.is_empty() {
                path.push('/');
                escape(part, &mut path);
            }
        }
        for (index, (key, value)) in self.query.iter().enumerate() {
            path.push(if index == 0 { '?' } else { '&' });
            path.push_str(key);
            path.push('=');
            escape(value, &mut path);
        }
        path
    }
}

/// Bodies hold secrets, so they are left out.
impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("side", &self.side)
            .field("cluster", &self.cluster)
            .field("method", &self.method)
            .field("path", &self.path())
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Escapes whatever has a meaning in a URL: names of some kinds may have any character.
fn escape(text: &str, into: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                into.push(char::from(byte));
            }
            _ => write!(into, "%{byte:02X}").expect("writing to a string does not fail"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(group: &str, namespace: &str, name: &str, subresource: &'static str) -> Request {
        Request {
            side: Side::Downstream,
            cluster: None,
            method: Method::Patch,
            resource: GroupResource::new(group, "things"),
            version: "v1".into(),
            namespace: namespace.into(),
            name: name.into(),
            subresource,
            query: Vec::new(),
            content_type: "application/json",
            accept: "application/json",
            body: b"secret".to_vec(),
        }
    }

    #[test]
    fn paths() {
        let cases = [
            (request("", "", "a", ""), "/api/v1/things/a"),
            (
                request("apps", "shop", "web", "status"),
                "/apis/apps/v1/namespaces/shop/things/web/status",
            ),
            (request("", "shop", "", ""), "/api/v1/namespaces/shop/things"),
            (request("", "", "a/../b?c%", ""), "/api/v1/things/a%2F..%2Fb%3Fc%25"),
        ];
        for (request, expect) in cases {
            assert_eq!(request.path(), expect);
        }
        let mut request = request("", "", "a", "");
        request.query = vec![("fieldManager", "x y".to_owned()), ("force", "true".to_owned())];
        assert_eq!(request.path(), "/api/v1/things/a?fieldManager=x%20y&force=true");
    }

    #[test]
    fn bodies_are_not_shown() {
        assert!(!format!("{:?}", request("", "", "a", "")).contains("secret"));
    }
}
