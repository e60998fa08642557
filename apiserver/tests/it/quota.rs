//! Quotas: what is counted, that nothing exceeds them, and that they are replenished.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Ask, Hub};
use crate::deeds::eventually;

const CORE: &str = "/clusters/one/api/v1/namespaces/default";

async fn ask(hub: &Hub, method: Method, path: &str, body: Value) -> Value {
    let answer = hub.admin(Ask::new(method, path).json(&body)).await;
    assert!(answer.status.is_success(), "{path}: {answer:?}");
    answer.json()
}

async fn make(hub: &Hub, plural: &str, body: Value) -> Value {
    ask(hub, Method::POST, &format!("{CORE}/{plural}"), body).await
}

async fn try_secret(hub: &Hub, name: &str) -> crate::client::Answer {
    let body = json!({"metadata": {"name": name}});
    hub.admin(Ask::new(Method::POST, &format!("{CORE}/secrets")).json(&body)).await
}

/// A quota whose bounds are in force.
async fn quota(hub: &Hub, name: &str, hard: Value) {
    let body = json!({"metadata": {"name": name}, "spec": {"hard": hard}});
    make(hub, "resourcequotas", body).await;
    used(hub, name, |quota| quota["status"]["hard"] == hard).await;
}

async fn used(hub: &Hub, name: &str, done: impl Fn(&Value) -> bool) -> Value {
    let path = format!("{CORE}/resourcequotas/{name}");
    eventually(hub, &path, |_, quota| done(quota)).await
}

#[tokio::test]
async fn a_quota_counts_refuses_and_is_replenished() {
    let hub = Hub::start().await;
    make(&hub, "secrets", json!({"metadata": {"name": "before"}})).await;
    let hard = json!({"secrets": "2", "count/configmaps": "9", "resourcequotas": "1", "pods": "1"});
    quota(&hub, "q", hard).await;
    let expect =
        json!({"secrets": "1", "count/configmaps": "1", "resourcequotas": "1", "pods": "0"});
    used(&hub, "q", |quota| quota["status"]["used"] == expect).await;
    // What is tried alone costs nothing.
    let dry = format!("{CORE}/secrets?dryRun=All");
    ask(&hub, Method::POST, &dry, json!({"metadata": {"name": "dry"}})).await;
    try_secret(&hub, "a").await;
    let now = hub.get(&format!("{CORE}/resourcequotas/q")).await.json();
    assert_eq!(now["status"]["used"]["secrets"], "2", "it is charged by the creation itself");
    let refused = try_secret(&hub, "b").await.fails(403, "Forbidden");
    let text = "secrets \"b\" is forbidden: exceeded quota: q, requested: secrets=1, used: \
                secrets=2, limited: secrets=2";
    assert_eq!(refused, text);
    let another = json!({"metadata": {"name": "r"}, "spec": {"hard": {"pods": "1"}}});
    let path = format!("{CORE}/resourcequotas");
    let refused = hub.admin(Ask::new(Method::POST, &path).json(&another)).await;
    assert!(refused.fails(403, "Forbidden").contains("requested: resourcequotas=1"), "{refused:?}");
    // Of another namespace it knows nothing.
    let other = "/clusters/one/api/v1/namespaces/kube-system/secrets";
    ask(&hub, Method::POST, other, json!({"metadata": {"name": "b"}})).await;
    ask(&hub, Method::DELETE, &format!("{CORE}/secrets/a"), json!({})).await;
    used(&hub, "q", |quota| quota["status"]["used"]["secrets"] == "1").await;
    assert_eq!(try_secret(&hub, "b").await.status, 201);
    hub.shutdown().await;
}

#[tokio::test]
async fn racing_creations_exceed_no_quota() {
    let hub = Hub::start().await;
    make(&hub, "secrets", json!({"metadata": {"name": "before"}})).await;
    quota(&hub, "one", json!({"secrets": "6"})).await;
    quota(&hub, "two", json!({"count/secrets": "8"})).await;
    quota(&hub, "zero", json!({"secrets": "20"})).await;
    let names = (0..20).map(|n| format!("s{n}")).collect::<Vec<_>>();
    let tries = names.iter().map(|name| try_secret(&hub, name));
    let answers = futures::future::join_all(tries).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(made, 5, "{answers:?}");
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        assert!(answer.fails(403, "Forbidden").contains("exceeded quota: one"));
    }
    let listed = hub.get(&format!("{CORE}/secrets")).await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 6);
    for (name, counted) in [("one", "secrets"), ("two", "count/secrets"), ("zero", "secrets")] {
        used(&hub, name, |quota| quota["status"]["used"][counted] == "6").await;
    }
    // A name that is taken costs nothing either.
    ask(&hub, Method::DELETE, &format!("{CORE}/secrets/before"), json!({})).await;
    used(&hub, "one", |quota| quota["status"]["used"]["secrets"] == "5").await;
    let taken = listed["items"].as_array().unwrap().iter();
    let mut taken = taken.filter_map(|item| item["metadata"]["name"].as_str());
    let taken = taken.find(|name| *name != "before").unwrap();
    try_secret(&hub, taken).await.fails(409, "AlreadyExists");
    used(&hub, "one", |quota| quota["status"]["used"]["secrets"] == "5").await;
    used(&hub, "zero", |quota| quota["status"]["used"]["secrets"] == "5").await;
    hub.shutdown().await;
}

#[tokio::test]
async fn a_full_logical_cluster_takes_nothing_more() {
    let hub = Hub::start_with(|server| server.max_objects_per_cluster(3)).await;
    for name in ["a", "b", "c"] {
        assert_eq!(try_secret(&hub, name).await.status, 201);
    }
    let refused = try_secret(&hub, "d").await.fails(403, "Forbidden");
    let text = "secrets \"d\" is forbidden: exceeded quota: one, requested: objects=1, used: \
                objects=3, limited: objects=3";
    assert_eq!(refused, text);
    let other = "/clusters/two/api/v1/namespaces/default/secrets";
    ask(&hub, Method::POST, other, json!({"metadata": {"name": "d"}})).await;
    ask(&hub, Method::DELETE, &format!("{CORE}/secrets/a"), json!({})).await;
    assert_eq!(try_secret(&hub, "d").await.status, 201);
    let path = "/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters/one";
    let patch = json!({"metadata": {"annotations": {"core.kcp.io/max-objects": "4"}}});
    let patch = Ask::new(Method::PATCH, path).body(patch.to_string());
    let patch = patch.header("content-type", "application/merge-patch+json");
    assert_eq!(hub.admin(patch).await.status, 200);
    assert_eq!(try_secret(&hub, "e").await.status, 201);
    assert_eq!(try_secret(&hub, "f").await.status, 403);
    hub.shutdown().await;
}
