//! Definitions of types: down before their objects, changed only where that hurts nobody, and never
//! deleted.

use engine::{Adoption, Kind, SyncedType, Target};
use serde_json::{Value, json};

use crate::model::Key;
use crate::objects::{FINALIZER, STATE, assigned, kind, target};
use crate::steady::assert_steady;
use crate::world::World;

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
const NAME: &str = "widgets.example.org";

fn key(cluster: &str) -> Key {
    (DEFINITIONS.to_owned(), cluster.to_owned(), String::new(), NAME.to_owned())
}

fn spec(fields: &Value) -> Value {
    json!({
        "group": "example.org", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": fields},
            }}},
        }],
    })
}

fn two_fields() -> Value {
    json!({"size": {"type": "integer"}, "colour": {"type": "string"}})
}

fn create(world: &mut World, spec: &Value) {
    let mut object = assigned(DEFINITIONS, NAME, json!({"spec": spec}));
    object["metadata"].as_object_mut().unwrap().remove("namespace");
    let (status, body) = world.hub.create(&key("infra"), object, "kubectl");
    assert_eq!(status, 201, "{body}");
}

/// The physical cluster begins to serve what is defined.
fn establish(world: &mut World) {
    let status = json!({"status": {
        "conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"],
    }});
    world.meddle(&key(""), "status", "apiserver", status);
}

/// A world in which the type is synced, whether it is there or not.
fn with_widgets(target: Target) -> World {
    let mut world = World::with(target);
    world.kinds.push(widgets());
    world.start();
    world
}

fn widgets() -> SyncedType {
    kind("example.org", "widgets", "Widget", true)
}

fn record(world: &World) -> Option<Value> {
    let name = format!("{DEFINITIONS}.{NAME}--east");
    let key = ("objectsyncs.workload.kcp.io".into(), "infra".into(), "kube-system".into(), name);
    world.hub.get(&key)
}

fn live(world: &World) -> Value {
    world.cluster.get(&key("")).unwrap()
}

#[test]
fn definitions_stay() {
    let mut world = World::new();
    create(&mut world, &spec(&two_fields()));
    assert_steady(&mut world);
    assert_eq!(live(&world)["spec"], spec(&two_fields()));
    world.hub.delete(&key("infra"), None);
    world.settle(10_000);
    assert_eq!(world.hub.get(&key("infra")), None);
    let left = live(&world);
    assert_eq!(left["spec"], spec(&two_fields()));
    assert!(left["metadata"]["labels"].get("workloads.kcp.io/synctarget").is_none());
    assert_eq!(world.count(Kind::Delete), 0);
}

#[test]
fn objects_wait_for_their_definition() {
    let mut world = with_widgets(target());
    world.cluster.unserved.insert(NAME.to_owned());
    let widget = (NAME.to_owned(), "infra".to_owned(), "shop".to_owned(), String::new());
    let object = json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {
            "name": "a", "namespace": "shop", "labels": {STATE: "Sync"},
            "finalizers": [FINALIZER],
        },
        "spec": {"size": 1},
    });
    world.hub.create(&widget, object, "kubectl");
    create(&mut world, &spec(&two_fields()));
    world.settle(60_000);
    let copy = (NAME.to_owned(), String::new(), "shop".to_owned(), "a".to_owned());
    assert!(world.cluster.get(&key("")).is_some());
    let asked = world.made.iter().filter(|(_, key)| key.0 == NAME).count();
    assert_eq!(asked, 0, "nobody asks for a type that is not there yet");
    world.cluster.unserved.clear();
    establish(&mut world);
    let before = world.clock;
    world.settle(1000);
    assert_eq!(world.cluster.get(&copy).unwrap()["spec"]["size"], 1);
    assert!(world.clock - before <= 1000);
    assert_steady(&mut world);
}

/// What would lose something is told, field by field, and not written; what is of the type goes on.
#[test]
fn an_update_that_hurts_is_told() {
    let mut world = with_widgets(target());
    create(&mut world, &spec(&two_fields()));
    world.settle(1000);
    establish(&mut world);
    world.settle(1000);
    let before = live(&world);
    let writes = world.cluster.writes;
    let narrow = spec(&json!({"size": {"type": "string"}}));
    world.change(&key("infra"), json!({"spec": {"versions": narrow["versions"]}}));
    world.settle(1000);
    assert_eq!(live(&world), before);
    assert_eq!(world.cluster.writes, writes);
    let told = record(&world).unwrap();
    let applied = &told["status"]["conditions"][0];
    assert_eq!((&applied["type"], &applied["status"]), (&"Applied".into(), &"False".into()));
    assert_eq!(applied["reason"], "Incompatible");
    let fields: Vec<_> = { told["status"]["differences"].as_array().unwrap().iter() }
        .map(|one| (one["path"].as_str().unwrap(), one["what"].as_str().unwrap()))
        .collect();
    assert_eq!(fields, [(".spec.colour", "properties"), (".spec.size", "type")]);
    let said = &told["status"]["differences"][1]["said"];
    assert_eq!(said[0], json!({"value": "integer", "targets": ["east"]}));
    assert_eq!(said[1], json!({"value": "string", "targets": ["hub"]}));
    // Others go on, objects of the type among them.
    world.create(crate::objects::config("a", "1"));
    world.settle(1000);
    assert!(world.cluster.get(&crate::objects::at_cluster("configmaps", "a")).is_some());
    assert_eq!(world.settle(900_000), [], "nothing is tried by writing");
    // A wider one fits again.
    let mut wide = two_fields();
    wide["shape"] = json!({"type": "string"});
    world.change(&key("infra"), json!({"spec": {"versions": spec(&wide)["versions"]}}));
    world.settle(1000);
    assert_eq!(live(&world)["spec"], spec(&wide));
    assert_eq!(record(&world), None);
    assert_steady(&mut world);
}

