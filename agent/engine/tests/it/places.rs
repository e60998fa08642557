//! Where copies go, and what is there already.

use engine::{Adoption, Kind, Mapping};
use serde_json::json;

use crate::objects::{TARGET, assigned, at_cluster, at_hub, config, target};
use crate::steady::assert_steady;
use crate::world::World;

/// What is there already: (policy, whether it is equal, whether it becomes ours).
#[test]
fn adoption() {
    for (policy, equal, ours) in [
        (Adoption::Never, true, false),
        (Adoption::IfNoDiff, true, true),
        (Adoption::IfNoDiff, false, false),
        (Adoption::Always, false, true),
    ] {
        let mut target = target();
        target.adoption = policy;
        let mut world = World::with(target);
        let namespace = ("namespaces".into(), String::new(), String::new(), "shop".into());
        world.cluster.create(&namespace, json!({"metadata": {"name": "shop"}}), "admin");
        let value = if equal { "1" } else { "other" };
        let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "a", "labels": {"app": "a"}}, "data": {"key": value}});
        let key = at_cluster("configmaps", "a");
        let (_, before) = world.cluster.create(&key, theirs, "admin");
        world.create(config("a", "1"));
        world.settle(10_000);
        let after = world.cluster.get(&key).unwrap();
        if ours {
            assert_eq!(after["data"]["key"], "1");
            assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
            assert_eq!(world.engine.summary().synced, 1);
            assert_steady(&mut world);
        } else {
            assert_eq!(after, before, "{policy:?}: it is left as it was");
            assert_eq!(world.engine.summary().problems["Collision"], 1);
            // Removing the object doesn't remove what isn't ours.
            world.hub.delete(&at_hub("configmaps", "a"), None);
            world.settle(10_000);
            assert_eq!(world.cluster.get(&key).unwrap(), before);
            assert_eq!(world.hub.get(&at_hub("configmaps", "a")), None);
        }
    }
}

/// A collision ends when what was there has gone, or the policy changes.
#[test]
fn collisions_end() {
    for changes_policy in [false, true] {
        let mut world = World::new();
        let namespace = ("namespaces".into(), String::new(), String::new(), "shop".into());
        world.cluster.create(&namespace, json!({"metadata": {"name": "shop"}}), "admin");
        let key = at_cluster("configmaps", "a");
        world.cluster.create(&key, json!({"metadata": {"name": "a"}}), "admin");
        world.create(config("a", "1"));
        world.settle(5000);
        let record = (
            "objectsyncs.workload.kcp.io".to_owned(),
            "infra".to_owned(),
            "shop".to_owned(),
            "configmaps.a--east".to_owned(),
        );
        let seen = world.hub.get(&record).unwrap();
        assert_eq!(seen["status"]["conditions"][0]["reason"], "Collision");
        assert_eq!(seen["metadata"]["labels"]["workloads.kcp.io/synctarget"], TARGET);
        if changes_policy {
            let mut target = target();
            target.adoption = Adoption::Always;
            let now = world.now();
            world.engine.set_target(target, now);
            world.settle(2000);
        } else {
            world.cluster.delete(&key, None);
            world.settle(600_000);
        }
        assert_eq!(world.cluster.get(&key).unwrap()["data"]["key"], "1", "{changes_policy}");
        assert_eq!(world.hub.get(&record), None, "the record goes when all is well");
        assert_steady(&mut world);
    }
}

/// The ServiceAccount that every namespace has is shared: we add to it, and take that back.
#[test]
fn shared_objects() {
    let mut world = World::new();
    let namespace = ("namespaces".into(), String::new(), String::new(), "shop".into());
    world.cluster.create(&namespace, json!({"metadata": {"name": "shop"}}), "admin");
    let key = at_cluster("serviceaccounts", "default");
    let theirs = json!({"metadata": {"name": "default"}, "secrets": [{"name": "theirs"}]});
    world.cluster.create(&key, theirs, "controller");
    world.create(assigned(
        "serviceaccounts",
        "default",
        json!({
            "secrets": [{"name": "mine"}],
        }),
    ));
    world.settle(1000);
    let secrets = &world.cluster.get(&key).unwrap()["secrets"];
    assert_eq!(*secrets, json!([{"name": "theirs"}, {"name": "mine"}]));
    assert_steady(&mut world);
    world.hub.delete(&at_hub("serviceaccounts", "default"), None);
    world.settle(1000);
    let left = world.cluster.get(&key).unwrap();
    assert_eq!(left["secrets"], json!([{"name": "theirs"}]));
    assert_eq!(world.count(Kind::Delete), 0);
    assert_eq!(world.hub.get(&at_hub("serviceaccounts", "default")), None);
}

