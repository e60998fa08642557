//! Whether two structural schemas have the same fields, so that an object of one version is one of
//! the other too.

use serde_json::{Map, Value};

use super::MAX_DEPTH;

/// Whether both have the same fields of the same types. Descriptions, defaults and limits may
/// differ.
pub fn same(a: &Value, b: &Value) -> bool {
    same_at(a, b, 0)
}

fn same_at(a: &Value, b: &Value, depth: usize) -> bool {
    let names = ["type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];
    if depth > MAX_DEPTH || names.iter().any(|name| a.get(name) != b.get(name)) {
        return false;
    }
    let below = ["items", "additionalProperties"];
    below.iter().all(|name| match (a.get(name), b.get(name)) {
        (None, None) => true,
        (Some(a), Some(b)) => same_at(a, b, depth + 1),
        _ => false,
    }) && same_fields(properties(a), properties(b), depth)
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn same_fields(
    a: Option<&Map<String, Value>>,
    b: Option<&Map<String, Value>>,
    depth: usize,
) -> bool {
    match (a, b) {
        (None, None) => true,
        // Both are sorted by name.
        (Some(a), Some(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((x, left), (y, right))| x == y && same_at(left, right, depth + 1))
        }
        _ => false,
    }
}
