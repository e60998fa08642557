//! The objects that have marks, and what is in the queue. Pure state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::plan::{GroupResource, global};
use crate::marks::Marks;
use crate::queue::Lane;

/// A type that is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Type {
    pub(crate) resource: GroupResource,
    pub(crate) version: String,
}

/// Each type once: the latest version shows all objects.
pub(crate) fn latest(types: impl IntoIterator<Item = Type>) -> BTreeMap<GroupResource, String> {
    let mut latest: BTreeMap<GroupResource, String> = BTreeMap::new();
    for kind in types {
        let version = latest.entry(kind.resource).or_insert_with(|| kind.version.clone());
        if machinery::version::compare(&kind.version, version).is_lt() {
            *version = kind.version;
        }
    }
    latest
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    pub(crate) kind: Arc<Type>,
    pub(crate) cluster: Arc<str>,
    /// Empty for what has none.
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamespaceKey {
    pub(crate) cluster: Arc<str>,
    pub(crate) name: Arc<str>,
}

/// A SyncTarget, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TargetName {
    pub(crate) cluster: Arc<str>,
    pub(crate) name: Arc<str>,
}

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// One object.
    Object(ObjectKey),
    /// Everything in a namespace.
    Namespace(NamespaceKey),
    /// What of a SyncTarget's objects people are deleting as a whole.
    Deletions(TargetName),
}

/// The objects that have marks.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    named: BTreeMap<ObjectKey, Named>,
    by_target: BTreeMap<String, BTreeSet<ObjectKey>>,
    by_namespace: BTreeMap<NamespaceKey, BTreeSet<ObjectKey>>,
    /// How many objects of a SyncTarget are being deleted, by where they are.
    going: BTreeMap<String, BTreeMap<NamespaceKey, usize>>,
}

/// What an object says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Named {
    /// The SyncTargets that it names, by their global names.
    targets: BTreeSet<String>,
    /// Those of them that may hold a copy.
    holders: BTreeSet<String>,
    /// Whether it is being deleted.
    deleting: bool,
}

// === impl Type ===

impl Type {
    /// The path of all objects, in a namespace or everywhere.
    pub(crate) fn path(&self, namespace: &str) -> String {
        let (group, resource) = &self.resource;
        let version = &self.version;
        let base = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        match namespace {
            "" => format!("{base}/{version}/{resource}"),
            namespace => format!("{base}/{version}/namespaces/{namespace}/{resource}"),
        }
    }
}

// === impl ObjectKey ===

impl ObjectKey {
    /// Where an object's metadata says that it is; `None` if it doesn't say.
    pub(crate) fn of(kind: &Arc<Type>, cluster: &str, metadata: &Value) -> Option<Self> {
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let name = text("name");
        (!name.is_empty() && !cluster.is_empty()).then(|| Self {
            kind: kind.clone(),
            cluster: cluster.into(),
            namespace: text("namespace").into(),
            name: name.into(),
        })
    }

    /// Its path in its logical cluster.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.kind.path(&self.namespace), self.name)
    }

    /// As [`label`] has it.
    pub(crate) fn label(&self) -> String {
        label(&self.kind.resource.1, &self.cluster, &self.namespace, &self.name)
    }

    /// Its namespace; that of what has none has no name.
    fn place(&self) -> NamespaceKey {
        NamespaceKey { cluster: self.cluster.clone(), name: self.namespace.clone() }
    }
}

// === impl TargetName ===

impl TargetName {
    /// The SyncTarget of a global name.
    pub(crate) fn of(global: &str) -> Option<Self> {
        let (cluster, name) = contract::parse_global_name(global)?;
        Some(Self { cluster: cluster.into(), name: name.into() })
    }
}

// === impl Item ===

impl Lane for Item {
    fn lane(&self) -> &str {
        match self {
            Self::Object(key) => &key.cluster,
            Self::Namespace(key) => &key.cluster,
            Self::Deletions(target) => &target.cluster,
        }
    }
}

// === impl Objects ===

impl Objects {
    /// An object was seen, with these marks. Returns the SyncTargets of which it is the news that the
    /// object is being deleted.
    pub(crate) fn put(&mut self, key: &ObjectKey, marks: &Marks) -> Vec<TargetName> {
        let before = self.remove(key);
        if marks.is_empty() {
            return Vec::new();
        }
        let intent = marks.intent.as_deref().filter(|intent| !intent.is_empty());
        let intent = intent.map(|intent| global(&key.cluster, intent));
        let holders: BTreeSet<String> = marks.targets().into_iter().map(str::to_owned).collect();
        let targets = holders.iter().cloned().chain(intent).collect();
        let named = Named { targets, holders, deleting: marks.deleting };
        self.by_namespace.entry(key.place()).or_default().insert(key.clone());
        for target in &named.targets {
            self.by_target.entry(target.clone()).or_default().insert(key.clone());
        }
        for target in named.holders.iter().filter(|_| named.deleting) {
            let places = self.going.entry(target.clone()).or_default();
            *places.entry(key.place()).or_default() += 1;
        }
        let news = named.deleting && before.as_ref() != Some(&named);
        let concerned = named.holders.iter().filter(|_| news);
        let concerned = concerned.filter_map(|global| TargetName::of(global)).collect();
        self.named.insert(key.clone(), named);
        concerned
    }

    /// An object is gone.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        self.remove(key);
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Named> {
        let named = self.named.remove(key)?;
        let place = key.place();
        remove_from(&mut self.by_namespace, &place, key);
        for target in &named.targets {
            remove_from(&mut self.by_target, target, key);
        }
        for target in named.holders.iter().filter(|_| named.deleting) {
            let Some(places) = self.going.get_mut(target) else { continue };
            if let Some(count) = places.get_mut(&place) {
                *count -= 1;
                if *count == 0 {
                    places.remove(&place);
                }
            }
            if places.is_empty() {
                self.going.remove(target);
            }
        }
        Some(named)
    }

