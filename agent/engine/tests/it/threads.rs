//! Faults that other systems have had, each as a test that is called after its thread.

use engine::{Kind, Side};
use serde_json::{Value, json};

use crate::model::status;
use crate::objects::{STATE, assigned, at_cluster, at_hub, config, deployment, target};
use crate::world::World;

/// A world with some ConfigMaps that are synced.
pub(crate) fn with_configs(count: usize) -> World {
    let mut world = World::new();
    for index in 0..count {
        world.create(config(&format!("a{index}"), "1"));
    }
    world.settle(1000);
    assert_eq!(copies(&world), count);
    world
}

pub(crate) fn copies(world: &World) -> usize {
    world.cluster.objects.keys().filter(|key| key.0 == "configmaps").count()
}

pub(crate) fn record(world: &World, name: &str) -> Option<Value> {
    let name = format!("{name}--east");
    let key = ("objectsyncs.workload.kcp.io".into(), "infra".into(), "shop".into(), name);
    world.hub.get(&key)
}

#[test]
fn kcp_2671_a_dropped_link_deletes_nothing() {
    let mut world = with_configs(5);
    world.identify(None);
    world.show(Side::Upstream, "configmaps", Vec::new(), world.hub.revision);
    world.settle(600_000);
    assert_eq!(copies(&world), 5);
    assert_eq!(world.count(Kind::Delete), 0);
    assert_eq!(world.engine.summary().orphans, 5);
    // The link is back, and all is as it was.
    world.identify(Some(target().identity));
    world.relist();
    assert_eq!(world.settle(600_000), []);
    assert_eq!(world.engine.summary().orphans, 0);
    assert_eq!(world.engine.summary().synced, 5);
}

#[test]
fn kcp_2041_an_empty_cache_at_the_start_deletes_nothing() {
    let mut world = with_configs(5);
    world.start();
    world.list(Side::Downstream, "configmaps", None);
    world.show(Side::Upstream, "configmaps", Vec::new(), world.hub.revision);
    assert_eq!(world.settle(600_000), []);
    assert_eq!(copies(&world), 5);
    assert_eq!(world.engine.summary().orphans, 5);
}

#[test]
fn kcp_1891_foreign_finalizers_are_waited_for() {
    let mut world = World::new();
    let mut object = config("a", "1");
    object["metadata"]["finalizers"] = json!(["theirs/one", "workloads.kcp.io/infra.east"]);
    world.create(object);
    world.settle(1000);
    world.hub.delete(&at_hub("configmaps", "a"), None);
    world.settle(600_000);
    assert_eq!(copies(&world), 0);
    assert_eq!(world.count(Kind::Release), 1);
    let left = world.hub.get(&at_hub("configmaps", "a")).unwrap();
    assert_eq!(left["metadata"]["finalizers"], json!(["theirs/one"]));
    assert!(left["metadata"]["labels"].get(STATE).is_none());
}

#[test]
fn kcp_2709_changed_replicas_are_put_back() {
    let mut world = World::new();
    world.create(deployment("web", "web:1", 2));
    world.settle(1000);
    let key = at_cluster("deployments.apps", "web");
    world.meddle(&key, "", "admin", json!({"spec": {"replicas": 9}}));
    let writes = world.settle(1000);
    assert_eq!(writes, [(Kind::Apply, key.clone())]);
    assert_eq!(world.cluster.get(&key).unwrap()["spec"]["replicas"], 2);
    let events = world.hub.objects.iter().filter(|(key, _)| key.0 == "events");
    assert!(events.into_iter().any(|(_, event)| event["reason"] == "Drifted"));
}

#[test]
fn karmada_7823_allocated_node_ports_stay_up_here() {
    let mut world = World::new();
    let object = world.create(assigned(
        "services",
        "a",
        json!({"spec": {
            "ports": [{"name": "http", "port": 80}],
        }}),
    ));
    // The hub's server allocates: nobody owns what it sets.
    let key = at_hub("services", "a");
    let fields = object["metadata"]["managedFields"].clone();
    world.change(
        &key,
        json!({"spec": {"clusterIP": "10.0.0.1", "ports":
        [{"name": "http", "port": 80, "nodePort": 30080}]}}),
    );
    world.change(&key, json!({"metadata": {"managedFields": fields}}));
    let mut object = world.hub.get(&key).unwrap();
    object["metadata"]["managedFields"] = fields;
    world.hub.objects.insert(key, object);
    world.settle(1000);
    let copy = world.cluster.get(&at_cluster("services", "a")).unwrap();
    assert_eq!(copy["spec"], json!({"ports": [{"name": "http", "port": 80}]}));
}

