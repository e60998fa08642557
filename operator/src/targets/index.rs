//! The SyncTargets of all logical clusters, as the hub last showed them.
//!
//! Invariants: a SyncTarget is its UID, not its name; one that can't be read is known to be there and
//! nothing is done about it; the state changes by what the watch says alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::{Mode, SyncTargetSpec, SyncTargetStatus};
use kube::core::DynamicObject;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch;

use crate::queue::Lane;

/// The annotation of objects in answers over all logical clusters: whose it is.
pub(crate) const CLUSTER: &str = "kcp.io/cluster";

/// One SyncTarget; another one of the same name is another key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TargetKey {
    /// Its logical cluster.
    pub(crate) cluster: Arc<str>,
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its UID.
    pub(crate) uid: Arc<str>,
}

/// A SyncTarget.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    /// Which one.
    pub(crate) key: TargetKey,
    /// Its metadata, as the hub shows it.
    pub(crate) metadata: Metadata,
    /// What is wanted.
    pub(crate) spec: SyncTargetSpec,
    /// What is known.
    pub(crate) status: SyncTargetStatus,
}

/// What of its metadata matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) generation: i64,
    pub(crate) resource_version: String,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) finalizers: Vec<String>,
    /// Since when it is being deleted (RFC 3339).
    pub(crate) deleted: Option<jiff::Timestamp>,
}

/// The SyncTargets that are known.
#[derive(Debug)]
pub(crate) struct Targets {
    known: RwLock<Known>,
    /// Raised with each change; 0 until all have been listed.
    version: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Known {
    /// By logical cluster and name; `None` for one that can't be read.
    targets: BTreeMap<(String, String), Option<Arc<Target>>>,
}

// === impl TargetKey ===

impl TargetKey {
    /// The path of the SyncTarget, in its logical cluster.
    pub(crate) fn path(&self) -> String {
        path(&self.name)
    }

    /// Its name over all logical clusters.
    pub(crate) fn global(&self) -> String {
        contract::global_name(&self.cluster, &self.name)
    }
}

impl Lane for TargetKey {
    fn lane(&self) -> &str {
        &self.cluster
    }
}

impl std::fmt::Display for TargetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.cluster, self.name)
    }
}

/// The path of the SyncTarget of a name, in its logical cluster.
pub(crate) fn path(name: &str) -> String {
    let (group, resource) = (contract::WORKLOAD_GROUP, contract::SYNC_TARGETS);
    format!("/apis/{group}/v1alpha1/{resource}/{name}")
}

// === impl Target ===

impl Target {
    /// Reads one; `None` if it isn't one that this program understands.
    pub(crate) fn read(cluster: &str, object: &Value) -> Option<Self> {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let (name, uid) = (text("name"), text("uid"));
        if name.is_empty() || uid.is_empty() {
            return None;
        }
        let spec = serde_json::from_value(object.get("spec")?.clone()).ok()?;
        let status = match object.get("status") {
            None | Some(Value::Null) => SyncTargetStatus::default(),
            Some(status) => serde_json::from_value(status.clone()).ok()?,
        };
        let annotations = metadata["annotations"].as_object().into_iter().flatten();
        let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
        let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = Metadata {
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            resource_version: text("resourceVersion").to_owned(),
            annotations: annotations.map(|(key, value)| (key.clone(), text_of(value))).collect(),
            finalizers: finalizers.map(text_of).collect(),
            deleted: text("deletionTimestamp").parse().ok(),
        };
        let key = TargetKey { cluster: cluster.into(), name: name.into(), uid: uid.into() };
        Some(Self { key, metadata, spec, status })
    }

    /// Whether it is being deleted.
    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deleted.is_some()
    }

    /// Whether another physical cluster is meant by now than the one whose agents are believed: a person
    /// has confirmed it, and nothing has been done about it yet. Where nobody but people goes to a
    /// cluster, only they know.
    pub(crate) fn is_moving(&self) -> bool {
        let reached = self.spec.kubeconfig.is_some() || self.spec.kubeconfig_secret_ref.is_some();
        let meant = self.annotation(contract::CLUSTER_UID);
        let moves = meant.zip(self.status.cluster_uid.as_deref());
        reached
            && self.spec.mode != Mode::None
            && moves.is_some_and(|(meant, known)| meant != known)
    }

    /// The value of an annotation.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.get(key).map(String::as_str)
    }
}

// === impl Targets ===

impl Default for Targets {
    fn default() -> Self {
        Self { known: RwLock::default(), version: watch::Sender::new(0) }
    }
}

impl Targets {
    /// The one of that key, if it is still that one.
    pub(crate) fn get(&self, key: &TargetKey) -> Option<Arc<Target>> {
        self.named(&key.cluster, &key.name).filter(|target| target.key.uid == key.uid)
    }

    /// The one of that name.
    pub(crate) fn named(&self, cluster: &str, name: &str) -> Option<Arc<Target>> {
        let known = self.known.read();
        known.targets.get(&(cluster.to_owned(), name.to_owned())).cloned().flatten()
    }

