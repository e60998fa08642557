//! Objects down, statuses up, and what is not deleted.

use client::JSON;
use futures::StreamExt;
use http::Method;
use serde_json::{Value, json};

use crate::world::{World, definition, until};

const THINGS: &str = "/apis/x.io/v1/namespaces/default/things";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn things(name: &str) -> String {
    format!("{THINGS}/{name}")
}

fn hub_things(name: &str) -> String {
    format!("/clusters/infra{THINGS}/{name}")
}

async fn status(world: &World, name: &str, status: &Value) {
    world.physical.merge(&format!("{}/status", things(name)), &json!({"status": status})).await;
}

/// With more to do than may be under way, an agent waits for answers, and doesn't look again and again
/// whether there is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_room_does_nothing() {
    const COUNT: u32 = 60;
    let world = World::new().await;
    for number in 0..COUNT {
        world.assign("infra", THINGS, &format!("t{number}"), &json!({"spec": {"size": 1}})).await;
    }
    let agent = world.narrow_agent(&["things.x.io"]);
    let path = world.target();
    let all = |target: &Value| target["status"]["syncedObjects"] == COUNT;
    world.hub.until(&path, "all are there", all).await;
    let turns = agent.metric("kcp_sync_turn_seconds_count").await;
    assert!(turns < f64::from(COUNT * 30), "{turns} turns");
    agent.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_s_life() {
    let world = World::new().await;
    let agent = world.agent();
    agent.ready().await;
    world.assign("infra", THINGS, "web", &json!({"spec": {"size": 1, "colour": "red"}})).await;
    let copy = world.physical.until(&things("web"), "there", |_| true).await;
    assert_eq!(copy["spec"], json!({"size": 1, "colour": "red"}));
    assert_eq!(copy["metadata"]["labels"]["workloads.kcp.io/synctarget"], *world.uid);

    // The status goes up.
    status(&world, "web", &json!({"ready": 1})).await;
    let upstream =
        world.hub.until(&hub_things("web"), "ready", |o| o["status"]["ready"] == 1).await;
    assert_eq!(upstream["spec"], json!({"size": 1, "colour": "red"}));

    // A change goes down, a field that is taken away, too.
    let patch = json!({"spec": {"size": 2, "colour": null}});
    world.hub.merge(&hub_things("web"), &patch).await;
    world.physical.until(&things("web"), "changed", |o| o["spec"] == json!({"size": 2})).await;

    // What others change of ours is put right; what is theirs stays.
    let drift = json!({"metadata": {"annotations": {"theirs": "x"}}, "spec": {"size": 9}});
    world.physical.merge(&things("web"), &drift).await;
    let put_right = |o: &Value| o["spec"]["size"] == 2;
    let repaired = world.physical.until(&things("web"), "put right", put_right).await;
    assert_eq!(repaired["metadata"]["annotations"]["theirs"], "x");

    // Counts and conditions are told at the hub.
    let path = world.target();
    let target = world.hub.until(&path, "counted", |t| t["status"]["syncedObjects"] == 1).await;
    for (kind, expect) in [
        ("Authorized", "True"),
        ("ClusterReachable", "True"),
        ("UpstreamChanged", "False"),
        ("DeletionPaused", "False"),
        ("Unsupported", "False"),
    ] {
        let conditions = target["status"]["conditions"].as_array().unwrap();
        let condition = conditions.iter().find(|condition| condition["type"] == kind);
        assert_eq!(condition.unwrap()["status"], expect, "{target}");
    }
    let lease = format!(
        "/clusters/infra/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/synctarget-{}",
        world.uid
    );
    world.hub.until(&lease, "renewed", |l| l["spec"]["renewTime"].is_string()).await;

    // A delete waits for the copy to go, and then the object goes.
    world.hub.delete(&hub_things("web")).await;
    world.physical.until_gone(&things("web")).await;
    world.hub.until_gone(&hub_things("web")).await;
    agent.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_unassigned_stays_in_the_hub() {
    let world = World::new().await;
    let agent = world.agent();
    world.assign("infra", MAPS, "settings", &json!({"data": {"a": "b"}})).await;
    let (hub, copy) = (format!("/clusters/infra{MAPS}/settings"), format!("{MAPS}/settings"));
    world.physical.until(&copy, "there", |map| map["data"]["a"] == "b").await;
    let remove = json!({"metadata": {"labels": {"sync.workloads.kcp.io/infra.east": "Remove"}}});
    world.hub.merge(&hub, &remove).await;
    world.physical.until_gone(&copy).await;
    let released = |map: &Value| map["metadata"].get("finalizers").is_none();
    let left = world.hub.until(&hub, "released", released).await;
    assert_eq!(left["data"]["a"], "b");
    assert_eq!(left["metadata"]["labels"], Value::Null);
    agent.stop().await;
    world.end().await;
}

/// In the steady state nothing is written, after a restart of the agent neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_when_nothing_changes() {
    let world = World::new().await;
    let agent = world.agent();
    for index in 0..20 {
        world
            .assign("infra", THINGS, &format!("web-{index}"), &json!({"spec": {"n": index}}))
            .await;
    }
    world.physical.until(THINGS, "all there", |l| l["items"].as_array().unwrap().len() == 20).await;
    world.hub.until(&world.target(), "counted", |t| t["status"]["syncedObjects"] == 20).await;
    agent.stop().await;

    let versions = async |api: &crate::world::Api, path: &str| {
        let list = api.get(path).await.unwrap();
        let version =
            |item: &Value| item["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        list["items"].as_array().unwrap().iter().map(version).collect::<Vec<_>>()
    };
    let hub_things = format!("/clusters/infra{THINGS}");
    let before = (versions(&world.hub, &hub_things).await, versions(&world.physical, THINGS).await);
    let agent = world.agent();
    agent.ready().await;
    until("all counted", async || agent.metric("kcp_sync_objects{state=\"synced\"}").await >= 20.0)
        .await;
    let after = (versions(&world.hub, &hub_things).await, versions(&world.physical, THINGS).await);
    assert_eq!(before, after);
    for side in ["upstream", "downstream"] {
        let writes = agent.metric(&format!("kcp_sync_writes_total{{side=\"{side}\"}}")).await;
        assert!(writes.abs() < f64::EPSILON, "{side}: {writes}");
    }
    agent.stop().await;
    world.end().await;
}

/// A hub that goes away deletes nothing; what changed meanwhile is made up for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_are_restarted() {
    let mut world = World::new().await;
    let agent = world.agent();
    for name in ["kept", "changed", "deleted"] {
        world.assign("infra", THINGS, name, &json!({"spec": {"n": 1}})).await;
        world.physical.until(&things(name), "there", |_| true).await;
    }
    world.hub.stop().await;
    until("it is noticed", async || agent.page("/readyz").await.0 == 503).await;
    // Somebody changes a copy while the hub is away.
    world.physical.merge(&things("kept"), &json!({"spec": {"n": 7}})).await;
    world.hub.resume().await;
    world.hub.merge(&hub_things("changed"), &json!({"spec": {"n": 2}})).await;
    world.hub.delete(&hub_things("deleted")).await;
    world.physical.until(&things("changed"), "changed", |o| o["spec"]["n"] == 2).await;
    world.physical.until(&things("kept"), "put right", |o| o["spec"]["n"] == 1).await;
    world.physical.until_gone(&things("deleted")).await;
    agent.ready().await;

    world.physical.stop().await;
    world.hub.merge(&hub_things("kept"), &json!({"spec": {"n": 3}})).await;
    let reachable = |target: &Value| {
        let conditions = target["status"]["conditions"].as_array().unwrap();
        let condition = conditions.iter().find(|c| c["type"] == "ClusterReachable");
        condition.is_some_and(|condition| condition["status"] == "True")
    };
    world.hub.until(&world.target(), "told unreachable", |target| !reachable(target)).await;
    world.physical.resume().await;
    world.physical.until(&things("kept"), "changed", |o| o["spec"]["n"] == 3).await;
    world.hub.until(&world.target(), "told reachable", reachable).await;
    assert!(world.hub.get(&hub_things("kept")).await.is_some());
    agent.stop().await;
    world.end().await;
}

