//! Fields that managers own: `metadata.managedFields`, and what of an object is ours.
//!
//! The form is that of `fieldsV1`: a tree with keys `f:<name>` for fields, `k:<keys as JSON>`,
//! `v:<value>` and `i:<index>` for items of lists, and `.` for the item itself; a node without
//! children is owned whole. Depth is bounded by that of the object, which `serde_json` bounds.

use contract::{SYNCER, UPSTREAM};
use serde_json::{Map, Value, json};

use crate::digest::{Digest, Hasher};

/// Where the number of replicas stands.
pub(crate) const REPLICAS: [&str; 2] = ["spec", "replicas"];

/// What our applies own of an object.
pub(crate) fn ours(object: &Value) -> Option<&Map<String, Value>> {
    applied_by(object, SYNCER, "")
}

/// As [`ours`], to change it.
pub(crate) fn ours_mut(object: &mut Value) -> Option<&mut Value> {
    let entries = object.pointer_mut("/metadata/managedFields")?.as_array_mut()?;
    entries.iter_mut().find(|entry| is_of(entry, SYNCER, ""))?.get_mut("fieldsV1")
}

/// Whether an entry of managed fields is of a manager's applies to a subresource.
fn is_of(entry: &Value, manager: &str, subresource: &str) -> bool {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    text("manager") == manager && text("operation") == "Apply" && text("subresource") == subresource
}

/// What the applies of a manager to a subresource, or to the object itself, own of it.
fn applied_by<'o>(
    object: &'o Value,
    manager: &str,
    subresource: &str,
) -> Option<&'o Map<String, Value>> {
    let is_ours = |entry: &&Value| is_of(entry, manager, subresource);
    entries(object).find(is_ours)?.get("fieldsV1")?.as_object()
}

/// What our applies to the status of an object own of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfStatus {
    /// A digest of these fields and their values.
    pub(crate) view: Digest,
    /// The fields, as JSON.
    fields: Box<[u8]>,
}

// === impl OfStatus ===

impl OfStatus {
    /// Reads it; `None` if they own nothing.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let fields = applied_by(object, SYNCER, "status")?;
        let mut hasher = Hasher::new();
        add(object, fields, None, &mut hasher);
        let bytes = Value::Object(fields.clone()).to_string().into_bytes();
        Some(Self { view: hasher.end(), fields: bytes.into_boxed_slice() })
    }

    /// Whether that is exactly what is desired, in the status as it is.
    pub(crate) fn matches(&self, desired: &Value, status: &Value) -> bool {
        let wrapped = |status: &Value| json!({"status": status});
        let fields = serde_json::from_slice::<Map<String, Value>>(&self.fields);
        fields.is_ok_and(|fields| same_fields(&wrapped(desired), &wrapped(status), &fields, None))
    }
}

/// What all managers own of an object, each by itself.
pub(crate) fn all(object: &Value) -> Vec<&Value> {
    entries(object).filter_map(|entry| entry.get("fieldsV1")).collect()
}

/// Managers of an object by name, and what each owns; who wrote last comes first.
pub(crate) fn managers(object: &Value) -> Vec<(&str, &Value)> {
    let mut found: Vec<_> = entries(object).collect();
    let time = |entry: &Value| entry.get("time").and_then(Value::as_str).map(str::to_owned);
    found.sort_by_key(|entry| std::cmp::Reverse(time(entry)));
    { found.into_iter() }
        .filter_map(|entry| Some((entry.get("manager")?.as_str()?, entry.get("fieldsV1")?)))
        .collect()
}

/// Whether somebody but our applies owns a field.
pub(crate) fn others_own(object: &Value, path: &[&str]) -> bool {
    let ours = ours(object);
    entries(object)
        .filter_map(|entry| entry.get("fieldsV1")?.as_object())
        .any(|fields| !ours.is_some_and(|ours| std::ptr::eq(ours, fields)) && owns(fields, path))
}

/// A digest of all that is ours in an object: which fields, and their values. Nothing else in the
/// object changes it. `without` is left out, if it is ours.
pub(crate) fn view(object: &Value, without: Option<&[&str]>) -> Digest {
    view_of(object, SYNCER, without)
}

/// As [`view`], of what the applies of a manager own.
pub(crate) fn view_of(object: &Value, manager: &str, without: Option<&[&str]>) -> Digest {
    let mut hasher = Hasher::new();
    if let Some(ours) = applied_by(object, manager, "") {
        add(object, ours, without, &mut hasher);
    }
    hasher.end()
}

/// Whether an object has, in the fields that are ours, exactly what is desired, and our locator
/// besides. What was changed on the way in, as `1000m` to `1`, counts as different. `without` is
/// not compared.
pub(crate) fn matches(desired: &Value, object: &Value, without: Option<&[&str]>) -> bool {
    matches_by(desired, object, SYNCER, UPSTREAM, without)
}

/// As [`matches`], in the fields that the applies of a manager own; `locator` is the annotation that
/// comes to what is desired.
pub(crate) fn matches_of(desired: &Value, object: &Value, manager: &str, locator: &str) -> bool {
    matches_by(desired, object, manager, locator, None)
}

