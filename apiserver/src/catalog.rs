//! Which resources a logical cluster serves, and whether it is there for a caller.
//!
//! What is served follows from the cache alone: the built-in resources, the established CRDs of the
//! logical cluster, and those of `system:crds`. A type is found by its CRD's name, so it is served
//! as soon, and exactly as long, as its CRD says that it is established; no other state has to keep
//! up with it.

mod definition;

use std::collections::HashMap;
use std::sync::Arc;

use machinery::{ClusterName, GroupResource};
use parking_lot::Mutex;
use schema::Types;
use schema::crd::CustomType;
use schema::resource::{Flag, ResourceDef, Verb};
use store::KeyPrefix;
use store::cache::{Cache, Object};

pub use definition::{Definition, definitions};

use crate::auth::UserInfo;
use crate::auth::authz::Authorizer;
use crate::clusters::record;
use crate::discovery::Resources;
use crate::registry::ClusterScope;

/// Logical clusters whose sets of resources are held; others are put together again.
const HELD: usize = 512;

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

/// A resource that is served, in one version.
#[derive(Clone, Debug)]
pub struct Served {
    /// The resource.
    pub resource: Arc<ResourceDef>,
    /// Its type, unless it is built in.
    pub custom: Option<Arc<CustomType>>,
}

/// A resource, and the version that its objects are stored in.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The resource.
    pub served: Served,
    /// The version.
    pub version: Arc<str>,
}

/// The resources of every logical cluster.
#[derive(Debug)]
pub struct Catalog {
    everywhere: Resources,
    in_root: Resources,
    cache: Arc<Cache>,
    authorizer: Arc<Authorizer>,
    /// Put together before, by the name of the logical cluster.
    held: Mutex<HashMap<String, Set>>,
}

/// A set of resources and the CRDs that it was made of.
#[derive(Debug)]
struct Set {
    definitions: Vec<Arc<Object>>,
    resources: Resources,
}

// === impl Catalog ===

impl Catalog {
    /// The built-in resources, and what the CRDs in `cache` add.
    pub(crate) fn new(types: &Types, cache: Arc<Cache>, authorizer: Arc<Authorizer>) -> Self {
        let in_root = types.resources().to_vec();
        let clusters = record::logical_clusters();
        let everywhere = in_root
            .iter()
            .filter(|resource| {
                *resource.group != *clusters.group || *resource.plural != *clusters.resource
            })
            .cloned()
            .collect();
        Self { everywhere, in_root: in_root.into(), cache, authorizer, held: Mutex::default() }
    }

