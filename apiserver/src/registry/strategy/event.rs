//! Events, in both of their forms.
//!
//! Upstream judges an event of core/v1 without `eventTime` by the old, lenient rules, and all
//! others by the strict ones.

use machinery::meta::{get, get_i64, get_str, set};
use machinery::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::Strategy;
use crate::registry::Context;

#[derive(Debug)]
pub(super) struct CoreEvents;

#[derive(Debug)]
pub(super) struct Events;

impl Strategy for CoreEvents {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut problems = namespace_problems(object, "involvedObject");
        if get(object, &["eventTime"]).is_some_and(|time| !time.is_null()) {
            let names = Names { controller: "reportingController", instance: "reportingInstance" };
            problems.extend(strict(object, &names, "reportingComponent", "message"));
        }
        problems
    }
}

impl Strategy for Events {
    fn prepare_create(&self, object: &mut Value, ctx: &Context) {
        if get(object, &["eventTime"]).is_some_and(Value::is_null) {
            let now = machinery::time::MicroTime::at(ctx.now).to_string();
            set(object, &["eventTime"], json!(now));
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut problems = namespace_problems(object, "regarding");
        if get(object, &["eventTime"]).is_none_or(Value::is_null) {
            problems.push(FieldError::required(&FieldPath::root("eventTime"), ""));
        }
        let names = Names { controller: "reportingController", instance: "reportingInstance" };
        problems.extend(strict(object, &names, "reportingController", "note"));
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

struct Names {
    controller: &'static str,
    instance: &'static str,
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
    vec![FieldError::invalid(&path, &json!(involved), "does not match event.namespace")]
}

fn strict(object: &Value, names: &Names, controller: &str, note: &str) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let mut required = |field: &str, shown: &str, most: usize| {
        let text = get_str(object, &[field]).unwrap_or_default();
        let path = FieldPath::root(shown);
        if text.is_empty() {
            problems.push(FieldError::required(&path, ""));
        } else if text.len() > most {
            let why = format!("can have at most {most} characters");
            problems.push(FieldError::invalid(&path, &json!(""), why));
        }
    };
    required(controller, names.controller, usize::MAX);
    required(names.instance, names.instance, 128);
    required("action", "action", 128);
    required("reason", "reason", 128);
    if let Some(text) = get_str(object, &[note])
        && text.len() > 1024
    {
        let why = "can have at most 1024 characters";
        problems.push(FieldError::invalid(&FieldPath::root("message"), &json!(""), why));
    }
    let kind = get_str(object, &["type"]).unwrap_or_default();
    if !matches!(kind, "Normal" | "Warning") {
        let why = "has invalid value: ".to_owned() + kind;
        problems.push(FieldError::invalid(&FieldPath::root("type"), &json!(""), why));
    }
    if get(object, &["series"]).is_some_and(|series| !series.is_null()) {
        let path = FieldPath::root("series");
        let count = get_i64(object, &["series", "count"]).unwrap_or(0);
        if count < 2 {
            let why = "should be at least 2";
            problems.push(FieldError::invalid(&path.child("count"), &json!(""), why));
        }
        if get(object, &["series", "lastObservedTime"]).is_none_or(Value::is_null) {
            problems.push(FieldError::required(&path.child("lastObservedTime"), ""));
        }
    }
    problems
}
