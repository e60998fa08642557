//! Paths into JSON: JSON pointers in which `*` stands for every member or item.

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::{Map, Value};

use crate::fields::has_keys;

/// A JSON pointer (RFC 6901) in which `*` stands for every member of an object and every item of a
/// list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Key(String),
    Each,
}

// === impl Path ===

impl Path {
    fn parse(text: &str) -> Option<Self> {
        let segments = text.strip_prefix('/')?.split('/').map(|part| match part {
            "*" => Segment::Each,
            key => Segment::Key(key.replace("~1", "/").replace("~0", "~")),
        });
        Some(Self(segments.collect()))
    }

    /// Whether a test holds at one of the places that the path leads to.
    pub(super) fn find(&self, value: &Value, test: &mut dyn FnMut(&Value) -> bool) -> bool {
        find(&self.0, value, test)
    }

    /// Visits all places that the path leads to.
    pub(super) fn each(&self, value: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
        each(&self.0, value, visit);
    }

    /// Removes what the path leads to, where `is` holds of its key and value.
    pub(super) fn remove(&self, value: &mut Value, is: &mut dyn FnMut(&str, &Value) -> bool) {
        remove(&self.0, value, &[], &mut |key, value, _| is(key, value));
    }

    /// As [`Self::remove`]; the test is told, too, whether the place is in one of the trees of
    /// owned fields.
    pub(super) fn remove_owned(
        &self,
        value: &mut Value,
        owners: &[&Value],
        is: &mut dyn FnMut(&str, &Value, bool) -> bool,
    ) {
        remove(&self.0, value, owners, is);
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no path")))
    }
}

fn find(path: &[Segment], value: &Value, test: &mut dyn FnMut(&Value) -> bool) -> bool {
    match (path.split_first(), value) {
        (None, value) => test(value),
        (Some((Segment::Key(key), rest)), value) => {
            value.get(key).is_some_and(|value| find(rest, value, test))
        }
        (Some((Segment::Each, rest)), Value::Array(items)) => {
            items.iter().any(|item| find(rest, item, test))
        }
        (Some((Segment::Each, rest)), Value::Object(members)) => {
            members.values().any(|value| find(rest, value, test))
        }
        _ => false,
    }
}

fn each(path: &[Segment], value: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    match (path.split_first(), value) {
        (None, value) => visit(value),
        (Some((Segment::Key(key), rest)), value) => {
            if let Some(value) = value.get_mut(key) {
                each(rest, value, visit);
            }
        }
        (Some((Segment::Each, rest)), Value::Array(items)) => {
            items.iter_mut().for_each(|item| each(rest, item, visit));
        }
        (Some((Segment::Each, rest)), Value::Object(members)) => {
            members.values_mut().for_each(|value| each(rest, value, visit));
        }
        _ => {}
    }
}

fn remove(
    path: &[Segment],
    value: &mut Value,
    owners: &[&Value],
    is: &mut dyn FnMut(&str, &Value, bool) -> bool,
) {
    let Some((first, rest)) = path.split_first() else { return };
    let field = |key: &str| -> Vec<&Value> {
        let entry = format!("f:{key}");
        owners.iter().filter_map(|fields| below(fields, &entry)).collect()
    };
    match (first, value) {
        (Segment::Key(key), Value::Object(members)) => {
            let owners = field(key);
            if !rest.is_empty() {
                if let Some(value) = members.get_mut(key) {
                    remove(rest, value, &owners, is);
                }
            } else if members.get(key).is_some_and(|value| is(key, value, !owners.is_empty())) {
                members.remove(key);
            }
        }
        (Segment::Each, Value::Object(members)) => {
            for (key, value) in members.iter_mut().filter(|_| !rest.is_empty()) {
                remove(rest, value, &field(key), is);
            }
            if rest.is_empty() {
                members.retain(|key, value| !is(key, value, !field(key).is_empty()));
            }
        }
        (Segment::Each, Value::Array(items)) => {
            if rest.is_empty() {
                let mut index = 0;
                items.retain(|item| {
                    let owned = !of_item(owners, index, item).is_empty();
                    index += 1;
                    !is("", item, owned)
                });
            } else {
                for (index, item) in items.iter_mut().enumerate() {
                    let owners = of_item(owners, index, item);
                    remove(rest, item, &owners, is);
                }
            }
        }
        _ => {}
    }
}

/// What is below an entry of owned fields; what is owned whole owns everything below.
fn below<'f>(fields: &'f Value, entry: &str) -> Option<&'f Value> {
    let members = fields.as_object()?;
    members.get(entry).or_else(|| members.is_empty().then_some(fields))
}

/// The owned fields of an item of a list.
fn of_item<'f>(owners: &[&'f Value], index: usize, item: &Value) -> Vec<&'f Value> {
    let is_of = |entry: &str| match entry.split_once(':') {
        Some(("k", keys)) => serde_json::from_str::<Map<String, Value>>(keys)
            .is_ok_and(|keys| has_keys(item, &keys, true)),
        Some(("v", value)) => {
            serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item)
        }
        Some(("i", number)) => number.parse() == Ok(index),
        _ => false,
    };
    let mut found = Vec::new();
    for fields in owners {
        match fields.as_object() {
            Some(members) if members.is_empty() => found.push(*fields),
            Some(members) => {
                let of = members.iter().filter(|(entry, _)| is_of(entry));
                found.extend(of.map(|(_, fields)| fields));
            }
            None => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        /// Removing never adds, and nothing is left to remove.
        #[test]
        fn removing(text in "(/([a-c]|\\*)){1,3}") {
            let path = Path::parse(&text).unwrap();
            let whole = json!({"a": {"b": [1, {"c": 2}], "c": {}}, "b": [[1], {"a": 1}], "c": 3});
            let mut once = whole.clone();
            path.remove(&mut once, &mut |_, _| true);
            prop_assert!(once.to_string().len() <= whole.to_string().len());
            prop_assert!(!path.find(&once, &mut |_| true), "{} {}", text, once);
        }
    }

    #[test]
    fn keys_with_slashes() {
        let path = Path::parse("/a/b.c~1d~0e").unwrap();
        let mut value = json!({"a": {"b.c/d~e": 1, "f": 2}});
        path.remove(&mut value, &mut |_, _| true);
        assert_eq!(value, json!({"a": {"f": 2}}));
        assert_eq!(Path::parse("a"), None);
    }
}