    /// All objects of a type were listed, and of those with marks there are no others. Returns those
    /// that are gone.
    pub(crate) fn keep(&mut self, kind: &Type, listed: &BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let gone = self.named.keys().filter(|key| *key.kind == *kind && !listed.contains(key));
        let gone: Vec<ObjectKey> = gone.cloned().collect();
        for key in &gone {
            self.remove(key);
        }
        gone
    }

    /// The objects that name a SyncTarget.
    pub(crate) fn of_target(&self, global: &str) -> Vec<ObjectKey> {
        self.by_target.get(global).into_iter().flatten().cloned().collect()
    }

    /// The objects of which a SyncTarget may hold copies.
    pub(crate) fn held_by<'o>(&'o self, global: &'o str) -> impl Iterator<Item = &'o ObjectKey> {
        let named = self.by_target.get(global).into_iter().flatten();
        named.filter(|key| self.named.get(*key).is_some_and(|one| one.holders.contains(global)))
    }

    /// The objects in a namespace.
    pub(crate) fn of_namespace(&self, place: &NamespaceKey) -> Vec<ObjectKey> {
        self.by_namespace.get(place).into_iter().flatten().cloned().collect()
    }

    /// Where objects of a SyncTarget are being deleted.
    pub(crate) fn going(&self, global: &str) -> BTreeSet<NamespaceKey> {
        self.going.get(global).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    }
}

/// What an object is called to people, as `deployments team-a/default/web`; `namespace` is empty for
/// none.
pub(crate) fn label(resource: &str, cluster: &str, namespace: &str, name: &str) -> String {
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{resource} {cluster}/{namespace}{slash}{name}")
}

fn remove_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<ObjectKey>>, key: &K, object: &ObjectKey) {
    if let Some(objects) = index.get_mut(key) {
        objects.remove(object);
        if objects.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(resource: &str) -> Arc<Type> {
        Arc::new(Type { resource: ("apps".into(), resource.into()), version: "v1".into() })
    }

    fn key(resource: &str, name: &str) -> ObjectKey {
        let metadata = json!({"name": name, "namespace": "default"});
        ObjectKey::of(&kind(resource), "team", &metadata).unwrap()
    }

    fn marks(intent: &str, states: &[&str]) -> Marks {
        let mut labels = json!({"workloads.kcp.io/cluster": intent});
        for state in states {
            labels[format!("sync.workloads.kcp.io/{state}")] = "Sync".into();
        }
        Marks::of(&json!({"labels": labels}))
    }

    #[test]
    fn objects_are_found_by_what_they_name() {
        let mut objects = Objects::default();
        let (web, db) = (key("deployments", "web"), key("statefulsets", "db"));
        objects.put(&web, &marks("east", &["infra.west"]));
        objects.put(&db, &marks("infra.west", &[]));
        assert_eq!(objects.of_target("team.east"), std::slice::from_ref(&web));
        assert_eq!(objects.held_by("team.east").count(), 0, "it is only wanted there");
        assert_eq!(objects.held_by("infra.west").collect::<Vec<_>>(), [&web]);
        assert_eq!(objects.of_target("infra.west"), [web.clone(), db.clone()]);
        let place =
            |cluster: &str| NamespaceKey { cluster: cluster.into(), name: "default".into() };
        assert_eq!(objects.of_namespace(&place("team")).len(), 2);
        assert_eq!(objects.of_namespace(&place("other")).len(), 0);
        objects.put(&web, &marks("", &["infra.west"]));
        assert_eq!(objects.of_target("team.east"), []);
        objects.keep(&kind("statefulsets"), &BTreeSet::new());
        assert_eq!(objects.of_target("infra.west"), std::slice::from_ref(&web));
        objects.put(&web, &Marks::default());
        assert!(objects.named.is_empty() && objects.by_target.is_empty());
        assert!(objects.by_namespace.is_empty() && objects.going.is_empty());
    }

    #[test]
    fn what_is_being_deleted_is_counted() {
        let mut objects = Objects::default();
        let (web, db) = (key("deployments", "web"), key("statefulsets", "db"));
        let going = Marks { deleting: true, ..marks("", &["infra.west"]) };
        assert_eq!(objects.put(&web, &marks("", &["infra.west"])), []);
        assert!(objects.going("infra.west").is_empty());
        let west = TargetName { cluster: "infra".into(), name: "west".into() };
        for key in [&web, &db] {
            assert_eq!(objects.put(key, &going), std::slice::from_ref(&west));
            assert_eq!(objects.put(key, &going), [], "that is no news");
        }
        let places: Vec<_> = objects.going("infra.west").into_iter().collect();
        assert_eq!(places, [web.place()]);
        objects.forget(&web);
        assert_eq!(objects.going("infra.west").len(), 1);
        objects.keep(&kind("statefulsets"), &BTreeSet::new());
        assert!(objects.going.is_empty() && objects.by_namespace.is_empty());
    }

    #[test]
    fn paths() {
        assert_eq!(
            key("deployments", "web").path(),
            "/apis/apps/v1/namespaces/default/deployments/web"
        );
        let core = Type { resource: (String::new(), "nodes".into()), version: "v1".into() };
        assert_eq!(core.path(""), "/api/v1/nodes");
        assert_eq!(ObjectKey::of(&kind("x"), "", &json!({"name": "a"})), None);
    }
}
