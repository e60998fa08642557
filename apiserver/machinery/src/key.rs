//! Who an object is: its logical cluster, namespace and name.
//!
//! Isolation is a property of these types: no [`ObjectKey`] exists without a [`ClusterName`].

use std::fmt;
use std::sync::Arc;

/// Longest name of an ordinary logical cluster, in bytes.
pub const MAX_CLUSTER_NAME: usize = 63;

/// The name of a logical cluster, parsed once at the edge.
///
/// Ordinary names match `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`; names that begin with `system:`
/// are the server's own. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(Arc<str>);

/// Why a string is no name of a logical cluster.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid logical cluster name {0:?}: lower case letters, digits and '-', at most 63")]
pub struct InvalidClusterName(pub String);

/// The identity of an object within one resource.
///
/// The order is that of lists: logical cluster, then namespace, then name, by bytes. The
/// namespace is empty for cluster-scoped objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The logical cluster that holds the object.
    pub cluster: ClusterName,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
}

// === impl ClusterName ===

impl ClusterName {
    /// Parses an ordinary or a `system:` name.
    ///
    /// # Errors
    /// [`InvalidClusterName`] for anything else, `*` included.
    pub fn parse(name: &str) -> Result<Self, InvalidClusterName> {
        let rest = name.strip_prefix("system:").unwrap_or(name);
        if is_label(rest) { Ok(Self(name.into())) } else { Err(InvalidClusterName(name.into())) }
    }

    /// The logical cluster `root`, which holds the [`LogicalCluster`](crate) objects.
    pub fn root() -> Self {
        Self("root".into())
    }

    /// The logical cluster whose CRDs are served in every logical cluster.
    pub fn system_crds() -> Self {
        Self("system:crds".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the server itself owns this name.
    pub fn is_system(&self) -> bool {
        self.0.starts_with("system:")
    }

    /// Whether this is `root`.
    pub fn is_root(&self) -> bool {
        &*self.0 == "root"
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl AsRef<str> for ClusterName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

// === impl ObjectKey ===

impl ObjectKey {
    /// A key in `cluster`; `namespace` is empty for cluster-scoped objects.
    pub fn new(cluster: ClusterName, namespace: &str, name: &str) -> Self {
        Self { cluster, namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{}:{}", self.cluster, self.name)
        } else {
            write!(f, "{}:{}/{}", self.cluster, self.namespace, self.name)
        }
    }
}

fn is_label(name: &str) -> bool {
    let bytes = name.as_bytes();
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    !bytes.is_empty()
        && bytes.len() <= MAX_CLUSTER_NAME
        && bytes.iter().all(inner)
        && bytes.first() != Some(&b'-')
        && bytes.last() != Some(&b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_names() {
        let longest = "a".repeat(63);
        for good in ["a", "root", "a-b", "0", "system:crds", longest.as_str()] {
            assert_eq!(ClusterName::parse(good).unwrap().as_str(), good);
        }
        let too_long = "a".repeat(64);
        for bad in ["", "*", "-a", "a-", "A", "a.b", "a/b", "system:", "x:y", "a b", &too_long] {
            assert_eq!(ClusterName::parse(bad), Err(InvalidClusterName(bad.into())));
        }
    }
}