/// One agent for many logical clusters: a namesake in each, none sees another's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_logical_clusters_over_one_watch() {
    let spec = json!({
        "allowedClusters": {"names": ["one", "two"]}, "namespaceMapping": "Hashed",
    });
    let world = World::with(&spec).await;
    for cluster in ["one", "two"] {
        world.hub.define(&format!("/clusters/{cluster}"), &definition("things")).await;
    }
    let agent = world.agent();
    for (index, cluster) in ["infra", "one", "two"].iter().enumerate() {
        world.assign(cluster, THINGS, "web", &json!({"spec": {"n": index}})).await;
    }
    let all = "/apis/x.io/v1/things";
    let listed = |l: &Value| l["items"].as_array().unwrap().len() == 3;
    let copies = world.physical.until(all, "three", listed).await;
    for copy in copies["items"].as_array().unwrap() {
        let namespace = copy["metadata"]["namespace"].as_str().unwrap();
        assert!(namespace.starts_with("kcp-"), "{namespace}");
        let path = format!("/apis/x.io/v1/namespaces/{namespace}/things/web/status");
        let n = copy["spec"]["n"].clone();
        world.physical.merge(&path, &json!({"status": {"seen": n}})).await;
    }
    for (index, cluster) in ["infra", "one", "two"].iter().enumerate() {
        let path = format!("/clusters/{cluster}{THINGS}/web");
        world.hub.until(&path, "its own status", |o| o["status"]["seen"] == index).await;
    }
    // One watch for each type, however many logical clusters there are: two types, ObjectSyncs.
    let watches = agent.metric("kcp_sync_watches{side=\"upstream\"}").await;
    assert!((watches - 3.0).abs() < f64::EPSILON, "{watches}");
    agent.stop().await;
    world.end().await;
}

