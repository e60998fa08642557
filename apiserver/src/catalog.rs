//! Which resources a logical cluster serves, and whether it is there for a caller.

use std::sync::Arc;

use machinery::ClusterName;
use schema::Types;
use schema::resource::ResourceDef;
use store::cache::Cache;

use crate::auth::{MASTERS, UserInfo};
use crate::clusters::record;
use crate::registry::ClusterScope;

/// What a caller meets at a logical cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is there.
    Serving,
    /// It is not there, and the caller's first write creates it: discovery, OpenAPI and `/version`
    /// answer, since clients ask them first.
    NotCreated,
    /// The caller has no business there.
    Denied,
}

/// The resources of every logical cluster.
#[derive(Debug)]
pub struct Catalog {
    everywhere: Arc<[Arc<ResourceDef>]>,
    in_root: Arc<[Arc<ResourceDef>]>,
    cache: Arc<Cache>,
}

// === impl Catalog ===

impl Catalog {
    /// The built-in resources.
    pub fn new(types: &Types, cache: Arc<Cache>) -> Self {
        let in_root = types.resources().to_vec();
        let clusters = record::logical_clusters();
        let everywhere = in_root
            .iter()
            .filter(|resource| {
                *resource.group != *clusters.group || *resource.plural != *clusters.resource
            })
            .cloned()
            .collect();
        Self { everywhere, in_root: in_root.into(), cache }
    }

    /// The resources that a logical cluster serves, in the order of discovery; for all of them,
    /// the union.
    pub fn resources(&self, scope: &ClusterScope) -> Arc<[Arc<ResourceDef>]> {
        match scope {
            ClusterScope::One(cluster) if !cluster.is_root() => self.everywhere.clone(),
            ClusterScope::One(_) | ClusterScope::All => self.in_root.clone(),
        }
    }

    /// A resource by its path, if that version of it is served.
    pub fn find(
        &self,
        scope: &ClusterScope,
        group: &str,
        version: &str,
        resource: &str,
    ) -> Option<Arc<ResourceDef>> {
        let found = self
            .resources(scope)
            .iter()
            .find(|known| *known.group == *group && *known.plural == *resource)?
            .clone();
        found.version(version).is_some_and(|version| version.served).then_some(found)
    }

    /// What the caller meets there.
    pub fn access(&self, user: &UserInfo, scope: &ClusterScope) -> Access {
        match scope {
            ClusterScope::All => Access::Serving,
            ClusterScope::One(cluster) if self.exists(cluster) => Access::Serving,
            ClusterScope::One(cluster) if cluster.is_system() => Access::Denied,
            ClusterScope::One(_) if self.may_create_clusters(user) => Access::NotCreated,
            ClusterScope::One(_) => Access::Denied,
        }
    }

    /// Whether the caller has the verb `create` on `logicalclusters` in `root`.
    pub fn may_create_clusters(&self, user: &UserInfo) -> bool {
        user.is_in(MASTERS)
    }

    fn exists(&self, cluster: &ClusterName) -> bool {
        self.cache.get(&record::key(cluster)).is_some()
    }
}
