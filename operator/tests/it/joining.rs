//! A cluster that the hub cannot reach joins by a manifest; and agents that go missing.

use std::time::Duration;

use agent::args::JoinArgs;
use agent::manifest::Kind;
use agent::program::join_manifest;
use http::{Method, Request};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::pod::Pod;
use crate::yard::{HUB_URL, Side, TARGETS, Yard, installed_in};

/// What `kubectl apply -f -` does with a manifest.
async fn apply(cluster: &Side, manifest: &str) {
    for document in manifest.split("---\n").filter(|document| !document.trim().is_empty()) {
        let object: Value = serde_saphyr::from_str(document).unwrap();
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let kind = Kind::named(text("/kind").unwrap()).unwrap();
        let namespace = text("/metadata/namespace").unwrap_or_default();
        let path = kind.path(namespace, text("/metadata/name").unwrap());
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(format!("{path}?fieldManager=kubectl"))
            .header("content-type", "application/apply-patch+yaml");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        cluster.client().request::<Value>(request).await.unwrap();
    }
}

#[tokio::test]
async fn a_cluster_joins_by_a_manifest() {
    let yard = Yard::new().await;
    let uid = yard.target("far", &json!({})).await;
    let told = yard.says("far", "Ready", "False", "NoKubeconfig").await;
    assert!(told["message"].as_str().unwrap().contains("kcp-agent join"), "{told}");

    let folder = tempfile::tempdir().unwrap();
    let (kubeconfig, docker) = (folder.path().join("kubeconfig"), folder.path().join("docker"));
    std::fs::write(&kubeconfig, yard.hub.kubeconfig()).unwrap();
    std::fs::write(&docker, "no JSON").unwrap();
    let mut args = JoinArgs {
        from_kubeconfig: kubeconfig,
        cluster: Some("infra".into()),
        sync_target: "far".into(),
        hub: None,
        image: "registry.example/agent:1".into(),
        image_pull_secret: Some(docker.clone()),
    };
    let refused = async |args: &JoinArgs, why: &str| {
        let error = format!("{:#}", join_manifest(args).await.unwrap_err());
        assert!(error.contains(why), "{error}");
    };
    refused(&args, "--hub").await;
    args.hub = Some(HUB_URL.into());
    refused(&args, "it has no auths").await;
    std::fs::write(&docker, r#"{"auths":{}}"#).unwrap();
    let other = JoinArgs { sync_target: "near".into(), image_pull_secret: None, ..args.clone() };
    refused(&other, "there is no SyncTarget \"near\"").await;

    let manifest = join_manifest(&args).await.unwrap();
    apply(&yard.east, &manifest).await;
    let own = installed_in(&uid);
    let pod = Pod::of_deployment(&yard.east, &own, &yard.hub).await;
    yard.says("far", "Ready", "True", "Ready").await;
    // The manifest again changes nothing for an agent that has its certificate.
    apply(&yard.east, &join_manifest(&args).await.unwrap()).await;

    let maps = "/clusters/infra/api/v1/namespaces/default/configmaps";
    let labels = json!({"workloads.kcp.io/cluster": "far"});
    let body = json!({"metadata": {"name": "web", "labels": labels}, "data": {"a": "1"}});
    yard.hub.post(maps, &body).await;
    let copy = "/api/v1/namespaces/default/configmaps/web";
    yard.east.eventually(copy, |found| found["data"]["a"] == "1").await;

    // It goes as any other; who applied the manifest takes it away.
    let target = format!("/clusters/infra{TARGETS}/far");
    yard.hub.delete(&target).await;
    yard.hub.eventually(&target, Value::is_null).await;
    yard.east.eventually(copy, Value::is_null).await;
    let deployment = Kind::named("Deployment").unwrap().path(&own, "kcp-agent");
    assert!(!yard.east.get(&deployment).await.is_null());
    pod.stop().await;
    yard.shutdown().await;
}

/// An agent that ends is missed within a minute, with the cause, and comes back.
#[tokio::test]
async fn a_missing_agent_is_told() {
    let yard = Yard::new().await;
    let uid = yard.east().await;
    let own = installed_in(&uid);
    let pod = Pod::of_deployment(&yard.east, &own, &yard.hub).await;
    yard.says("east", "Ready", "True", "Ready").await;
    pod.stop().await;
    let begin = Instant::now();
    let told = yard.says("east", "Ready", "Unknown", "LeaseExpired").await;
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    assert!(told["message"].as_str().unwrap().contains("has not renewed its lease"), "{told}");
    // What is applied meanwhile waits there, and says so.
    let maps = "/clusters/infra/api/v1/namespaces/default/configmaps";
    let labels = json!({"workloads.kcp.io/cluster": "east"});
    yard.hub.post(maps, &json!({"metadata": {"name": "web", "labels": labels}})).await;
    yard.hub.event("infra", "default", "web", "TargetNotReady").await;
    let pod = Pod::of_deployment(&yard.east, &own, &yard.hub).await;
    yard.says("east", "Ready", "True", "Ready").await;
    let copy = "/api/v1/namespaces/default/configmaps/web";
    yard.east.eventually(copy, |found| !found.is_null()).await;
    pod.stop().await;
    yard.shutdown().await;
}
