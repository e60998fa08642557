//! The usual ways, and that nothing is written when nothing has changed.

use engine::{Kind, Side, Summary};
use serde_json::{Value, json};

use crate::objects::{STATE, TARGET, assigned, at_cluster, at_hub, config, deployment};
use crate::world::World;

/// Everything settles, and after that nothing is written: not by itself, not after lists, not by a
/// new process.
#[track_caller]
pub(crate) fn assert_steady(world: &mut World) {
    world.settle(120_000);
    let idle = world.settle(600_000);
    assert_eq!(idle, [], "by itself");
    world.relist();
    assert_eq!(world.settle(600_000), [], "after lists");
    world.start();
    assert_eq!(world.settle(600_000), [], "by a new process");
}

fn spec(world: &World, name: &str) -> Value {
    world.cluster.get(&at_cluster("deployments.apps", name)).unwrap()["spec"].clone()
}

#[test]
fn an_object_and_its_copy() {
    let mut world = World::new();
    let object = world.create(deployment("web", "web:1", 2));
    world.settle(1000);
    let copy = world.cluster.get(&at_cluster("deployments.apps", "web")).unwrap();
    assert_eq!(copy["spec"]["containers"], object["spec"]["containers"]);
    let labels = json!({"app": "web", "workloads.kcp.io/synctarget": TARGET});
    assert_eq!(copy["metadata"]["labels"], labels);
    let locator: Value = serde_json::from_str(
        copy["metadata"]["annotations"]["workloads.kcp.io/upstream"].as_str().unwrap(),
    )
    .unwrap();
    assert_eq!(locator["uid"], object["metadata"]["uid"]);
    assert_eq!(locator["hub"], "hub-1");
    assert_eq!(locator["cluster"], "infra");
    // Its status comes up, with the hub's generation.
    world.change(&at_hub("deployments.apps", "web"), json!({"spec": {"replicas": 3}}));
    world.settle(1000);
    world.run(&at_cluster("deployments.apps", "web"));
    world.settle(1000);
    let object = world.hub.get(&at_hub("deployments.apps", "web")).unwrap();
    assert_eq!(object["metadata"]["generation"], 2);
    assert_eq!(object["status"], json!({"observedGeneration": 2, "replicas": 3}));
    assert_steady(&mut world);
    let summary = world.engine.summary();
    let expect = Summary { synced: 1, copies: 1, complete: true, ..Summary::default() };
    assert_eq!(summary, expect);
}

/// A webhook adds a sidecar, defaults are set, others have their own fields.
#[test]
fn karmada_3410_what_others_own_is_left_alone() {
    let mut world = World::new();
    world.cluster.sidecar = true;
    world.create(deployment("web", "web:1", 2));
    world.settle(1000);
    let key = at_cluster("deployments.apps", "web");
    world.meddle(&key, "", "admin", json!({"metadata": {"labels": {"team": "a"}}}));
    world.meddle(&key, "", "admin", json!({"spec": {"paused": true}}));
    world.run(&key);
    assert_steady(&mut world);
    assert_eq!(spec(&world, "web")["containers"].as_array().unwrap().len(), 2);
    // And stays, when ours change.
    world.change(
        &at_hub("deployments.apps", "web"),
        json!({"spec": {"containers":
        [{"name": "web", "image": "web:2"}]}}),
    );
    world.settle(1000);
    let spec = spec(&world, "web");
    assert_eq!(
        spec["containers"],
        json!([
            {"name": "sidecar", "image": "proxy"}, {"name": "web", "image": "web:2"},
        ])
    );
    assert_eq!(spec["paused"], true);
    let copy = world.cluster.get(&key).unwrap();
    assert_eq!(copy["metadata"]["labels"]["team"], "a");
    world.run(&key);
    assert_steady(&mut world);
}

/// An autoscaler in the physical cluster sets the replicas: by permission they go up, and are
/// never set back.
#[test]
fn replicas_that_are_yielded() {
    let mut world = World::new();
    let mut object = deployment("web", "web:1", 2);
    object["metadata"]["annotations"] = json!({"workloads.kcp.io/yield": "replicas"});
    world.create(object);
    world.settle(1000);
    let key = at_cluster("deployments.apps", "web");
    for replicas in [5, 7] {
        world.meddle(&key, "scale", "autoscaler", json!({"spec": {"replicas": replicas}}));
        world.settle(2000);
        world.run(&key);
        world.settle(2000);
        assert_eq!(spec(&world, "web")["replicas"], replicas);
        let object = world.hub.get(&at_hub("deployments.apps", "web")).unwrap();
        assert_eq!(object["spec"]["replicas"], replicas);
        assert_eq!(object["status"]["observedGeneration"], object["metadata"]["generation"]);
    }
    // Another change doesn't put them back either.
    world.change(
        &at_hub("deployments.apps", "web"),
        json!({"spec": {"containers":
        [{"name": "web", "image": "web:2"}]}}),
    );
    world.settle(1000);
    assert_eq!(spec(&world, "web")["replicas"], 7);
    assert_eq!(spec(&world, "web")["containers"][0]["image"], "web:2");
    world.run(&key);
    assert_steady(&mut world);
}

