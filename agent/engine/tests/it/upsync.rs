//! Objects that are born in the physical cluster go up, and go there when they are gone here.

use std::sync::Arc;

use engine::{Adoption, GroupResource, Kind, Mapping, Side, Target, Upsync};
use serde_json::{Value, json};

use crate::objects::{FINALIZER, STATE, TARGET, at_cluster, at_hub, config, target};
use crate::steady::assert_steady;
use crate::world::World;

/// A target to which ConfigMaps with the label, and all Deployments, go up.
fn upsyncing() -> Target {
    let of = |group: &str, resource: &str, all: bool| Upsync {
        resource: GroupResource::new(group, resource),
        all,
    };
    let upsync: Arc<[Upsync]> =
        Arc::from([of("", "configmaps", false), of("apps", "deployments", true)]);
    Target { upsync, ..target() }
}

fn born(world: &mut World, resource: &str, name: &str, content: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "shop", "labels": {"workloads.kcp.io/upsync": "true"}},
    });
    for (key, value) in content.as_object().unwrap() {
        object[key] = value.clone();
    }
    let (status, body) = world.cluster.create(&at_cluster(resource, ""), object, "admin");
    assert_eq!(status, 201, "{body}");
    body
}

fn begin(target: Target) -> World {
    let mut world = World::with(target);
    let key = ("namespaces".into(), String::new(), String::new(), String::new());
    world.cluster.create(&key, json!({"metadata": {"name": "shop"}}), "admin");
    world
}

fn one() -> World {
    let mut world = begin(upsyncing());
    born(&mut world, "configmaps", "a", json!({"data": {"key": "1"}}));
    world.settle(1000);
    assert!(mirror(&world).is_some());
    world
}

fn mirror(world: &World) -> Option<Value> {
    world.hub.get(&at_hub("configmaps", "a"))
}

#[test]
fn an_object_s_life() {
    let mut world = begin(upsyncing());
    let source = born(&mut world, "configmaps", "a", json!({"data": {"key": "1"}}));
    world.settle(1000);
    let found = mirror(&world).unwrap();
    assert_eq!(found["data"], json!({"key": "1"}));
    assert_eq!(found["metadata"]["labels"], json!({"workloads.kcp.io/synctarget": TARGET}));
    let locator = found["metadata"]["annotations"]["workloads.kcp.io/downstream"].as_str().unwrap();
    let locator: Value = serde_json::from_str(locator).unwrap();
    let system = ("namespaces".into(), String::new(), String::new(), "kube-system".into());
    assert_eq!(locator["cluster"], world.cluster.get(&system).unwrap()["metadata"]["uid"]);
    assert_eq!(locator["uid"], source["metadata"]["uid"]);
    assert_eq!((&locator["namespace"], &locator["name"]), (&json!("shop"), &json!("a")));
    assert_steady(&mut world);
    // It never comes down, whoever says so.
    let marks = json!({"metadata": {"labels": {STATE: "Sync"}, "finalizers": [FINALIZER]}});
    world.change(&at_hub("configmaps", "a"), marks);
    world.settle(60_000);
    assert_eq!(world.count(Kind::Apply), 0);
    world.set_state(&at_hub("configmaps", "a"), Some("Remove"));
    world.settle(60_000);
    assert!(
        mirror(&world).unwrap()["metadata"].get("finalizers").is_none_or(|all| all == &json!([]))
    );
    assert!(world.cluster.get(&at_cluster("configmaps", "a")).is_some());
    // What changes here changes there, and what others change there is put right.
    let key = at_cluster("configmaps", "a");
    world.meddle(&key, "", "admin", json!({"data": {"key": "2", "more": "x"}}));
    world.settle(1000);
    assert_eq!(mirror(&world).unwrap()["data"], json!({"key": "2", "more": "x"}));
    world.meddle(&key, "", "admin", json!({"data": {"more": null}}));
    world.settle(1000);
    assert_eq!(mirror(&world).unwrap()["data"], json!({"key": "2"}));
    world.change(&at_hub("configmaps", "a"), json!({"data": {"key": "9", "theirs": "y"}}));
    world.settle(1000);
    assert_eq!(mirror(&world).unwrap()["data"], json!({"key": "2", "theirs": "y"}));
    assert_eq!(world.engine.summary().mirrors, 1);
    // Who deletes it there finds it again.
    world.hub.delete(&at_hub("configmaps", "a"), None);
    world.settle(1000);
    assert_eq!(mirror(&world).unwrap()["data"], json!({"key": "2"}));
    // It goes when it is gone here.
    world.cluster.delete(&key, None);
    world.settle(1000);
    assert_eq!(mirror(&world), None);
    assert_eq!(world.count(Kind::MirrorDelete), 1);
    assert_eq!(world.engine.summary().mirrors, 0);
    assert_steady(&mut world);
}