/// Somebody in the physical cluster has added a version: putting ours back would take it away.
#[test]
fn a_version_that_others_have_added_stays() {
    let mut world = World::new();
    create(&mut world, &spec(&two_fields()));
    world.settle(1000);
    establish(&mut world);
    let mut wider = spec(&two_fields());
    let mut second = wider["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    wider["versions"].as_array_mut().unwrap().push(second);
    world.meddle(&key(""), "", "admin", json!({"spec": {"versions": wider["versions"]}}));
    world.settle(1000);
    assert_eq!(live(&world)["spec"]["versions"].as_array().unwrap().len(), 2);
    let told = record(&world).unwrap();
    assert_eq!(told["status"]["differences"][0]["what"], "served");
    // When the hub has it, too, all is well.
    world.change(&key("infra"), json!({"spec": {"versions": wider["versions"]}}));
    world.settle(1000);
    assert_eq!(record(&world), None);
    assert_steady(&mut world);
}

/// One that was there before is adopted only where that hurts nothing.
#[test]
fn adoption_of_a_definition() {
    for adoption in [Adoption::IfNoDiff, Adoption::Always] {
        let mut world = with_widgets(Target { adoption, ..target() });
        let metadata = json!({"name": NAME, "labels": {"app": NAME}});
        let object = json!({"metadata": metadata, "spec": spec(&two_fields())});
        world.cluster.create(&key(""), object, "admin");
        establish(&mut world);
        let before = live(&world);
        create(&mut world, &spec(&json!({"size": {"type": "integer"}})));
        world.settle(1000);
        assert_eq!(live(&world), before, "{adoption:?}");
        let told = record(&world).unwrap();
        assert_eq!(told["status"]["conditions"][0]["reason"], "Incompatible", "{adoption:?}");
        let same = spec(&two_fields());
        world.change(&key("infra"), json!({"spec": {"versions": same["versions"]}}));
        world.settle(600_000);
        assert!(live(&world)["metadata"]["labels"]["workloads.kcp.io/synctarget"].is_string());
        assert_eq!(live(&world)["spec"], same, "{adoption:?}");
        assert_steady(&mut world);
    }
}

/// What the physical cluster puts into a conversion stays.
#[test]
fn authorities_of_conversions_stay() {
    let mut world = World::new();
    let mut with = spec(&two_fields());
    with["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {
            "caBundle": "aHVi",
            "service": {"name": "convert", "namespace": "shop", "path": "/convert"},
        },
    }});
    create(&mut world, &with);
    world.settle(1000);
    let place = "/spec/conversion/webhook/clientConfig";
    let found = live(&world);
    assert!(found.pointer(&format!("{place}/caBundle")).is_none(), "{found}");
    assert_eq!(found.pointer(&format!("{place}/service/namespace")).unwrap(), "shop");
    let bundle =
        json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "Y2E="}}}}});
    world.meddle(&key(""), "", "cert-manager", bundle);
    assert_steady(&mut world);
    with["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] =
        json!({"type": "object"});
    world.change(&key("infra"), json!({"spec": {"versions": with["versions"]}}));
    world.settle(1000);
    let found = live(&world);
    assert_eq!(found["spec"]["versions"], with["versions"]);
    assert_eq!(found.pointer(&format!("{place}/caBundle")).unwrap(), "Y2E=");
}

/// Definitions that come from physical clusters aren't sent to them.
#[test]
fn published_definitions_stay_at_the_hub() {
    let mut world = World::new();
    let mut object = assigned(DEFINITIONS, NAME, json!({"spec": spec(&two_fields())}));
    object["metadata"].as_object_mut().unwrap().remove("namespace");
    object["metadata"]["annotations"] = json!({"apiresource.kcp.io/published-by": "widgets"});
    world.hub.create(&key("infra"), object, "kubectl");
    world.settle(60_000);
    assert_eq!(world.count(Kind::Apply), 0);
    assert_eq!(world.cluster.get(&key("")), None);
}
