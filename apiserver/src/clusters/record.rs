//! The object of a logical cluster.

use jiff::Timestamp;
use machinery::meta::get_str;
use machinery::{ClusterName, GroupResource, ObjectKey};
use serde_json::{Value, json};
use store::cache::Object;
use store::{Key, KeyPrefix};

/// The finalizer that keeps a logical cluster's object until its content is gone.
pub const CONTENT_FINALIZER: &str = "core.kcp.io/content";

/// The resource as keys begin with it.
const PART: &str = "core.kcp.io/logicalclusters";

/// The resource `logicalclusters.core.kcp.io`.
pub fn logical_clusters() -> GroupResource {
    GroupResource::new("core.kcp.io", "logicalclusters")
}

/// The prefix of the objects of all logical clusters. They live in `root`: whatever stands under
/// the same resource elsewhere is none.
pub fn prefix() -> KeyPrefix {
    KeyPrefix::cluster(&logical_clusters(), &ClusterName::root())
}

/// The key of a logical cluster's object: in `root`, under its own name.
pub fn key(cluster: &ClusterName) -> Key {
    Key::new(&logical_clusters(), &ObjectKey::new(ClusterName::root(), "", cluster.as_str()))
}

/// Whether a key is that of a logical cluster's object, which everything about the logical cluster
/// may depend on.
pub fn is_key(key: &Key) -> bool {
    key.resource_part() == PART
}

/// The owner of a logical cluster, from its object.
pub fn owner(cluster: &Object) -> Option<String> {
    let value: Value = serde_json::from_slice(&cluster.json()).ok()?;
    get_str(&value, &["spec", "owner"]).filter(|owner| !owner.is_empty()).map(str::to_owned)
}

/// A new logical cluster's object. Its owner, if it has one, administers it.
pub fn new(cluster: &ClusterName, uid: &str, now: Timestamp, owner: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "LogicalCluster",
        "metadata": {
            "name": cluster.as_str(),
            "uid": uid,
            "creationTimestamp": machinery::time::Time::at(now).to_string(),
            "finalizers": [CONTENT_FINALIZER],
            "generation": 1,
        },
        "spec": {},
        "status": {"phase": "Ready"},
    });
    if let Some(owner) = owner {
        object["spec"] = json!({"owner": owner});
    }
    object
}