/// Three hundred types at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_types() {
    const TYPES: usize = 300;
    let world = World::new().await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = (0..TYPES).map(async |index| {
        let definition = definition(&format!("type{index}"));
        let established = |o: &Value| {
            let conditions = o["status"]["conditions"].as_array().map(Vec::as_slice);
            let holds = |c: &Value| c["type"] == "Established" && c["status"] == "True";
            conditions.unwrap_or_default().iter().any(holds)
        };
        for (server, path) in
            [(&world.hub, format!("/clusters/infra{path}")), (&world.physical, path.to_owned())]
        {
            server.create(&path, &definition).await;
            let one = format!("{path}/type{index}.x.io");
            server.until(&one, "Established", established).await;
        }
    });
    // Many at a time: they share their syncs to disk.
    futures::stream::iter(made).buffer_unordered(32).for_each(async |()| {}).await;
    let agent = world.agent_of(&["*.x.io"]);
    agent.ready().await;
    for index in [0, TYPES / 2, TYPES - 1] {
        let resource = format!("/apis/x.io/v1/namespaces/default/type{index}");
        world.assign("infra", &resource, "one", &json!({"spec": {"n": index}})).await;
        let copy = format!("{resource}/one");
        world.physical.until(&copy, "there", |o| o["spec"]["n"] == index).await;
        let status = json!({"status": {"n": index}});
        world.physical.merge(&format!("{copy}/status"), &status).await;
        let upstream = format!("/clusters/infra{copy}");
        world.hub.until(&upstream, "told", |o| o["status"]["n"] == index).await;
    }
    until("all watched", async || {
        agent.metric("kcp_sync_watches{side=\"upstream\"}").await >= 301.0
    })
    .await;
    agent.stop().await;
    world.end().await;
}

/// By hand, between plain API servers: flags say what a SyncTarget would.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_hand_from_a_plain_api_server() {
    let world = World::new().await;
    // The physical cluster of the other tests stands for a plain API server here, and a logical
    // cluster of the hub for the physical cluster.
    let from = world.file("physical.kubeconfig");
    let kubeconfig = std::fs::read_to_string(&from).unwrap();
    std::fs::write(&from, kubeconfig.replace("/clusters/root", "")).unwrap();
    let to = world.file("hub.kubeconfig");
    let kubeconfig = std::fs::read_to_string(&to).unwrap();
    std::fs::write(&to, kubeconfig.replace("/clusters/root", "/clusters/infra")).unwrap();
    let agent = world.run(vec![
        format!("--from-kubeconfig={}", from.display()),
        format!("--to-kubeconfig={}", to.display()),
        "--sync-target=east".to_owned(),
        "--resource=things.x.io".to_owned(),
    ]);
    let object = json!({
        "metadata": {"name": "web", "labels": {"sync.workloads.kcp.io/local.east": "Sync"}},
        "spec": {"n": 1},
    });
    world.physical.send(Method::POST, THINGS, JSON, &object).await;
    world.hub.until(&hub_things("web"), "there", |o| o["spec"]["n"] == 1).await;
    world.hub.merge(&format!("{}/status", hub_things("web")), &json!({"status": {"n": 1}})).await;
    world.physical.until(&things("web"), "told", |o| o["status"]["n"] == 1).await;
    world.physical.delete(&things("web")).await;
    world.hub.until_gone(&hub_things("web")).await;
    world.physical.until_gone(&things("web")).await;
    agent.stop().await;
    world.end().await;
}

/// By hand with a hub: the SyncTarget is found by its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_hand_from_a_hub() {
    let world = World::new().await;
    let agent = world.run(vec![
        format!("--from-kubeconfig={}", world.file("hub.kubeconfig").display()),
        format!("--to-kubeconfig={}", world.file("physical.kubeconfig").display()),
        "--sync-target=east".to_owned(),
        "--cluster=infra".to_owned(),
        "--resource=things.x.io".to_owned(),
    ]);
    world.assign("infra", THINGS, "web", &json!({"spec": {"n": 1}})).await;
    let copy = world.physical.until(&things("web"), "there", |o| o["spec"]["n"] == 1).await;
    assert_eq!(copy["metadata"]["labels"]["workloads.kcp.io/synctarget"], *world.uid);
    agent.stop().await;
    world.end().await;
}
