//! What a request is about, read from its method, path and query alone.
//!
//! Invariants: the path is percent-decoded once, before anything looks at it, so the authorizer and
//! the handler see one and the same path; parsing is pure, allocates little, and never looks at
//! more than a fixed number of segments.

mod decode;
#[cfg(test)]
mod tests;

use http::Method;
use machinery::ClusterName;

use crate::registry::ClusterScope;

pub(crate) use decode::{decode_path, decode_query};

/// What is done. The names are upstream's (`RequestInfo.Verb`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// POST of a non-resource path.
    Post,
    /// PUT of a non-resource path.
    Put,
    /// A method that no resource has.
    Other,
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestInfo<'a> {
    /// The logical cluster that the path names, `root` if it names none.
    pub(crate) cluster: ClusterScope,
    /// Whether the path names it.
    pub(crate) names_cluster: bool,
    /// The decoded path without that prefix; begins with a slash.
    pub(crate) path: &'a str,
    /// What is done.
    pub(crate) verb: Verb,
    /// The resource of a resource path; `None` for any other path.
    pub(crate) resource: Option<ResourcePath<'a>>,
}

/// The parts of a path to a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath<'a> {
    /// The group; empty for core.
    pub(crate) group: &'a str,
    /// The version.
    pub(crate) version: &'a str,
    /// The namespace as upstream counts it: that of a namespace object is its own name.
    pub(crate) namespace: &'a str,
    /// The resource's plural name.
    pub(crate) resource: &'a str,
    /// The object's name; empty for a collection.
    pub(crate) name: &'a str,
    /// The subresource; empty for none.
    pub(crate) subresource: &'a str,
    /// The name that `fieldSelector` pins on a list, watch or deletecollection: an authorizer may
    /// allow these by name.
    pub(crate) pinned: &'a str,
    /// Whether the path names a namespace before the resource.
    pub(crate) in_namespace: bool,
    /// Whether more segments follow the subresource: nothing of ours is there.
    pub(crate) overlong: bool,
}

/// Why a path is no request of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathError {
    /// Nothing can be there.
    NotFound,
    /// The logical cluster's name is malformed.
    Cluster(String),
}

/// Segments that are looked at: the longest path that this server has is
/// `apis/G/V/watch/namespaces/NS/RES/NAME/SUB`, and one more tells that a path is longer.
const MAX_SEGMENTS: usize = 10;

// === impl Verb ===

impl Verb {
    /// Upstream's name, as RBAC rules and messages have it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Post => "post",
            Self::Put => "put",
            Self::Other => "",
        }
    }

    fn of_path(method: &Method) -> Self {
        match *method {
            Method::GET | Method::HEAD => Self::Get,
            Method::POST => Self::Post,
            Method::PUT => Self::Put,
            Method::PATCH => Self::Patch,
            Method::DELETE => Self::Delete,
            _ => Self::Other,
        }
    }

    fn of_resource(method: &Method, named: bool, watch: bool) -> Self {
        match *method {
            Method::GET | Method::HEAD if watch && !named => Self::Watch,
            Method::GET | Method::HEAD if !named => Self::List,
            Method::GET | Method::HEAD => Self::Get,
            Method::POST => Self::Create,
            Method::PUT => Self::Update,
            Method::PATCH => Self::Patch,
            Method::DELETE if !named => Self::DeleteCollection,
            Method::DELETE => Self::Delete,
            _ => Self::Other,
        }
    }
}

// === impl RequestInfo ===

impl<'a> RequestInfo<'a> {
    /// Reads a decoded path. `watch` is the query's parameter of that name.
    ///
    /// # Errors
    /// When the `/clusters/` prefix is malformed or there are two of them.
    pub(crate) fn parse(
        method: &Method,
        path: &'a str,
        watch: bool,
        field_selector: &'a str,
    ) -> Result<Self, PathError> {
        let (named, path) = split_cluster(path)?;
        let names_cluster = named.is_some();
        let cluster = named.unwrap_or_else(|| ClusterScope::One(ClusterName::root()));
        let verb = Verb::of_path(method);
        let mut info = Self { cluster, names_cluster, path, verb, resource: None };
        let mut segments = [""; MAX_SEGMENTS];
        let mut count = 0;
        for segment in path.trim_start_matches('/').trim_end_matches('/').split('/') {
            if count == MAX_SEGMENTS {
                break;
            }
            if let Some(slot) = segments.get_mut(count) {
                *slot = segment;
            }
            count += 1;
        }
        let segments = segments.get(..count).unwrap_or_default();
        if let Some((resource, verb)) = resource_path(method, segments, watch, field_selector)
            && !path.starts_with("//")
        {
            info.verb = verb;
            info.resource = Some(resource);
        }
        Ok(info)
    }
}

