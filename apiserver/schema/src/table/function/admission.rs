//! Cells of admission policies and of APIServices.

use std::fmt::Write as _;

use serde_json::Value;

use super::{ENDLESS, at, str_at, strings};

pub(super) fn param_ref(spec: &Value) -> String {
    let Some(param) = spec.get("paramRef") else { return "<unset>".to_owned() };
    match (str_at(param, "namespace"), str_at(param, "name")) {
        ("", "") => match param.get("selector") {
            None => "<unset>".to_owned(),
            Some(labels) => printed_selector(labels),
        },
        (_, "") => "<unset>".to_owned(),
        // A name without namespace may mean any namespace, or a parameter without one.
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// A label selector as Go prints the struct, which is what upstream shows here.
fn printed_selector(labels: &Value) -> String {
    let mut text = String::from("&LabelSelector{MatchLabels:map[string]string{");
    for (key, value) in at(labels, "matchLabels").as_object().into_iter().flatten() {
        write!(text, "{key}: {},", value.as_str().unwrap_or_default()).expect(ENDLESS);
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for rule in at(labels, "matchExpressions").as_array().into_iter().flatten() {
        let values: Vec<&str> = strings(at(rule, "values")).collect();
        let (key, operator) = (str_at(rule, "key"), str_at(rule, "operator"));
        let values = values.join(" ");
        write!(
            text,
            "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
        )
        .expect(ENDLESS);
    }
    text.push_str("},}");
    text
}

pub(super) fn available(object: &Value) -> String {
    let conditions = at(at(object, "status"), "conditions").as_array();
    let condition = conditions.into_iter().flatten().find(|c| str_at(c, "type") == "Available");
    let Some(condition) = condition else { return "Unknown".to_owned() };
    match (str_at(condition, "status"), str_at(condition, "reason")) {
        ("True", _) => "True".to_owned(),
        (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}
