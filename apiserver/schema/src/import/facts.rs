//! What can be asked of a schema that was made, or of a field's Go type.

use serde_json::{Map, Value};

use crate::model::{Field, Omit, Pool, TypeId};

/// The marker of objects whose unknown fields stay.
pub(super) const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// A schema for which everything is right.
pub(super) fn anything() -> Map<String, Value> {
    Map::from_iter([(PRESERVE.to_owned(), Value::Bool(true))])
}

/// Whether Go has a value here that it writes as null when it is empty: a list, a map, a time.
pub(super) fn is_nil(schema: &Map<String, Value>) -> bool {
    let is = |key: &str, text: &str| schema.get(key).is_some_and(|value| value == text);
    is("type", "array") || schema.contains_key("additionalProperties") || is("format", "date-time")
}

/// Whether Go has a pointer here that it writes even when there is nothing behind it.
pub(super) fn can_be_null(pool: &Pool, component: Option<TypeId>, name: &str) -> bool {
    let field: Option<&Field> = component.and_then(|id| pool.field(id, name));
    field.is_some_and(|field| {
        field.omit == Omit::Never && (field.pointer || crate::coerce::zero(&field.shape).is_null())
    })
}

/// Whether items can be told apart by these fields: each is there, and required or has a default.
pub(super) fn has_keys(items: &Map<String, Value>, keys: &[&str]) -> bool {
    let required = items.get("required").and_then(Value::as_array);
    let is_key = |key: &&str| {
        let field = items.get("properties").and_then(|fields| fields.get(key));
        field.and_then(Value::as_object).is_some_and(|field| {
            let always = field.contains_key("default")
                || required.is_some_and(|names| names.iter().any(|n| n == *key));
            is_scalar(field) && always
        })
    };
    !keys.is_empty() && keys.iter().all(is_key)
}

pub(super) fn is_scalar(schema: &Map<String, Value>) -> bool {
    let kind = schema.get("type").and_then(Value::as_str);
    matches!(kind, Some("string" | "integer" | "number" | "boolean"))
}
