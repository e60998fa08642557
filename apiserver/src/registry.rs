//! The one generic registry: create, get, list, watch, update, patch and delete for every resource.
//!
//! Kinds differ by data ([`ResourceDef`]) and by `strategy`s, never by a handler of their own.
//! The registry knows the store and the catalog, and nothing of HTTP. Start at `create.rs`.

mod admission;
mod agents;
mod answer;
mod certificates;
mod commit;
mod content;
mod conversion;
mod convert;
mod create;
mod decode;
mod definitions;
mod delete;
mod error;
mod escalation;
mod figures;
mod guard;
mod inside;
mod lifetime;
mod list_rules;
mod managed;
mod owners;
mod patch;
mod placement;
mod quota;
mod read;
mod request;
mod review;
mod room;
mod scale;
mod select;
mod strategy;
mod token_request;
mod token_secret;
mod typing;
mod update;
mod versions;
mod view;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use machinery::{ClusterName, GroupResource, Gvk, ObjectKey};
use schema::Types;
use schema::resource::ResourceDef;
use store::cache::Cache;
use store::{Key, KeyPrefix, Store};

pub use answer::{Deleted, EventKind, List, View, Watch, WatchItem, Written};
pub use error::{Cause, Details, Error, Reason};
pub(crate) use owners::is_foreign_owner;
pub(crate) use quota::{is_measured, quotas};
pub use request::{
    Body, ClusterScope, Context, DeleteOptions, FieldValidation, ListOptions, Media, PatchType,
    Propagation, Target, VersionMatch, WriteOptions,
};
pub(crate) use token_secret::TokenSecret;

use crate::auth::Guards;
use crate::auth::authz::Authorizer;
use crate::auth::bearer::Bearers;
use crate::catalog::Catalog;
use crate::clusters::virtuals::Virtuals;
use crate::dialer::Dialer;
use versions::Versions;

/// How long a read waits for a revision that is still to come, as upstream.
const PATIENCE: Duration = Duration::from_secs(3);

/// The generic registry. Shared by all requests.
pub struct Registry {
    store: Arc<dyn Store>,
    cache: Arc<Cache>,
    types: Arc<Types>,
    catalog: Arc<Catalog>,
    authorizer: Arc<Authorizer>,
    virtuals: Arc<Virtuals>,
    versions: Versions,
    dialer: Arc<Dialer>,
    bearers: Arc<Bearers>,
    asked: convert::Asked,
    turns: quota::Turns,
    max_objects: usize,
}

// === impl Registry ===

impl Registry {
    /// A registry over a store and the cache that follows it.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        cache: Arc<Cache>,
        types: Arc<Types>,
        catalog: Arc<Catalog>,
        guards: Guards,
        virtuals: Arc<Virtuals>,
        dialer: Arc<Dialer>,
    ) -> Self {
        let Guards { authorizer, bearers } = guards;
        let versions = Versions { base: store.identity().rv_base };
        let asked = convert::Asked::default();
        Self {
            store,
            cache,
            types,
            catalog,
            authorizer,
            virtuals,
            versions,
            dialer,
            bearers,
            asked,
            turns: quota::Turns::default(),
            max_objects: 0,
        }
    }

    /// What bearer tokens are known by.
    pub(crate) fn bearers(&self) -> &Arc<Bearers> {
        &self.bearers
    }

    /// The cache that all reads come from.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// The number of stored objects of each resource.
    pub fn objects(&self) -> impl Iterator<Item = (GroupResource, usize)> + use<> {
        self.cache.counts().into_iter().map(|(part, count)| {
            let (group, resource) = part.split_once('/').unwrap_or_default();
            let group = if group == "core" { "" } else { group };
            (GroupResource::new(group, resource), count)
        })
    }

    /// The resources of every logical cluster.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Who decides what callers may do.
    pub(crate) fn authorizer(&self) -> &Arc<Authorizer> {
        &self.authorizer
    }

    /// The built-in types.
    pub fn types(&self) -> &Arc<Types> {
        &self.types
    }

    /// Waits until the cache includes every write acknowledged before this call.
    pub(crate) async fn consistent(&self) -> Result<(), Error> {
        let revision = self.store.revision().await.map_err(Error::internal)?;
        self.cache.wait_for(revision, PATIENCE).await.map_err(|reached| {
            Error::new(
                Reason::ServiceUnavailable,
                format!("the cache is at {reached} and the store at {revision}"),
            )
            .retry_after(1)
        })
    }

    /// The resource as errors name it.
    pub(crate) fn group_resource(resource: &ResourceDef) -> GroupResource {
        GroupResource { group: resource.group.clone(), resource: resource.plural.clone() }
    }

    /// The resource under whose keys objects are stored.
    pub(crate) fn storage(resource: &ResourceDef) -> GroupResource {
        match &resource.view_of {
            Some(view) => {
                GroupResource { group: view.group.clone(), resource: view.plural.clone() }
            }
            None => Self::group_resource(resource),
        }
    }

    /// The kind and version in which objects are stored.
    fn stored_kind(&self, resource: &ResourceDef) -> Gvk {
        let viewed = resource
            .view_of
            .as_ref()
            .and_then(|view| self.types.resource(&view.group, &view.plural));
        let resource = viewed.map_or(resource, |viewed| &**viewed);
        let version = resource.storage_version().map_or("v1", |version| &version.name);
        Self::kind(resource, version)
    }

    fn object_key(target: &Target, cluster: &ClusterName, name: &str) -> Key {
        let object = ObjectKey::new(cluster.clone(), &target.namespace, name);
        Key::new(&Self::storage(&target.resource), &object)
    }

    fn prefix(target: &Target) -> KeyPrefix {
        let storage = Self::storage(&target.resource);
        match &target.cluster {
            ClusterScope::All => KeyPrefix::resource(&storage),
            ClusterScope::One(cluster) if target.namespace.is_empty() => {
                KeyPrefix::cluster(&storage, cluster)
            }
            ClusterScope::One(cluster) => {
                KeyPrefix::namespace(&storage, cluster, &target.namespace)
            }
        }
    }

    /// The one logical cluster of a request that is not allowed over all.
    fn cluster(target: &Target) -> Result<&ClusterName, Error> {
        target.one_cluster().ok_or_else(|| {
            Error::new(
                Reason::MethodNotAllowed,
                "only list and watch are supported in the \"*\" logical cluster",
            )
        })
    }

    fn new_uid(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("store", &self.store).finish_non_exhaustive()
    }
}
