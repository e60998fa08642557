//! SyncTargets: physical clusters, as a logical cluster knows them.

#![allow(unreachable_pub, reason = "`KubeSchema` repeats its structs where nobody reaches them")]

mod status;

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::LabelSelector;
pub use status::{SyncTargetStatus, SyncedResource, SyncedState};

/// What is wanted of a physical cluster.
///
/// The rules on names are those of a DNS label of at most 50 characters; the server also holds the
/// global name, `<logical cluster>.<name>`, to at most 56.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "workload.kcp.io",
    version = "v1alpha1",
    kind = "SyncTarget",
    plural = "synctargets",
    singular = "synctarget",
    category = "kcp",
    status = "SyncTargetStatus",
    derive = "PartialEq",
    doc = "A physical cluster that objects of logical clusters can run on.",
    validation = Rule::new("size(self.metadata.name) <= 50 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')").message("the name must be a DNS label of at most 50 characters"),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode", description = "Who reaches whom: Pull, Push or None."),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status", description = "Whether the cluster takes and runs objects."),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", description = "Why it is ready or not.", priority = "1"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.kubernetesVersion", description = "The cluster's version of Kubernetes."),
    printcolumn(name = "Agent", type_ = "string", json_path = ".status.agentVersion", description = "The version of its agent.", priority = "1"),
    printcolumn(name = "Synced", type_ = "integer", json_path = ".status.syncedObjects", description = "How many objects run there."),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "How long ago the object was created.")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.kubeconfig) || !has(self.kubeconfigSecretRef)").message("kubeconfig and kubeconfigSecretRef exclude each other"),
    validation = Rule::new("self.mode != 'Push' || has(self.kubeconfig) || has(self.kubeconfigSecretRef)").message("mode Push needs kubeconfig or kubeconfigSecretRef"),
    validation = Rule::new("!has(self.allowedClusters) || self.namespaceMapping == 'Hashed'").message("a target that serves other logical clusters needs namespaceMapping Hashed"),
)]
pub struct SyncTargetSpec {
    /// Who reaches whom.
    #[serde(default)]
    pub mode: Mode,
    /// How to reach the cluster, inline: a kubeconfig with one server and one user. A Secret is the
    /// better place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 65536))]
    pub kubeconfig: Option<String>,
    /// Where the kubeconfig is that leads to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret_ref: Option<SecretKeyRef>,
    /// The resources to import and sync, as `deployments.apps`; `*` for all. If none is given:
    /// every custom resource, and the usual ones of Kubernetes. To whatever that is
    /// `customresourcedefinitions.apiextensions.k8s.io` comes by its own name alone: with it,
    /// definitions that are assigned to the target are installed in the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), inner(length(min = 1, max = 317)))]
    pub resources: Vec<String>,
    /// Other logical clusters whose objects may run here. The target's own always may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_clusters: Option<AllowedClusters>,
    /// How namespaces are called in the physical cluster.
    #[serde(default)]
    pub namespace_mapping: NamespaceMapping,
    /// What becomes of objects that are there already and not ours.
    #[serde(default)]
    pub adoption: Adoption,
    /// Types of which objects that are born in the physical cluster go up to the hub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["resource"]))]
    pub upsync: Vec<Upsync>,
    /// Types of which status that controllers write at the hub goes down to the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["resource"]))]
    pub status_down: Vec<StatusDown>,
    /// Whether nothing new is placed here.
    #[serde(default)]
    pub unschedulable: bool,
    /// What keeps objects away that do not tolerate it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub taints: Vec<Taint>,
    /// Bounds that placement never exceeds, by resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,
    /// How long after the target is lost whole objects are moved away, as `30m`; never, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(s|m|h))+$"), length(max = 32))]
    pub evict_after: Option<String>,
}

/// Who reaches whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// An agent in the physical cluster comes to the hub.
    #[default]
    Pull,
    /// The operator goes to the physical cluster.
    Push,
    /// Nobody: the target is not synced.
    None,
}

