//! `HorizontalPodAutoscaler` in its two versions: the one type of Kubernetes' own whose versions differ
//! in their fields and that clusters serve in both.
//!
//! What `autoscaling/v1` has no fields for is in annotations there, as a real kube-apiserver writes them,
//! so an object passes through that version without loss.
//!
//! Invariant: any value is converted to something, without panic; what isn't of the expected form stays
//! where it is, and is the schema's to refuse or to drop.

use machinery::meta::{get, get_str, remove, set};
use serde_json::{Map, Value, json};

use super::moved;

/// The percentage of `autoscaling/v1` where none is given.
const DEFAULT_UTILIZATION: i64 = 80;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// Whether the metric is wanted or measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Spec,
    Status,
}

/// Names of a metric's fields in v1 and in v2, by its kind.
type Names = &'static [(&'static str, &'static str)];

const RESOURCE: [Names; 2] = [
    &[
        ("targetAverageUtilization", "target.averageUtilization"),
        ("targetAverageValue", "target.averageValue"),
    ],
    &[
        ("currentAverageUtilization", "current.averageUtilization"),
        ("currentAverageValue", "current.averageValue"),
    ],
];

const KINDS: [(&str, [Names; 2]); 5] = [
    ("resource", RESOURCE),
    ("containerResource", RESOURCE),
    (
        "pods",
        [
            &[
                ("metricName", "metric.name"),
                ("selector", "metric.selector"),
                ("targetAverageValue", "target.averageValue"),
            ],
            &[
                ("metricName", "metric.name"),
                ("selector", "metric.selector"),
                ("currentAverageValue", "current.averageValue"),
            ],
        ],
    ),
    (
        "object",
        [
            &[
                ("target", "describedObject"),
                ("metricName", "metric.name"),
                ("selector", "metric.selector"),
                ("targetValue", "target.value"),
                ("averageValue", "target.averageValue"),
            ],
            &[
                ("target", "describedObject"),
                ("metricName", "metric.name"),
                ("selector", "metric.selector"),
                ("currentValue", "current.value"),
                ("averageValue", "current.averageValue"),
            ],
        ],
    ),
    (
        "external",
        [
            &[
                ("metricName", "metric.name"),
                ("metricSelector", "metric.selector"),
                ("targetValue", "target.value"),
                ("targetAverageValue", "target.averageValue"),
            ],
            &[
                ("metricName", "metric.name"),
                ("metricSelector", "metric.selector"),
                ("currentValue", "current.value"),
                ("currentAverageValue", "current.averageValue"),
            ],
        ],
    ),
];

/// Turns an autoscaler of one version into one of another; other versions are left alone.
pub(super) fn convert(value: &mut Value, from: &str, to: &str) {
    match (from, to) {
        ("v1", "v2") => to_v2(value),
        ("v2", "v1") => to_v1(value),
        _ => return,
    }
    let annotations = ["metadata", "annotations"];
    if get(value, &annotations).and_then(Value::as_object).is_some_and(Map::is_empty) {
        remove(value, &annotations);
    }
}

fn to_v1(value: &mut Value) {
    let metrics = list(remove(value, &["spec", "metrics"]));
    let (load, others): (Vec<_>, Vec<_>) =
        metrics.into_iter().partition(|metric| utilization(metric, Side::Spec).is_some());
    // Of several the last counts.
    if let Some(percent) = load.last().and_then(|metric| utilization(metric, Side::Spec)) {
        set(value, &["spec", "targetCPUUtilizationPercentage"], percent.clone());
    }
    let behavior = remove(value, &["spec", "behavior"]);
    let current = list(remove(value, &["status", "currentMetrics"]));
    let percent = current.iter().find_map(|metric| utilization(metric, Side::Status)).cloned();
    if let Some(percent) = percent {
        set(value, &["status", "currentCPUUtilizationPercentage"], percent);
    }
    let conditions = remove(value, &["status", "conditions"]);
    for name in [METRICS, BEHAVIOR, CURRENT_METRICS, CONDITIONS] {
        remove(value, &["metadata", "annotations", name]);
    }
    let older = |side| move |metric| metric_to_v1(metric, side);
    note(value, METRICS, others.into_iter().map(older(Side::Spec)).collect());
    note(value, CURRENT_METRICS, current.into_iter().map(older(Side::Status)).collect());
    note(value, CONDITIONS, list(conditions));
    if let Some(behavior) = behavior {
        annotate(value, BEHAVIOR, &with_keys(behavior, capital));
    }
}

