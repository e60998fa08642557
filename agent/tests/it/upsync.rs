//! Objects that are born in the physical cluster go up to the hub, as its authorizer allows.

use serde_json::{Value, json};

use crate::world::{World, condition};

const THINGS: &str = "/apis/x.io/v1/namespaces/default/things";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn born(world: &World, path: &str, name: &str, content: &Value) -> Value {
    let mut object = json!({
        "metadata": {"name": name, "labels": {"workloads.kcp.io/upsync": "true"}},
    });
    for (field, value) in content.as_object().unwrap() {
        object[field] = value.clone();
    }
    world.physical.create(path, &object).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_s_life() {
    let upsync = json!({"upsync": [{"resource": "things.x.io"}]});
    let world = World::with(&upsync).await;
    let agent = world.agent();
    agent.ready().await;
    let hub = |name: &str| format!("/clusters/infra{THINGS}/{name}");
    let here = |name: &str| format!("{THINGS}/{name}");
    let source = born(&world, THINGS, "web", &json!({"spec": {"size": 1}})).await;
    let mirror = world.hub.until(&hub("web"), "there", |o| o["spec"]["size"] == 1).await;
    assert_eq!(mirror["metadata"]["labels"]["workloads.kcp.io/synctarget"], *world.uid);
    let locator =
        mirror["metadata"]["annotations"]["workloads.kcp.io/downstream"].as_str().unwrap();
    let locator: Value = serde_json::from_str(locator).unwrap();
    assert_eq!(locator["uid"], source["metadata"]["uid"]);
    // Without the label, or of another type, nothing goes.
    world.physical.create(THINGS, &json!({"metadata": {"name": "plain"}})).await;
    born(&world, MAPS, "settings", &json!({"data": {"a": "b"}})).await;

    let status = json!({"status": {"ready": 1}});
    world.physical.merge(&format!("{}/status", here("web")), &status).await;
    world.hub.until(&hub("web"), "told", |o| o["status"]["ready"] == 1).await;
    world.physical.merge(&here("web"), &json!({"spec": {"size": 2}})).await;
    world.hub.until(&hub("web"), "changed", |o| o["spec"]["size"] == 2).await;
    // What others do to it there is put right.
    world.hub.merge(&hub("web"), &json!({"spec": {"size": 7}})).await;
    world.hub.until(&hub("web"), "put right", |o| o["spec"]["size"] == 2).await;
    let told = |t: &Value| condition(t, "Upsynced")["status"] == "True";
    world.hub.until(&world.target(), "told", told).await;
    for path in [format!("/clusters/infra{MAPS}/settings"), hub("plain")] {
        assert!(world.hub.get(&path).await.is_none(), "{path}");
    }

    // A new agent finds all as it is, and what has gone meanwhile.
    agent.stop().await;
    let before = world.hub.get(&hub("web")).await.unwrap();
    born(&world, THINGS, "more", &json!({"spec": {"size": 3}})).await;
    let agent = world.agent();
    world.hub.until(&hub("more"), "there", |o| o["spec"]["size"] == 3).await;
    let after = world.hub.get(&hub("web")).await.unwrap();
    assert_eq!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
    agent.stop().await;
    world.physical.delete(&here("web")).await;
    let agent = world.agent();
    world.hub.until_gone(&hub("web")).await;
    world.physical.delete(&here("more")).await;
    world.hub.until_gone(&hub("more")).await;
    agent.stop().await;
    world.end().await;
}

/// What people have made at the hub under the same name is theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_others_are_left_alone() {
    let upsync = json!({"upsync": [{"resource": "things.x.io", "objects": "All"}]});
    let world = World::with(&upsync).await;
    let hub = format!("/clusters/infra{THINGS}/web");
    let theirs = json!({"metadata": {"name": "web"}, "spec": {"size": 9}});
    world.hub.create(&format!("/clusters/infra{THINGS}"), &theirs).await;
    let agent = world.agent();
    agent.ready().await;
    world.physical.create(THINGS, &json!({"metadata": {"name": "web"}, "spec": {"size": 1}})).await;
    let told = |t: &Value| condition(t, "Upsynced")["status"] == "False";
    let target = world.hub.until(&world.target(), "told", told).await;
    assert!(condition(&target, "Upsynced")["message"].as_str().unwrap().contains("default/web"));
    assert_eq!(world.hub.get(&hub).await.unwrap()["spec"]["size"], 9);
    agent.stop().await;
    world.end().await;
}
