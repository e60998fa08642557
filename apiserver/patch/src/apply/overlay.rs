//! A configuration laid over an object that nobody comes to own anything of, as mutating policies do.

use serde_json::Value;

use super::merge::merge;
use super::schema::{ApplySchema, ListForm, MapForm, Type};
use super::validate::{Duplicates, validate};
use crate::depth::is_too_deep;

/// Merges `config` into `object`: what it has counts, and everything else stays. It may not touch what
/// is owned as a whole: whoever means to change a part of that would lose the rest.
///
/// # Errors
/// Why it can't be merged, in upstream's words.
pub fn overlay<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    object: &Value,
    config: &Value,
) -> Result<Value, String> {
    if is_too_deep(config) || is_too_deep(object) {
        return Err("failed to merge patch: nested too deep".to_owned());
    }
    validate(ty, config, Duplicates::Refused)
        .map_err(|why| format!("failed to convert patch object to typed object: {why}"))?;
    let mut whole = Vec::new();
    find_whole(ty, config, &mut String::new(), &mut whole);
    if !whole.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            whole.join(", ")
        ));
    }
    validate(ty, object, Duplicates::Allowed)
        .map_err(|why| format!("failed to convert original object to typed object: {why}"))?;
    let merged = merge(ty, Some(object), Some(config))
        .map_err(|why| format!("failed to merge patch: {why}"))?;
    merged.ok_or_else(|| "failed to merge patch: nothing remains of the object".to_owned())
}

/// The paths of lists and maps that have one owner. Upstream doesn't look into the values of maps whose
/// fields are not declared. The recursion ends with the depth of the configuration.
fn find_whole<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    value: &Value,
    path: &mut String,
    found: &mut Vec<String>,
) {
    let (forms, length) = (ty.forms(), path.len());
    match value {
        Value::Object(fields) => {
            let Some(form) = forms.map else { return };
            if form == MapForm::Atomic {
                found.push(path.clone());
            }
            for (name, value) in fields {
                if let Some(inner) = ty.declared(name) {
                    path.push('.');
                    path.push_str(name);
                    find_whole(inner, value, path, found);
                    path.truncate(length);
                }
            }
        }
        Value::Array(items) => {
            let Some(form) = forms.list else { return };
            if form == ListForm::Atomic {
                found.push(path.clone());
            }
            for (at, item) in items.iter().enumerate() {
                path.push_str(&format!("[{at}]"));
                find_whole(ty.item(), item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