fn to_v2(value: &mut Value) {
    let newer = |side| move |metric| metric_to_v2(metric, side);
    let mut metrics: Vec<_> =
        list(noted(value, METRICS)).into_iter().map(newer(Side::Spec)).collect();
    let percent = remove(value, &["spec", "targetCPUUtilizationPercentage"]);
    if let Some(percent) = percent {
        metrics.push(load(Side::Spec, &percent));
    } else if metrics.is_empty() && value.get("spec").is_some_and(Value::is_object) {
        metrics.push(load(Side::Spec, &json!(DEFAULT_UTILIZATION)));
    }
    if !metrics.is_empty() {
        set(value, &["spec", "metrics"], Value::Array(metrics));
    }
    if let Some(behavior) = noted(value, BEHAVIOR) {
        set(value, &["spec", "behavior"], with_keys(behavior, small));
    }
    let percent = remove(value, &["status", "currentCPUUtilizationPercentage"]);
    let mut current: Vec<_> =
        list(noted(value, CURRENT_METRICS)).into_iter().map(newer(Side::Status)).collect();
    // What was noted tells more.
    if let (Some(percent), true) = (percent, current.is_empty()) {
        current.push(load(Side::Status, &percent));
    }
    if !current.is_empty() {
        set(value, &["status", "currentMetrics"], Value::Array(current));
    }
    if let Some(conditions) = noted(value, CONDITIONS) {
        set(value, &["status", "conditions"], conditions);
    }
}

/// The percentage of a metric of the processor's load, in v2.
fn utilization(metric: &Value, side: Side) -> Option<&Value> {
    let amount = if side == Side::Spec { "target" } else { "current" };
    let is_load = get_str(metric, &["type"]) == Some("Resource")
        && get_str(metric, &["resource", "name"]) == Some("cpu");
    get(metric, &["resource", amount, "averageUtilization"])
        .filter(|found| is_load && found.is_number())
}

/// The metric of the processor's load, in v2.
fn load(side: Side, percent: &Value) -> Value {
    let amount = match side {
        Side::Spec => json!({"target": {"type": "Utilization", "averageUtilization": percent}}),
        Side::Status => json!({"current": {"averageUtilization": percent}}),
    };
    let mut metric = json!({"type": "Resource", "resource": amount});
    metric["resource"]["name"] = json!("cpu");
    metric
}

fn metric_to_v1(mut metric: Value, side: Side) -> Value {
    for (kind, names) in KINDS {
        let Some(source) = metric.get_mut(kind).filter(|source| source.is_object()) else {
            continue;
        };
        let names = names[side as usize].iter().map(|(v1, v2)| (*v2, *v1));
        let mut older = moved(source.take(), names);
        // The parts that they were in, unless one is a field of v1.
        for part in ["metric", "current"] {
            remove(&mut older, &[part]);
        }
        if kind != "object" {
            remove(&mut older, &["target"]);
        }
        metric[kind] = older;
    }
    metric
}

fn metric_to_v2(mut metric: Value, side: Side) -> Value {
    for (kind, names) in KINDS {
        let Some(source) = metric.get_mut(kind).filter(|source| source.is_object()) else {
            continue;
        };
        let mut newer = moved(source.take(), names[side as usize].iter().copied());
        if side == Side::Spec {
            let of = |field: &str| get(&newer, &["target", field]).is_some();
            let target = if of("averageUtilization") {
                "Utilization"
            } else if of("averageValue") {
                "AverageValue"
            } else {
                "Value"
            };
            if target != "Value" && get_str(&newer, &["target", "value"]) == Some("0") {
                // v1 can't leave it out.
                remove(&mut newer, &["target", "value"]);
            }
            set(&mut newer, &["target", "type"], json!(target));
        }
        metric[kind] = newer;
    }
    metric
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn note(value: &mut Value, name: &str, items: Vec<Value>) {
    if !items.is_empty() {
        annotate(value, name, &Value::Array(items));
    }
}

fn annotate(value: &mut Value, name: &str, content: &Value) {
    set(value, &["metadata", "annotations", name], json!(content.to_string()));
}

/// What an annotation holds, which is taken off; `None` if it isn't there or can't be read.
fn noted(value: &mut Value, name: &str) -> Option<Value> {
    let text = remove(value, &["metadata", "annotations", name])?;
    serde_json::from_str(text.as_str()?).ok()
}

/// The value with other names of all fields. Values nest as deep as a parser lets them.
fn with_keys(value: Value, name: fn(&str) -> String) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(
                fields
                    .map(|(key, value)| (name(&key), with_keys(value, name)))
                    .collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| with_keys(item, name)).collect())
        }
        other => other,
    }
}

fn capital(name: &str) -> String {
    first(name, |letter| letter.to_ascii_uppercase())
}

fn small(name: &str) -> String {
    first(name, |letter| letter.to_ascii_lowercase())
}

fn first(name: &str, change: fn(char) -> char) -> String {
    let mut letters = name.chars();
    letters.next().map(change).into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests;