/// An HPA that is synced too is enough to leave the replicas alone; they stay down there.
#[test]
fn karmada_386_replicas_that_a_synced_autoscaler_sets() {
    let mut world = World::new();
    world.create(assigned(
        "horizontalpodautoscalers.autoscaling",
        "web",
        json!({"spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
        }}),
    ));
    world.create(deployment("web", "web:1", 2));
    world.settle(1000);
    let key = at_cluster("deployments.apps", "web");
    world.meddle(&key, "scale", "autoscaler", json!({"spec": {"replicas": 5}}));
    world.change(&at_hub("deployments.apps", "web"), json!({"metadata": {"labels": {"x": "y"}}}));
    world.settle(1000);
    world.run(&key);
    assert_eq!(spec(&world, "web")["replicas"], 5);
    assert_steady(&mut world);
    let object = world.hub.get(&at_hub("deployments.apps", "web")).unwrap();
    assert_eq!(object["spec"]["replicas"], 2);
}

/// A status field that the hub's type doesn't have is dropped there, and not sent for ever.
#[test]
fn a_field_that_the_hub_drops() {
    let mut world = World::new();
    world.hub.unknown_status.insert("novelty".into());
    world.create(deployment("web", "web:1", 2));
    world.settle(1000);
    let key = at_cluster("deployments.apps", "web");
    world.meddle(&key, "status", "controller", json!({"status": {"novelty": 1, "replicas": 1}}));
    world.settle(1000);
    assert_eq!(world.count(Kind::Status), 1);
    assert_eq!(world.settle(600_000), []);
}

/// Statuses are sent at once, and then not more often than allowed; the last one always goes.
#[test]
fn karmada_4093_statuses_are_coalesced_and_do_not_conflict() {
    let mut world = World::new();
    world.check = |_, action| {
        if action.kind == Kind::Status {
            let body = String::from_utf8(action.request.body.clone()).unwrap();
            assert!(!body.contains("resourceVersion"), "{body}");
        }
    };
    world.create(deployment("web", "web:1", 2));
    world.settle(1000);
    let key = at_cluster("deployments.apps", "web");
    for replicas in 0..50 {
        world.meddle(&key, "status", "controller", json!({"status": {"replicas": replicas}}));
        world.settle(10);
    }
    let sent = world.count(Kind::Status);
    assert!((2..=5).contains(&sent), "{sent}");
    world.settle(1000);
    let object = world.hub.get(&at_hub("deployments.apps", "web")).unwrap();
    assert_eq!(object["status"]["replicas"], 49);
}

/// The order in which things come, and go.
#[test]
fn order() {
    let mut world = World::new();
    let types = ["deployments.apps", "services", "configmaps", "serviceaccounts", "secrets"];
    for resource in types {
        world.create(assigned(resource, "a", json!({"spec": {}})));
    }
    world.watch();
    world.settle(1000);
    let order = |world: &World, of: Kind| -> Vec<String> {
        let made = world.made.iter().filter(|(kind, _)| *kind == of);
        made.map(|(_, key)| key.0.clone()).collect()
    };
    let down = ["serviceaccounts", "configmaps", "secrets", "services", "deployments.apps"];
    assert_eq!(order(&world, Kind::Apply), down);
    for resource in types {
        world.hub.delete(&at_hub(resource, "a"), None);
    }
    world.settle(5000);
    let mut up = order(&world, Kind::Delete);
    assert_eq!(up.pop().as_deref(), Some("serviceaccounts"));
    assert_eq!(up[..2], ["deployments.apps".to_owned(), "services".to_owned()]);
    assert!(world.hub.objects.keys().all(|key| key.0 == "events"));
    assert!(world.cluster.objects.keys().all(|key| key.0 == "namespaces"));
}

/// Unassigned and assigned again: the copy goes, and comes back; label and finalizer go in one
/// patch.
#[test]
fn unassignment() {
    let mut world = World::new();
    world.create(config("a", "1"));
    world.settle(1000);
    let key = at_hub("configmaps", "a");
    world.set_state(&key, Some("Remove"));
    world.settle(5000);
    assert_eq!(world.cluster.get(&at_cluster("configmaps", "a")), None);
    let object = world.hub.get(&key).unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!([]));
    assert!(object["metadata"]["labels"].get(STATE).is_none());
    assert_eq!(world.count(Kind::Release), 1);
    world.set_state(&key, Some("Sync"));
    world.settle(5000);
    assert!(world.cluster.get(&at_cluster("configmaps", "a")).is_some());
    // Without an operator the agent sets its finalizer by itself, before there is a copy.
    assert_eq!(world.count(Kind::Claim), 1);
    assert_steady(&mut world);
}

