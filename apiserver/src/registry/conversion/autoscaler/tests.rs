use proptest::prelude::*;

use super::*;

fn converted(mut value: Value, from: &str, to: &str) -> Value {
    convert(&mut value, from, to);
    value
}

fn newer() -> Value {
    let load = json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50},
    }});
    let others = json!([
        {"type": "Resource", "resource": {
            "name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"},
        }},
        {"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": "web",
            "target": {"type": "Utilization", "averageUtilization": 60},
        }},
        {"type": "Pods", "pods": {
            "metric": {"name": "hits", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "10"},
        }},
        {"type": "Object", "object": {
            "describedObject": {"kind": "Ingress", "name": "web", "apiVersion": "networking.k8s.io/v1"},
            "metric": {"name": "rate"}, "target": {"type": "Value", "value": "2k"},
        }},
        {"type": "External", "external": {
            "metric": {"name": "queue", "selector": {"matchLabels": {"q": "w"}}},
            "target": {"type": "AverageValue", "averageValue": "30"},
        }},
    ]);
    let mut metrics = others.as_array().unwrap().clone();
    metrics.push(load);
    json!({
        "metadata": {"name": "h", "annotations": {"own": "kept"}},
        "spec": {
            "minReplicas": 1, "maxReplicas": 3, "metrics": metrics,
            "behavior": {"scaleDown": {
                "stabilizationWindowSeconds": 60,
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}],
            }},
        },
        "status": {
            "currentReplicas": 2, "desiredReplicas": 2,
            "currentMetrics": [
                {"type": "Resource", "resource": {
                    "name": "cpu", "current": {"averageUtilization": 20, "averageValue": "5m"},
                }},
                {"type": "Object", "object": {
                    "describedObject": {"kind": "Ingress", "name": "web"},
                    "metric": {"name": "rate"}, "current": {"value": "1k"},
                }},
            ],
            "conditions": [{"type": "AbleToScale", "status": "True"}],
        },
    })
}

#[test]
fn what_v1_lacks_is_in_annotations() {
    let older = converted(newer(), "v2", "v1");
    assert_eq!(
        older["spec"],
        json!({"minReplicas": 1, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50})
    );
    assert_eq!(
        older["status"],
        json!({"currentReplicas": 2, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 20})
    );
    let note = |name: &str| -> Value {
        serde_json::from_str(older["metadata"]["annotations"][name].as_str().unwrap()).unwrap()
    };
    assert_eq!(
        note(METRICS),
        json!([
            {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
            {"type": "ContainerResource", "containerResource": {
                "name": "cpu", "container": "web", "targetAverageUtilization": 60,
            }},
            {"type": "Pods", "pods": {
                "metricName": "hits", "selector": {"matchLabels": {"a": "b"}},
                "targetAverageValue": "10",
            }},
            {"type": "Object", "object": {
                "target": {"kind": "Ingress", "name": "web", "apiVersion": "networking.k8s.io/v1"},
                "metricName": "rate", "targetValue": "2k",
            }},
            {"type": "External", "external": {
                "metricName": "queue", "metricSelector": {"matchLabels": {"q": "w"}},
                "targetAverageValue": "30",
            }},
        ])
    );
    assert_eq!(
        note(BEHAVIOR),
        json!({"ScaleDown": {
            "StabilizationWindowSeconds": 60,
            "Policies": [{"Type": "Pods", "Value": 1, "PeriodSeconds": 30}],
        }})
    );
    assert_eq!(note(CONDITIONS), json!([{"type": "AbleToScale", "status": "True"}]));
    assert_eq!(older["metadata"]["annotations"]["own"], "kept");
}

#[test]
fn both_ways_nothing_is_lost() {
    let back = converted(converted(newer(), "v2", "v1"), "v1", "v2");
    assert_eq!(back, newer());
}

#[test]
fn percentages_are_metrics() {
    let check = |spec: Value, expect: Value| {
        let made = converted(json!({"metadata": {"name": "h"}, "spec": spec}), "v1", "v2");
        assert_eq!(made["spec"]["metrics"], expect);
        assert_eq!(made["metadata"], json!({"name": "h"}));
    };
    let load = |percent: i64| {
        json!([{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent},
        }}])
    };
    check(json!({"targetCPUUtilizationPercentage": 30}), load(30));
    check(json!({"maxReplicas": 3}), load(DEFAULT_UTILIZATION));
    // Others' notes that can't be read are as good as none.
    let value = json!({
        "metadata": {"annotations": {METRICS: "[", CONDITIONS: 7}},
        "spec": {}, "status": {"currentCPUUtilizationPercentage": 9},
    });
    let made = converted(value, "v1", "v2");
    assert_eq!(made["spec"]["metrics"], load(DEFAULT_UTILIZATION));
    assert_eq!(made["status"]["currentMetrics"][0]["resource"]["current"]["averageUtilization"], 9);
    assert_eq!(made["status"].get("conditions"), None);
    // Between other versions nothing happens.
    assert_eq!(converted(newer(), "v2", "v2"), newer());
    assert_eq!(converted(newer(), "v2", "v3"), newer());
}

/// Values with the names that conversion looks for, at any place.
fn any_value() -> impl Strategy<Value = Value> {
    let names = proptest::sample::select(vec![
        "metadata",
        "annotations",
        "spec",
        "status",
        "metrics",
        "behavior",
        "currentMetrics",
        "type",
        "resource",
        "object",
        "target",
        "current",
        "metric",
        "name",
        "averageUtilization",
        "targetCPUUtilizationPercentage",
        "conditions",
        METRICS,
        BEHAVIOR,
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        proptest::sample::select(vec!["cpu", "Resource", "[{}]", "{\"A\":[]}"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((names.clone(), inner), 0..6).prop_map(|fields| {
                Value::Object(
                    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                )
            }),
        ]
    })
}

proptest! {
    /// Any value is converted to something, and back.
    #[test]
    fn anything_is_converted(value in any_value()) {
        let older = converted(value.clone(), "v2", "v1");
        converted(older, "v1", "v2");
        converted(value, "v1", "v2");
    }
}
