//! Rules of `x-kubernetes-list-type`, `x-kubernetes-list-map-keys` and `x-kubernetes-map-type`.

use machinery::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::super::tolerance::Tolerance;
use super::{has, invalid};
use crate::structural::json::{self, Keywords};

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const KEYS: &str = "x-kubernetes-list-map-keys";

/// What is wrong with the types of one list or object.
pub(super) fn validate(
    schema: &Keywords,
    at: &FieldPath,
    tolerance: &Tolerance,
) -> Vec<FieldError> {
    let mut problems = Vec::new();
    if json::has(schema, MAP_TYPE) {
        problems.extend(of_type(schema, at, "object", MAP_TYPE));
        problems.extend(one_of(schema, at, MAP_TYPE, &["atomic", "granular"]));
    }
    let list = json::text(schema, LIST_TYPE);
    if json::has(schema, LIST_TYPE) {
        match of_type(schema, at, "array", LIST_TYPE) {
            Some(problem) => problems.push(problem),
            None if !tolerance.granular_sets => problems.extend(atomic_items(schema, at)),
            None => {}
        }
        problems.extend(one_of(schema, at, LIST_TYPE, &["atomic", "set", "map"]));
    }
    if !json::list(schema, KEYS).is_empty() && list != "map" {
        let at = at.child(LIST_TYPE);
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        problems.push(match json::has(schema, LIST_TYPE) {
            false => FieldError::required(&at, why),
            true => FieldError::invalid_str(&at, list, why),
        });
    }
    if list == "map" {
        problems.extend(validate_map(schema, at));
    }
    if !tolerance.open_keys {
        problems.extend(validate_keys(schema, at));
    }
    problems
}

fn of_type(schema: &Keywords, at: &FieldPath, kind: &str, keyword: &str) -> Option<FieldError> {
    let at = at.child("type");
    let why = format!("must be {kind} if {keyword} is specified");
    match json::text(schema, "type") {
        found if found == kind => None,
        "" => Some(FieldError::required(&at, why)),
        found => Some(FieldError::invalid_str(&at, found, why)),
    }
}

fn one_of(schema: &Keywords, at: &FieldPath, keyword: &str, known: &[&str]) -> Option<FieldError> {
    let found = json::text(schema, keyword);
    (!known.contains(&found))
        .then(|| FieldError::not_supported(&at.child(keyword), &found.into(), known))
}

/// Items of sets have no parts of their own.
fn atomic_items(schema: &Keywords, at: &FieldPath) -> Option<FieldError> {
    let items = json::object(schema, "items").filter(|_| json::text(schema, LIST_TYPE) == "set")?;
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let keyword = match json::text(items, "type") {
        "array" if json::has(items, LIST_TYPE) && json::text(items, LIST_TYPE) != "atomic" => {
            LIST_TYPE
        }
        "object" if json::text(items, MAP_TYPE) != "atomic" => MAP_TYPE,
        _ => return None,
    };
    // Upstream prints the list's type in either case.
    let value = items.get(LIST_TYPE).unwrap_or(&Value::Null);
    Some(invalid(&at.child("items").child(keyword), value, why))
}

fn validate_map(schema: &Keywords, at: &FieldPath) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let keys: Vec<&str> = json::texts(schema, KEYS).collect();
    if keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        problems.push(FieldError::required(&at.child(KEYS), why));
    }
    if !json::has(schema, "items") {
        let why = "must have a schema if x-kubernetes-list-type is map";
        problems.push(FieldError::required(&at.child("items"), why));
        return problems;
    }
    let Some(items) = json::object(schema, "items") else {
        let why = "must only have a single schema if x-kubernetes-list-type is map";
        let value = schema.get("items").unwrap_or(&Value::Null);
        problems.push(invalid(&at.child("items"), value, why));
        return problems;
    };
    let kind = json::text(items, "type");
    if kind != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        problems.push(FieldError::invalid_str(&at.child("items").child("type"), kind, why));
        return problems;
    }
    let properties = json::object(items, "properties");
    for (index, key) in keys.iter().enumerate() {
        match properties.and_then(|p| json::object(p, key)) {
            None => {
                let why = "entries must all be names of item properties";
                problems.push(invalid(&at.child(KEYS), &json!(keys), why));
            }
            Some(part) if matches!(json::text(part, "type"), "array" | "object") => {
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let at = at.child("items").child("properties").key(key).child("type");
                // Upstream prints the type of the item, not of its field.
                problems.push(FieldError::invalid_str(&at, kind, why));
            }
            Some(_) => {}
        }
        if keys.iter().take(index).any(|earlier| earlier == key) {
            let why = "must not contain duplicate entries";
            problems.push(invalid(&at.child(KEYS), &json!(keys), why));
        }
    }
    problems
}

/// Keys of maps are always there, and items are not null.
fn validate_keys(schema: &Keywords, at: &FieldPath) -> Vec<FieldError> {
    let list = json::text(schema, LIST_TYPE);
    let items = json::object(schema, "items").filter(|_| matches!(list, "set" | "map"));
    let Some(items) = items else { return Vec::new() };
    let at = at.child("items");
    let mut problems = Vec::new();
    if json::flag(items, "nullable") {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list}");
        problems.push(FieldError::forbidden(&at.child("nullable"), why));
    }
    if list == "set" {
        return problems;
    }
    let properties = json::object(items, "properties");
    for key in json::texts(schema, KEYS) {
        let Some(part) = properties.and_then(|p| json::object(p, key)) else { continue };
        let at = at.child("properties").key(key);
        let required = json::texts(items, "required").any(|name| name == key);
        if !required && !json::has(part, "default") {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default \
                       or be a required property";
            problems.push(FieldError::required(&at.child("default"), why));
        }
        if json::flag(part, "nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            problems.push(FieldError::forbidden(&at.child("nullable"), why));
        }
    }
    problems
}

/// Whether a schema has a set with items that aren't atomic.
pub(in crate::crd) fn has_granular_sets(schema: &Value) -> bool {
    let granular = |schema: &Keywords| atomic_items(schema, &FieldPath::default()).is_some();
    schema.as_object().is_some_and(|schema| has(schema, granular, 0))
}

/// Whether a schema has a map whose keys may be absent, or a set or map with items that may be
/// null.
pub(in crate::crd) fn has_open_keys(schema: &Value) -> bool {
    let open = |schema: &Keywords| !validate_keys(schema, &FieldPath::default()).is_empty();
    schema.as_object().is_some_and(|schema| has(schema, open, 0))
}
