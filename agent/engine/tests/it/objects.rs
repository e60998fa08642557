//! Types and objects of the tests.

use std::collections::BTreeSet;

use engine::{Adoption, GroupResource, Identity, Limits, Mapping, Scope, SyncedType, Target};
use serde_json::{Value, json};

use crate::model::Key;

pub(crate) const FINALIZER: &str = "workloads.kcp.io/infra.east";
pub(crate) const STATE: &str = "sync.workloads.kcp.io/infra.east";
pub(crate) const TARGET: &str = "target-1";

pub(crate) fn target() -> Target {
    Target {
        identity: Identity {
            hub: "hub-1".into(),
            logical_cluster: "lc-1".into(),
            target: TARGET.into(),
            incarnation: 0,
        },
        cluster: "infra".into(),
        name: "east".into(),
        wildcard: true,
        mapping: Mapping::Same,
        adoption: Adoption::Never,
        upsync: std::sync::Arc::default(),
        status_down: std::sync::Arc::default(),
        reserved_namespaces: BTreeSet::from(["kcp-agent-1".into()]),
        limits: Limits::default(),
    }
}

pub(crate) fn kind(group: &str, resource: &str, kind: &str, status: bool) -> SyncedType {
    SyncedType {
        resource: GroupResource::new(group, resource),
        version: "v1".into(),
        kind: kind.into(),
        scope: Scope::Namespaced,
        upstream_status: status,
        downstream_status: status,
        upstream_scale: status,
    }
}

/// The types that are synced in tests.
pub(crate) fn kinds() -> Vec<SyncedType> {
    vec![
        SyncedType {
            scope: Scope::Cluster,
            ..kind(
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                "CustomResourceDefinition",
                true,
            )
        },
        kind("", "configmaps", "ConfigMap", false),
        kind("", "secrets", "Secret", false),
        kind("", "serviceaccounts", "ServiceAccount", false),
        kind("", "services", "Service", true),
        kind("apps", "deployments", "Deployment", true),
        kind("batch", "jobs", "Job", true),
        kind("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true),
        kind("", "persistentvolumeclaims", "PersistentVolumeClaim", true),
    ]
}

/// The key of an object at the hub.
pub(crate) fn at_hub(resource: &str, name: &str) -> Key {
    (resource.into(), "infra".into(), "shop".into(), name.into())
}

/// The key of its copy.
pub(crate) fn at_cluster(resource: &str, name: &str) -> Key {
    (resource.into(), String::new(), "shop".into(), name.into())
}

/// An object that the operator has assigned to the target.
pub(crate) fn assigned(resource: &str, name: &str, content: Value) -> Value {
    let kind = kinds().into_iter().find(|kind| kind.resource.to_string() == resource).unwrap();
    let mut object = json!({
        "apiVersion": kind.api_version(), "kind": &*kind.kind,
        "metadata": {
            "name": name, "namespace": "shop",
            "labels": {"app": name, STATE: "Sync", "workloads.kcp.io/cluster": "east"},
            "finalizers": [FINALIZER],
        },
    });
    for (key, value) in content.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

pub(crate) fn deployment(name: &str, image: &str, replicas: i64) -> Value {
    assigned(
        "deployments.apps",
        name,
        json!({"spec": {
            "replicas": replicas, "containers": [{"name": "web", "image": image}],
        }}),
    )
}

pub(crate) fn config(name: &str, value: &str) -> Value {
    assigned("configmaps", name, json!({"data": {"key": value}}))
}
