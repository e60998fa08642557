//! Groups, versions, resources and kinds.

use std::fmt;
use std::sync::Arc;

/// An API group and version; the core group is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersion {
    /// The group, empty for core.
    pub group: Arc<str>,
    /// The version, as `v1`.
    pub version: Arc<str>,
}

/// A resource without its version: what the store and RBAC know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// The group, empty for core.
    pub group: Arc<str>,
    /// The plural name, as `configmaps`.
    pub resource: Arc<str>,
}

/// A resource in one version (`GroupVersionResource`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvr {
    /// Group and version.
    pub group_version: GroupVersion,
    /// The plural name.
    pub resource: Arc<str>,
}

/// A kind in one version (`GroupVersionKind`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// Group and version.
    pub group_version: GroupVersion,
    /// The kind, as `ConfigMap`.
    pub kind: Arc<str>,
}

// === impl GroupVersion ===

impl GroupVersion {
    /// A group and version from their parts.
    pub fn new(group: &str, version: &str) -> Self {
        Self { group: group.into(), version: version.into() }
    }

    /// Parses an `apiVersion`: `v1` or `apps/v1`. `None` with more than one slash or an empty part.
    pub fn parse(api_version: &str) -> Option<Self> {
        match api_version.split_once('/') {
            None if api_version.is_empty() => None,
            None => Some(Self::new("", api_version)),
            Some((group, version)) => {
                let whole = !group.is_empty() && !version.is_empty() && !version.contains('/');
                whole.then(|| Self::new(group, version))
            }
        }
    }

    /// This version's resource of that name.
    pub fn resource(&self, resource: &str) -> Gvr {
        Gvr { group_version: self.clone(), resource: resource.into() }
    }

    /// This version's kind of that name.
    pub fn kind(&self, kind: &str) -> Gvk {
        Gvk { group_version: self.clone(), kind: kind.into() }
    }
}

/// Prints the `apiVersion` form.
impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.version)
        } else {
            write!(f, "{}/{}", self.group, self.version)
        }
    }
}

// === impl GroupResource ===

impl GroupResource {
    /// A resource of a group.
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

/// Prints `configmaps` or `deployments.apps`, as error messages name resources.
impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.resource)
        } else {
            write!(f, "{}.{}", self.resource, self.group)
        }
    }
}

// === impl Gvr ===

impl Gvr {
    /// The resource without its version.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group_version.group.clone(), resource: self.resource.clone() }
    }
}

// === impl Gvk ===

/// Prints `ConfigMap` or `Deployment.apps`, as `Invalid` messages name kinds.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group_version.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group_version.group)
        }
    }
}
