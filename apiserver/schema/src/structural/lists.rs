//! Uniqueness in lists of type set and map.

use std::borrow::Cow;
use std::collections::HashMap;

use machinery::{FieldError, FieldPath};
use serde_json::{Map, Value};

use super::node::{Flags, ListType, NodeData};
use super::validate::MAX_PROBLEMS;
use super::{Structural, print};

/// The items of an object's sets that come twice, and the keys of its maps.
pub(super) fn validate(schema: &Structural, value: &Value) -> Vec<FieldError> {
    let mut walk = Walk { schema, path: FieldPath::default(), problems: Vec::new() };
    let root = schema.data(schema.root);
    if value.is_object() {
        walk.value(root, value);
    }
    walk.problems
}

struct Walk<'s> {
    schema: &'s Structural,
    path: FieldPath,
    problems: Vec<FieldError>,
}

// === impl Walk ===

impl<'s> Walk<'s> {
    /// The recursion ends with the schema.
    fn value(&mut self, node: &'s NodeData, value: &Value) {
        if !node.has(Flags::LISTS) {
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let Some(part) = node.field(name).map(|id| self.schema.data(id)) else {
                        continue;
                    };
                    let mark = node.enter(&mut self.path, name);
                    self.value(part, value);
                    self.path.leave(mark);
                }
            }
            Value::Array(items) => {
                self.list(node, items);
                let Some(item) = node.items.map(|id| self.schema.data(id)) else { return };
                if item.has(Flags::LISTS) {
                    for (at, value) in items.iter().enumerate() {
                        let mark = self.path.enter_index(at);
                        self.value(item, value);
                        self.path.leave(mark);
                    }
                }
            }
            _ => {}
        }
    }

    fn list(&mut self, node: &NodeData, items: &[Value]) {
        match node.list {
            ListType::Set => {
                for at in repeated(items.iter().map(|item| Cow::Owned(text(item)))) {
                    if let Some(item) = items.get(at) {
                        self.duplicate(at, item);
                    }
                }
            }
            ListType::Map => self.map(node.list_map_keys(), items),
            ListType::Unset | ListType::Atomic => {}
        }
    }

    fn map(&mut self, keys: &[Box<str>], items: &[Value]) {
        let strange = items.iter().position(|item| !(item.is_object() || item.is_null()));
        if let Some((at, item)) = strange.and_then(|at| Some((at, items.get(at)?))) {
            let why = "must be an object for an array of list-type map";
            let mut problem = FieldError::invalid(&self.path.index(at), item, why);
            problem.value = Some(print::value(item));
            self.problems.push(problem);
            return;
        }
        if items.len() <= 1 {
            return;
        }
        let single = match keys {
            [key] => Some(key),
            _ => None,
        };
        let found = repeated(items.iter().map(|item| match single {
            Some(key) => item.get(&**key).map_or(Cow::Borrowed(""), |v| Cow::Owned(text(v))),
            None => Cow::Owned(text(&key_of(keys, item))),
        }));
        for at in found {
            let key = items.get(at).map(|item| key_of(keys, item)).unwrap_or_default();
            self.duplicate(at, &key);
        }
    }

    fn duplicate(&mut self, at: usize, value: &Value) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let mut problem = FieldError::duplicate(&self.path.index(at), value);
        problem.value = Some(print::value(value));
        self.problems.push(problem);
    }
}

/// The keys that an item has, with their values.
fn key_of(keys: &[Box<str>], item: &Value) -> Value {
    let present = keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
    Value::Object(present.collect::<Map<_, _>>())
}

/// A text that only equal values share: integers and floats differ alone, but not inside of
/// objects and lists, as upstream compares those as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => print::json(value),
        scalar => scalar.to_string(),
    }
}

/// Where a text comes the second time.
fn repeated<'t>(texts: impl Iterator<Item = Cow<'t, str>>) -> Vec<usize> {
    let mut seen: HashMap<Cow<'t, str>, bool> = HashMap::new();
    let mut found = Vec::new();
    for (at, text) in texts.enumerate() {
        match seen.get_mut(&text) {
            None => {
                seen.insert(text, false);
            }
            Some(told) if !*told => {
                *told = true;
                found.push(at);
            }
            Some(_) => {}
        }
    }
    found
}
