//! Defaults that compute something, named in `data/defaults.json`.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machinery::quantity::Quantity;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A default that is more than a value.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Function {
    /// A Secret's `stringData` goes into `data`.
    MergeStringData,
    /// A LimitRange item for containers derives `default` from `max`, and `defaultRequest` from
    /// `default` and then `min`; amounts are rounded up to thousandths.
    LimitRangeItem,
}

// === impl Function ===

impl Function {
    pub(super) fn run(self, object: &mut Map<String, Value>) {
        match self {
            Self::MergeStringData => merge_string_data(object),
            Self::LimitRangeItem => limit_range_item(object),
        }
    }
}

fn merge_string_data(object: &mut Map<String, Value>) {
    let Some(Value::Object(texts)) = object.remove("stringData") else { return };
    if texts.is_empty() {
        return;
    }
    let data = object.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(data) = data {
        for (key, text) in texts {
            let bytes = STANDARD.encode(text.as_str().unwrap_or_default());
            data.insert(key, Value::String(bytes));
        }
    }
}

/// Amounts of a LimitRange item, in the order in which they are filled.
const AMOUNTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

fn limit_range_item(object: &mut Map<String, Value>) {
    if object.get("type").and_then(Value::as_str) == Some("Container") {
        fill(object, "default", "max");
        fill(object, "defaultRequest", "default");
        fill(object, "defaultRequest", "min");
    }
    for name in AMOUNTS {
        if let Some(Value::Object(amounts)) = object.get_mut(name) {
            amounts.values_mut().for_each(round_up);
        }
    }
}

/// Adds to the amounts `target` those of `source` that it lacks.
fn fill(object: &mut Map<String, Value>, target: &str, source: &str) {
    let Some(Value::Object(source)) = object.get(source) else { return };
    let source = source.clone();
    if source.is_empty() {
        return;
    }
    let target = object.entry(target).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(target) = target {
        for (name, amount) in source {
            target.entry(name).or_insert(amount);
        }
    }
}

fn round_up(value: &mut Value) {
    let Some(quantity) = value.as_str().and_then(|text| Quantity::from_str(text).ok()) else {
        return;
    };
    let Some(milli) = quantity.milli_value() else { return };
    let rounded = Quantity::from_milli(milli, quantity.notation());
    if rounded != quantity {
        *value = Value::String(rounded.to_string());
    }
}
