//! Which part of an old object a part of the new one was, and whether it changed.

use std::collections::HashMap;

use serde_json::Value;

use super::super::node::{Kind, ListType, NodeData};
use super::super::{Structural, print};

/// The old items of a list, found by the keys of the new ones.
pub(super) struct OldItems<'v> {
    keys: &'v [Box<str>],
    items: HashMap<String, &'v Value>,
}

// === impl OldItems ===

impl<'v> OldItems<'v> {
    /// The items of an old list; none if the list's type isn't map.
    pub(super) fn of(node: &'v NodeData, old: Option<&'v Value>) -> Self {
        let keys = node.list_map_keys();
        let mut items = HashMap::new();
        let keyed =
            node.kind == Some(Kind::Array) && node.list == ListType::Map && !keys.is_empty();
        if keyed && let Some(Value::Array(old)) = old {
            for item in old {
                if let Some(key) = key(keys, item) {
                    // Of several with one key, the first counts.
                    items.entry(key).or_insert(item);
                }
            }
        }
        Self { keys, items }
    }

    /// The old item with the same keys.
    pub(super) fn item(&self, new: &Value) -> Option<&'v Value> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&key(self.keys, new)?).copied()
    }
}

/// A text that only items with the same keys share; all keys must be there and be scalars.
fn key(keys: &[Box<str>], item: &Value) -> Option<String> {
    let item = item.as_object()?;
    let mut text = String::new();
    for name in keys {
        let value = item.get(&**name)?;
        if value.is_array() || value.is_object() || value.is_null() {
            return None;
        }
        text.push('\0');
        text.push_str(&print::value(value));
    }
    Some(text)
}

/// Whether a part is as it was. Items of lists of type map may have moved; a field that no schema
/// knows counts as changed, as upstream can't correlate it.
///
/// The recursion ends with the schema.
pub(super) fn equal(schema: &Structural, node: &NodeData, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(new), Value::Array(items)) => {
            if new.len() != items.len() {
                return false;
            }
            let keyed = node.kind == Some(Kind::Array)
                && node.list == ListType::Map
                && !node.list_map_keys().is_empty();
            let Some(item) = node.items.filter(|_| keyed) else { return new == items };
            let olds = OldItems::of(node, Some(old));
            let part = schema.data(item);
            new.iter().all(|new| olds.item(new).is_some_and(|old| equal(schema, part, new, old)))
        }
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, new)| {
                    let part = node.field(name).map(|id| schema.data(id));
                    let (Some(part), Some(old)) = (part, old.get(name)) else { return false };
                    equal(schema, part, new, old)
                })
        }
        (new, old) => new == old,
    }
}
