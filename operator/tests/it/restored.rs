//! Hubs that come back as they were some time ago, where agents run in the operator's process: what was
//! seen of the hub is kept in the physical cluster, and goes along when the mode changes.

use agent::leader::kept;
use agent::manifest::Kind;
use serde_json::{Value, json};

use crate::yard::{Quiet, TARGETS, Yard, condition, installed_in};

const MAPS: &str = "/clusters/infra/api/v1/namespaces/default/configmaps";
const COPY: &str = "/api/v1/namespaces/default/configmaps/web";
const SEEN: &str = "workloads.kcp.io/hub-seen";
const STATE: &str = "sync.workloads.kcp.io/infra.east";

fn target() -> String {
    format!("/clusters/infra{TARGETS}/east")
}

/// What a Lease says was seen of the hub.
fn seen(lease: &Value) -> Option<Value> {
    serde_json::from_str(lease["metadata"]["annotations"][SEEN].as_str()?).ok()
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// A SyncTarget of mode `Push` with one object; and what its agent has kept of the hub since.
async fn pushed(yard: &Yard) -> (String, Value) {
    let mut spec = yard.secret("east", yard.east.kubeconfig()).await;
    spec["mode"] = "Push".into();
    let uid = yard.target("east", &spec).await;
    yard.says("east", "Ready", "True", "Ready").await;
    let labels = json!({"workloads.kcp.io/cluster": "east"});
    let body = json!({"metadata": {"name": "web", "labels": labels}, "data": {"a": "1"}});
    yard.hub.post(MAPS, &body).await;
    yard.east.eventually(COPY, |found| found["data"]["a"] == "1").await;
    let object = yard.hub.get(&format!("{MAPS}/web")).await;
    let newer = |lease: &Value| {
        seen(lease).is_some_and(|seen| seen["revision"].as_u64() >= Some(revision(&object)))
    };
    let lease = yard.east.eventually(&kept::path(&uid), newer).await;
    (uid, seen(&lease).unwrap())
}

/// The hub has gone back while no operator ran: the next one knows, and deletes nothing on its word
/// until a person accepts it. The copy says nothing of what the hub has forgotten.
#[tokio::test]
async fn a_hub_that_went_back() {
    let yard = Yard::new().await;
    let (uid, known) = pushed(&yard).await;
    let before = yard.east.get(COPY).await;
    let yard = yard
        .restart_after(async |yard: &Quiet| {
            // What was seen later than all that the hub has now.
            let mut later = known.clone();
            later["revision"] = (known["revision"].as_u64().unwrap() + 100_000).into();
            let annotations = json!({SEEN: later.to_string()});
            let patch = json!({"metadata": {"annotations": annotations}});
            yard.east.patch(&kept::path(&uid), &patch).await;
            // As it was before a person took it back.
            let labels = json!({STATE: "Remove", "workloads.kcp.io/cluster": null});
            let patch = json!({"metadata": {"labels": labels}});
            yard.hub.patch(&format!("{MAPS}/web"), &patch).await;
        })
        .await;
    let is_changed = |target: &Value| condition(target, "UpstreamChanged")["status"] == "True";
    let told = yard.hub.eventually(&target(), is_changed).await;
    let told = condition(&told, "UpstreamChanged");
    assert_eq!(told["reason"], "GoneBack", "{told}");
    // What is new is done, and by then the copy would long have gone.
    let labels = json!({"workloads.kcp.io/cluster": "east"});
    yard.hub.post(MAPS, &json!({"metadata": {"name": "late", "labels": labels}})).await;
    let late = "/api/v1/namespaces/default/configmaps/late";
    yard.east.eventually(late, |found| !found.is_null()).await;
    assert_eq!(yard.east.get(COPY).await["metadata"]["uid"], before["metadata"]["uid"]);
    // It is known to the next process, too, though the hub has gone on.
    let unaccepted = |lease: &Value| seen(lease).is_some_and(|seen| seen["goneBack"].is_u64());
    yard.east.eventually(&kept::path(&uid), unaccepted).await;
    let yard = yard.restart(|_| ()).await;
    let told = yard.hub.eventually(&target(), is_changed).await;
    let told = condition(&told, "UpstreamChanged");
    let (_, number) = told["message"].as_str().unwrap().split_once("approve-upstream=").unwrap();
    let number = number.split(' ').next().unwrap();
    let annotations = json!({"workloads.kcp.io/approve-upstream": number});
    yard.hub.patch(&target(), &json!({"metadata": {"annotations": annotations}})).await;
    yard.east.eventually(COPY, Value::is_null).await;
    // Nothing of it is left when the target goes.
    yard.hub.delete(&target()).await;
    yard.hub.eventually(&target(), Value::is_null).await;
    assert!(yard.east.get(&kept::path(&uid)).await.is_null());
    yard.shutdown().await;
}

/// Whoever takes an agent's place knows what it has seen.
#[tokio::test]
async fn what_was_seen_goes_along_with_the_mode() {
    let yard = Yard::new().await;
    let (uid, known) = pushed(&yard).await;
    let since = known["revision"].as_u64();
    let lease = Kind::named("Lease").unwrap().path(&installed_in(&uid), "kcp-agent");
    let knows = |lease: &Value| seen(lease).is_some_and(|seen| seen["revision"].as_u64() >= since);
    yard.hub.patch(&target(), &json!({"spec": {"mode": "Pull"}})).await;
    yard.east.eventually(&lease, knows).await;
    yard.east.eventually(&kept::path(&uid), Value::is_null).await;
    yard.hub.patch(&target(), &json!({"spec": {"mode": "Push"}})).await;
    yard.east.eventually(&kept::path(&uid), knows).await;
    yard.east.eventually(&lease, Value::is_null).await;
    yard.shutdown().await;
}