#[test]
fn karmada_969_what_a_job_has_made_goes_with_it() {
    let mut world = World::new();
    world.check = |_, action| {
        if action.kind == Kind::Delete {
            let body: Value = serde_json::from_slice(&action.request.body).unwrap();
            assert_eq!(body["propagationPolicy"], "Background");
            assert!(body["preconditions"]["uid"].is_string());
        }
    };
    world.create(assigned("jobs.batch", "a", json!({"spec": {}})));
    world.settle(1000);
    world.hub.delete(&at_hub("jobs.batch", "a"), None);
    world.settle(1000);
    assert_eq!(world.count(Kind::Delete), 1);
}

#[test]
fn karmada_602_secrets_of_service_accounts_stay() {
    let mut world = World::new();
    world.create(assigned("serviceaccounts", "a", json!({})));
    world.settle(1000);
    let key = at_cluster("serviceaccounts", "a");
    world.meddle(&key, "", "controller", json!({"secrets": [{"name": "a-token-1"}]}));
    assert_eq!(world.settle(300_000), []);
    assert_eq!(world.cluster.get(&key).unwrap()["secrets"], json!([{"name": "a-token-1"}]));
}

#[test]
fn karmada_560_bound_volumes_stay_bound() {
    let mut world = World::new();
    world.create(assigned("persistentvolumeclaims", "a", json!({"spec": {"size": 1}})));
    world.settle(1000);
    let key = at_cluster("persistentvolumeclaims", "a");
    world.meddle(&key, "", "controller", json!({"spec": {"volumeName": "pv1"}}));
    world.meddle(&key, "status", "controller", json!({"status": {"phase": "Bound"}}));
    world.change(&at_hub("persistentvolumeclaims", "a"), json!({"spec": {"size": 2}}));
    world.settle(1000);
    let spec = json!({"size": 2, "volumeName": "pv1"});
    assert_eq!(world.cluster.get(&key).unwrap()["spec"], spec);
    let object = world.hub.get(&at_hub("persistentvolumeclaims", "a")).unwrap();
    assert_eq!(object["status"]["phase"], "Bound");
    assert_eq!(object["spec"], json!({"size": 2}));
}

#[test]
fn karmada_2558_labels_that_are_removed_go_and_foreign_ones_stay() {
    let mut world = World::new();
    let mut object = config("a", "1");
    object["metadata"]["labels"]["old"] = "x".into();
    object["metadata"]["annotations"] = json!({"note": "x"});
    world.create(object);
    world.settle(1000);
    let key = at_cluster("configmaps", "a");
    world.meddle(&key, "", "admin", json!({"metadata": {"labels": {"theirs": "y"}}}));
    let patch = json!({"metadata": {"labels": {"old": null}, "annotations": {"note": null}}});
    world.change(&at_hub("configmaps", "a"), patch);
    world.settle(1000);
    let metadata = &world.cluster.get(&key).unwrap()["metadata"];
    assert!(metadata["labels"].get("old").is_none());
    assert!(metadata["annotations"].get("note").is_none());
    assert_eq!(metadata["labels"]["theirs"], "y");
}

#[test]
fn karmada_5924_the_finalizer_goes_when_the_copy_has_gone() {
    let mut world = with_configs(1);
    let key = at_cluster("configmaps", "a0");
    world.meddle(&key, "", "admin", json!({"metadata": {"finalizers": ["theirs/wait"]}}));
    world.settle(1000);
    world.hub.delete(&at_hub("configmaps", "a0"), None);
    world.settle(120_000);
    assert_eq!(world.count(Kind::Delete), 1);
    assert_eq!(world.count(Kind::Release), 0);
    assert!(world.hub.get(&at_hub("configmaps", "a0")).is_some());
    // It is said what is waited for (ocm#1062).
    let seen = record(&world, "configmaps.a0").unwrap();
    let condition = &seen["status"]["conditions"][0];
    assert_eq!(condition["reason"], "Deleting");
    assert!(condition["message"].as_str().unwrap().contains("theirs/wait"));
    world.meddle(&key, "", "admin", json!({"metadata": {"finalizers": []}}));
    world.settle(60_000);
    assert_eq!(world.hub.get(&at_hub("configmaps", "a0")), None);
}

