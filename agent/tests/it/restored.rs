//! Hubs that come back as they were some time ago, while no agent runs: the next agent knows what the
//! one before has seen, and deletes nothing.

use serde_json::{Value, json};

use crate::world::{NAMESPACE, World, condition, until};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const STATE: &str = "sync.workloads.kcp.io/infra.east";

/// Writes at the hub that are lost when it goes back, beside those that matter.
const BUSY: usize = 200;

/// How the hub comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A file of its store is put in the place of the newer one.
    File,
    /// An export is imported.
    Import,
}

fn hub() -> String {
    format!("/clusters/infra{MAPS}/web")
}

fn copy() -> String {
    format!("{MAPS}/web")
}

fn state(state: &str) -> Value {
    json!({"metadata": {"labels": {STATE: state}}})
}

fn is_changed(target: &Value) -> bool {
    condition(target, "UpstreamChanged")["status"] == "True"
}

/// An object was to be removed, which a person has taken back, and an agent has seen that; then the hub
/// is again as it was before. The copy says nothing of either. Returns the copy as it was.
async fn go_back(world: &mut World, way: Way) -> Value {
    let agent = world.agent();
    world.assign("infra", MAPS, "web", &json!({"data": {"a": "b"}})).await;
    let before = world.physical.until(&copy(), "there", |_| true).await;
    world.hub.until(&world.target(), "counted", |t| t["status"]["syncedObjects"] == 1).await;
    agent.stop().await;

    world.hub.merge(&hub(), &state("Remove")).await;
    world.hub.stop().await;
    let file = world.file("backup");
    let stream = world.hub.back_up(&file).await;
    world.hub.resume().await;
    // It goes on for a while: a hub that comes back, and agents that begin, write a little, too.
    world
        .hub
        .create(&format!("/clusters/infra{MAPS}"), &json!({"metadata": {"name": "busy"}}))
        .await;
    for turn in 0..BUSY {
        let turn = json!({"data": {"turn": turn.to_string()}});
        world.hub.merge(&format!("/clusters/infra{MAPS}/busy"), &turn).await;
    }
    world.hub.merge(&hub(), &state("Sync")).await;
    let seen = world.hub.get(&hub()).await.unwrap();
    let seen: u64 = seen["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let agent = world.agent();
    agent.ready().await;
    until("all counted", async || agent.metric("kcp_sync_objects{state=\"synced\"}").await >= 1.0)
        .await;
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/kcp-agent");
    let has_seen = |lease: &Value| {
        let kept = lease["metadata"]["annotations"]["workloads.kcp.io/hub-seen"].as_str();
        let kept: Option<Value> = kept.and_then(|kept| serde_json::from_str(kept).ok());
        kept.is_some_and(|kept| kept["revision"].as_u64().is_some_and(|kept| kept >= seen))
    };
    world.physical.until(&lease, "has what was seen", has_seen).await;
    agent.stop().await;
    assert!(has_seen(&world.physical.get(&lease).await.unwrap()));

    world.hub.stop().await;
    match way {
        Way::File => world.hub.put_back(&file).await,
        Way::Import => world.hub.import(&stream).await,
    }
    world.hub.resume().await;
    assert_eq!(world.hub.get(&hub()).await.unwrap()["metadata"]["labels"][STATE], "Remove");
    before
}

/// No agent deletes the copy, neither the first nor one that has only what that one has kept.
async fn nothing_is_deleted(world: &World, before: &Value, reason: &str) {
    for name in ["late", "later"] {
        let agent = world.agent();
        let target = world.hub.until(&world.target(), "known to have gone back", is_changed).await;
        let told = condition(&target, "UpstreamChanged");
        assert_eq!(told["reason"], reason, "{told}");
        // What is new is done, and by then the copy would long have gone.
        agent.ready().await;
        world.assign("infra", MAPS, name, &json!({})).await;
        world.physical.until(&format!("{MAPS}/{name}"), "there", |_| true).await;
        let after = world.physical.get(&copy()).await.expect("it stays");
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        agent.stop().await;
    }
}

/// A person accepts the hub as it is; then it counts what it says, for the next agent, too, even if the
/// first one crashes as soon as it has told so, and the approval has gone.
async fn is_accepted(world: &World) {
    let agent = world.agent();
    agent.ready().await;
    let target = world.hub.until(&world.target(), "still told", is_changed).await;
    let told = condition(&target, "UpstreamChanged");
    let (_, number) = told["message"].as_str().unwrap().split_once("approve-upstream=").unwrap();
    let number = number.split(' ').next().unwrap();
    let approval = json!({"metadata": {"annotations": {
        "workloads.kcp.io/approve-upstream": number,
    }}});
    world.hub.merge(&world.target(), &approval).await;
    world.physical.until_gone(&copy()).await;
    world.hub.until(&world.target(), "as known", |target| !is_changed(target)).await;
    agent.kill().await;
    let approval =
        json!({"metadata": {"annotations": {"workloads.kcp.io/approve-upstream": null}}});
    world.hub.merge(&world.target(), &approval).await;
    let agent = world.agent();
    agent.ready().await;
    world.hub.merge(&format!("/clusters/infra{MAPS}/late"), &state("Remove")).await;
    world.physical.until_gone(&format!("{MAPS}/late")).await;
    assert!(!is_changed(&world.hub.get(&world.target()).await.unwrap()));
    agent.stop().await;
}

async fn comes_back(way: Way, reason: &str) {
    let mut world = World::new().await;
    let before = go_back(&mut world, way).await;
    nothing_is_deleted(&world, &before, reason).await;
    is_accepted(&world).await;
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
