//! Conditions, as all statuses have them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that is true, false or not known of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about, in CamelCase.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The generation of the object that it was judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status changed last (RFC 3339).
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
    /// Why, in one word in CamelCase.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Why, for people; the last error, if there is one.
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can tell.
    Unknown,
}