/// One entry of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretKeyRef {
    /// The Secret's namespace, in the logical cluster of the target.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The entry.
    #[serde(default = "kubeconfig")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// Logical clusters by name and by the labels of their LogicalClusters.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new("has(self.names) || has(self.selector)").message("names or a selector are needed"),
)]
pub struct AllowedClusters {
    /// Their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), inner(length(min = 1, max = 63)))]
    pub names: Vec<String>,
    /// Labels that they have; an empty selector selects all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// How namespaces are called in the physical cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NamespaceMapping {
    /// As in the hub, which fits one logical cluster.
    #[default]
    Same,
    /// By a hash of logical cluster and name.
    Hashed,
}

/// What becomes of objects that are there already and not ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Adoption {
    /// They are left alone, and reported.
    #[default]
    Never,
    /// They become ours if that changes nothing in them.
    IfNoDiff,
    /// They become ours.
    Always,
}

/// Objects of one type go up from the physical cluster: they are made, changed and deleted at the hub
/// as they are there, marked with the target, and never go down again. Those without a namespace don't.
///
/// None of a type by which somebody gets rights or credentials, or that says how a hub works.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new("!(self.resource in ['bindings', 'componentstatuses', 'events', 'limitranges', 'namespaces', 'nodes', 'resourcequotas', 'secrets', 'serviceaccounts']) && !self.resource.matches('^(bindings|componentstatuses|events|limitranges|namespaces|nodes|resourcequotas|secrets|serviceaccounts)[.]core$')").message("objects of this type never go up"),
    validation = Rule::new("!self.resource.matches('[.](admissionregistration|apiextensions|apiregistration|authentication|authorization|certificates|coordination|events|flowcontrol[.]apiserver|rbac[.]authorization)[.]k8s[.]io$') && !self.resource.matches('[.]kcp[.]io$')").message("objects of this group never go up"),
)]
pub struct Upsync {
    /// The resource, as `things.example.org`.
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub resource: String,
    /// Which objects of it.
    #[serde(default)]
    pub objects: UpsyncObjects,
}

/// Which objects of a type go up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpsyncObjects {
    /// Those with the label `workloads.kcp.io/upsync: "true"` in the physical cluster.
    #[default]
    Labelled,
    /// All, but for copies.
    All,
}

/// Status that controllers write at the hub goes down to the copies of one type. Each field of a status
/// has one owner: these are the hub's, are put into the copies, and do not come up; all others are
/// the cluster's, as ever.
///
/// The cluster must serve the subresource `status` of the type. What has gone down stays there when
/// this is taken back.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new("self.resource != 'customresourcedefinitions.apiextensions.k8s.io' && !self.resource.matches('[.]kcp[.]io$')").message("status of this type never goes down"),
)]
pub struct StatusDown {
    /// The resource, as `things.example.org`.
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub resource: String,
    /// The fields of the status that go down, as `address` or `network.address`, but none of items of
    /// lists. If none is given: the whole status, and nothing of it comes up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z_][-A-Za-z0-9_]*([.][A-Za-z_][-A-Za-z0-9_]*)*$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub fields: Vec<String>,
}

/// What keeps objects away from a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// What it is called.
    #[schemars(length(min = 1, max = 316))]
    pub key: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    /// What it does.
    pub effect: TaintEffect,
    /// Since when it is there (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub time_added: Option<String>,
}

/// What a taint does to objects that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// Nothing new is placed here.
    NoSchedule,
    /// Other targets are taken first.
    PreferNoSchedule,
    /// What is here moves away.
    NoExecute,
}

/// An amount, as `4` or `16Gi`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    /// A whole number.
    Number(i64),
    /// A number with a unit.
    Text(String),
}

// === impl Quantity ===

impl JsonSchema for Quantity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "description": "An amount, as 4 or 16Gi.",
            "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
        })
    }
}

fn kubeconfig() -> String {
    "kubeconfig".to_owned()
}
