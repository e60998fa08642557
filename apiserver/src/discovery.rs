//! Discovery: which groups, versions and resources a logical cluster has.
//!
//! Documents are made from the catalog alone, when they are first asked for, and held for each
//! distinct set of resources: logical clusters that serve the same share one copy.

mod aggregated;
mod api_services;
mod document;
mod legacy;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use schema::ResourceDef;

pub(crate) use api_services::api_services;
pub(crate) use document::{Document, moved};

/// The resources that a logical cluster serves.
pub(crate) type Resources = Arc<[Arc<ResourceDef>]>;

/// Sets of resources whose documents are held. Most servers have a handful of distinct ones; more
/// are made again when they come back.
const HELD: usize = 64;

/// The documents of all logical clusters.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    /// Most recently used last.
    held: Mutex<Vec<Arc<Documents>>>,
}

/// The documents of one set of resources.
#[derive(Debug)]
pub(crate) struct Documents {
    resources: Resources,
    groups: Vec<Group>,
    /// `/api` and `/apis`, each aggregated and not.
    roots: [OnceLock<Arc<Document>>; 4],
}

/// A group as discovery lists it.
#[derive(Debug)]
struct Group {
    name: Arc<str>,
    /// Served versions, the preferred one first.
    versions: Vec<Arc<str>>,
}

// === impl Discovery ===

impl Discovery {
    /// The sets of documents that are held.
    pub(crate) fn len(&self) -> usize {
        self.held.lock().len()
    }

    /// The documents of these resources.
    pub(crate) fn documents(&self, resources: &Resources) -> Arc<Documents> {
        let mut held = self.held.lock();
        if let Some(at) = held.iter().rposition(|documents| same(&documents.resources, resources)) {
            let found = held.remove(at);
            held.push(found.clone());
            return found;
        }
        let made = Arc::new(Documents::new(resources.clone()));
        if held.len() == HELD {
            held.remove(0);
        }
        held.push(made.clone());
        made
    }
}

/// Whether two sets are of the same definitions; equal ones are one allocation.
pub(crate) fn same(a: &Resources, b: &Resources) -> bool {
    Arc::ptr_eq(a, b)
        || (a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| Arc::ptr_eq(a, b)))
}

// === impl Documents ===

impl Documents {
    fn new(resources: Resources) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for resource in resources.iter() {
            let at = groups.iter().position(|group| group.name == resource.group);
            let at = at.unwrap_or_else(|| {
                groups.push(Group { name: resource.group.clone(), versions: Vec::new() });
                groups.len() - 1
            });
            let Some(group) = groups.get_mut(at) else { continue };
            for version in resource.versions.iter().filter(|version| version.served) {
                if !group.versions.contains(&version.name) {
                    group.versions.push(version.name.clone());
                }
            }
        }
        for group in &mut groups {
            group.versions.sort_by(|a, b| machinery::version::compare(a, b));
        }
        groups.retain(|group| !group.versions.is_empty());
        let priority = |group: &Group| std::cmp::Reverse(api_services::priorities(&group.name).0);
        groups.sort_by(|a, b| priority(a).cmp(&priority(b)).then_with(|| a.name.cmp(&b.name)));
        Self { resources, groups, roots: Default::default() }
    }

    /// `/api` (`core`) or `/apis`, as one aggregated document or as a list of groups.
    pub(crate) fn root(&self, core: bool, aggregated: bool) -> Arc<Document> {
        let [api, apis, api_legacy, apis_legacy] = &self.roots;
        let (slot, make): (_, fn(&Self, bool) -> Document) = match (core, aggregated) {
            (true, true) => (api, aggregated::root),
            (false, true) => (apis, aggregated::root),
            (true, false) => (api_legacy, legacy::root),
            (false, false) => (apis_legacy, legacy::root),
        };
        slot.get_or_init(|| Arc::new(make(self, core))).clone()
    }

    /// `/apis/G`.
    pub(crate) fn group(&self, name: &str) -> Option<Arc<Document>> {
        let group = self.groups.iter().find(|group| *group.name == *name)?;
        Some(Arc::new(legacy::group(group)))
    }

    /// `/api/V` and `/apis/G/V`.
    pub(crate) fn version(&self, group: &str, version: &str) -> Option<Arc<Document>> {
        let held = self.groups.iter().find(|held| *held.name == *group)?;
        let version = held.versions.iter().find(|held| ***held == *version)?;
        Some(Arc::new(legacy::version(self, group, version)))
    }

    /// The resources of a group version, by name.
    fn of_version(&self, group: &str, version: &str) -> Vec<&ResourceDef> {
        let serves = |resource: &&Arc<ResourceDef>| {
            *resource.group == *group && resource.version(version).is_some_and(|v| v.served)
        };
        let mut found: Vec<&ResourceDef> =
            self.resources.iter().filter(serves).map(Arc::as_ref).collect();
        found.sort_by(|a, b| a.plural.cmp(&b.plural));
        found
    }
}
