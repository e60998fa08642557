//! ObjectSyncs: how one object is at one target, where that isn't plain.

#![allow(unreachable_pub, reason = "`KubeSchema` repeats its structs where nobody reaches them")]

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Condition, Difference};

/// An object and a target.
///
/// It lies beside the object, which owns it (in `kube-system` for one without a namespace), and is
/// named `<plural>.<group>.<name>--<target>`. It carries the label [`contract::SYNC_TARGET_LABEL`].
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "workload.kcp.io",
    version = "v1alpha1",
    kind = "ObjectSync",
    plural = "objectsyncs",
    singular = "objectsync",
    category = "kcp",
    namespaced,
    status = "ObjectSyncStatus",
    derive = "PartialEq",
    doc = "How one object is at one target.",
    validation = Rule::new("self.spec == oldSelf.spec").message("an ObjectSync is of one object and one target"),
    printcolumn(name = "Resource", type_ = "string", json_path = ".spec.object.plural", description = "The object's resource."),
    printcolumn(name = "Object", type_ = "string", json_path = ".spec.object.name", description = "The object's name."),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.target.name", description = "The SyncTarget."),
    printcolumn(name = "Applied", type_ = "string", json_path = ".status.conditions[?(@.type==\"Applied\")].status", description = "Whether the copy is as it should be."),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Applied\")].reason", description = "Why it is, or isn't."),
    printcolumn(name = "Healthy", type_ = "string", json_path = ".status.conditions[?(@.type==\"Healthy\")].status", description = "Whether the copy works."),
    printcolumn(name = "Drifted", type_ = "string", json_path = ".status.conditions[?(@.type==\"Drifted\")].status", description = "Whether somebody else changed it.", priority = "1"),
    printcolumn(name = "Reported", type_ = "date", json_path = ".status.lastReported", description = "When the target reported last.")
)]
pub struct ObjectSyncSpec {
    /// The target.
    pub target: SyncTargetRef,
    /// The object.
    pub object: ObjectRef,
}

/// A SyncTarget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SyncTargetRef {
    /// The logical cluster that it is in.
    #[schemars(length(min = 1, max = 63))]
    pub cluster: String,
    /// Its name.
    #[schemars(length(min = 1, max = 50))]
    pub name: String,
    /// Its UID.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
}

/// An object of the logical cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectRef {
    /// The group; empty for core.
    #[schemars(length(max = 253))]
    pub group: String,
    /// The version that it is synced in.
    #[schemars(length(min = 1, max = 63))]
    pub version: String,
    /// The resource.
    #[schemars(length(min = 1, max = 63))]
    pub plural: String,
    /// The namespace; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The UID.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
}

/// How it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSyncStatus {
    /// `Applied`, `Healthy`, `Drifted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Fields that are not as they should be; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub drift: Vec<Drift>,
    /// Of a CustomResourceDefinition: what of the physical cluster's type would be lost; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub differences: Vec<Difference>,
    /// The status of the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub raw: Option<Value>,
    /// The generation of the object that the copy was made of last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_generation: Option<i64>,
    /// The generation of the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downstream_generation: Option<i64>,
    /// The generation of the copy that its controller has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downstream_observed_generation: Option<i64>,
    /// When (RFC 3339) the target reported last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_reported: Option<String>,
}

/// A field that isn't as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// Which one, as a JSON pointer.
    #[schemars(length(max = 1024))]
    pub path: String,
    /// What it should be, as JSON; empty for nothing. Of Secrets none is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub desired: String,
    /// What it is, as JSON; empty for nothing. Of Secrets none is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub live: String,
    /// Who changed it, as a field manager; empty if nobody knows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub manager: String,
    /// When (RFC 3339) it was seen first.
    #[schemars(extend("format" = "date-time"))]
    pub first_seen: String,
    /// When (RFC 3339) it was seen last.
    #[schemars(extend("format" = "date-time"))]
    pub last_seen: String,
}

fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "The status of the copy.",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}
