//! Conditions below `anyOf`, `oneOf` and `not`, which may only check what the schema around them
//! describes.

use serde_json::{Map, Value};

/// How deep conditions may nest.
const MAX_DEPTH: usize = 8;

/// What conditions are made of; all the rest is dropped, as it says nothing of what is valid.
const KEPT: [&str; 15] = [
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
];

/// A condition, or a list of them, without what CRDs forbid there. `None` if it speaks of something
/// that `around` doesn't describe, or can't be taken apart.
pub(super) fn only(source: &Value, around: &Map<String, Value>, depth: usize) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    let object = match source {
        Value::Array(all) => {
            let all: Option<Vec<Value>> = all.iter().map(|s| only(s, around, depth + 1)).collect();
            return all.map(Value::Array);
        }
        Value::Object(object) => object,
        _ => return None,
    };
    let mut made = Map::new();
    for (key, value) in object {
        match &**key {
            "allOf" | "anyOf" | "oneOf" | "not" => {
                made.insert(key.clone(), only(value, around, depth + 1)?);
            }
            "properties" => {
                let fields = around.get("properties")?;
                let mut inner = Map::new();
                for (name, value) in value.as_object()? {
                    let field = fields.get(name)?.as_object()?;
                    inner.insert(name.clone(), only(value, field, depth + 1)?);
                }
                made.insert(key.clone(), Value::Object(inner));
            }
            "items" => {
                let items = around.get("items")?.as_object()?;
                made.insert(key.clone(), only(value, items, depth + 1)?);
            }
            // A condition on the type makes a difference that a CRD can't express.
            "$ref" | "additionalProperties" | "type" => return None,
            key if KEPT.contains(&key) => drop(made.insert(key.to_owned(), value.clone())),
            _ => {}
        }
    }
    Some(Value::Object(made))
}