#[test]
fn what_goes_up_is_asked_for() {
    let mut world = begin(upsyncing());
    let unmarked = json!({"metadata": {"name": "plain", "namespace": "shop"}});
    world.cluster.create(&at_cluster("configmaps", ""), unmarked.clone(), "admin");
    world.cluster.create(&at_cluster("services", ""), unmarked.clone(), "admin");
    world.cluster.create(&at_cluster("deployments.apps", ""), unmarked, "admin");
    // Copies don't go up, whatever they are called.
    let mut copy = config("copy", "1");
    copy["metadata"]["labels"]["workloads.kcp.io/upsync"] = "true".into();
    world.create(copy);
    world.create(crate::objects::deployment("web", "web:1", 1));
    world.settle(60_000);
    let made: Vec<_> = { world.made.iter() }
        .filter(|(kind, _)| *kind == Kind::MirrorApply)
        .map(|(_, key)| (key.0.as_str(), key.3.as_str()))
        .collect();
    assert_eq!(made, [("deployments.apps", "plain")]);
    assert_eq!(world.engine.summary().synced, 2);
}

#[test]
fn a_status_goes_up_with_the_hub_s_generation() {
    let mut world = begin(upsyncing());
    born(&mut world, "deployments.apps", "web", json!({"spec": {"replicas": 2}}));
    let key = at_cluster("deployments.apps", "web");
    world.meddle(&key, "", "admin", json!({"spec": {"replicas": 3}}));
    world.run(&key);
    world.settle(1000);
    let found = world.hub.get(&at_hub("deployments.apps", "web")).unwrap();
    assert_eq!(found["metadata"]["generation"], 1);
    assert_eq!(found["status"], json!({"observedGeneration": 1, "replicas": 3}));
    assert_steady(&mut world);
}

/// Nothing but a live look at the same cluster is evidence that a source is gone.
#[test]
fn nothing_goes_without_evidence() {
    // Empty and old lists, and watches that say it is gone.
    let mut world = one();
    world.show(Side::Downstream, "born/configmaps", Vec::new(), 1);
    world.settle(60_000);
    assert!(mirror(&world).is_some());
    // A watch that no longer selects it: somebody has taken the label off.
    let label = json!({"metadata": {"labels": {"workloads.kcp.io/upsync": null}}});
    world.meddle(&at_cluster("configmaps", "a"), "", "admin", label);
    world.settle(600_000);
    assert!(mirror(&world).is_some());
    let summary = world.engine.summary();
    assert!(summary.mirror_problem.unwrap().contains("NoLongerUpsynced"));
    assert_eq!(world.count(Kind::MirrorDelete), 0);
    // It comes back to life with the label.
    let label =
        json!({"metadata": {"labels": {"workloads.kcp.io/upsync": "true"}}, "data": {"key": "3"}});
    world.meddle(&at_cluster("configmaps", "a"), "", "admin", label);
    world.settle(1000);
    assert_eq!(mirror(&world).unwrap()["data"]["key"], "3");
    assert_eq!(world.engine.summary().failed_mirrors, 0);

    // The type isn't served.
    let mut world = one();
    world.cluster.delete(&at_cluster("configmaps", "a"), None);
    world.cluster.unserved.insert("configmaps".into());
    world.settle(600_000);
    assert!(mirror(&world).is_some());
}

/// The mirror stays, and it is told why, for this process and the next.
fn stays(world: &mut World, why: &str) {
    for restart in [false, true] {
        if restart {
            world.start();
        }
        world.relist();
        world.settle(600_000);
        assert!(mirror(world).is_some());
        let told = world.engine.summary().mirror_problem.unwrap();
        assert!(told.contains(why), "{told}");
    }
}

/// The physical cluster is another one, made at the same address, or restored from an old backup.
#[test]
fn another_cluster_is_no_evidence() {
    let mut world = one();
    let system = ("namespaces".into(), String::new(), String::new(), "kube-system".into());
    let mut namespace = world.cluster.get(&system).unwrap();
    namespace["metadata"]["uid"] = "other".into();
    world.cluster.objects.insert(system, namespace);
    world.cluster.delete(&at_cluster("configmaps", "a"), None);
    stays(&mut world, "OtherCluster");
    // Nor does a namesake that is born there take it over.
    born(&mut world, "configmaps", "a", json!({"data": {"key": "new"}}));
    world.settle(600_000);
    assert_eq!(mirror(&world).unwrap()["data"]["key"], "1");
    assert_eq!(world.count(Kind::MirrorDelete), 0);

    let mut world = begin(upsyncing());
    let before = world.cluster.revision;
    born(&mut world, "configmaps", "a", json!({"data": {"key": "1"}}));
    world.settle(1000);
    world.cluster.restore(before);
    stays(&mut world, "gone back");
}

