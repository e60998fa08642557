//! Keys: resource, then logical cluster, then namespace, then name.
//!
//! The resource comes first so that one range covers it over all logical clusters. There is
//! always a namespace slot, empty for cluster-scoped objects, so every key has five segments:
//! `<group or "core">/<resource>/<cluster>/<namespace>/<name>`. Lists are in byte order of this.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use machinery::{ClusterName, GroupResource, ObjectKey};

/// The key of one object. None can be built without a [`ClusterName`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<[u8]>);

/// All keys of a resource, of one of its logical clusters, or of a namespace there.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyPrefix(Arc<[u8]>);

// === impl Key ===

impl Key {
    /// The key of an object of a resource.
    pub fn new(resource: &GroupResource, object: &ObjectKey) -> Self {
        let mut text = head(resource);
        for part in [object.cluster.as_str(), &object.namespace] {
            text.push_str(part);
            text.push('/');
        }
        text.push_str(&object.name);
        Self(text.into_bytes().into())
    }

    /// Takes a key from a store. `None` unless it has five segments, of which only the namespace
    /// may be empty, and a valid cluster.
    pub fn parse(bytes: impl AsRef<[u8]>) -> Option<Self> {
        let bytes = bytes.as_ref();
        let text = std::str::from_utf8(bytes).ok()?;
        let parts = text.split('/').collect::<Vec<_>>();
        let whole = parts.len() == 5 && ClusterName::parse(parts[2]).is_ok();
        // An empty group would be read as the core group, which has a name here.
        let named = whole && [0, 1, 4].iter().all(|part| !parts[*part].is_empty());
        named.then(|| Self(bytes.into()))
    }

    /// The encoded form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The encoded form as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The resource part, `core/configmaps`: equal for two keys exactly if their resource is.
    pub fn resource_part(&self) -> &str {
        let text = self.as_str();
        match text.match_indices('/').nth(1) {
            Some((end, _)) => text.get(..end).unwrap_or_default(),
            None => text,
        }
    }

    /// The resource.
    pub fn resource(&self) -> GroupResource {
        let (group, resource) = self.resource_part().split_once('/').unwrap_or_default();
        GroupResource::new(if group == "core" { "" } else { group }, resource)
    }

    /// Cluster, namespace and name as text, without allocating.
    pub fn parts(&self) -> (&str, &str, &str) {
        let mut parts = self.as_str().splitn(5, '/').skip(2);
        let mut next = || parts.next().unwrap_or_default();
        (next(), next(), next())
    }

    /// The object's identity within its resource.
    pub fn object(&self) -> ObjectKey {
        let (cluster, namespace, name) = self.parts();
        let cluster = ClusterName::parse(cluster).unwrap_or_else(|_| ClusterName::root());
        ObjectKey::new(cluster, namespace, name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.as_str())
    }
}

/// Keys are ordered and hashed as their bytes are, so ordered maps can be asked by bytes.
impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

// === impl KeyPrefix ===

impl KeyPrefix {
    /// Every key of the store.
    pub fn everything() -> Self {
        Self(Arc::default())
    }

    /// Every object of a resource, over all logical clusters.
    pub fn resource(resource: &GroupResource) -> Self {
        Self(head(resource).into_bytes().into())
    }

    /// Every object of a resource in one logical cluster.
    pub fn cluster(resource: &GroupResource, cluster: &ClusterName) -> Self {
        let mut text = head(resource);
        text.push_str(cluster.as_str());
        text.push('/');
        Self(text.into_bytes().into())
    }

    /// Every object of a resource in one namespace of a logical cluster.
    pub fn namespace(resource: &GroupResource, cluster: &ClusterName, namespace: &str) -> Self {
        let mut text = head(resource);
        for part in [cluster.as_str(), namespace] {
            text.push_str(part);
            text.push('/');
        }
        Self(text.into_bytes().into())
    }

    /// The encoded form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether a key stands under this prefix.
    pub fn contains(&self, key: &Key) -> bool {
        key.0.starts_with(&self.0)
    }
}

impl fmt::Debug for KeyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPrefix({})", String::from_utf8_lossy(&self.0))
    }
}

fn head(resource: &GroupResource) -> String {
    let group = if resource.group.is_empty() { "core" } else { &resource.group };
    let mut text = String::with_capacity(96);
    for part in [group, &resource.resource] {
        text.push_str(part);
        text.push('/');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip() {
        let object = ObjectKey::new(ClusterName::root(), "ns", "a");
        let resource = GroupResource::new("", "configmaps");
        let key = Key::new(&resource, &object);
        assert_eq!(key.as_str(), "core/configmaps/root/ns/a");
        assert_eq!(Key::parse(key.as_bytes()), Some(key.clone()));
        assert_eq!((key.resource(), key.object()), (resource.clone(), object));
        assert_eq!(key.resource_part(), "core/configmaps");
        assert!(KeyPrefix::namespace(&resource, &ClusterName::root(), "ns").contains(&key));
        assert!(!KeyPrefix::namespace(&resource, &ClusterName::root(), "n").contains(&key));
    }

    #[test]
    fn foreign_keys_are_refused() {
        let check = |bad: &'static str| assert_eq!(Key::parse(bad), None, "{bad}");
        for bad in ["", "a/b/root/x", "a/b/ROOT/x/y", "a/b/root/x/", "a/b/c/d/e/f", "a//root//x"] {
            check(bad);
        }
        check("/configmaps/root//x");
    }
}
