//! LimitRanges: bounds that contain each other.

use machinery::meta::{get, get_str};
use machinery::quantity::Quantity;
use machinery::{FieldError, FieldPath};
use serde_json::{Map, Value, json};

use super::Strategy;

#[derive(Debug)]
pub(super) struct LimitRanges;

impl Strategy for LimitRanges {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let limits = get(object, &["spec", "limits"]).and_then(Value::as_array);
        let path = FieldPath::root("spec").child("limits");
        let mut problems = Vec::new();
        let mut seen = Vec::new();
        for (index, limit) in limits.into_iter().flatten().enumerate() {
            let path = path.index(index);
            let kind = get_str(limit, &["type"]).unwrap_or_default();
            if kind.is_empty() {
                problems.push(FieldError::required(&path.child("type"), ""));
            }
            if seen.contains(&kind) {
                problems.push(FieldError::duplicate(&path.child("type"), &json!(kind)));
            }
            seen.push(kind);
            problems.extend(item(limit, kind, &path));
        }
        problems
    }
}

fn item(limit: &Value, kind: &str, path: &FieldPath) -> Vec<FieldError> {
    let empty = Map::new();
    let list = |field: &str| get(limit, &[field]).and_then(Value::as_object).unwrap_or(&empty);
    let mut problems = Vec::new();
    if kind == "Pod" {
        for field in ["default", "defaultRequest"] {
            if !list(field).is_empty() {
                let why = "may not be specified when `type` is 'Pod'";
                problems.push(FieldError::forbidden(&path.child(field), why));
            }
        }
    }
    if kind == "PersistentVolumeClaim"
        && !list("min").contains_key("storage")
        && !list("max").contains_key("storage")
    {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        problems.push(FieldError::required(&path.child("limits"), why));
    }
    // Each must not be above the next ones, for every resource that both name.
    let order = ["min", "defaultRequest", "default", "max"];
    for (at, lower) in order.iter().enumerate() {
        for upper in order.iter().skip(at + 1) {
            for (resource, low) in list(lower) {
                let Some(high) = list(upper).get(resource) else {
                    continue;
                };
                let (Some(low_value), Some(high_value)) = (quantity(low), quantity(high)) else {
                    continue;
                };
                if low_value > high_value {
                    let path = path.child(lower).key(resource);
                    let names = (spoken(lower), spoken(upper));
                    let (low, high) = (text(low), text(high));
                    let why =
                        format!("{} value {low} is greater than {} value {high}", names.0, names.1);
                    problems.push(FieldError::invalid(&path, &json!(low), why));
                }
            }
        }
    }
    let ratio = FieldPath::child(path, "maxLimitRequestRatio");
    for (resource, value) in list("maxLimitRequestRatio") {
        if quantity(value).is_some_and(|value| Quantity::parse("1").is_ok_and(|one| value < one)) {
            let why = format!("ratio {} is less than 1", text(value));
            problems.push(FieldError::invalid(&ratio.key(resource), &json!(text(value)), why));
        }
    }
    problems
}

fn spoken(field: &str) -> &str {
    match field {
        "defaultRequest" => "default request",
        other => other,
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::parse(&text(value)).ok()
}
