//! Cells of Jobs, autoscalers, revisions and nodes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use machinery::time::Time;
use serde_json::Value;

use super::{NONE, at, get, has_condition, items, number, str_at};
use crate::table::age;

const UNKNOWN: &str = "<unknown>";

/// How many metrics of an autoscaler a cell shows.
const METRICS_SHOWN: usize = 2;

pub(super) fn job_status(job: &Value) -> String {
    let deleted = get(at(job, "metadata"), "deletionTimestamp").is_some();
    let steps = [
        ("Complete", has_condition(job, "Complete")),
        ("Failed", has_condition(job, "Failed")),
        ("Terminating", deleted),
        ("Suspended", has_condition(job, "Suspended")),
        ("FailureTarget", has_condition(job, "FailureTarget")),
        ("SuccessCriteriaMet", has_condition(job, "SuccessCriteriaMet")),
    ];
    steps.iter().find(|(_, holds)| *holds).map_or("Running", |(name, _)| name).to_owned()
}

pub(super) fn job_completions(job: &Value) -> String {
    let (spec, done) = (at(job, "spec"), number(at(job, "status"), "succeeded"));
    match (get(spec, "completions").and_then(Value::as_i64), number(spec, "parallelism")) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, parallelism @ 2..) => format!("{done}/1 of {parallelism}"),
        (None, _) => format!("{done}/1"),
    }
}

pub(super) fn job_duration(job: &Value, now: Timestamp) -> String {
    let time = |name: &str| {
        let text = at(at(job, "status"), name).as_str()?;
        Time::parse(text).ok().map(|time| time.timestamp())
    };
    let Some(start) = time("startTime") else { return String::new() };
    let end = time("completionTime").unwrap_or(now);
    age::human_duration(end.as_millisecond().saturating_sub(start.as_millisecond()) / 1000)
}

pub(super) fn suspended(job: &Value) -> String {
    match at(at(job, "spec"), "suspend").as_bool() {
        None => "<unset>",
        Some(true) => "True",
        Some(false) => "False",
    }
    .to_owned()
}

pub(super) fn revision_controller(object: &Value) -> String {
    let owners = items(at(at(object, "metadata"), "ownerReferences"));
    let Some(owner) = owners.iter().find(|o| at(o, "controller").as_bool() == Some(true)) else {
        return NONE.to_owned();
    };
    let (kind, name) = (str_at(owner, "kind"), str_at(owner, "name"));
    match str_at(owner, "apiVersion").split_once('/') {
        _ if kind.is_empty() => name.to_owned(),
        None => format!("{}/{name}", kind.to_lowercase()),
        Some((group, _)) => format!("{}.{group}/{name}", kind.to_lowercase()),
    }
}

pub(super) fn scale_target(hpa: &Value) -> String {
    let target = at(at(hpa, "spec"), "scaleTargetRef");
    format!("{}/{}", str_at(target, "kind"), str_at(target, "name"))
}

/// What an autoscaler measures against what it wants, as `cpu: 30%/80%`.
pub(super) fn metrics(hpa: &Value) -> String {
    let (spec, status) = (at(hpa, "spec"), at(hpa, "status"));
    if let Some(wanted) = get(spec, "targetCPUUtilizationPercentage") {
        // autoscaling/v1 has fields for the processor's load alone.
        let current = percent(get(status, "currentCPUUtilizationPercentage"), UNKNOWN);
        return format!("cpu: {current}/{}", percent(Some(wanted), UNKNOWN));
    }
    let (wanted, seen) = (items(at(spec, "metrics")), items(at(status, "currentMetrics")));
    if wanted.is_empty() {
        return NONE.to_owned();
    }
    let shown = wanted.iter().enumerate().take(METRICS_SHOWN);
    let texts = shown.map(|(at, metric)| one_metric(metric, seen.get(at))).collect::<Vec<_>>();
    let text = texts.join(", ");
    match wanted.len() - texts.len() {
        0 => text,
        more => format!("{text} + {more} more..."),
    }
}

fn one_metric(metric: &Value, seen: Option<&Value>) -> String {
    let source = match str_at(metric, "type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = at(metric, source);
    let target = at(wanted, "target");
    let current = seen.and_then(|seen| get(seen, source)).map(|seen| at(seen, "current"));
    let amount = |name: &str| {
        // What was measured, but not in this way, is shown as no amount at all.
        let text = |current| get(current, name).and_then(Value::as_str).unwrap_or("0");
        current.map_or(UNKNOWN, text)
    };
    let average = get(target, "averageValue").and_then(Value::as_str);
    match (source, average) {
        ("pods", _) => format!("{}/{}", amount("averageValue"), average.unwrap_or("0")),
        ("external" | "object", Some(average)) => {
            let known = current.and_then(|c| get(c, "averageValue")).and_then(Value::as_str);
            format!("{}/{average} (avg)", known.unwrap_or(UNKNOWN))
        }
        ("external" | "object", None) => {
            let value = get(target, "value").and_then(Value::as_str).unwrap_or("0");
            format!("{}/{value}", amount("value"))
        }
        (_, Some(average)) => {
            format!("{}: {}/{average}", str_at(wanted, "name"), amount("averageValue"))
        }
        (_, None) => {
            let load = current.and_then(|c| get(c, "averageUtilization"));
            let target = percent(get(target, "averageUtilization"), "<auto>");
            format!("{}: {}/{target}", str_at(wanted, "name"), percent(load, UNKNOWN))
        }
    }
}

fn percent(value: Option<&Value>, absent: &str) -> String {
    value.and_then(Value::as_i64).map_or_else(|| absent.to_owned(), |n| format!("{n}%"))
}

pub(super) fn node_status(node: &Value) -> String {
    let conditions = items(at(at(node, "status"), "conditions"));
    let ready = conditions.iter().rfind(|c| str_at(c, "type") == "Ready");
    let text = match ready.map(|c| str_at(c, "status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    match at(at(node, "spec"), "unschedulable").as_bool() {
        Some(true) => format!("{text},SchedulingDisabled"),
        _ => text.to_owned(),
    }
}

pub(super) fn node_roles(node: &Value) -> String {
    let labels = at(at(node, "metadata"), "labels").as_object();
    let role = |(key, value): (&'_ String, &'_ Value)| {
        let role = match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => role,
            None if key == "kubernetes.io/role" => value.as_str().unwrap_or_default(),
            None => "",
        };
        (!role.is_empty()).then(|| role.to_owned())
    };
    let roles: BTreeSet<String> = labels.into_iter().flatten().filter_map(role).collect();
    match roles.into_iter().collect::<Vec<_>>().join(",") {
        none if none.is_empty() => NONE.to_owned(),
        roles => roles,
    }
}

pub(super) fn node_kernel(node: &Value) -> String {
    let info = at(at(node, "status"), "nodeInfo");
    let kernel = match str_at(info, "kernelVersion") {
        "" => UNKNOWN,
        kernel => kernel,
    };
    match str_at(info, "architecture") {
        "" => kernel.to_owned(),
        architecture => format!("{kernel} ({architecture})"),
    }
}
