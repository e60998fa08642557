//! Cells of events, in both of their APIs.

use jiff::Timestamp;
use serde_json::Value;

use super::{at, str_at};
use crate::table::age;

/// The first member of these names that isn't null: the two event APIs differ in names.
fn either<'v>(value: &'v Value, names: &[&str]) -> &'v Value {
    names.iter().map(|name| at(value, name)).find(|v| !v.is_null()).unwrap_or(&Value::Null)
}

pub(super) fn first_seen(object: &Value, now: Timestamp) -> String {
    let names = ["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"];
    age::since(Some(either(object, &names)), now)
}

pub(super) fn last_seen(object: &Value, now: Timestamp) -> String {
    if let Some(series) = object.get("series") {
        return age::since(series.get("lastObservedTime"), now);
    }
    match either(object, &["lastTimestamp", "deprecatedLastTimestamp"]) {
        Value::Null => first_seen(object, now),
        time => age::since(Some(time), now),
    }
}

pub(super) fn about(object: &Value) -> String {
    let object = either(object, &["involvedObject", "regarding"]);
    let kind = str_at(object, "kind").to_lowercase();
    match str_at(object, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

pub(super) fn source(object: &Value) -> String {
    let reporter = either(object, &["source", "deprecatedSource"]);
    let first = |in_source: &str, names: &[&str]| match str_at(reporter, in_source) {
        "" => either(object, names).as_str().unwrap_or_default().to_owned(),
        text => text.to_owned(),
    };
    let component = first("component", &["reportingComponent", "reportingController"]);
    match first("host", &["reportingInstance"]) {
        host if host.is_empty() => component,
        host => format!("{component}, {host}"),
    }
}

pub(super) fn count(object: &Value) -> i64 {
    if let Some(series) = object.get("series") {
        return at(series, "count").as_i64().unwrap_or_default();
    }
    // Events of the newer API carry no count.
    match either(object, &["count", "deprecatedCount"]).as_i64().unwrap_or_default() {
        0 => 1,
        seen => seen,
    }
}

pub(super) fn message(object: &Value) -> String {
    either(object, &["message", "note"]).as_str().unwrap_or_default().trim().to_owned()
}
