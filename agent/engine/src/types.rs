//! The types that are synced.

use std::sync::Arc;

/// A group and a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// The group; empty for core.
    pub group: Arc<str>,
    /// The resource's plural.
    pub resource: Arc<str>,
}

/// Whether objects are in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// They are in namespaces.
    Namespaced,
    /// They are in none.
    Cluster,
}

/// A type that hub and physical cluster both serve, compatibly, in one version. Types that aren't
/// compatible, or not served on one side, are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncedType {
    /// The group and resource.
    pub resource: GroupResource,
    /// The version that both sides serve.
    pub version: Arc<str>,
    /// The kind.
    pub kind: Arc<str>,
    /// Whether objects are in namespaces.
    pub scope: Scope,
    /// Whether the hub serves the subresource `status`; without it no status goes up.
    pub upstream_status: bool,
    /// Whether the physical cluster serves the subresource `status`.
    pub downstream_status: bool,
    /// Whether the hub serves the subresource `scale`.
    pub upstream_scale: bool,
}

// === impl GroupResource ===

impl GroupResource {
    /// A group and a resource.
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

/// As Kubernetes writes it: `deployments.apps`, `services`.
impl std::fmt::Display for GroupResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

// === impl SyncedType ===

impl SyncedType {
    /// `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        if self.resource.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.resource.group, self.version)
        }
    }
}
