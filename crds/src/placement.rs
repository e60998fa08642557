//! Placements: which objects go where, and how.

#![allow(clippy::duplicated_attributes, reason = "columns have things in common")]
#![allow(unreachable_pub, reason = "`KubeSchema` repeats its structs where nobody reaches them")]

mod status;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LabelSelector, TaintEffect};
pub use status::{Decision, PlacementStatus};

/// Which objects of a logical cluster go to which targets.
#[derive(
    CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize,
)]
#[kube(
    group = "scheduling.kcp.io",
    version = "v1alpha1",
    kind = "Placement",
    plural = "placements",
    singular = "placement",
    category = "kcp",
    status = "PlacementStatus",
    derive = "PartialEq",
    doc = "Which objects go to which physical clusters, and how.",
    printcolumn(
        name = "Strategy",
        type_ = "string",
        json_path = ".spec.strategy.type",
        description = "Single, Divided or Duplicated."
    ),
    printcolumn(
        name = "Priority",
        type_ = "integer",
        json_path = ".spec.priority",
        description = "Of several for one object the highest counts.",
        priority = "1"
    ),
    printcolumn(
        name = "Objects",
        type_ = "integer",
        json_path = ".status.objects",
        description = "How many objects it places."
    ),
    printcolumn(
        name = "Targets",
        type_ = "string",
        json_path = ".status.targets",
        description = "Where they go."
    ),
    printcolumn(
        name = "Scheduled",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Scheduled\")].status",
        description = "Whether all objects have a place."
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "How long ago the object was created."
    )
)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSpec {
    /// Which objects. All that are placed at all, if none is given.
    #[serde(default)]
    pub objects: ObjectSelection,
    /// Which targets come into question.
    #[serde(default)]
    pub targets: TargetSelection,
    /// How objects are given to targets.
    #[serde(default)]
    pub strategy: Strategy,
    /// Of several placements that select an object, the one with the highest priority counts; of
    /// equal ones the oldest, then the first by name.
    #[serde(default)]
    #[schemars(range(min = -1_000_000, max = 1_000_000))]
    pub priority: i32,
}

/// Which objects a placement is about; all that it says must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSelection {
    /// Resources, as `deployments.apps`; all, if none is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 317)))]
    pub resources: Vec<String>,
    /// Names of namespaces; all, if none is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
    /// Labels of namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Labels of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// Which targets come into question; all that it says must hold.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.number) || !has(self.minNumber) || self.minNumber <= self.number").message("minNumber must not be above number"),
)]
pub struct TargetSelection {
    /// Names, or global names; all, if none is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), inner(length(min = 1, max = 56)))]
    pub names: Vec<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// The most targets for one object; no limit, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub number: Option<u32>,
    /// The fewest targets for one object: with fewer it isn't placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub min_number: Option<u32>,
    /// Labels of targets over whose values objects are spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    pub spread: Vec<Spread>,
    /// Taints that keep nothing away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub tolerations: Vec<Toleration>,
}

/// A label of targets over whose values objects are spread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// The label's key, as `topology.kubernetes.io/region`.
    #[schemars(length(min = 1, max = 316))]
    pub topology_key: String,
    /// By how many targets the values may differ.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1024))]
    pub max_skew: u32,
    /// What is done where that can't be kept.
    #[serde(default)]
    pub when_unsatisfiable: WhenUnsatisfiable,
}

/// What is done where objects can't be spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenUnsatisfiable {
    /// They are placed as well as can be.
    #[default]
    ScheduleAnyway,
    /// They aren't placed.
    DoNotSchedule,
}

/// A taint that keeps nothing away.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.operator != 'Exists' || !has(self.value)").message("Exists takes no value"),
)]
pub struct Toleration {
    /// The taint's key; any, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 316))]
    pub key: Option<String>,
    /// How the taint's value is compared.
    #[serde(default)]
    pub operator: TolerationOperator,
    /// The taint's value, for `Equal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    /// The taint's effect; any, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// For how many seconds a taint that moves objects away is endured; for ever, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub toleration_seconds: Option<i64>,
}

/// How the value of a taint is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// It is the same.
    #[default]
    Equal,
    /// Any will do.
    Exists,
}

/// How objects are given to targets.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new("!has(self.divided) || self.type == 'Divided'").message("divided is for the type Divided"),
)]
pub struct Strategy {
    /// In which way.
    #[serde(default, rename = "type")]
    pub type_: StrategyType,
    /// How replicas are divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divided: Option<Divided>,
}

/// In which way objects are given to targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StrategyType {
    /// An object goes whole to one target.
    #[default]
    Single,
    /// Its replicas are divided over targets.
    Divided,
    /// Each target gets it whole.
    Duplicated,
}

/// How replicas are divided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Divided {
    /// Targets that get more or fewer than others; the first rule that fits a target counts. Others
    /// weigh 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub shares: Vec<Share>,
}

/// What share of the replicas targets get.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new("has(self.target) != has(self.selector)").message("either target or selector is needed"),
    validation = Rule::new("!has(self.min) || !has(self.max) || self.min <= self.max").message("min must not be above max"),
)]
pub struct Share {
    /// The name or global name of a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 56))]
    pub target: Option<String>,
    /// Labels of targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How much they weigh; with 0 they get `min` alone.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub weight: u32,
    /// The fewest replicas for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min: Option<i32>,
    /// The most replicas for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max: Option<i32>,
}

fn one() -> u32 {
    1
}
