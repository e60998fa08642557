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

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// One object.
    Object(ObjectKey),
    /// Everything in a namespace.
    Namespace(NamespaceKey),
}

/// The objects that have marks.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// The SyncTargets that each names, by their global names.
    named: BTreeMap<ObjectKey, BTreeSet<String>>,
    /// The same the other way round.
    by_target: BTreeMap<String, BTreeSet<ObjectKey>>,
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
}

// === impl Item ===

impl Lane for Item {
    fn lane(&self) -> &str {
        match self {
            Self::Object(key) => &key.cluster,
            Self::Namespace(key) => &key.cluster,
        }
    }
}

// === impl Objects ===

impl Objects {
    /// An object was seen, with these marks.
    pub(crate) fn put(&mut self, key: &ObjectKey, marks: &Marks) {
        self.remove(key);
        if marks.is_empty() {
            return;
        }
        let intent = marks.intent.as_deref().filter(|intent| !intent.is_empty());
        let intent = intent.map(|intent| global(&key.cluster, intent));
        let named: BTreeSet<String> =
            marks.targets().into_iter().map(str::to_owned).chain(intent).collect();
        for target in &named {
            self.by_target.entry(target.clone()).or_default().insert(key.clone());
        }
        self.named.insert(key.clone(), named);
    }

    /// An object is gone.
    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        for target in self.named.remove(key).unwrap_or_default() {
            if let Some(objects) = self.by_target.get_mut(&target) {
                objects.remove(key);
                if objects.is_empty() {
                    self.by_target.remove(&target);
                }
            }
        }
    }

    /// All objects of a type were listed, and of those with marks there are no others.
    pub(crate) fn keep(&mut self, kind: &Type, listed: &BTreeSet<ObjectKey>) {
        let gone = self.named.keys().filter(|key| *key.kind == *kind && !listed.contains(key));
        for key in gone.cloned().collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    /// The objects that name a SyncTarget.
    pub(crate) fn of_target(&self, global: &str) -> Vec<ObjectKey> {
        self.by_target.get(global).into_iter().flatten().cloned().collect()
    }

    /// The objects in a namespace.
    pub(crate) fn of_namespace(&self, cluster: &str, namespace: &str) -> Vec<ObjectKey> {
        let inside = |key: &&ObjectKey| &*key.cluster == cluster && &*key.namespace == namespace;
        self.named.keys().filter(inside).cloned().collect()
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
        assert_eq!(objects.of_target("infra.west"), [web.clone(), db.clone()]);
        assert_eq!(objects.of_namespace("team", "default").len(), 2);
        assert_eq!(objects.of_namespace("other", "default").len(), 0);
        objects.put(&web, &marks("", &["infra.west"]));
        assert_eq!(objects.of_target("team.east"), []);
        objects.keep(&kind("statefulsets"), &BTreeSet::new());
        assert_eq!(objects.of_target("infra.west"), std::slice::from_ref(&web));
        objects.put(&web, &Marks::default());
        assert!(objects.named.is_empty() && objects.by_target.is_empty());
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
