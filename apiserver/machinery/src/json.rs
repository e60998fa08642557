//! JSON and YAML bodies as the API server takes them: strict, bounded, and with an eye on
//! duplicate keys.
//!
//! Invariants: recursion ends at [`Limits::max_depth`]; the time is linear in the input (YAML
//! aliases are paid for from a budget); what is accepted can be read again by plain `serde_json`.

mod error;
mod object;
mod order;
mod parse;
mod path;
mod scalar;
mod yaml;

pub use error::JsonError;
pub(crate) use object::Object;
pub use order::appearances;
pub use parse::parse;
pub use yaml::yaml;

use serde_json::Value;

/// Bounds of one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Deepest nesting of objects and lists.
    ///
    /// Upstream takes 10,000. The default is what plain `serde_json` reads back (127) less the
    /// few levels that lists, watch events and reviews put around an object. More than 127 has
    /// no effect.
    pub max_depth: usize,
    /// Most duplicates that are reported, as in upstream.
    pub max_duplicates: usize,
    /// Most values that YAML aliases and merge keys may copy, all together.
    pub max_alias_nodes: usize,
    /// Most bytes of text that YAML aliases and merge keys may copy, all together.
    pub max_alias_bytes: usize,
}

/// A document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// Its value; of duplicate keys the last one.
    pub value: Value,
    /// Which keys came twice, in the order of the document, each once, bounded in number and
    /// length: paths as `spec.containers[0].image` of JSON, `line 3: key "x" already set in map` of YAML.
    pub duplicates: Vec<String>,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_depth: 120,
            max_duplicates: 100,
            max_alias_nodes: 100_000,
            max_alias_bytes: 8 * 1024 * 1024,
        }
    }
}

/// How deep objects and lists nest in a value: 0 for a scalar, 1 for `[]`, no more than `limit`.
///
/// Values that did not come from [`parse`], such as the results of patches, are checked with this
/// before anything walks over them.
pub fn depth(value: &Value, limit: usize) -> usize {
    // One level at a time, so that the depth costs memory and not stack.
    let mut level = vec![value];
    let mut depth = 0;
    while depth < limit {
        let mut next: Vec<&Value> = Vec::new();
        let mut nested = false;
        for value in level {
            match value {
                Value::Array(items) => {
                    nested = true;
                    next.extend(items.iter().filter(|v| v.is_array() || v.is_object()));
                }
                Value::Object(map) => {
                    nested = true;
                    next.extend(map.values().filter(|v| v.is_array() || v.is_object()));
                }
                _ => {}
            }
        }
        depth += usize::from(nested);
        if next.is_empty() {
            break;
        }
        level = next;
    }
    depth
}

#[cfg(test)]
mod tests;