    /// The resources that a logical cluster serves, in the order of discovery; for all of them,
    /// the union. Of a custom resource there is one for each served version.
    pub fn resources(&self, scope: &ClusterScope) -> Resources {
        let builtin = self.builtin(scope);
        let definitions = self.definitions(scope);
        if definitions.is_empty() {
            return builtin.clone();
        }
        let name = match scope {
            ClusterScope::One(cluster) => cluster.as_str(),
            ClusterScope::All => "*",
        };
        let same = |set: &&Set| {
            let (a, b) = (&set.definitions, &definitions);
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        if let Some(set) = self.held.lock().get(name).filter(same) {
            return set.resources.clone();
        }
        let resources = put_together(builtin, &definitions);
        let mut held = self.held.lock();
        if held.len() >= HELD {
            held.clear();
        }
        held.insert(name.to_owned(), Set { definitions, resources: resources.clone() });
        resources
    }

    /// The established CRDs of a logical cluster and the shared ones, in order of their names; for
    /// all logical clusters, every one.
    pub fn definitions(&self, scope: &ClusterScope) -> Vec<Arc<Object>> {
        let of = |prefix: &KeyPrefix| self.cache.list(prefix, None, 0).objects;
        let mut all = match scope {
            ClusterScope::All => of(&KeyPrefix::resource(&definitions())),
            ClusterScope::One(cluster) => {
                let local = of(&KeyPrefix::cluster(&definitions(), cluster));
                let shared = ClusterName::system_crds();
                let shared = if *cluster == shared {
                    Vec::new()
                } else {
                    of(&KeyPrefix::cluster(&definitions(), &shared))
                };
                // A local type that was there before a shared one goes on.
                let is_local = |object: &Arc<Object>| {
                    local.binary_search_by(|l| l.header.name().cmp(object.header.name())).is_ok()
                };
                let shared = shared.into_iter().filter(|object| !is_local(object));
                let shared = shared.collect::<Vec<_>>();
                let mut both = local;
                both.extend(shared);
                both
            }
        };
        all.retain(|object| Definition::of(object).is_established());
        all.sort_by(|a, b| a.header.name().cmp(b.header.name()));
        all
    }

    /// A resource by its path, if that version of it is served.
    pub fn find(
        &self,
        scope: &ClusterScope,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<Served> {
        let builtin = self
            .builtin(scope)
            .iter()
            .find(|known| *known.group == *group && *known.plural == *plural);
        // What is only shown gives way to an imported type.
        if builtin.is_none_or(yields)
            && let Some(custom) = self.custom(scope, group, version, plural)
        {
            let serves = |def: &&Arc<ResourceDef>| {
                def.version(version).is_some_and(|version| version.served)
            };
            let resource = custom.defs.iter().find(serves)?.clone();
            return Some(Served { resource, custom: Some(custom) });
        }
        let resource = builtin?.clone();
        let served = resource.version(version).is_some_and(|version| version.served);
        served.then_some(Served { resource, custom: None })
    }

    /// A resource of a logical cluster by its name alone, and the version that its objects are
    /// stored in.
    pub fn stored(&self, cluster: &ClusterName, name: &GroupResource) -> Option<Stored> {
        let (group, plural) = (&*name.group, &*name.resource);
        let builtin = self
            .builtin(&ClusterScope::One(cluster.clone()))
            .iter()
            .find(|known| *known.group == *group && *known.plural == *plural);
        if builtin.is_none_or(yields)
            && let Some(custom) = self.custom_of(cluster, group, plural)
        {
            return Stored::custom(custom);
        }
        let resource = builtin?.clone();
        let version = resource.storage_version()?.name.clone();
        Some(Stored { served: Served { resource, custom: None }, version })
    }

    /// The resource whose objects are of that kind, if the logical cluster serves that version of
    /// it.
    pub fn of_kind(
        &self,
        cluster: &ClusterName,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Option<Served> {
        let scope = ClusterScope::One(cluster.clone());
        let is = |def: &ResourceDef| {
            *def.group == *group
                && *def.kind == *kind
                && !def.has(Flag::Virtual)
                && def.version(version).is_some_and(|version| version.served)
        };
        // Nearly always the plural name follows from the kind, and then no list is put together.
        let guess = plural_of(kind);
        let found = self.find(&scope, group, version, &guess);
        if let Some(found) = found.filter(|found| is(&found.resource)) {
            return Some(found);
        }
        let plural = self.resources(&scope).iter().find(|def| is(def))?.plural.clone();
        self.find(&scope, group, version, &plural).filter(|found| is(&found.resource))
    }

    /// The custom type of a group and plural name in a logical cluster, or of any that serves the
    /// version.
    fn custom(
        &self,
        scope: &ClusterScope,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<Arc<CustomType>> {
        match scope {
            ClusterScope::One(cluster) => self.custom_of(cluster, group, plural),
            ClusterScope::All => {
                let shared = self.custom_in(&ClusterName::system_crds(), group, plural);
                let serves = |custom: &Arc<CustomType>| {
                    custom.versions.iter().any(|v| v.served && *v.name == *version)
                };
                let name = schema::import::crd_name(group, plural);
                shared.filter(serves).or_else(|| {
                    let all = self.cache.list(&KeyPrefix::resource(&definitions()), None, 0);
                    let named = all.objects.iter().filter(|object| *object.header.name() == *name);
                    let customs =
                        named.filter_map(|object| Definition::of(object).custom(object).cloned());
                    { customs }.find(serves)
                })
            }
        }
    }

    /// The custom type of a group and plural name in a logical cluster, shared ones included.
    pub fn custom_of(
        &self,
        cluster: &ClusterName,
        group: &str,
        plural: &str,
    ) -> Option<Arc<CustomType>> {
        self.custom_in(cluster, group, plural)
            .or_else(|| self.custom_in(&ClusterName::system_crds(), group, plural))
    }

    fn custom_in(
        &self,
        cluster: &ClusterName,
        group: &str,
        plural: &str,
    ) -> Option<Arc<CustomType>> {
        let object = self.definition(cluster, group, plural)?;
        Definition::of(&object).custom(&object).cloned()
    }

    /// The CRD of a group and plural name in exactly this logical cluster, established or not.
    pub fn definition(
        &self,
        cluster: &ClusterName,
        group: &str,
        plural: &str,
    ) -> Option<Arc<Object>> {
        self.cache.get(&definition::key(cluster, group, plural))
    }

    fn builtin(&self, scope: &ClusterScope) -> &Resources {
        match scope {
            ClusterScope::One(cluster) if !cluster.is_root() => &self.everywhere,
            ClusterScope::One(_) | ClusterScope::All => &self.in_root,
        }
    }

    /// What the caller meets there.
    pub fn access(&self, user: &UserInfo, scope: &ClusterScope) -> Access {
        match scope {
            ClusterScope::All => Access::Serving,
            ClusterScope::One(cluster) if self.exists(cluster) => Access::Serving,
            ClusterScope::One(cluster) if cluster.is_system() => Access::Denied,
            ClusterScope::One(cluster) if self.may_create(user, cluster) => Access::NotCreated,
            ClusterScope::One(_) => Access::Denied,
        }
    }

    /// Whether the caller has the verb `create` on `logicalclusters` in `root`.
    pub fn may_create(&self, user: &UserInfo, cluster: &ClusterName) -> bool {
        self.authorizer.may_create(user, cluster)
    }

    fn exists(&self, cluster: &ClusterName) -> bool {
        self.cache.get(&record::key(cluster)).is_some()
    }
}

// === impl Stored ===

impl Stored {
    fn custom(custom: Arc<CustomType>) -> Option<Self> {
        let first = custom.defs.first()?;
        let version = first.storage_version()?.name.clone();
        let serves = |def: &&Arc<ResourceDef>| served_version(def) == Some(&*version);
        let resource = custom.defs.iter().find(serves).unwrap_or(first).clone();
        Some(Self { served: Served { resource, custom: Some(custom) }, version })
    }
}

/// The plural name that a kind most likely has, by upstream's rule.
fn plural_of(kind: &str) -> String {
    let mut plural = kind.to_ascii_lowercase();
    match plural.pop() {
        None => {}
        Some('s') => plural.push_str("ses"),
        Some('y') => plural.push_str("ies"),
        Some(last) => {
            plural.push(last);
            plural.push('s');
        }
    }
    plural
}

/// Whether a built-in resource is only there to be seen until the real one is imported.
fn yields(resource: &Arc<ResourceDef>) -> bool {
    !resource.allows(Verb::Create)
}

fn put_together(builtin: &Resources, definitions: &[Arc<Object>]) -> Resources {
    let mut added: Vec<Arc<ResourceDef>> = Vec::new();
    for object in definitions {
        let definition = Definition::of(object);
        let Some(custom) = definition.custom(object) else { continue };
        for def in &custom.defs {
            // Over all logical clusters one type may have been defined many times.
            let there = added.iter().any(|other| {
                other.group == def.group
                    && other.plural == def.plural
                    && served_version(other) == served_version(def)
            });
            if !there {
                added.push(def.clone());
            }
        }
    }
    let hidden = |resource: &&Arc<ResourceDef>| {
        let same =
            |def: &Arc<ResourceDef>| def.group == resource.group && def.plural == resource.plural;
        !(yields(resource) && added.iter().any(same))
    };
    builtin.iter().filter(hidden).cloned().chain(added.iter().cloned()).collect()
}

fn served_version(def: &ResourceDef) -> Option<&str> {
    def.versions.iter().find(|version| version.served).map(|version| &*version.name)
}
