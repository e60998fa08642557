//! JSON merge patch, RFC 7396, as kube-apiserver applies it.
//!
//! It departs from the RFC in one point: where a list of the patch takes the place of something
//! that isn't an object, fields that are null go from the objects in that list too. The RFC would
//! keep them.

use serde_json::{Map, Value};

use crate::PatchError;
use crate::depth::is_too_deep;

/// Applies `patch` to `doc`. A document that is no object counts as empty.
///
/// The result nests no deeper than the deeper of the two.
///
/// # Errors
/// [`PatchError::Malformed`] when the patch is no object or nests deeper than
/// [`MAX_DEPTH`](crate::MAX_DEPTH); `doc` is then unchanged.
pub fn apply(doc: &mut Value, patch: Value) -> Result<(), PatchError> {
    if !patch.is_object() {
        return Err(PatchError::Malformed("Invalid JSON Patch".into()));
    }
    if is_too_deep(&patch) {
        return Err(PatchError::too_deep());
    }
    merge_value(doc, patch);
    Ok(())
}

fn merge_value(doc: &mut Value, mut patch: Value) {
    match (doc, patch) {
        (Value::Object(doc), Value::Object(patch)) => merge_fields(doc, patch),
        (doc @ Value::Object(_), other) => *doc = other,
        (doc, other) => {
            patch = other;
            prune_nulls(&mut patch);
            *doc = patch;
        }
    }
}

fn merge_fields(doc: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, mut value) in patch {
        if value.is_null() {
            doc.remove(&name);
        } else if let Some(current) = doc.get_mut(&name) {
            merge_value(current, value);
        } else {
            prune_nulls(&mut value);
            doc.insert(name, value);
        }
    }
}

/// Drops null fields of objects at any depth; null items of lists stay.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(prune_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}