/// Another object of the same name is another object.
#[test]
fn a_source_that_was_made_again() {
    let mut world = one();
    let before = mirror(&world).unwrap();
    world.cluster.delete(&at_cluster("configmaps", "a"), None);
    born(&mut world, "configmaps", "a", json!({"data": {"key": "new"}}));
    world.settle(1000);
    let after = mirror(&world).unwrap();
    assert_eq!(after["data"]["key"], "new");
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_steady(&mut world);
}

/// What is at the hub already is nobody's mirror.
#[test]
fn objects_of_others_are_left_alone() {
    for adoption in [Adoption::Never, Adoption::Always] {
        let mut world = begin(Target { adoption, ..upsyncing() });
        let object =
            json!({"metadata": {"name": "a", "namespace": "shop"}, "data": {"key": "theirs"}});
        world.hub.create(&at_hub("configmaps", ""), object, "kubectl");
        let theirs = mirror(&world).unwrap();
        born(&mut world, "configmaps", "a", json!({"data": {"key": "ours"}}));
        world.settle(600_000);
        assert_eq!(mirror(&world).unwrap(), theirs);
        assert_eq!(world.engine.summary().failed_mirrors, 1);
        // When it has gone there is room.
        world.hub.delete(&at_hub("configmaps", "a"), None);
        world.settle(600_000);
        assert_eq!(mirror(&world).unwrap()["data"]["key"], "ours");
        assert_steady(&mut world);
    }
}

/// Somebody forges the label, or copies a mirror: nothing of it is taken for ours.
#[test]
fn forged_mirrors() {
    let mut world = one();
    let mut copied = mirror(&world).unwrap();
    copied["metadata"]["name"] = "b".into();
    let metadata = copied["metadata"].as_object_mut().unwrap();
    metadata.remove("uid");
    metadata.remove("resourceVersion");
    world.hub.create(&at_hub("configmaps", ""), copied, "kubectl");
    let label = json!({"workloads.kcp.io/synctarget": TARGET});
    let bare = json!({"metadata": {"name": "c", "namespace": "shop", "labels": label}});
    world.hub.create(&at_hub("configmaps", ""), bare, "kubectl");
    world.cluster.delete(&at_cluster("configmaps", "a"), None);
    world.settle(600_000);
    assert_eq!(mirror(&world), None);
    for name in ["b", "c"] {
        assert!(world.hub.get(&at_hub("configmaps", name)).is_some(), "{name}");
    }
}

/// More deletes than usual wait for a person, upwards as downwards.
#[test]
fn a_wave_of_deletes_waits() {
    let mut world = begin(upsyncing());
    for index in 0..30 {
        born(&mut world, "configmaps", &format!("a{index}"), json!({"data": {"key": "1"}}));
    }
    world.settle(1000);
    for index in 0..30 {
        world.cluster.delete(&at_cluster("configmaps", &format!("a{index}")), None);
    }
    world.settle(30_000);
    let left = world.engine.summary();
    assert!(left.mirrors >= 10, "{left:?}");
    let paused = left.paused.unwrap();
    let approvals = engine::Approvals { deletions: Some(paused.number), ..Default::default() };
    world.approve(approvals, &[]);
    world.settle(5000);
    assert_eq!(world.engine.summary().mirrors, 0);
}

/// With hashed namespaces, what is born in those that we made goes to where they come from.
#[test]
fn hashed_namespaces() {
    let mut world = begin(Target { mapping: Mapping::Hashed, ..upsyncing() });
    world.create(config("first", "1"));
    world.settle(1000);
    let copies = world.cluster.objects.keys().find(|key| key.0 == "configmaps").unwrap();
    let namespace = copies.2.clone();
    assert!(namespace.starts_with("kcp-"));
    for (namespace, name) in [(namespace.as_str(), "a"), ("shop", "b")] {
        let object = json!({
            "metadata": {"name": name, "labels": {"workloads.kcp.io/upsync": "true"}},
            "data": {"key": name},
        });
        let key = ("configmaps".into(), String::new(), namespace.to_owned(), String::new());
        let (status, _) = world.cluster.create(&key, object, "admin");
        assert_eq!(status, 201);
    }
    world.settle(1000);
    assert_eq!(mirror(&world).unwrap()["data"]["key"], "a");
    assert_eq!(world.hub.get(&at_hub("configmaps", "b")), None);
    let key = ("configmaps".into(), String::new(), namespace, "a".into());
    world.cluster.delete(&key, None);
    world.settle(1000);
    assert_eq!(mirror(&world), None);
}
