//! APIResourceImports: that a physical cluster serves a type.

#![allow(unreachable_pub, reason = "`KubeSchema` repeats its structs where nobody reaches them")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, Difference};

/// One version of a type that a physical cluster serves; its agent writes it, with the label
/// [`contract::SYNC_TARGET_LABEL`] and the SyncTarget as owner.
///
/// It goes with its SyncTarget, or by a person's hand; an agent only marks it.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "apiresource.kcp.io",
    version = "v1alpha1",
    kind = "APIResourceImport",
    plural = "apiresourceimports",
    singular = "apiresourceimport",
    category = "kcp",
    status = "APIResourceImportStatus",
    derive = "PartialEq",
    doc = "That a physical cluster serves a type.",
    validation = Rule::new("self.spec.target == oldSelf.spec.target && self.spec.group == oldSelf.spec.group && self.spec.version == oldSelf.spec.version && self.spec.plural == oldSelf.spec.plural").message("target, group, version and plural can't be changed"),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.target", description = "The SyncTarget of the physical cluster."),
    printcolumn(name = "Resource", type_ = "string", json_path = ".spec.plural", description = "The resource."),
    printcolumn(name = "Group", type_ = "string", json_path = ".spec.group", description = "The group; empty for core.", priority = "1"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version", description = "The version."),
    printcolumn(name = "Compatible", type_ = "string", json_path = ".status.conditions[?(@.type==\"Compatible\")].status", description = "Whether objects can be exchanged with the hub."),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Compatible\")].reason", description = "Why they can be, or not."),
    printcolumn(name = "Available", type_ = "string", json_path = ".status.conditions[?(@.type==\"Available\")].status", description = "Whether the hub serves the type."),
    printcolumn(name = "Vanished", type_ = "date", json_path = ".spec.vanishedSince", description = "Since when the cluster doesn't serve it any more.", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "How long ago the object was created.")
)]
#[serde(rename_all = "camelCase")]
pub struct APIResourceImportSpec {
    /// The name of the SyncTarget.
    #[schemars(length(min = 1, max = 50))]
    pub target: String,
    /// The group; empty for core.
    #[schemars(length(max = 253))]
    pub group: String,
    /// The version.
    #[schemars(length(min = 1, max = 63))]
    pub version: String,
    /// The resource.
    #[schemars(length(min = 1, max = 63))]
    pub plural: String,
    /// The name of the APIResourceSchema that says what it looks like.
    #[schemars(regex(pattern = r"^sha256-[0-9a-f]{64}$"))]
    pub schema: String,
    /// What the schema doesn't say of the type, as `pods/exec: a CRD can't have this subresource`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    pub losses: Vec<String>,
    /// Since when (RFC 3339) the cluster doesn't serve the type any more. What is known of it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub vanished_since: Option<String>,
}

/// What the hub makes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct APIResourceImportStatus {
    /// `Compatible`: objects of the hub's type are objects of the cluster's. `Available`: the hub
    /// serves the type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// How the cluster's type and the hub's differ; at most 64, blocking ones first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub differences: Vec<Difference>,
    /// The APIResourceSchema that was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71))]
    pub judged: Option<String>,
}
