//! The parameters of operations.

use serde_json::{Value, json};

pub(super) fn path_parameter(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "in": "path",
        "description": description,
        "required": true,
        "schema": {"type": "string", "uniqueItems": true},
    })
}

pub(super) fn query(name: &str, kind: &str, description: &str) -> Value {
    json!({
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": kind, "uniqueItems": true},
    })
}

/// Stands among the path's own parameters already.
pub(super) fn is_pretty(parameter: &Value) -> bool {
    parameter.get("name").is_some_and(|name| name == "pretty")
}

pub(super) fn list_parameters() -> Vec<Value> {
    [
        ("allowWatchBookmarks", "boolean", "Whether a watch may hold bookmarks."),
        ("continue", "string", "The token of the next page, from the page before."),
        ("fieldSelector", "string", "Conditions on fields."),
        ("labelSelector", "string", "Conditions on labels."),
        ("limit", "integer", "The largest number of objects in one page."),
        ("pretty", "string", "If 'true', the output is indented."),
        ("resourceVersion", "string", "The state to read, or to watch from."),
        ("resourceVersionMatch", "string", "How exactly resourceVersion is meant."),
        ("sendInitialEvents", "boolean", "Whether a watch begins with the current objects."),
        ("timeoutSeconds", "integer", "How long the request may last."),
        ("watch", "boolean", "Stream changes instead of listing."),
    ]
    .map(|(name, kind, description)| query(name, kind, description))
    .into()
}

pub(super) fn write_parameters() -> Vec<Value> {
    [
        ("dryRun", "string", "With 'All', do everything except storing the result."),
        ("fieldManager", "string", "Who makes the change, for the ownership of fields."),
        ("fieldValidation", "string", "Unknown and duplicate fields: Ignore, Warn or Strict."),
    ]
    .map(|(name, kind, description)| query(name, kind, description))
    .into()
}

pub(super) fn delete_parameters() -> Vec<Value> {
    [
        ("dryRun", "string", "With 'All', do everything except deleting."),
        ("gracePeriodSeconds", "integer", "How long to wait before the object goes."),
        ("orphanDependents", "boolean", "Replaced by propagationPolicy."),
        ("propagationPolicy", "string", "Dependents: Orphan, Background or Foreground."),
    ]
    .map(|(name, kind, description)| query(name, kind, description))
    .into()
}
