//! The rules of `metadata` that hold for every kind (`ValidateObjectMeta` and its `…Update`).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN, MAX_ANNOTATIONS, get, get_bool, get_i64};
use crate::field::{FieldError, FieldPath, go_quote};
use crate::gvr::GroupVersion;
use crate::name;

const IMMUTABLE: &str = "field is immutable";

/// What is wrong with the metadata of an object that is to be created.
///
/// `object` is the whole object, `path` the path of its metadata. Its name must have been
/// generated before. Parts of the wrong JSON type count as absent: the schema refuses them.
pub fn validate_object_meta(
    object: &Value,
    namespaced: bool,
    name_rule: fn(&str) -> Vec<String>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let base = text(object, "generateName");
    if !base.is_empty() {
        let path = path.child("generateName");
        let wrong = name_rule(&as_prefix(base));
        problems.extend(wrong.into_iter().map(|p| FieldError::invalid_str(&path, base, p)));
    }
    let name = text(object, "name");
    if name.is_empty() {
        let detail = "name or generateName is required";
        problems.push(FieldError::required(&path.child("name"), detail));
    } else {
        let path = path.child("name");
        let wrong = name_rule(name);
        problems.extend(wrong.into_iter().map(|p| FieldError::invalid_str(&path, name, p)));
    }
    problems.extend(validate_namespace(text(object, "namespace"), namespaced, path));
    let generation = get_i64(object, &["metadata", "generation"]).unwrap_or(0);
    if generation < 0 {
        let detail = "must be greater than or equal to 0";
        problems.push(FieldError::invalid(&path.child("generation"), &generation.into(), detail));
    }
    problems.extend(validate_maps(object, path));
    problems.extend(validate_finalizers(object, path));
    problems.extend(validate_managed_fields(object, path));
    problems
}

/// What is wrong with a change of an object's metadata.
///
/// The generation and the restored timestamps must be in `new` before (the registry puts them
/// there); whether a missing `resourceVersion` is allowed depends on the kind and is not judged.
pub fn validate_object_meta_update(new: &Value, old: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = Vec::new();
    if meta(old, "deletionTimestamp").is_some() {
        let known: BTreeSet<&str> = finalizers(old).collect();
        let added: BTreeSet<&str> = finalizers(new).filter(|f| !known.contains(f)).collect();
        if !added.is_empty() {
            let quoted: Vec<String> = added.into_iter().map(go_quote).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                quoted.join(", ")
            );
            problems.push(FieldError::forbidden(&path.child("finalizers"), detail));
        }
    }
    let generation = |object| get_i64(object, &["metadata", "generation"]).unwrap_or(0);
    if generation(new) < generation(old) {
        let path = path.child("generation");
        let detail = "must not be decremented";
        problems.push(FieldError::invalid(&path, &generation(new).into(), detail));
    }
    for field in ["name", "namespace", "uid"] {
        let value = text(new, field);
        if value != text(old, field) {
            problems.push(FieldError::invalid_str(&path.child(field), value, IMMUTABLE));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if meta(new, field) != meta(old, field) {
            let value = meta(new, field).unwrap_or(&Value::Null);
            // Upstream prints times as the JSON they are, with their quotes.
            problems.push(FieldError::invalid(&path.child(field), value, IMMUTABLE));
        }
    }
    problems.extend(validate_maps(new, path));
    problems.extend(validate_managed_fields(new, path));
    problems
}

/// The base of a generated name as a name: upstream forgives the dash at its end, and what
/// follows makes `.` and `..` harmless.
fn as_prefix(base: &str) -> String {
    match base.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut name = rest.to_owned();
            name.pop();
            name.push('a');
            name
        }
        _ if base == "." || base == ".." => format!("{base}a"),
        _ => base.to_owned(),
    }
}

fn validate_namespace(namespace: &str, namespaced: bool, path: &FieldPath) -> Vec<FieldError> {
    let path = path.child("namespace");
    match (namespaced, namespace) {
        (true, "") => vec![FieldError::required(&path, "")],
        (true, namespace) => {
            let wrong = name::dns1123_label(namespace);
            wrong.into_iter().map(|p| FieldError::invalid_str(&path, namespace, p)).collect()
        }
        (false, "") => Vec::new(),
        (false, _) => vec![FieldError::forbidden(&path, "not allowed on this type")],
    }
}

