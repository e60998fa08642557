//! Types, compared and merged.

mod agreement;
mod faults;
mod generated;
mod hostile;
mod laws;
mod real;

use serde_json::{Value, json};

use super::*;

/// A type of objects with this schema as their `spec`.
fn thing(spec: &Value) -> Type {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    Type {
        group: "x.io".into(),
        version: "v1".into(),
        names: Names {
            plural: "things".into(),
            singular: "thing".into(),
            kind: "Thing".into(),
            list_kind: "ThingList".into(),
            short_names: Vec::new(),
            categories: Vec::new(),
        },
        scope: "Namespaced".into(),
        schema,
        subresources: None,
        columns: Vec::new(),
        selectable_fields: Vec::new(),
    }
}

/// What is blocking between two schemas, as `path: what`.
fn blocking(existing: &Value, new: &Value) -> Vec<String> {
    told(&differences(&thing(existing), &thing(new), ["hub", "east"]), true)
}

fn told(differences: &[Difference], blocking: bool) -> Vec<String> {
    let some = differences.iter().filter(|difference| difference.blocking == blocking);
    some.map(|difference| format!("{}: {}", difference.path, difference.what)).collect()
}

/// What targets `a`, `b`, … with these schemas agree on, of `spec`; else what keeps the last from it.
fn merged(schemas: &[Value]) -> Result<Value, Vec<String>> {
    let types: Vec<Type> = schemas.iter().map(thing).collect();
    let names = ["a", "b", "c", "d"];
    let inputs: Vec<(&str, &str, &Type)> =
        names.iter().zip(&types).map(|(name, ty)| (*name, "2026-01-01T00:00:00Z", ty)).collect();
    let agreement = agree(&inputs);
    match agreement.left.last() {
        Some(left) => Err(told(&left.differences, true)),
        None => Ok(agreement.merged.unwrap().schema["properties"]["spec"].clone()),
    }
}
