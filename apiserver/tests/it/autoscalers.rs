//! Autoscalers in both versions that clusters serve them in: the one type that the server converts.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Ask, Hub};
use crate::deeds::{change, create, eventually};
use crate::types::{CRDS, is};

fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": any, "status": any},
            }},
        })
    };
    json!({
        "metadata": {"name": "horizontalpodautoscalers.autoscaling"},
        "spec": {
            "group": "autoscaling", "scope": "Namespaced",
            "names": {
                "plural": "horizontalpodautoscalers", "singular": "horizontalpodautoscaler",
                "kind": "HorizontalPodAutoscaler", "listKind": "HorizontalPodAutoscalerList",
            },
            "versions": [version("v2", true), version("v1", false)],
        },
    })
}

fn path(version: &str) -> String {
    format!("/clusters/a/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers")
}

#[tokio::test]
async fn autoscalers_are_converted() {
    let hub = Hub::start().await;
    let crds = format!("/clusters/a/{CRDS}");
    create(&hub, &crds, definition()).await;
    let served = format!("{crds}/horizontalpodautoscalers.autoscaling");
    eventually(&hub, &served, is("Established")).await;

    let older = json!({
        "metadata": {"name": "h"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
        },
    });
    let made = create(&hub, &path("v1"), older).await;
    assert_eq!(made["apiVersion"], "autoscaling/v1");
    assert_eq!(made["spec"]["targetCPUUtilizationPercentage"], 50);
    assert_eq!(made["metadata"].get("annotations"), None, "{made}");
    let one = |version: &str| format!("{}/h", path(version));
    let load = json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50},
    }});
    let newer = hub.get(&one("v2")).await.json();
    assert_eq!(newer["spec"]["metrics"], json!([load]));
    assert_eq!(newer["spec"].get("targetCPUUtilizationPercentage"), None);

    // What v1 has no fields for passes through it.
    let memory = json!({"type": "Resource", "resource": {
        "name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"},
    }});
    let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 60}});
    let spec = json!({"spec": {"metrics": [memory, load], "behavior": behavior}});
    change(&hub, &one("v2"), spec).await;
    let mut older = hub.get(&one("v1")).await.json();
    assert_eq!(older["spec"]["targetCPUUtilizationPercentage"], 50);
    assert!(older["metadata"]["annotations"].is_object(), "{older}");
    older["spec"]["maxReplicas"] = json!(4);
    let put = hub.admin(Ask::new(Method::PUT, &one("v1")).json(&older)).await;
    assert_eq!(put.status, 200, "{put:?}");
    let newer = hub.get(&one("v2")).await.json();
    assert_eq!(newer["spec"]["metrics"], json!([memory, load]));
    assert_eq!(newer["spec"]["behavior"], behavior);
    assert_eq!(newer["spec"]["maxReplicas"], 4);
    assert_eq!(newer["metadata"].get("annotations"), None, "{newer}");

    let status = json!({"status": {
        "currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 7,
    }});
    change(&hub, &format!("{}/status", one("v1")), status).await;
    let newer = hub.get(&one("v2")).await.json();
    let current = &newer["status"]["currentMetrics"][0]["resource"]["current"];
    assert_eq!(current["averageUtilization"], 7, "{newer}");
    let list = hub.get(&path("v1")).await.json();
    assert_eq!(list["items"][0]["status"]["currentCPUUtilizationPercentage"], 7, "{list}");
    hub.shutdown().await;
}