#[test]
fn ocm_185_large_objects_are_synced_and_too_large_ones_told() {
    let mut world = World::new();
    world.create(config("large", &"x".repeat(900 << 10)));
    world.create(config("huge", &"x".repeat(100 << 10)));
    let text = "etcdserver: request is too large";
    let refusal = status(500, "InternalError", text, json!({}));
    world.cluster.refusals.insert("huge".into(), refusal);
    world.settle(10_000);
    let copy = world.cluster.get(&at_cluster("configmaps", "large")).unwrap();
    assert_eq!(copy["data"]["key"].as_str().unwrap().len(), 900 << 10);
    let seen = record(&world, "configmaps.huge").unwrap();
    assert_eq!(seen["status"]["conditions"][0]["reason"], "ApplyTooLarge");
    // Large objects are not held; nothing is written again because of that.
    world.relist();
    let writes = world.settle(1000);
    assert!(writes.iter().all(|(_, key)| key.3.contains("huge")), "{writes:?}");
}

#[test]
fn argocd_agent_660_a_restarted_hub_deletes_nothing() {
    let mut world = with_configs(5);
    // While it starts it shows nothing, then an old state, then all.
    world.identify(None);
    for at in [Some(0), Some(world.hub.revision - 3), None] {
        world.list(Side::Upstream, "configmaps", at);
        world.settle(1000);
    }
    world.identify(Some(target().identity));
    world.settle(600_000);
    assert_eq!(copies(&world), 5);
    assert_eq!(world.count(Kind::Delete), 0);
    assert_eq!(world.engine.summary().synced, 5);
}

#[test]
fn argocd_agent_742_deleted_on_both_sides_at_once() {
    let mut world = with_configs(1);
    world.hub.delete(&at_hub("configmaps", "a0"), None);
    world.cluster.delete(&at_cluster("configmaps", "a0"), None);
    world.settle(5000);
    assert_eq!(world.hub.get(&at_hub("configmaps", "a0")), None);
    assert_eq!(copies(&world), 0);
    assert!(world.count(Kind::Release) == 1 && world.count(Kind::Apply) == 1);
}

#[test]
fn vcluster_700_who_rewrites_a_field_for_ever_is_given_in_to() {
    let mut world = World::new();
    world.create(config("a", "1"));
    world.settle(1000);
    let key = at_cluster("configmaps", "a");
    let before = world.count(Kind::Apply);
    for round in 0..100 {
        world.meddle(&key, "", "controller", json!({"data": {"key": format!("x{round}")}}));
        world.settle(100);
    }
    let repairs = world.count(Kind::Apply) - before;
    assert!(repairs <= 10, "{repairs} in 10 s");
    let seen = record(&world, "configmaps.a").unwrap();
    assert_eq!(seen["status"]["conditions"][2]["status"], "True");
    assert_eq!(seen["status"]["conditions"][2]["type"], "Drifted");
    let drift = &seen["status"]["drift"][0];
    assert_eq!(drift["path"], "/data/key");
    assert_eq!(drift["desired"], "\"1\"");
    assert_eq!(drift["manager"], "controller");
    // When they stop, it is put back, and the record goes.
    world.settle(200_000);
    assert_eq!(world.cluster.get(&key).unwrap()["data"]["key"], "1");
    assert_eq!(record(&world, "configmaps.a"), None);
}

/// Agents of this and the next version after each other: what one doesn't know of the other's
/// records is no reason for anything.
#[test]
fn karmada_5003_agents_of_other_versions() {
    let key = at_cluster("configmaps", "a0");
    let change: [fn(&mut Value); 2] = [
        |locator| locator["colour"] = "red".into(),
        |locator| drop(locator.as_object_mut().unwrap().remove("digest")),
    ];
    for change in change {
        let mut world = with_configs(1);
        let mut copy = world.cluster.get(&key).unwrap();
        let place = "/metadata/annotations/workloads.kcp.io~1upstream";
        let annotation = copy.pointer_mut(place).unwrap();
        let mut locator: Value = serde_json::from_str(annotation.as_str().unwrap()).unwrap();
        change(&mut locator);
        *annotation = locator.to_string().into();
        world.cluster.objects.insert(key.clone(), copy);
        world.start();
        let writes = world.settle(60_000);
        assert!(writes.len() <= 1, "{writes:?}");
        assert_eq!(world.engine.summary().synced, 1);
        assert_eq!(world.engine.summary().orphans, 0);
        assert_eq!(world.settle(600_000), []);
    }
}
