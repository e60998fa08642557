//! What a placement has done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;

/// What a placement has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// `Scheduled`: every object that it selects has a place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// How many objects it places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub objects: Option<i64>,
    /// The targets that have some of them, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), inner(length(max = 56)))]
    pub targets: Vec<String>,
    /// What it makes of each target that comes into question; at most 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub decisions: Vec<Decision>,
}

/// What a placement makes of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The target's name or global name.
    #[schemars(length(min = 1, max = 56))]
    pub target: String,
    /// How many objects it has.
    #[schemars(range(min = 0))]
    pub objects: i64,
    /// Why it has none, in one word in CamelCase; empty if it has some.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub reason: String,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}
