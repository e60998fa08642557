//! What a write may not change, and what follows from a change.

use machinery::meta::{get, get_i64, remove, set};
use schema::resource::{Generation, ResourceDef};
use serde_json::{Value, json};

use crate::registry::Target;
use crate::registry::managed::MANAGED_FIELDS;

/// Puts back what only the server sets. What upstream tells a client who sets it, the validation
/// that follows tells.
pub(super) fn restore(old: &Value, new: &mut Value) {
    let fixed = ["creationTimestamp", "generation", "resourceVersion"];
    let told = ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for field in fixed.into_iter().chain(told) {
        let given = get(new, &["metadata", field]).filter(|given| !given.is_null());
        if told.contains(&field) && given.is_some_and(|given| given != "") {
            continue;
        }
        match get(old, &["metadata", field]) {
            Some(value) => {
                set(new, &["metadata", field], value.clone());
            }
            None => {
                remove(new, &["metadata", field]);
            }
        }
    }
    remove(new, &["metadata", "selfLink"]);
}

/// Keeps what the endpoint may not change: a subresource has its own fields, and the main endpoint
/// all others.
pub(super) fn merge_subresource(target: &Target, old: &Value, new: &mut Value) {
    let take = |from: &Value, to: &mut Value, field: &str| {
        let path = field.split('.').collect::<Vec<_>>();
        match get(from, &path) {
            Some(value) => {
                set(to, &path, value.clone());
            }
            None => {
                remove(to, &path);
            }
        }
    };
    if target.subresource.is_empty() {
        let subresources = target.resource.subresources.iter();
        for field in subresources.filter(|sub| sub.kind.is_none()).flat_map(|sub| &sub.writes) {
            if &**field == "status" {
                take(old, new, field);
            }
        }
        return;
    }
    let Some(subresource) = target.resource.subresource(&target.subresource) else {
        return;
    };
    let managers = remove(new, &MANAGED_FIELDS);
    let mut merged = old.clone();
    for field in &subresource.writes {
        take(new, &mut merged, field);
    }
    match managers {
        Some(managers) => {
            set(&mut merged, &MANAGED_FIELDS, managers);
        }
        None => {
            remove(&mut merged, &MANAGED_FIELDS);
        }
    }
    *new = merged;
}

/// `metadata.generation` grows with the fields that the kind says.
pub(super) fn grow(resource: &ResourceDef, old: &Value, new: &mut Value) {
    let changed = match &resource.generation {
        Generation::None => return,
        Generation::Fields(fields) => {
            fields.iter().any(|field| get(old, &[field]) != get(new, &[field]))
        }
        Generation::All => {
            let has_status = resource.subresource("status").is_some();
            let without = |value: &Value| {
                let mut value = value.clone();
                remove(&mut value, &["metadata"]);
                if has_status {
                    remove(&mut value, &["status"]);
                }
                value
            };
            without(old) != without(new)
        }
    };
    let generation = get_i64(old, &["metadata", "generation"]).unwrap_or(0);
    let generation = if changed { generation + 1 } else { generation };
    set(new, &["metadata", "generation"], json!(generation));
}
