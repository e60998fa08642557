//! NegotiatedAPIResources: what the clusters of a logical cluster have in common.

#![allow(unreachable_pub, reason = "`KubeSchema` repeats its structs where nobody reaches them")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, Difference};

/// One version of a type, over all SyncTargets of a logical cluster that serve it. The operator
/// makes it; people say in it what becomes of the type.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "apiresource.kcp.io",
    version = "v1alpha1",
    kind = "NegotiatedAPIResource",
    plural = "negotiatedapiresources",
    singular = "negotiatedapiresource",
    category = "kcp",
    status = "NegotiatedAPIResourceStatus",
    derive = "PartialEq",
    doc = "What one version of a type is, over all clusters that serve it.",
    validation = Rule::new("self.spec.group == oldSelf.spec.group && self.spec.version == oldSelf.spec.version && self.spec.plural == oldSelf.spec.plural").message("group, version and plural can't be changed"),
    printcolumn(name = "Resource", type_ = "string", json_path = ".spec.plural", description = "The resource."),
    printcolumn(name = "Group", type_ = "string", json_path = ".spec.group", description = "The group; empty for core."),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version", description = "The version."),
    printcolumn(name = "Published", type_ = "string", json_path = ".status.conditions[?(@.type==\"Published\")].status", description = "Whether the hub serves it."),
    printcolumn(name = "Enforced", type_ = "string", json_path = ".status.conditions[?(@.type==\"Enforced\")].status", description = "Whether somebody else than the clusters says what it is.", priority = "1"),
    printcolumn(name = "Compatible", type_ = "string", json_path = ".status.compatible", description = "The targets that take its objects."),
    printcolumn(name = "Incompatible", type_ = "string", json_path = ".status.incompatible", description = "The targets that don't."),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "How long ago the object was created.")
)]
#[serde(rename_all = "camelCase")]
pub struct NegotiatedAPIResourceSpec {
    /// The group; empty for core.
    #[schemars(length(max = 253))]
    pub group: String,
    /// The version.
    #[schemars(length(min = 1, max = 63))]
    pub version: String,
    /// The resource.
    #[schemars(length(min = 1, max = 63))]
    pub plural: String,
    /// Whether the hub serves the type. What is served already isn't taken away by this.
    #[serde(default = "yes")]
    pub publish: bool,
    /// What clusters may change of it.
    #[serde(default)]
    pub strategy: UpdateStrategy,
}

/// What clusters may change of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStrategy {
    /// Nothing, once there is one; they are compared with it.
    UpdateNever,
    /// As long as it isn't published, all. Then it can only take more than before, not less.
    UpdateUnpublished,
    /// All, though nothing that would hurt a stored object. Releases of Kubernetes drop fields that
    /// few use; clusters of several releases agree in this way.
    #[default]
    UpdatePublished,
}

/// What has become of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NegotiatedAPIResourceStatus {
    /// `Negotiated`: there is a schema that clusters agree on. `Submitted`: it is in a
    /// CustomResourceDefinition. `Published`: the hub serves it. `Enforced`: somebody else than the
    /// clusters says what the type is. `HeldBack`: a change that would hurt waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The APIResourceSchema that is published, or is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71))]
    pub schema: Option<String>,
    /// The targets that take its objects, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096), inner(length(max = 50)))]
    pub compatible: Vec<String>,
    /// The targets that serve the type but don't take its objects, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096), inner(length(max = 50)))]
    pub incompatible: Vec<String>,
    /// How the types of the targets differ; at most 64, blocking ones first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub differences: Vec<Difference>,
    /// Stored objects that a change would hurt and that it is held back for; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub hurt: Vec<Hurt>,
}

/// A stored object that a change of its type would hurt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hurt {
    /// The object's namespace; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// What would be lost or invalid.
    #[schemars(length(max = 1024))]
    pub why: String,
}

fn yes() -> bool {
    true
}
