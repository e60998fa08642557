//! One round of emptying a namespace or a logical cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::{StreamExt, stream};
use machinery::{ClusterName, GroupResource};
use schema::resource::{Flag, ResourceDef};
use store::cache::{Object, Origin};
use store::{Key, KeyPrefix, Revision};

use super::super::{housekeeping, make_way};
use super::status::Remaining;
use crate::catalog::{Definition, definitions};
use crate::registry::{ClusterScope, DeleteOptions, Deleted, Error, Reason, Registry};

/// Objects of one resource that are deleted at a time: their writes share the store's commits, and
/// leave room in them for those of others.
const AT_ONCE: usize = 8;

/// What is emptied: a namespace, or a whole logical cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep<'a> {
    pub(super) registry: &'a Registry,
    pub(super) cluster: &'a ClusterName,
    pub(super) namespace: Option<&'a str>,
    /// Whether finalizers are ignored.
    pub(super) forced: bool,
}

/// What became of one record.
enum Fate {
    Gone,
    Stays(Arc<Object>),
    Failed(Option<Arc<Object>>, Error),
}

// === impl Sweep ===

impl Sweep<'_> {
    /// Deletes what is there, as far as finalizers allow. A resource that fails doesn't keep
    /// others: what failed is part of the outcome.
    pub(super) async fn run(self) -> Remaining {
        let mut remaining = Remaining::default();
        let mut known = BTreeSet::new();
        // Types go last: without its type an object could not be found.
        let mut resources = self.resources();
        resources.sort_by_key(|resource| {
            (is_definitions(resource), !resource.namespaced, !is_namespaces(resource))
        });
        for resource in resources {
            let name = Registry::group_resource(&resource);
            // A custom resource is listed once for each version.
            if !known.insert(name.clone()) {
                continue;
            }
            if is_definitions(&resource) {
                self.undiscovered(&known, &mut remaining).await;
            }
            let is_last = is_namespaces(&resource) || is_definitions(&resource);
            if is_last && !remaining.is_nothing() && !self.forced {
                // These can't go before their content; the next round sees to it.
                continue;
            }
            self.clear(&name, &mut remaining).await;
        }
        if self.namespace.is_some() {
            self.undiscovered(&known, &mut remaining).await;
        }
        remaining
    }

    fn resources(self) -> Vec<Arc<ResourceDef>> {
        let scope = ClusterScope::One(self.cluster.clone());
        let all = self.registry.catalog().resources(&scope);
        let is_swept = |resource: &&Arc<ResourceDef>| {
            resource.view_of.is_none()
                && !resource.has(Flag::Virtual)
                && (self.namespace.is_none() || resource.namespaced)
        };
        all.iter().filter(is_swept).cloned().collect()
    }

    /// Sees to the objects of CRDs that can't be served: they must not stay behind unseen.
    async fn undiscovered(self, known: &BTreeSet<GroupResource>, remaining: &mut Remaining) {
        let cache = self.registry.cache();
        let shared = ClusterName::system_crds();
        for cluster in [self.cluster, &shared] {
            let prefix = KeyPrefix::cluster(&definitions(), cluster);
            for object in cache.list(&prefix, None, 0).objects {
                let definition = Definition::of(&object);
                let summary = definition.summary();
                let plural = summary.pointer("/spec/names/plural").and_then(|name| name.as_str());
                let name = GroupResource::new(definition.group(), plural.unwrap_or_default());
                let left = cache.records(&self.prefix(&name)).len();
                if known.contains(&name) || left == 0 {
                    continue;
                }
                if self.forced {
                    self.clear(&name, remaining).await;
                    continue;
                }
                let why = "the CustomResourceDefinition can't be served".to_owned();
                remaining.undiscovered.insert(name.to_string(), why);
                remaining.objects.insert(name, left);
            }
        }
    }

    fn prefix(self, name: &GroupResource) -> KeyPrefix {
        match self.namespace {
            Some(namespace) => KeyPrefix::namespace(name, self.cluster, namespace),
            None => KeyPrefix::cluster(name, self.cluster),
        }
    }

    async fn clear(self, name: &GroupResource, remaining: &mut Remaining) {
        let records = self.registry.cache().records(&self.prefix(name));
        let fates = stream::iter(records).map(|(key, revision)| self.clear_one(key, revision));
        let mut fates = fates.buffer_unordered(AT_ONCE);
        while let Some(fate) = fates.next().await {
            make_way();
            let stays = match fate {
                Fate::Gone => continue,
                Fate::Stays(object) => Some(object),
                Fate::Failed(object, error) => {
                    remaining.failures.push(format!("{name}: {error}"));
                    object
                }
            };
            *remaining.objects.entry(name.clone()).or_default() += 1;
            for finalizer in stays.iter().flat_map(|object| object.header.finalizers()) {
                *remaining.finalizers.entry(finalizer.to_string()).or_default() += 1;
            }
        }
    }

    async fn clear_one(self, key: Key, revision: Revision) -> Fate {
        let registry = self.registry;
        let object = registry.cache().get(&key).filter(|object| object.origin == Origin::Stored);
        let Some(object) = object.filter(|_| !self.forced) else {
            return match registry.purge(&key, revision).await {
                Ok(()) => Fate::Gone,
                Err(error) => Fate::Failed(None, error),
            };
        };
        if object.header.is_deleting() {
            return Fate::Stays(object);
        }
        let Some(target) = registry.target_for(&object) else {
            let error = Error::internal(format!("{key} is of no type"));
            return Fate::Failed(Some(object), error);
        };
        let uid = Some(object.header.uid().to_string());
        let options = DeleteOptions { uid, ..DeleteOptions::default() };
        match registry.remove(&housekeeping(), &target, options).await {
            Ok(Deleted::Gone(_)) => Fate::Gone,
            Ok(Deleted::Pending(view)) => Fate::Stays(view.object),
            // Another server was faster.
            Err(error) if error.reason() == Reason::NotFound => Fate::Gone,
            // Something else is there by now: the next round sees to it.
            Err(error) if error.reason() == Reason::Conflict => Fate::Stays(object),
            Err(error) => Fate::Failed(Some(object), error),
        }
    }
}

fn is_namespaces(resource: &ResourceDef) -> bool {
    resource.group.is_empty() && &*resource.plural == "namespaces"
}

fn is_definitions(resource: &ResourceDef) -> bool {
    let crds = definitions();
    resource.group == crds.group && resource.plural == crds.resource
}