/// Strips `/clusters/NAME`, and says which logical cluster the rest is in, if the path names one.
fn split_cluster(path: &str) -> Result<(Option<ClusterScope>, &str), PathError> {
    let Some(rest) = path.strip_prefix("/clusters") else {
        return Ok((None, path));
    };
    let Some(rest) = rest.strip_prefix('/') else {
        // `/clusters` alone, or `/clustersomething`.
        return if rest.is_empty() { Err(PathError::NotFound) } else { Ok((None, path)) };
    };
    let (name, rest) = match rest.find('/') {
        Some(end) => rest.split_at(end),
        None => (rest, "/"),
    };
    let second = rest.strip_prefix("/clusters").is_some_and(|r| r.is_empty() || r.starts_with('/'));
    if name.is_empty() || second {
        return Err(PathError::NotFound);
    }
    if name == "*" {
        return Ok((Some(ClusterScope::All), rest));
    }
    match ClusterName::parse(name) {
        Ok(name) => Ok((Some(ClusterScope::One(name)), rest)),
        Err(_) => Err(PathError::Cluster(name.chars().take(64).collect())),
    }
}

/// Reads the segments of `api/V/…` and `apis/G/V/…`; `None` when they name no resource.
fn resource_path<'a>(
    method: &Method,
    segments: &[&'a str],
    watch: bool,
    field_selector: &'a str,
) -> Option<(ResourcePath<'a>, Verb)> {
    let (group, version, mut rest) = match segments {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let whole = segments.iter().all(|segment| !segment.is_empty());
    if rest.is_empty() || !whole {
        return None;
    }
    let mut path = ResourcePath { group, version, ..ResourcePath::default() };
    let watch_prefix = rest.len() > 1 && rest.first() == Some(&"watch");
    if watch_prefix {
        rest = rest.get(1..).unwrap_or_default();
    }
    // `namespaces/NS/RES…` is a resource in a namespace, unless the third segment is a subresource
    // of the namespace itself.
    if let ["namespaces", namespace, ..] = rest {
        path.namespace = namespace;
        if rest.get(2).is_some_and(|third| !matches!(*third, "status" | "finalize")) {
            path.in_namespace = true;
            rest = rest.get(2..).unwrap_or_default();
        }
    }
    let part = |index: usize| rest.get(index).copied().unwrap_or_default();
    path.resource = part(0);
    path.name = part(1);
    path.subresource = part(2);
    path.overlong = rest.len() > 3;
    let verb = if watch_prefix {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        if reads { Verb::Watch } else { Verb::Other }
    } else {
        Verb::of_resource(method, !path.name.is_empty(), watch)
    };
    if matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
        path.pinned = if path.name.is_empty() { pinned_name(field_selector) } else { path.name };
    }
    Some((path, verb))
}

/// The name that a field selector requires, if it requires exactly one.
fn pinned_name(selector: &str) -> &str {
    // An escape may hide a separator: such a selector pins nothing.
    if selector.is_empty() || selector.contains('\\') {
        return "";
    }
    let name_of = |term: &'_ str| -> Option<usize> {
        let rest = term.strip_prefix("metadata.name=")?;
        Some(term.len() - rest.strip_prefix('=').unwrap_or(rest).len())
    };
    selector
        .split(',')
        .find_map(|term| name_of(term).and_then(|start| term.get(start..)))
        .filter(|name| !name.contains(['/', '%']) && !matches!(*name, "." | ".."))
        .unwrap_or_default()
}
