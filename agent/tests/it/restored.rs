//! Hubs that come back as they were some time ago, while no agent runs: the next agent knows what the
//! one before has seen, and deletes nothing.

use serde_json::{Value, json};

use crate::world::{NAMESPACE, World, condition, until};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const STATE: &str = "sync.workloads.kcp.io/infra.east";

/// How the hub comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A file of its store is put in the place of the newer one.
    File,
    /// An export is imported.
    Import,
}

/// An object was to be removed, which a person has taken back; then the hub is again as it was before
/// that. The copy says nothing of either: only who has seen the hub since can tell.
async fn comes_back(way: Way, reason: &str) {
    let mut world = World::new().await;
    let agent = world.agent();
    let (hub, copy) = (format!("/clusters/infra{MAPS}/web"), format!("{MAPS}/web"));
    world.assign("infra", MAPS, "web", &json!({"data": {"a": "b"}})).await;
    let before = world.physical.until(&copy, "there", |_| true).await;
    world.hub.until(&world.target(), "counted", |t| t["status"]["syncedObjects"] == 1).await;
    agent.stop().await;

    let state = |state: &str| json!({"metadata": {"labels": {STATE: state}}});
    world.hub.merge(&hub, &state("Remove")).await;
    world.hub.stop().await;
    let file = world.file("backup");
    let stream = world.hub.back_up(&file).await;
    world.hub.resume().await;
    world.hub.merge(&hub, &state("Sync")).await;
    let seen = world.hub.get(&hub).await.unwrap();
    let seen: u64 = seen["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let agent = world.agent();
    agent.ready().await;
    until("all counted", async || agent.metric("kcp_sync_objects{state=\"synced\"}").await >= 1.0)
        .await;
    agent.stop().await;
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/kcp-agent");
    let lease = world.physical.get(&lease).await.unwrap();
    let kept = lease["metadata"]["annotations"]["workloads.kcp.io/hub-seen"].as_str().unwrap();
    let kept: Value = serde_json::from_str(kept).unwrap();
    assert!(kept["revision"].as_u64().unwrap() >= seen, "{kept}");

    world.hub.stop().await;
    match way {
        Way::File => world.hub.put_back(&file).await,
        Way::Import => world.hub.import(&stream).await,
    }
    world.hub.resume().await;
    assert_eq!(world.hub.get(&hub).await.unwrap()["metadata"]["labels"][STATE], "Remove");
    let agent = world.agent();
    let changed = |target: &Value| condition(target, "UpstreamChanged")["status"] == "True";
    let target = world.hub.until(&world.target(), "known to have gone back", changed).await;
    let told = condition(&target, "UpstreamChanged");
    assert_eq!(told["reason"], reason, "{told}");
    // What is new is done, and by then it would long have gone.
    world.assign("infra", MAPS, "late", &json!({})).await;
    world.physical.until(&format!("{MAPS}/late"), "there", |_| true).await;
    let after = world.physical.get(&copy).await.expect("it stays");
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    // Neither does the next agent delete it, which has only what the one before has kept.
    agent.stop().await;
    let agent = world.agent();
    agent.ready().await;
    world.assign("infra", MAPS, "later", &json!({})).await;
    world.physical.until(&format!("{MAPS}/later"), "there", |_| true).await;
    assert!(world.physical.get(&copy).await.is_some());

    // A person accepts the hub as it is; then it counts what it says, for the next agent, too.
    let message = told["message"].as_str().unwrap();
    let (_, number) = message.split_once("approve-upstream=").unwrap();
    let number = number.split(' ').next().unwrap();
    let approval = json!({"metadata": {"annotations": {
        "workloads.kcp.io/approve-upstream": number,
    }}});
    world.hub.merge(&world.target(), &approval).await;
    world.physical.until_gone(&copy).await;
    let settled = |target: &Value| condition(target, "UpstreamChanged")["status"] == "False";
    world.hub.until(&world.target(), "as known", settled).await;
    agent.stop().await;
    let agent = world.agent();
    agent.ready().await;
    let remove = json!({"metadata": {"labels": {STATE: "Remove"}}});
    world.hub.merge(&format!("/clusters/infra{MAPS}/late"), &remove).await;
    world.physical.until_gone(&format!("{MAPS}/late")).await;
    agent.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_put_back() {
    comes_back(Way::File, "GoneBack").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_of_an_old_export() {
    comes_back(Way::Import, "Restored").await;
}
