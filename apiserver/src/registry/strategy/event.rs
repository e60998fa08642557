//! Events, in both of their forms.
//!
//! Upstream judges an event of core/v1 without `eventTime` by the old, lenient rules, and all
//! others by the strict ones.

use machinery::meta::{get, get_i64, get_str};
use machinery::{FieldError, FieldPath, name};
use serde_json::Value;

use super::Strategy;

#[derive(Debug)]
pub(super) struct CoreEvents;

#[derive(Debug)]
pub(super) struct Events;

impl Strategy for CoreEvents {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let names = Names { about: "involvedObject", controller: "reportingComponent" };
        of_both(object, &names, "message")
    }
}

impl Strategy for Events {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let names = Names { about: "regarding", controller: "reportingController" };
        let mut problems = of_both(object, &names, "note");
        problems.extend(series(object));
        problems
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut problems = Vec::new();
        if is_unset(object, "eventTime") {
            problems.push(FieldError::required(&FieldPath::root("eventTime"), ""));
        }
        let kind = get_str(object, &["type"]).unwrap_or_default();
        if !matches!(kind, "Normal" | "Warning") {
            let why = format!("has invalid value: {kind}");
            problems.push(FieldError::invalid_str(&FieldPath::root("type"), "", why));
        }
        for (field, shown) in [
            ("deprecatedFirstTimestamp", "firstTimestamp"),
            ("deprecatedLastTimestamp", "lastTimestamp"),
            ("deprecatedCount", "count"),
            ("deprecatedSource", "source"),
        ] {
            if !is_unset(object, field) {
                let path = FieldPath::root(shown);
                problems.push(FieldError::invalid_str(&path, "", "needs to be unset"));
            }
        }
        problems
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let fixed = [
            "regarding",
            "note",
            "reason",
            "action",
            "related",
            "type",
            "eventTime",
            "reportingController",
            "reportingInstance",
            "deprecatedSource",
            "deprecatedFirstTimestamp",
            "deprecatedLastTimestamp",
            "deprecatedCount",
        ];
        fixed
            .into_iter()
            .filter(|field| get(new, &[field]) != get(old, &[field]))
            .map(|field| {
                let value = get(new, &[field]).cloned().unwrap_or_default();
                FieldError::invalid(&FieldPath::root(field), &value, "field is immutable")
            })
            .collect()
    }
}

/// What the two forms call the same.
struct Names {
    about: &'static str,
    controller: &'static str,
}

/// The rules of both forms. Events without a time of their own are old: only their namespace is
/// judged.
fn of_both(object: &Value, names: &Names, note: &str) -> Vec<FieldError> {
    let mut problems = namespace_problems(object, names.about);
    if is_unset(object, "eventTime") {
        return problems;
    }
    let text = |field: &str| get_str(object, &[field]).unwrap_or_default();
    let path = FieldPath::root(names.controller);
    let controller = text(names.controller);
    if controller.is_empty() {
        problems.push(FieldError::required(&path, ""));
    }
    let unqualified = name::qualified_name(controller).into_iter();
    problems.extend(unqualified.map(|why| FieldError::invalid_str(&path, controller, why)));
    for field in ["reportingInstance", "action", "reason"] {
        let path = FieldPath::root(field);
        if text(field).is_empty() {
            problems.push(FieldError::required(&path, ""));
        }
        problems.extend(too_long(&path, text(field), 128));
    }
    problems.extend(too_long(&FieldPath::root("message"), text(note), 1024));
    problems
}

fn too_long(path: &FieldPath, text: &str, most: usize) -> Option<FieldError> {
    let why = format!("can have at most {most} characters");
    (text.len() > most).then(|| FieldError::invalid_str(path, "", why))
}

fn series(object: &Value) -> Vec<FieldError> {
    let mut problems = Vec::new();
    if is_unset(object, "series") {
        return problems;
    }
    let path = FieldPath::root("series");
    if get_i64(object, &["series", "count"]).unwrap_or(0) < 2 {
        let why = "should be at least 2";
        problems.push(FieldError::invalid_str(&path.child("count"), "", why));
    }
    if get(object, &["series", "lastObservedTime"]).is_none_or(Value::is_null) {
        problems.push(FieldError::required(&path.child("lastObservedTime"), ""));
    }
    problems
}

/// Whether a field is absent or has Go's zero value.
fn is_unset(object: &Value, field: &str) -> bool {
    match get(object, &[field]) {
        None | Some(Value::Null) => true,
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(value) => *value == 0,
    }
}

/// The event lives where the object does that it is about; for one without a namespace in
/// `default` (or, since 1.8, anywhere in `kube-system`).
fn namespace_problems(object: &Value, about: &str) -> Vec<FieldError> {
    let namespace = get_str(object, &["metadata", "namespace"]).unwrap_or_default();
    let involved = get_str(object, &[about, "namespace"]).unwrap_or_default();
    let fits = match involved {
        "" => matches!(namespace, "default" | "kube-system"),
        involved => involved == namespace,
    };
    if fits {
        return Vec::new();
    }
    let path = FieldPath::root("involvedObject").child("namespace");
    vec![FieldError::invalid_str(&path, involved, "does not match event.namespace")]
}
