//! Agents that a target has had: none of them is taken for the one that comes next.

use std::time::Duration;

use agent::manifest::Kind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::pod::Pod;
use crate::yard::{Side, TARGETS, Yard, installed_in};

/// Far less than a sign of life counts for.
const SOON: Duration = Duration::from_secs(25);

const MAPS: &str = "/clusters/infra/api/v1/namespaces/default/configmaps";
const COPY: &str = "/api/v1/namespaces/default/configmaps/web";

fn path(kind: &str, namespace: &str, name: &str) -> String {
    Kind::named(kind).unwrap().path(namespace, name)
}

fn target() -> String {
    format!("/clusters/infra{TARGETS}/east")
}

/// Makes an object of the hub that runs in the cluster.
async fn runs(yard: &Yard, value: &str) {
    let labels = json!({"workloads.kcp.io/cluster": "east"});
    let body = json!({"metadata": {"name": "web", "labels": labels}, "data": {"a": value}});
    yard.hub.post(MAPS, &body).await;
    yard.east.eventually(COPY, |found| found["data"]["a"] == value).await;
}

async fn change(yard: &Yard, value: &str) {
    yard.hub.patch(&format!("{MAPS}/web"), &json!({"data": {"a": value}})).await;
}

#[tokio::test]
async fn another_cluster_takes_the_place_of_one_whose_agent_lives() {
    let yard = Yard::new().await;
    let west = Side::physical().await;
    let uid = yard.east().await;
    let own = installed_in(&uid);
    let former = Pod::of_deployment(&yard.east, &own, &yard.hub).await;
    yard.says("east", "Ready", "True", "Ready").await;
    runs(&yard, "1").await;
    let secret = "/clusters/infra/api/v1/namespaces/default/secrets/east";
    let data = json!({"kubeconfig": STANDARD.encode(west.kubeconfig())});
    yard.hub.patch(secret, &json!({"data": data})).await;
    yard.says("east", "Ready", "False", "ClusterIdentityChanged").await;
    let system = west.get("/api/v1/namespaces/kube-system").await;
    let annotations = json!({"workload.kcp.io/cluster-uid": system["metadata"]["uid"]});
    yard.hub.patch(&target(), &json!({"metadata": {"annotations": annotations}})).await;

    // The agent of the former cluster renews its Lease: nobody takes it for the one that is to come.
    let begin = Instant::now();
    let hub = path("Secret", &own, "kcp-agent-hub");
    west.eventually(&hub, |found| found["data"]["token"].is_string()).await;
    yard.says("east", "Ready", "False", "AgentNotConnected").await;
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    let found = yard.hub.get(&target()).await;
    assert_eq!(found["status"]["clusterUID"], system["metadata"]["uid"]);
    assert!(found["status"]["credentialsNotBefore"].is_string(), "{found}");

    let next = Pod::of_deployment(&west, &own, &yard.hub).await;
    west.eventually(COPY, |found| found["data"]["a"] == "1").await;
    yard.says("east", "Ready", "True", "Ready").await;
    change(&yard, "2").await;
    west.eventually(COPY, |found| found["data"]["a"] == "2").await;
    // What the former agent has made stays there, and it is told nothing any more.
    assert_eq!(yard.east.get(COPY).await["data"]["a"], "1");
    next.stop().await;
    former.stop().await;
    yard.shutdown().await;
    west.shutdown().await;
}

#[tokio::test]
async fn a_target_changes_its_mode_while_its_agent_lives() {
    let yard = Yard::new().await;
    let uid = yard.east().await;
    let own = installed_in(&uid);
    let former = Pod::of_deployment(&yard.east, &own, &yard.hub).await;
    yard.says("east", "Ready", "True", "Ready").await;
    runs(&yard, "1").await;

    let begin = Instant::now();
    yard.hub.patch(&target(), &json!({"spec": {"mode": "Push"}})).await;
    let deployment = path("Deployment", &own, "kcp-agent");
    yard.east.eventually(&deployment, Value::is_null).await;
    change(&yard, "2").await;
    yard.east.eventually(COPY, |found| found["data"]["a"] == "2").await;
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    former.stop().await;

    let begin = Instant::now();
    yard.hub.patch(&target(), &json!({"spec": {"mode": "Pull"}})).await;
    let hub = path("Secret", &own, "kcp-agent-hub");
    yard.east.eventually(&hub, |found| found["data"]["token"].is_string()).await;
    let next = Pod::of_deployment(&yard.east, &own, &yard.hub).await;
    change(&yard, "3").await;
    yard.east.eventually(COPY, |found| found["data"]["a"] == "3").await;
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    yard.says("east", "Ready", "True", "Ready").await;
    next.stop().await;
    yard.shutdown().await;
}