/// The copy stays on request, without our marks.
#[test]
fn orphaning_on_request() {
    let mut world = World::new();
    let mut object = config("a", "1");
    object["metadata"]["annotations"] = json!({"workloads.kcp.io/orphan": "true"});
    world.create(object);
    world.settle(1000);
    world.hub.delete(&at_hub("configmaps", "a"), None);
    world.settle(5000);
    let left = world.cluster.get(&at_cluster("configmaps", "a")).unwrap();
    assert_eq!(left["data"]["key"], "1");
    assert!(left["metadata"]["labels"].get("workloads.kcp.io/synctarget").is_none());
    assert!(left["metadata"]["annotations"].get("workloads.kcp.io/upstream").is_none());
    assert_eq!(world.hub.get(&at_hub("configmaps", "a")), None);
    assert_eq!(world.count(Kind::Delete), 0);
}

/// A namespace that we made goes with the last copy; one that was there, or has something foreign
/// in it, stays.
#[test]
fn namespaces() {
    for (there, foreign, expect) in
        [(false, false, false), (true, false, true), (false, true, true)]
    {
        let mut world = World::new();
        let everything = crate::objects::kinds();
        let everything = everything.iter().map(|kind| (kind.resource.clone(), "v1".to_owned()));
        world.engine.resources(everything.collect());
        let namespace = ("namespaces".into(), String::new(), String::new(), "shop".into());
        if there {
            let object = json!({"kind": "Namespace", "metadata": {"name": "shop"}});
            world.cluster.create(&namespace, object, "admin");
        }
        world.create(config("a", "1"));
        world.settle(1000);
        let before = world.cluster.get(&namespace).unwrap();
        assert_eq!(before["metadata"]["labels"].is_object(), !there);
        let root = json!({"metadata": {"name": "kube-root-ca.crt"}});
        world.cluster.create(&at_cluster("configmaps", ""), root, "controller");
        if foreign {
            let object = json!({"metadata": {"name": "theirs"}});
            world.cluster.create(&at_cluster("configmaps", ""), object, "admin");
        }
        world.hub.delete(&at_hub("configmaps", "a"), None);
        world.settle(300_000);
        assert_eq!(world.cluster.get(&at_cluster("configmaps", "a")), None);
        let after = world.cluster.get(&namespace);
        assert_eq!(after.is_some(), expect, "{there} {foreign}");
        if there {
            assert_eq!(after.unwrap(), before, "one that isn't ours is never changed");
        }
    }
}

/// Namesakes of several logical clusters have namespaces of their own.
#[test]
fn hashed_namespaces() {
    let mut target = target();
    target.mapping = Mapping::Hashed;
    let mut world = World::with(target);
    for cluster in ["infra", "web"] {
        let key = ("configmaps".into(), cluster.into(), "shop".into(), String::new());
        world.hub.create(&key, config("a", cluster), "kubectl");
    }
    world.settle(1000);
    let copies: Vec<_> = { world.cluster.objects.iter() }
        .filter(|(key, _)| key.0 == "configmaps")
        .map(|(key, object)| (key.2.clone(), object["data"]["key"].clone()))
        .collect();
    assert_eq!(copies.len(), 2);
    assert!(copies.iter().all(|(namespace, _)| namespace.starts_with("kcp-")), "{copies:?}");
    assert_ne!(copies[0].1, copies[1].1);
    assert_steady(&mut world);
}

/// Never to namespaces of the system, nor to the agent's own.
#[test]
fn reserved_namespaces() {
    for namespace in ["kube-system", "kcp-agent-1"] {
        let mut world = World::new();
        let key = ("configmaps".into(), "infra".into(), namespace.into(), String::new());
        let mut object = config("a", "1");
        object["metadata"]["namespace"] = namespace.into();
        world.hub.create(&key, object, "kubectl");
        world.settle(10_000);
        assert!(world.cluster.objects.keys().all(|key| key.0 == "namespaces"));
        assert_eq!(world.engine.summary().problems["NamespaceReserved"], 1);
    }
}
