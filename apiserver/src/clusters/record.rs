//! The object of a logical cluster.

use jiff::Timestamp;
use machinery::{ClusterName, GroupResource, ObjectKey};
use serde_json::{Value, json};
use store::Key;

/// The finalizer that keeps a logical cluster's object until its content is gone.
pub const CONTENT_FINALIZER: &str = "core.kcp.io/content";

/// The resource `logicalclusters.core.kcp.io`.
pub fn logical_clusters() -> GroupResource {
    GroupResource::new("core.kcp.io", "logicalclusters")
}

/// The key of a logical cluster's object: in `root`, under its own name.
pub fn key(cluster: &ClusterName) -> Key {
    Key::new(&logical_clusters(), &ObjectKey::new(ClusterName::root(), "", cluster.as_str()))
}

/// A new logical cluster's object.
pub fn new(cluster: &ClusterName, uid: &str, now: Timestamp) -> Value {
    json!({
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
    })
}
