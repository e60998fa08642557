//! The same in each mode: a cluster joins, its types come, objects flow, and it leaves.

use serde_json::{Value, json};

use crate::pod::Pod;
use crate::yard::{Side, TARGETS, Yard, installed_in};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";
const MAPS: &str = "/api/v1/namespaces/shop/configmaps";

fn at_hub(path: &str) -> String {
    format!("/clusters/infra{path}")
}

/// Whether a hub serves `apps/v1` in a logical cluster, as `kubectl` asks for it.
async fn serves_apps(hub: &Side) -> bool {
    !hub.get("/clusters/infra/apis/apps/v1").await.is_null()
}

fn deployment(name: &str, labels: &Value) -> Value {
    let template = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template,
        },
    })
}

const NAMESPACES: &str = "/clusters/infra/api/v1/namespaces";

fn intent() -> Value {
    json!({"workloads.kcp.io/cluster": "east"})
}

/// A cluster joins; with the UID of its SyncTarget, and its agent if it isn't the operator.
async fn joins(yard: &Yard, mode: &str) -> (String, Option<Pod>) {
    let first = json!({"metadata": {"name": "first"}});
    yard.hub.post("/clusters/infra/api/v1/namespaces/default/configmaps", &first).await;
    yard.hub.post(NAMESPACES, &json!({"metadata": {"name": "shop"}})).await;
    // Without a physical cluster there is no such type.
    assert!(!serves_apps(&yard.hub).await);
    let mut spec = yard.secret("east", yard.east.kubeconfig()).await;
    spec["mode"] = mode.into();
    let uid = yard.target("east", &spec).await;
    let pod = match mode {
        "Pull" => Some(Pod::of_deployment(&yard.east, &installed_in(&uid), &yard.hub).await),
        "Push" => None,
        _ => Some(Pod::by_hand(&yard.east, &yard.hub, "east")),
    };
    yard.says("east", "Ready", "True", "Ready").await;
    yard.says("east", "TypesImported", "True", "Imported").await;
    assert!(serves_apps(&yard.hub).await, "as soon as it is ready");
    (uid, pod)
}

/// By a label of its own, and not without.
async fn flows(yard: &Yard) {
    yard.hub.post(&at_hub(DEPLOYMENTS), &deployment("web", &intent())).await;
    yard.hub.post(&at_hub(DEPLOYMENTS), &deployment("plain", &json!({}))).await;
    let settings = json!({"metadata": {"name": "settings"}, "data": {"a": "1"}});
    yard.hub.post(&at_hub(MAPS), &settings).await;
    let (web, copy) = (at_hub(&format!("{DEPLOYMENTS}/web")), format!("{DEPLOYMENTS}/web"));
    let found = yard.east.eventually(&copy, |found| found["spec"]["replicas"] == 1).await;
    assert_eq!(found["spec"]["template"]["spec"]["containers"][0]["image"], "web:1");
    // An edit follows, and the status comes up.
    yard.hub.patch(&web, &json!({"spec": {"replicas": 3}})).await;
    let found = yard.east.eventually(&copy, |found| found["spec"]["replicas"] == 3).await;
    let generation = found["metadata"]["generation"].clone();
    let status = json!({"status": {"observedGeneration": generation, "readyReplicas": 3}});
    yard.east.patch(&format!("{copy}/status"), &status).await;
    let found = yard.hub.eventually(&web, |found| found["status"]["readyReplicas"] == 3).await;
    assert_eq!(found["status"]["observedGeneration"], found["metadata"]["generation"]);
    assert!(yard.east.get(&format!("{DEPLOYMENTS}/plain")).await.is_null());
    assert!(yard.east.get(&format!("{MAPS}/settings")).await.is_null());
}

/// By the label of the namespace; then taken back, and deleted.
async fn comes_and_goes(yard: &Yard) {
    let namespace = format!("{NAMESPACES}/shop");
    yard.hub.patch(&namespace, &json!({"metadata": {"labels": intent()}})).await;
    let (plain, settings) = (format!("{DEPLOYMENTS}/plain"), format!("{MAPS}/settings"));
    yard.east.eventually(&settings, |found| found["data"]["a"] == "1").await;
    yard.east.eventually(&plain, |found| !found.is_null()).await;
    let none = json!({"metadata": {"labels": {"workloads.kcp.io/cluster": ""}}});
    yard.hub.patch(&at_hub(&settings), &none).await;
    yard.east.eventually(&settings, Value::is_null).await;
    assert!(!yard.hub.get(&at_hub(&settings)).await.is_null());
    yard.hub.delete(&at_hub(&plain)).await;
    yard.hub.eventually(&at_hub(&plain), Value::is_null).await;
    assert!(yard.east.get(&plain).await.is_null());
}

/// The target goes: its objects are released and kept, and so is the type.
async fn leaves(yard: &Yard, uid: &str, pod: Option<Pod>) {
    let target = format!("/clusters/infra{TARGETS}/east");
    yard.hub.delete(&target).await;
    yard.hub.eventually(&target, Value::is_null).await;
    yard.east.eventually(&format!("{DEPLOYMENTS}/web"), Value::is_null).await;
    let kept = yard.hub.get(&at_hub(&format!("{DEPLOYMENTS}/web"))).await;
    assert_eq!(kept["metadata"].get("finalizers"), None, "{kept}");
    assert_eq!(kept["metadata"]["labels"], intent());
    assert!(serves_apps(&yard.hub).await);
    if let Some(pod) = pod {
        pod.stop().await;
    }
    let installed = format!("/api/v1/namespaces/{}", installed_in(uid));
    yard.east.eventually(&installed, Value::is_null).await;
}

async fn whole(mode: &str) {
    let yard = Yard::new().await;
    let (uid, pod) = joins(&yard, mode).await;
    flows(&yard).await;
    comes_and_goes(&yard).await;
    leaves(&yard, &uid, pod).await;
    yard.shutdown().await;
}

#[tokio::test]
async fn an_agent_is_installed() {
    whole("Pull").await;
}

#[tokio::test]
async fn the_operator_goes_to_the_cluster() {
    whole("Push").await;
}

#[tokio::test]
async fn an_agent_runs_by_hand() {
    whole("None").await;
}