/// An object that has run to its end isn't run again because its copy was cleaned up.
#[test]
fn finished_jobs_stay_finished() {
    let mut world = World::new();
    world.create(assigned("jobs.batch", "a", json!({"spec": {"parallelism": 1}})));
    world.settle(1000);
    let key = at_cluster("jobs.batch", "a");
    let done = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    world.meddle(&key, "status", "controller", done);
    world.settle(1000);
    world.cluster.delete(&key, None);
    world.settle(60_000);
    assert_eq!(world.cluster.get(&key), None);
    assert_eq!(world.count(Kind::Apply), 1);
}

/// Objects on both sides of an engine that was told nothing else: Events of copies go up once.
#[test]
fn events_of_copies() {
    let mut world = World::new();
    world.create(deployment("web", "web:1", 2));
    world.settle(1000);
    let copy = world.cluster.get(&at_cluster("deployments.apps", "web")).unwrap();
    let event = |uid: &Value| {
        json!({
            "type": "Warning", "reason": "FailedCreate", "message": "no quota",
            "involvedObject": {"apiVersion": "apps/v1", "kind": "Deployment",
                "namespace": "shop", "name": "web", "uid": uid},
        })
    };
    for uid in [&copy["metadata"]["uid"], &copy["metadata"]["uid"], &json!("other")] {
        let now = world.now();
        world.engine.event(&event(uid), now);
        world.settle(1000);
    }
    let told: Vec<_> = { world.hub.objects.iter() }
        .filter(|(key, object)| key.0 == "events" && object["reason"] == "FailedCreate")
        .map(|(_, object)| object["involvedObject"]["uid"].clone())
        .collect();
    let uid = world.hub.get(&at_hub("deployments.apps", "web")).unwrap()["metadata"]["uid"].clone();
    assert_eq!(told, [uid]);
}

/// 2,000 objects of some 3 KB, on both sides, are kept in little memory: what is kept of bodies
/// is bounded by what is in them.
#[test]
fn a_side_that_comes_late() {
    let mut world = World::new();
    for index in 0..50 {
        world.create(config(&format!("a{index}"), "1"));
    }
    // The physical cluster is not seen yet: nothing is applied blindly.
    world.list(Side::Upstream, "configmaps", None);
    let now = world.now();
    assert_eq!(world.engine.plan(now, 100), []);
    world.settle(1000);
    assert_eq!(world.engine.summary().synced, 50);
    assert_steady(&mut world);
}

/// An object that several targets hold has no status of its own: each has an ObjectSync.
#[test]
fn objects_that_are_copied_to_several() {
    let mut world = World::new();
    let mut object = deployment("web", "web:1", 2);
    object["metadata"]["labels"]["sync.workloads.kcp.io/infra.west"] = "Sync".into();
    world.create(object);
    world.settle(1000);
    world.run(&at_cluster("deployments.apps", "web"));
    world.settle(5000);
    let object = world.hub.get(&at_hub("deployments.apps", "web")).unwrap();
    assert!(object.get("status").is_none());
    let record = (
        "objectsyncs.workload.kcp.io".to_owned(),
        "infra".to_owned(),
        "shop".to_owned(),
        "deployments.apps.web--east".to_owned(),
    );
    let seen = world.hub.get(&record).unwrap();
    assert_eq!(seen["status"]["raw"], json!({"observedGeneration": 1, "replicas": 2}));
    assert_eq!(seen["status"]["conditions"][0]["status"], "True");
    world.relist();
    assert_eq!(world.settle(600_000), []);
    // When it is ours alone, the status is its own, and the record goes.
    world.change(
        &at_hub("deployments.apps", "web"),
        json!({"metadata": {"labels":
        {"sync.workloads.kcp.io/infra.west": null}}}),
    );
    world.settle(5000);
    let object = world.hub.get(&at_hub("deployments.apps", "web")).unwrap();
    assert_eq!(object["status"]["replicas"], 2);
    assert_eq!(world.hub.get(&record), None);
    assert_steady(&mut world);
}

/// What is never synced has no copy, and is released when it is asked back.
#[test]
fn objects_that_are_never_synced() {
    let mut world = World::new();
    world.create(config("kube-root-ca.crt", "1"));
    world.create(assigned(
        "secrets",
        "token",
        json!({
            "type": "kubernetes.io/service-account-token",
        }),
    ));
    assert_steady(&mut world);
    assert_eq!(world.count(Kind::Apply), 0);
    for (resource, name) in [("configmaps", "kube-root-ca.crt"), ("secrets", "token")] {
        world.hub.delete(&at_hub(resource, name), None);
        world.settle(5000);
        assert_eq!(world.hub.get(&at_hub(resource, name)), None);
    }
}
