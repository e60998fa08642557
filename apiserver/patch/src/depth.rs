//! How deeply values nest.

use serde_json::Value;

/// The deepest nesting of objects and lists in any document, patch or result.
///
/// It is what the server takes in bodies: whatever is stored can be read again by `serde_json`,
/// which stops at 127, with the few levels around it that lists and watch events add. It also keeps
/// recursion (ours, and that of dropping, cloning and comparing values) within a small stack.
pub const MAX_DEPTH: usize = 120;

/// The depth of `value` and the number of values in it; a scalar has depth 0.
///
/// Stops early once the depth is above `limit`.
pub(crate) fn measure(value: &Value, limit: usize) -> (usize, u64) {
    let mut deepest = 0;
    let mut visited = 0;
    let mut stack = vec![(value, 0_usize)];
    while let Some((value, depth)) = stack.pop() {
        visited += 1;
        let inside = depth + 1;
        match value {
            Value::Array(items) => stack.extend(items.iter().map(|item| (item, inside))),
            Value::Object(fields) => stack.extend(fields.values().map(|item| (item, inside))),
            _ => continue,
        }
        deepest = deepest.max(inside);
        if deepest > limit {
            break;
        }
    }
    (deepest, visited)
}

/// Whether `value` nests deeper than [`MAX_DEPTH`].
pub(crate) fn is_too_deep(value: &Value) -> bool {
    is_deeper(value, MAX_DEPTH)
}

/// Whether `value` nests deeper than `limit`, which bounds the recursion.
fn is_deeper(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| is_deeper(item, limit - 1)),
        Value::Object(fields) => {
            limit == 0 || fields.values().any(|field| is_deeper(field, limit - 1))
        }
        _ => false,
    }
}