    /// Whether there is one of that name, if only one that can't be read.
    pub(crate) fn has(&self, cluster: &str, name: &str) -> bool {
        self.known.read().targets.contains_key(&(cluster.to_owned(), name.to_owned()))
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Target>> {
        self.known.read().targets.values().flatten().cloned().collect()
    }

    /// Those whose kubeconfig is in that Secret of their logical cluster.
    pub(crate) fn with_secret(&self, cluster: &str, namespace: &str, name: &str) -> Vec<TargetKey> {
        let known = self.known.read();
        let of_cluster = known.targets.range((cluster.to_owned(), String::new())..);
        let of_cluster = of_cluster.take_while(|((other, _), _)| other == cluster);
        let is_it = |target: &&Arc<Target>| {
            let secret = target.spec.kubeconfig_secret_ref.as_ref();
            secret.is_some_and(|secret| secret.namespace == namespace && secret.name == name)
        };
        let targets = of_cluster.filter_map(|(_, target)| target.as_ref());
        targets.filter(is_it).map(|target| target.key.clone()).collect()
    }

    /// Changes with every change; until all have been listed it is 0.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Whether all have been listed.
    pub(crate) fn is_listed(&self) -> bool {
        *self.version.borrow() > 0
    }

    /// One was made or has changed. Returns the keys that are concerned: it, and one that it replaces.
    pub(crate) fn apply(&self, object: &DynamicObject) -> Vec<TargetKey> {
        let Some((cluster, name, value)) = parts(object) else { return Vec::new() };
        let target = Target::read(&cluster, &value).map(Arc::new);
        if target.is_none() {
            tracing::warn!(cluster, name, "a SyncTarget cannot be read, and is left alone");
        }
        let key = target.as_ref().map(|target| target.key.clone());
        let before = self.known.write().targets.insert((cluster, name), target).flatten();
        let before =
            before.map(|before| before.key.clone()).filter(|old| Some(old) != key.as_ref());
        self.bump();
        key.into_iter().chain(before).collect()
    }

    /// One is gone.
    pub(crate) fn delete(&self, object: &DynamicObject) -> Vec<TargetKey> {
        let Some((cluster, name, value)) = parts(object) else { return Vec::new() };
        let uid = value["metadata"]["uid"].as_str().unwrap_or_default();
        let mut known = self.known.write();
        let place = (cluster, name);
        // Another one may have its name by now.
        let same = known
            .targets
            .get(&place)
            .is_some_and(|target| target.as_ref().is_none_or(|target| &*target.key.uid == uid));
        let gone = if same { known.targets.remove(&place).flatten() } else { None };
        drop(known);
        self.bump();
        gone.map(|gone| gone.key.clone()).into_iter().collect()
    }

    /// All were listed: there are no others. Returns the keys of those that are gone.
    pub(crate) fn keep(&self, listed: &BTreeSet<(String, String)>) -> Vec<TargetKey> {
        let mut gone = Vec::new();
        self.known.write().targets.retain(|place, target| {
            let stays = listed.contains(place);
            if !stays {
                gone.extend(target.as_ref().map(|target| target.key.clone()));
            }
            stays
        });
        self.bump();
        gone
    }

    fn bump(&self) {
        self.version.send_modify(|version| *version += 1);
    }
}

/// Where an object of an answer over all logical clusters is, and the object.
pub(crate) fn parts(object: &DynamicObject) -> Option<(String, String, Value)> {
    let cluster = object.metadata.annotations.as_ref()?.get(CLUSTER)?.clone();
    let name = object.metadata.name.clone()?;
    Some((cluster, name, serde_json::to_value(object).ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(cluster: &str, name: &str, uid: &str, spec: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "workload.kcp.io/v1alpha1",
            "kind": "SyncTarget",
            "metadata": {
                "name": name, "uid": uid, "resourceVersion": "1", "generation": 2,
                "annotations": {CLUSTER: cluster, "a": "b"},
            },
            "spec": spec,
        }))
        .unwrap()
    }

    fn uids(keys: &[TargetKey]) -> Vec<&str> {
        keys.iter().map(|key| &*key.uid).collect()
    }

    #[test]
    fn a_target_is_its_uid() {
        let targets = Targets::default();
        let east = |uid| object("a", "east", uid, &json!({}));
        assert_eq!(uids(&targets.apply(&east("1"))), ["1"]);
        assert_eq!(uids(&targets.apply(&object("b", "east", "2", &json!({})))), ["2"]);
        let first = targets.named("a", "east").unwrap();
        assert_eq!((first.metadata.generation, first.annotation("a")), (2, Some("b")));
        // Made again: the one before is concerned, too.
        assert_eq!(uids(&targets.apply(&east("3"))), ["3", "1"]);
        assert_eq!(targets.get(&first.key), None);
        assert_eq!(uids(&targets.delete(&east("1"))), [""; 0], "that one is gone already");
        assert!(targets.named("a", "east").is_some());
        assert_eq!(uids(&targets.delete(&east("3"))), ["3"]);
        assert!(targets.named("a", "east").is_none() && targets.named("b", "east").is_some());
    }

    #[test]
    fn what_cannot_be_read_is_there() {
        let targets = Targets::default();
        assert!(targets.apply(&object("a", "odd", "1", &json!({"mode": "Other"}))).is_empty());
        assert!(targets.has("a", "odd") && targets.named("a", "odd").is_none());
        assert!(!targets.has("a", "none"));
        let listed = BTreeSet::from([("a".to_owned(), "none".to_owned())]);
        assert!(targets.keep(&listed).is_empty());
        assert!(!targets.has("a", "odd"));
    }
}
