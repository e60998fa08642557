//! CustomResourceDefinitions: their rules, and what they become when they are served.
//!
//! A CRD is handled as the JSON of `apiextensions.k8s.io/v1`, which the built-in type's
//! [`coerce`](crate::Schema::coerce) has made canonical. Everything is a pure function of it.
//!
//! **Imported types.** A CRD may have one of Kubernetes' own groups, as `apps`, and then it needs
//! neither a dot in the group nor an approval. Of the core group, whose name is empty, the CRD of
//! Services is called `services.core`, and its `spec.group` is empty or `core`, as one likes;
//! [`group`] tells the real name. Such a type behaves for clients as the built-in one.
//!
//! **Rules** are kube-apiserver's, with its texts. It judges an internal form in which what is
//! equal in all versions stands once, so that paths begin with `spec.validation`,
//! `spec.subresources` and the like where all versions agree (as one always does), and with
//! `spec.versions[0].schema` only where they differ. What a stored CRD breaks already, an update
//! may go on to break; see [`validate_update`].

mod approval;
mod columns;
mod compile;
mod condition;
mod conversion;
mod fields;
mod groups;
mod names;
mod scale;
mod schema;
mod spec;
mod tolerance;
mod versions;
mod view;

use machinery::{FieldError, FieldPath};
use serde_json::{Map, Value, json};

pub use approval::approval;
pub use compile::{Conversion, CustomType, CustomVersion, Webhook, compile};
pub use condition::{Condition, is_condition_true, set_condition};
pub use groups::{CORE, is_builtin as is_builtin_group};
pub use names::{AcceptedNames, accept_names, established};
pub use scale::ScalePaths;

use tolerance::Tolerance;
use view::View;

/// The group as clients address it: empty where `spec.group` is [`CORE`].
pub fn group(crd: &Value) -> &str {
    match text(crd, &["spec", "group"]) {
        CORE => "",
        group => group,
    }
}

/// The group as names of CRDs end with it: [`CORE`] where `spec.group` is empty and the CRD's
/// name says that this is meant.
fn spelled_group(crd: &Value) -> &str {
    let core = text(crd, &["metadata", "name"]).rsplit('.').next() == Some(CORE);
    match text(crd, &["spec", "group"]) {
        "" if core => CORE,
        group => group,
    }
}

/// Fills in what a CRD leaves out: the singular, the kind of lists, the conversion, the port of a
/// webhook's service, and the stored version of a CRD that has none.
pub fn complete(crd: &mut Value) {
    let storage = View::of(crd).storage_version().map(str::to_owned);
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let empty = |names: &Map<String, Value>, field: &str| {
            names.get(field).and_then(Value::as_str).is_none_or(str::is_empty)
        };
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if empty(names, "singular") && !kind.is_empty() {
            names.insert("singular".into(), kind.to_lowercase().into());
        }
        if empty(names, "listKind") && !kind.is_empty() {
            names.insert("listKind".into(), format!("{kind}List").into());
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".into(), json!({"strategy": "None"}));
    }
    let service = ["conversion", "webhook", "clientConfig", "service"];
    let spec = crd.get_mut("spec");
    let service = service.iter().try_fold(spec, |at, name| Some(at?.get_mut(*name))).flatten();
    if let Some(service) = service.and_then(Value::as_object_mut) {
        service.entry("port").or_insert_with(|| 443.into());
    }
    let stored = crd.pointer("/status/storedVersions").and_then(Value::as_array);
    if let (true, Some(storage)) = (stored.is_none_or(Vec::is_empty), storage) {
        machinery::meta::set(crd, &["status", "storedVersions"], json!([storage]));
    }
}

/// Adds the storage version to `status.storedVersions`, as every write of the spec does.
pub fn record_storage_version(crd: &mut Value) {
    let Some(storage) = View::of(crd).storage_version().map(str::to_owned) else { return };
    let stored = crd.pointer("/status/storedVersions").and_then(Value::as_array);
    let mut stored = stored.cloned().unwrap_or_default();
    if !stored.iter().any(|v| v.as_str() == Some(&storage)) {
        stored.push(storage.into());
        machinery::meta::set(crd, &["status", "storedVersions"], stored.into());
    }
}

/// What is wrong with a new CRD, which has been [completed](complete).
///
/// Of the metadata, only the name's relation to the spec is judged here.
pub fn validate_create(crd: &Value) -> Vec<FieldError> {
    let mut problems = names::validate_own(crd);
    problems.extend(spec::validate(crd, &Tolerance::of_new(), None));
    problems.extend(validate_status(crd));
    problems.extend(versions::validate_stored(crd));
    problems.extend(approval::validate(crd, None));
    problems.extend(validate_preserve(crd, None));
    problems
}

/// What is wrong with the change of a CRD. The new one has been [completed](complete) and has the
/// status of the old one, with the [storage version](record_storage_version) in it.
///
/// Tolerated because the old one has it too: schemas that aren't structural or have wrong types,
/// defaults with unknown fields, sets of objects, keys of maps that may be absent, conversion
/// versions and CA bundles that nobody knows, too many selectable fields, a missing approval.
pub fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut problems = spec::validate(new, &Tolerance::strict(old), Some(old));
    if !problems.is_empty() {
        // Most changes break nothing, and need no look at what the old one breaks.
        problems = spec::validate(new, &Tolerance::of(new, old), Some(old));
    }
    problems.extend(validate_status(new));
    problems.extend(versions::validate_stored(new));
    problems.extend(approval::validate(new, Some(old)));
    problems.extend(validate_preserve(new, Some(old)));
    problems
}

/// What is wrong with a write of a CRD's status.
pub fn validate_status(crd: &Value) -> Vec<FieldError> {
    let names = crd.pointer("/status/acceptedNames").and_then(Value::as_object);
    let at = FieldPath::root("status").child("acceptedNames");
    names.map(|names| names::validate(names, &at)).unwrap_or_default()
}

/// What a writer of a CRD is warned of: formats that no schema of the old one has and nobody
/// knows.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(schema::unrecognized_formats).unwrap_or_default();
    let mut found = schema::unrecognized_formats(new);
    found.retain(|format| !known.contains(format));
    let quoted = found.iter().map(|format| machinery::field::go_quote(format));
    quoted.map(|format| format!("unrecognized format {format}")).collect()
}

/// All fields of objects may no longer be kept by one switch for the whole CRD.
fn validate_preserve(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let on = |crd: &Value| crd.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true));
    let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
               spec.versions[*].schema instead";
    let path = FieldPath::root("spec").child("preserveUnknownFields");
    (on(crd) && !old.is_some_and(on)).then(|| FieldError::invalid(&path, &Value::Bool(true), why))
}

/// The text at a path; empty if there is none.
fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    machinery::meta::get_str(value, path).unwrap_or_default()
}

#[cfg(test)]
mod tests;