/// Labels, annotations and owners: judged at creation and at every update.
fn validate_maps(object: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let labels = path.child("labels");
    for (key, value) in map(object, "labels") {
        let wrong = name::qualified_name(key);
        problems.extend(wrong.into_iter().map(|p| FieldError::invalid_str(&labels, key, p)));
        let value = value.as_str().unwrap_or_default();
        let wrong = name::label_value(value);
        problems.extend(wrong.into_iter().map(|p| FieldError::invalid_str(&labels, value, p)));
    }
    let annotations = path.child("annotations");
    let mut size = 0;
    for (key, value) in map(object, "annotations") {
        let wrong = name::qualified_name(&key.to_lowercase());
        problems.extend(wrong.into_iter().map(|p| FieldError::invalid_str(&annotations, key, p)));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATIONS {
        problems.push(FieldError::too_long(&annotations, MAX_ANNOTATIONS));
    }
    problems.extend(validate_owners(object, &path.child("ownerReferences")));
    problems
}

fn validate_owners(object: &Value, path: &FieldPath) -> Vec<FieldError> {
    let Some(list) = meta(object, "ownerReferences") else { return Vec::new() };
    let mut problems = Vec::new();
    let mut controller: Option<String> = None;
    for owner in list.as_array().into_iter().flatten() {
        let field = |name| get(owner, &[name]).and_then(Value::as_str).unwrap_or_default();
        let version = GroupVersion::parse(field("apiVersion"));
        if version.is_none() {
            let path = path.child("apiVersion");
            let detail = "version must not be empty";
            problems.push(FieldError::invalid_str(&path, field("apiVersion"), detail));
        }
        for name in ["kind", "name", "uid"] {
            if field(name).is_empty() {
                problems.push(FieldError::invalid_str(&path.child(name), "", "must not be empty"));
            }
        }
        if field("apiVersion") == "v1" && field("kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            problems.push(FieldError::invalid(path, owner, detail));
        }
        if get_bool(owner, &["controller"]) == Some(true) {
            let current = format!("{}/{}", field("kind"), field("name"));
            match &controller {
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in \
                         references for {first} and {current}"
                    );
                    problems.push(FieldError::invalid(path, list, detail));
                }
                None => controller = Some(current),
            }
        }
    }
    problems
}

fn validate_finalizers(object: &Value, path: &FieldPath) -> Vec<FieldError> {
    let path = path.child("finalizers");
    let mut problems = Vec::new();
    for finalizer in finalizers(object) {
        let wrong = name::qualified_name(finalizer);
        problems.extend(wrong.into_iter().map(|p| FieldError::invalid_str(&path, finalizer, p)));
    }
    let has = |wanted| finalizers(object).any(|f| f == wanted);
    if has(FINALIZER_ORPHAN) && has(FINALIZER_FOREGROUND) {
        let detail =
            format!("finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set");
        let value = meta(object, "finalizers").unwrap_or(&Value::Null);
        problems.push(FieldError::invalid(&path, value, detail));
    }
    problems
}

fn validate_managed_fields(object: &Value, path: &FieldPath) -> Vec<FieldError> {
    const MAX_SUBRESOURCE: usize = 256;
    const MAX_MANAGER: usize = 128;
    let list = meta(object, "managedFields").and_then(Value::as_array);
    let mut problems = Vec::new();
    for (index, entry) in list.into_iter().flatten().enumerate() {
        let path = path.child("managedFields").index(index);
        let field = |name| get(entry, &[name]).and_then(Value::as_str).unwrap_or_default();
        let operation = field("operation");
        if !matches!(operation, "Apply" | "Update") {
            let path = path.child("operation");
            let detail = "must be `Apply` or `Update`";
            problems.push(FieldError::invalid_str(&path, operation, detail));
        }
        let fields_type = field("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            let path = path.child("fieldsType");
            problems.push(FieldError::invalid_str(&path, fields_type, "must be `FieldsV1`"));
        }
        if field("manager").len() > MAX_MANAGER {
            problems.push(FieldError::too_long(&path.child("manager"), MAX_MANAGER));
        }
        if field("subresource").len() > MAX_SUBRESOURCE {
            problems.push(FieldError::too_long(&path.child("subresource"), MAX_SUBRESOURCE));
        }
    }
    problems
}

/// A field of the metadata; null counts as absent.
fn meta<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    get(object, &["metadata", field]).filter(|value| !value.is_null())
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    meta(object, field).and_then(Value::as_str).unwrap_or_default()
}

fn map<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    meta(object, field).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let list = meta(object, "finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}