fn matches_by(
    desired: &Value,
    object: &Value,
    manager: &str,
    locator: &str,
    without: Option<&[&str]>,
) -> bool {
    let ours = applied_by(object, manager, "");
    let (Some(ours), Some(desired)) = (ours, desired.as_object()) else { return false };
    let metadata = |key: &str| {
        let wanted = desired.get("metadata").and_then(|metadata| metadata.get(key));
        let there = object.get("metadata").and_then(|metadata| metadata.get(key));
        let fields = ours.get("f:metadata").and_then(|fields| fields.get(format!("f:{key}")));
        let fields = fields.and_then(Value::as_object);
        let mut owned = fields.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("f:"));
        let value = |of: Option<&Value>, key: &str| of.and_then(|of| of.get(key)).cloned();
        let mut wanted_keys = wanted.and_then(Value::as_object).into_iter().flatten();
        { owned.by_ref() }.all(|key| key == locator || value(wanted, key).is_some())
            && wanted_keys.all(|(key, wanted)| {
                let is_ours = fields.is_some_and(|fields| fields.contains_key(&format!("f:{key}")));
                is_ours && value(there, key).as_ref() == Some(wanted)
            })
    };
    let unowned = |key: &str| matches!(key, "apiVersion" | "kind" | "metadata");
    let content: Map<String, Value> = { desired.iter() }
        .filter(|(key, _)| !unowned(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let fields: Map<String, Value> = { ours.iter() }
        .filter(|(key, _)| *key != "f:metadata")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    metadata("labels")
        && metadata("annotations")
        && same_fields(&Value::Object(content), object, &fields, without)
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    entries.map(Vec::as_slice).unwrap_or_default().iter()
}

/// Whether a field, or something below it, is among owned fields.
pub(crate) fn owns(fields: &Map<String, Value>, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    match fields.get(&format!("f:{first}")) {
        Some(Value::Object(below)) => below.is_empty() || owns(below, rest),
        Some(_) => true,
        None => false,
    }
}

/// The path below a field, if the path begins with the field.
fn below<'p>(path: Option<&'p [&'p str]>, field: &str) -> Option<&'p [&'p str]> {
    path?.split_first().filter(|(first, _)| **first == field).map(|(_, rest)| rest)
}

fn add(value: &Value, fields: &Map<String, Value>, without: Option<&[&str]>, hasher: &mut Hasher) {
    for (key, below_key) in fields {
        let name = key.strip_prefix("f:");
        let without = name.and_then(|name| below(without, name));
        if key == "." || without.is_some_and(<[_]>::is_empty) {
            continue;
        }
        hasher.text(key);
        let Some(member) = member(value, key) else {
            hasher.text("absent");
            continue;
        };
        match below_key {
            Value::Object(fields) if !fields.is_empty() => {
                hasher.text("{");
                add(member, fields, without, hasher);
                hasher.text("}");
            }
            _ => hasher.value(member),
        }
    }
}

/// What an entry of `fieldsV1` stands for in a value.
pub(crate) fn member<'v>(value: &'v Value, entry: &str) -> Option<&'v Value> {
    let (kind, rest) = entry.split_once(':')?;
    match kind {
        "f" => value.get(rest),
        "i" => value.get(rest.parse::<usize>().ok()?),
        "v" => {
            let wanted: Value = serde_json::from_str(rest).ok()?;
            value.as_array()?.iter().find(|item| **item == wanted)
        }
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
            value.as_array()?.iter().find(|item| has_keys(item, &keys, false))
        }
        _ => None,
    }
}

/// Whether an item of a list has these keys; one that may be a default may be absent.
pub(crate) fn has_keys(item: &Value, keys: &Map<String, Value>, lenient: bool) -> bool {
    let mut found = false;
    keys.iter().all(|(key, value)| match item.get(key) {
        Some(member) => {
            found = true;
            member == value
        }
        None => lenient,
    }) && (found || !lenient)
}

fn same_fields(
    desired: &Value,
    object: &Value,
    fields: &Map<String, Value>,
    without: Option<&[&str]>,
) -> bool {
    match (desired, object) {
        (Value::Object(wanted), Value::Object(there)) => {
            let left_out = |key: &str| below(without, key).is_some_and(<[_]>::is_empty);
            let each = wanted.iter().filter(|(key, _)| !left_out(key)).all(|(key, value)| {
                match (fields.get(&format!("f:{key}")), there.get(key)) {
                    (Some(Value::Object(fields)), Some(there)) => {
                        same(value, there, fields, below(without, key))
                    }
                    _ => false,
                }
            });
            let mut surplus = fields.keys().filter_map(|key| key.strip_prefix("f:"));
            each && surplus.all(|key| wanted.contains_key(key) || left_out(key))
        }
        (Value::Array(wanted), Value::Array(_)) => {
            let entries: Vec<_> = fields.iter().filter(|(key, _)| *key != ".").collect();
            let same_item = |key: &str, fields: &Value| {
                let item = match key.strip_prefix("k:").map(serde_json::from_str) {
                    Some(Ok(keys)) => wanted.iter().find(|item| has_keys(item, &keys, true)),
                    Some(Err(_)) => None,
                    None => member(desired, key),
                };
                match (item, member(object, key), fields.as_object()) {
                    (Some(item), Some(there), Some(fields)) => same(item, there, fields, None),
                    _ => false,
                }
            };
            entries.len() == wanted.len() && entries.iter().all(|(key, of)| same_item(key, of))
        }
        _ => false,
    }
}

fn same(
    desired: &Value,
    object: &Value,
    fields: &Map<String, Value>,
    without: Option<&[&str]>,
) -> bool {
    if fields.keys().all(|key| key == ".") {
        return is_within(desired, object);
    }
    same_fields(desired, object, fields, without)
}

/// Whether a value that is owned whole is what is desired, but for defaults: had somebody else
/// changed it, it would be theirs.
fn is_within(desired: &Value, object: &Value) -> bool {
    match (desired, object) {
        (Value::Object(wanted), Value::Object(there)) => wanted
            .iter()
            .all(|(key, value)| there.get(key).is_some_and(|there| is_within(value, there))),
        (Value::Array(wanted), Value::Array(there)) => {
            wanted.len() == there.len()
                && wanted.iter().zip(there).all(|(value, there)| is_within(value, there))
        }
        _ => desired == object,
    }
}

#[cfg(test)]
mod tests;
