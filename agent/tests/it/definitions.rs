//! Definitions of types go down before their objects, and are changed only where that hurts nobody.

use serde_json::{Value, json};

use crate::world::{World, definition};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/x.io/v1/namespaces/default/widgets";

fn fields(definition: &mut Value) -> &mut Value {
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    definition.pointer_mut(place).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_and_an_object_of_it() {
    let world = World::new().await;
    let resources = ["customresourcedefinitions.apiextensions.k8s.io", "*.x.io"];
    let agent = world.agent_of(&resources);
    let mut widgets = definition("widgets");
    *fields(&mut widgets) = json!({"type": "object", "properties": {
        "size": {"type": "integer"}, "colour": {"type": "string"},
    }});
    let (hub, copy) = (
        format!("/clusters/infra{DEFINITIONS}/widgets.x.io"),
        format!("{DEFINITIONS}/widgets.x.io"),
    );
    world.hub.define("/clusters/infra", &widgets).await;
    let marks = json!({"metadata": {
        "labels": {"sync.workloads.kcp.io/infra.east": "Sync"},
        "finalizers": ["workloads.kcp.io/infra.east"],
    }});
    world.hub.merge(&hub, &marks).await;
    world.physical.until(&copy, "there", |_| true).await;
    world.assign("infra", WIDGETS, "one", &json!({"spec": {"size": 1, "colour": "red"}})).await;
    world.physical.until(&format!("{WIDGETS}/one"), "there", |o| o["spec"]["size"] == 1).await;

    // What would take a field away from what is there is told, and not written.
    let before = world.physical.get(&copy).await.unwrap();
    let mut narrow = before["spec"]["versions"].clone();
    let place = "/0/schema/openAPIV3Schema/properties/spec/properties";
    *narrow.pointer_mut(place).unwrap() = json!({"size": {"type": "integer"}});
    world.hub.merge(&hub, &json!({"spec": {"versions": narrow}})).await;
    let record = "/clusters/infra/apis/workload.kcp.io/v1alpha1/namespaces/kube-system/objectsyncs/\
        customresourcedefinitions.apiextensions.k8s.io.widgets.x.io--east";
    let told = world
        .hub
        .until(record, "told", |o| o["status"]["differences"][0]["path"] == ".spec.colour")
        .await;
    assert_eq!(told["status"]["conditions"][0]["reason"], "Incompatible", "{told}");
    let after = world.physical.get(&copy).await.unwrap();
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    // Objects of it go on.
    world.hub.merge(&format!("/clusters/infra{WIDGETS}/one"), &json!({"spec": {"size": 2}})).await;
    world.physical.until(&format!("{WIDGETS}/one"), "changed", |o| o["spec"]["size"] == 2).await;

    // A wider one fits.
    let mut wide = before["spec"]["versions"].clone();
    wide.pointer_mut(place).unwrap()["shape"] = json!({"type": "string"});
    world.hub.merge(&hub, &json!({"spec": {"versions": wide}})).await;
    let fits = |o: &Value| {
        let fields = o.pointer(&format!("/spec/versions{place}"));
        fields.is_some_and(|fields| fields.get("shape").is_some())
    };
    world.physical.until(&copy, "wider", fits).await;
    world.hub.until_gone(record).await;

    // It stays there when it is no longer assigned, and so do its objects.
    let remove = json!({"metadata": {"labels": {"sync.workloads.kcp.io/infra.east": "Remove"}}});
    world.hub.merge(&hub, &remove).await;
    let released = |o: &Value| {
        let finalizers = o["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        !finalizers.contains(&"workloads.kcp.io/infra.east".into())
    };
    world.hub.until(&hub, "released", released).await;
    let left = world.physical.get(&copy).await.unwrap();
    assert_eq!(left["metadata"]["labels"]["workloads.kcp.io/synctarget"], Value::Null);
    assert!(world.physical.get(&format!("{WIDGETS}/one")).await.is_some());
    agent.stop().await;
    world.end().await;
}
