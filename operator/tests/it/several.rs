//! Several operators of one hub, and targets that an operator syncs itself.

use std::time::Duration;

use operator::Operator;
use serde_json::{Value, json};

use crate::yard::{Side, TARGETS, Yard, installed_in, options};

/// Waits for a condition that is in this process.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(90), async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test]
async fn one_of_several_works() {
    let hub = Side::start().await;
    let first = Operator::start(options(&hub)).await.unwrap();
    let second = Operator::start(options(&hub)).await.unwrap();
    assert!(first.leads() && !second.leads());
    assert!(second.is_ready(), "who stands by is ready");
    // It gives the Lease back, so that nobody waits for it to run out.
    first.shutdown(Duration::from_secs(20)).await;
    until("the second leads", || second.leads()).await;
    until("it has listed everything", || second.is_ready()).await;
    second.shutdown(Duration::from_secs(20)).await;
    hub.shutdown().await;
}

/// In mode Push nothing is installed, and everything else is as with an agent.
#[tokio::test]
async fn the_operator_itself_syncs() {
    let yard = Yard::new().await;
    let mut spec = yard.secret("pushed", yard.east.kubeconfig()).await;
    spec["mode"] = "Push".into();
    let uid = yard.target("pushed", &spec).await;
    yard.says("pushed", "Installed", "True", "Installed").await;
    yard.says("pushed", "Heartbeat", "True", "LeaseRenewed").await;
    let namespace = format!("/api/v1/namespaces/{}", installed_in(&uid));
    assert!(yard.east.get(&namespace).await.is_null(), "nothing is installed");
    yard.says("pushed", "Ready", "True", "Ready").await;

    // Down, and down again when it changes.
    let maps = "/clusters/infra/api/v1/namespaces/default/configmaps";
    let labels = json!({"workloads.kcp.io/cluster": "pushed"});
    let body = json!({"metadata": {"name": "web", "labels": labels}, "data": {"a": "1"}});
    yard.hub.post(maps, &body).await;
    let copy = "/api/v1/namespaces/default/configmaps/web";
    yard.east.eventually(copy, |found| found["data"]["a"] == "1").await;
    let web = format!("{maps}/web");
    yard.hub.patch(&web, &json!({"data": {"a": "2"}})).await;
    yard.east.eventually(copy, |found| found["data"]["a"] == "2").await;
    // Taken back: the copy goes, then the marks.
    let unlabelled = json!({"metadata": {"labels": {"workloads.kcp.io/cluster": null}}});
    yard.hub.patch(&web, &unlabelled).await;
    yard.east.eventually(copy, Value::is_null).await;
    yard.hub.eventually(&web, |found| found["metadata"].get("finalizers").is_none()).await;
    // With the target goes what it holds.
    yard.hub.patch(&web, &json!({"metadata": {"labels": labels}})).await;
    yard.east.eventually(copy, |found| !found.is_null()).await;
    let target = format!("/clusters/infra{TARGETS}/pushed");
    yard.hub.delete(&target).await;
    yard.hub.eventually(&target, Value::is_null).await;
    yard.east.eventually(copy, Value::is_null).await;
    assert!(!yard.hub.get(&web).await.is_null(), "the object itself stays");
    yard.shutdown().await;
}
