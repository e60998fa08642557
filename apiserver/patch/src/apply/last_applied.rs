//! The record that kubectl's own, client-side apply leaves in an annotation.

use machinery::field::go_json;
use machinery::meta;
use serde_json::Value;

use super::compare::compare;
use super::owned::fields_of;
use super::schema::{ApplySchema, Type};
use super::set::FieldSet;
use super::validate::{Duplicates, validate};
use crate::depth::is_too_deep;

/// The annotation.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The largest size of all annotations together, in bytes, as upstream has it.
const MOST: usize = 256 * 1024;

/// The record, if there is one.
pub(super) fn of(object: &Value) -> Option<&str> {
    meta::get_str(object, &["metadata", "annotations", ANNOTATION]).filter(|text| !text.is_empty())
}

/// The fields that client-side apply has set and that still are as it set them; `None` when the
/// record can't be used.
pub(super) fn unchanged<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    live: &Value,
    api_version: &str,
) -> Option<FieldSet> {
    let record: Value = serde_json::from_str(of(live)?).ok()?;
    let version = record.get("apiVersion").and_then(Value::as_str);
    if version != Some(api_version) || is_too_deep(&record) {
        return None;
    }
    validate(ty, &record, Duplicates::Refused).ok()?;
    validate(ty, live, Duplicates::Refused).ok()?;
    let changes = compare(ty, &record, live).ok()?;
    let mut fields = fields_of(ty, &record);
    for set in [&changes.modified, &changes.added, &changes.removed] {
        fields.subtract(set);
    }
    Some(fields)
}

/// Writes `applied` into the record, unless the annotations became too large: then it goes.
pub(super) fn set(object: &mut Value, applied: &Value) {
    let mut applied = applied.clone();
    meta::remove(&mut applied, &["metadata", "annotations", ANNOTATION]);
    let record = format!("{}\n", go_json(&applied));
    let Some(Value::Object(annotations)) =
        object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
    else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), Value::String(record));
    let size = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(size).sum::<usize>() > MOST {
        annotations.remove(ANNOTATION);
    }
}
