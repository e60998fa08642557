//! What is known of a physical cluster.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Quantity;
use crate::Condition;

/// What is known of a physical cluster. The operator, the agent (in mode `Push` the operator in its
/// place) and whoever negotiates types each write parts of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncTargetStatus {
    /// `Installed`, `Authorized`, `Heartbeat`, `TypesImported`, and `Ready`, which sums them up;
    /// and, where it matters, `ClusterReachable`, `TypesComplete`, `UpstreamChanged`,
    /// `DeletionPaused` and `Unsupported`. Each has one writer, which applies it as a field manager of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Credentials of agents from before this time (RFC 3339) are refused. Raising it revokes them;
    /// agents cannot change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub credentials_not_before: Option<String>,
    /// What the cluster has, by resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,
    /// What of it can be used, by resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// The resources that are synced, or are to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub synced_resources: Vec<SyncedResource>,
    /// The UID of the namespace `kube-system` of the cluster whose agents are let in. The operator
    /// writes it, and with another one voids the credentials of agents from before; agents cannot
    /// change it.
    #[serde(default, rename = "clusterUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub cluster_uid: Option<String>,
    /// The version of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub agent_version: Option<String>,
    /// The cluster's version of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub kubernetes_version: Option<String>,
    /// How many objects run there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub synced_objects: Option<i64>,
    /// How many objects have errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failed_objects: Option<i64>,
    /// How many copies are there whose object the hub no longer shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub orphans: Option<i64>,
}

/// A resource that is synced, or is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SyncedResource {
    /// The group; empty for core.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,
    /// The resource.
    #[schemars(length(min = 1, max = 63))]
    pub resource: String,
    /// The versions that hub and cluster have in common; objects are synced in the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub versions: Vec<String>,
    /// The kind of its objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub kind: String,
    /// The subresources `status` and `scale`, where the hub serves them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), inner(length(max = 63)))]
    pub subresources: Vec<String>,
    /// How far it is.
    pub state: SyncedState,
    /// Why it isn't accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
}

/// How far a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SyncedState {
    /// It is being looked at.
    Pending,
    /// Its objects are synced.
    Accepted,
    /// The hub's type and the cluster's don't fit.
    Incompatible,
}
