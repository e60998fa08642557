//! What keeps types of several clusters from being one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most differences that one object tells.
pub const MOST_DIFFERENCES: usize = 64;

/// One place in which types differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The place in an object, as `.spec.containers[*].image`, with `[*]` for every item or value;
    /// empty for what isn't a field, as the kind.
    #[schemars(length(max = 1024))]
    pub path: String,
    /// What differs, as a keyword of schemas (`type`, `required`), or `scope`, `kind`, `names`,
    /// `subresources`, `columns`.
    #[schemars(length(min = 1, max = 63))]
    pub what: String,
    /// How, for people.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// Whether objects can't be exchanged because of it. Else it only narrows what the hub takes, or
    /// changes nothing about objects.
    pub blocking: bool,
    /// Who says what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub said: Vec<Said>,
}

/// What some say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// What they say; empty if they say nothing.
    #[schemars(length(max = 256))]
    pub value: String,
    /// The targets that say it; the hub's own type is called `hub`.
    #[schemars(length(max = 64), inner(length(max = 63)))]
    pub targets: Vec<String>,
}
