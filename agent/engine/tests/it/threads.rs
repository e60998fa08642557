//! Faults that other systems have had, each as a test that is called after its thread; and what is
//! never done.

use std::time::Duration;

use engine::{
    Approvals, Exemption, Failure, Identity, Kind, Outcome, Paused, Side, UpstreamChange,
};
use serde_json::{Value, json};

use crate::model::status;
use crate::objects::{STATE, assigned, at_cluster, at_hub, config, deployment, kinds, target};
use crate::world::World;

/// A world with some ConfigMaps that are synced.
fn with_configs(count: usize) -> World {
    let mut world = World::new();
    for index in 0..count {
        world.create(config(&format!("a{index}"), "1"));
    }
    world.settle(1000);
    assert_eq!(copies(&world), count);
    world
}

fn copies(world: &World) -> usize {
    world.cluster.objects.keys().filter(|key| key.0 == "configmaps").count()
}

fn record(world: &World, name: &str) -> Option<Value> {
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

/// What the physical cluster refuses pauses, longer each time, is told, and holds up nothing.
#[test]
fn refusals_hold_up_nothing_else() {
    let cases = [
        (422, "Invalid", "spec.selector: Invalid value: field is immutable", "ApplyImmutable"),
        (422, "Invalid", "spec.x: Invalid value", "ApplyInvalid"),
        (403, "Forbidden", "exceeded quota", "ApplyForbidden"),
        (413, "RequestEntityTooLarge", "limit is 3145728", "ApplyTooLarge"),
        (500, "InternalError", "failed calling webhook", "ApplyFailed"),
    ];
    for (code, reason, text, expect) in cases {
        let mut world = World::new();
        world.cluster.refusals.insert("bad".into(), status(code, reason, text, json!({})));
        world.create(config("bad", "1"));
        world.create(config("good", "1"));
        world.settle(60_000);
        assert!(world.cluster.get(&at_cluster("configmaps", "good")).is_some(), "{expect}");
        let bad = |world: &World| {
            let made =
                world.made.iter().filter(|(kind, key)| *kind == Kind::Apply && key.3 == "bad");
            made.count()
        };
        let tried = bad(&world);
        assert!((3..=10).contains(&tried), "{expect}: {tried} in a minute");
        world.settle(3_600_000);
        let hour = bad(&world) - tried;
        assert!(hour <= 20, "{expect}: {hour} in an hour");
        assert_eq!(world.engine.summary().problems.get(expect), Some(&1));
        let seen = record(&world, "configmaps.bad").unwrap();
        assert_eq!(seen["status"]["conditions"][0]["reason"], expect);
        // A change is tried at once, and what is well has no record.
        world.cluster.refusals.clear();
        world.change(&at_hub("configmaps", "bad"), json!({"data": {"key": "2"}}));
        world.settle(1000);
        let copy = world.cluster.get(&at_cluster("configmaps", "bad")).unwrap();
        assert_eq!(copy["data"]["key"], "2", "{expect}");
        assert_eq!(record(&world, "configmaps.bad"), None, "{expect}");
    }
}

/// What is said of a Secret may hold what is in it.
#[test]
fn refusals_of_secrets_tell_no_values() {
    let mut world = World::new();
    let causes = json!({"causes": [{"field": "data.password", "message": "Invalid: hunter2"}]});
    let refusal = status(422, "Invalid", "data.password: Invalid value: \"hunter2\"", causes);
    world.cluster.refusals.insert("a".into(), refusal);
    world.create(assigned("secrets", "a", json!({"data": {"password": "hunter2"}})));
    world.settle(60_000);
    let seen = record(&world, "secrets.a").unwrap();
    assert!(seen.to_string().contains("data.password"));
    for (key, object) in &world.hub.objects {
        assert!(key.0 == "secrets" || !object.to_string().contains("hunter2"), "{key:?}");
    }
}

/// A type that is gone is looked for now and then, not for each object.
#[test]
fn a_type_that_vanishes() {
    let mut world = with_configs(50);
    world.cluster.unserved.insert("configmaps".into());
    for index in 0..50 {
        let key = at_hub("configmaps", &format!("a{index}"));
        world.change(&key, json!({"data": {"key": "2"}}));
    }
    world.create(deployment("web", "web:1", 1));
    world.settle(60_000);
    assert!(world.cluster.get(&at_cluster("deployments.apps", "web")).is_some());
    assert_eq!(world.engine.summary().missing_types.len(), 1);
    let tried = world.count(Kind::Apply);
    assert!(tried < 50 + 1 + 80, "{tried}");
    world.cluster.unserved.clear();
    world.settle(60_000);
    let copy = world.cluster.get(&at_cluster("configmaps", "a7")).unwrap();
    assert_eq!(copy["data"]["key"], "2");
}

/// More deletes than usual wait for a person, who names their number.
#[test]
fn the_brake_on_deletes() {
    let mut world = with_configs(60);
    for index in 0..60 {
        world.set_state(&at_hub("configmaps", &format!("a{index}")), Some("Remove"));
    }
    world.settle(600_000);
    assert_eq!(copies(&world), 40);
    assert_eq!(world.engine.summary().paused, Some(Paused { number: 40, allowed: 20 }));
    let approvals = |number| Approvals { deletions: Some(number), ..Approvals::default() };
    world.approve(approvals(60), &[]);
    world.settle(10_000);
    assert_eq!(copies(&world), 40);
    world.approve(approvals(40), &[]);
    world.settle(10_000);
    assert_eq!(copies(&world), 0);
    assert_eq!(world.engine.summary().paused, None);
    // It is used up, though it is still there: the next wave of that number waits.
    for index in 0..60 {
        world.set_state(&at_hub("configmaps", &format!("a{index}")), Some("Sync"));
    }
    world.settle(120_000);
    for index in 0..60 {
        world.set_state(&at_hub("configmaps", &format!("a{index}")), Some("Remove"));
    }
    world.settle(120_000);
    world.approve(approvals(40), &[]);
    world.settle(10_000);
    assert_eq!(copies(&world), 40);
    world.approve(Approvals::default(), &[]);
    world.approve(approvals(40), &[]);
    world.settle(10_000);
    assert_eq!(copies(&world), 0);
}

/// Before it is known who is upstream, nothing is done.
#[test]
fn a_hub_that_is_not_known_yet() {
    let mut world = World::new();
    world.identity = None;
    world.start();
    world.create(config("a", "1"));
    world.settle(60_000);
    assert_eq!(world.made, []);
    world.identify(Some(target().identity));
    world.settle(1000);
    assert_eq!(copies(&world), 1);
}

/// What a person has deleted as a whole is no wave.
#[test]
fn deletes_that_are_exempt() {
    for exemption in [
        Exemption::Target,
        Exemption::Cluster("infra".into()),
        Exemption::Namespace("infra".into(), "shop".into()),
    ] {
        let mut world = with_configs(60);
        world.approve(Approvals::default(), &[exemption]);
        for index in 0..60 {
            world.set_state(&at_hub("configmaps", &format!("a{index}")), Some("Remove"));
        }
        world.settle(10_000);
        assert_eq!(copies(&world), 0);
    }
    let mut world = with_configs(60);
    world.approve(Approvals::default(), &[Exemption::Namespace("infra".into(), "other".into())]);
    for index in 0..60 {
        world.set_state(&at_hub("configmaps", &format!("a{index}")), Some("Remove"));
    }
    world.settle(10_000);
    assert_eq!(copies(&world), 40);
}

/// Another hub at the same address: nothing is done at all.
#[test]
fn a_hub_that_was_made_anew() {
    let mut world = with_configs(5);
    world.hub = crate::model::Server::new(5000);
    world.hub.guards = true;
    let other = Identity { hub: "hub-2".into(), ..target().identity };
    world.identify(Some(other));
    world.relist();
    let mut object = config("a0", "9");
    object["metadata"]["labels"][STATE] = "Remove".into();
    world.create(object);
    assert_eq!(world.settle(600_000), []);
    assert_eq!(copies(&world), 5);
    let summary = world.engine.summary();
    assert_eq!(summary.upstream_changed, Some(UpstreamChange::Identity));
    // The old one is back.
    world.identify(Some(target().identity));
    assert_eq!(world.engine.summary().upstream_changed, None);
}

/// A hub restored from an old backup, in which a removal is still wanted that was taken back
/// since: nothing is deleted until a person has accepted it.
#[test]
fn a_hub_that_has_gone_back() {
    for restarts in [false, true] {
        let mut world = with_configs(3);
        let key = at_hub("configmaps", "a0");
        world.set_state(&key, Some("Remove"));
        let backup = world.hub.revision;
        world.set_state(&key, Some("Sync"));
        world.change(&at_hub("configmaps", "a1"), json!({"data": {"key": "2"}}));
        world.settle(1000);
        world.identify(None);
        world.hub.restore(backup);
        if restarts {
            world.start();
        }
        world.relist();
        world.identify(Some(target().identity));
        world.settle(600_000);
        assert_eq!(copies(&world), 3, "{restarts}");
        assert_eq!(world.count(Kind::Delete), 0);
        let summary = world.engine.summary();
        let Some(UpstreamChange::Older(number)) = summary.upstream_changed else {
            panic!("{restarts}: {summary:?}");
        };
        // Otherwise the hub is followed: it is the truth.
        let copy = world.cluster.get(&at_cluster("configmaps", "a1")).unwrap();
        assert_eq!(copy["data"]["key"], "1", "{restarts}");
        world.approve(Approvals { upstream: Some(number), ..Approvals::default() }, &[]);
        world.settle(60_000);
        assert_eq!(world.engine.summary().upstream_changed, None, "{restarts}");
        assert_eq!(copies(&world), 2, "{restarts}");
    }
}

/// The same, by an import that counts revisions from above all that were ever shown.
#[test]
fn a_hub_that_has_gone_back_with_new_revisions() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.create(deployment(name, "web:1", 1));
    }
    world.settle(1000);
    let key = at_hub("deployments.apps", "a");
    world.set_state(&key, Some("Remove"));
    let backup = world.hub.revision;
    world.set_state(&key, Some("Sync"));
    world.change(&key, json!({"spec": {"replicas": 2}}));
    world.settle(1000);
    world.hub.restore(backup);
    world.hub.revision += 1000;
    let revision = world.hub.revision.to_string();
    for object in world.hub.objects.values_mut() {
        object["metadata"]["resourceVersion"] = revision.clone().into();
    }
    world.relist();
    world.settle(600_000);
    assert_eq!(world.count(Kind::Delete), 0);
    let summary = world.engine.summary();
    let Some(UpstreamChange::Older(number)) = summary.upstream_changed else {
        panic!("{summary:?}");
    };
    world.approve(Approvals { upstream: Some(number), ..Approvals::default() }, &[]);
    world.settle(60_000);
    assert_eq!(world.cluster.get(&at_cluster("deployments.apps", "a")), None);
    assert!(world.cluster.get(&at_cluster("deployments.apps", "b")).is_some());
}

/// A copy whose object has gone from the hub without a trace stays, until a person says so.
#[test]
fn orphans() {
    let mut world = with_configs(3);
    let key = at_hub("configmaps", "a0");
    world.change(&key, json!({"metadata": {"finalizers": []}}));
    world.hub.delete(&key, None);
    world.set_state(&at_hub("configmaps", "a1"), None);
    assert_eq!(world.settle(600_000), []);
    assert_eq!(copies(&world), 3);
    assert_eq!(world.engine.summary().orphans, 2);
    world.approve(Approvals { orphans: Some(3), ..Approvals::default() }, &[]);
    world.settle(10_000);
    assert_eq!(copies(&world), 3);
    world.approve(Approvals { orphans: Some(2), ..Approvals::default() }, &[]);
    world.settle(10_000);
    assert_eq!(copies(&world), 1);
    assert_eq!(world.engine.summary().orphans, 0);
}

/// A namesake that was made after the finalizer was taken off by force is another object.
#[test]
fn a_namesake_of_an_orphan() {
    let mut world = with_configs(1);
    let key = at_hub("configmaps", "a0");
    let copy = world.cluster.get(&at_cluster("configmaps", "a0")).unwrap();
    world.change(&key, json!({"metadata": {"finalizers": []}}));
    world.hub.delete(&key, None);
    world.create(config("a0", "2"));
    world.settle(60_000);
    assert_eq!(world.cluster.get(&at_cluster("configmaps", "a0")).unwrap(), copy);
    assert_eq!(world.engine.summary().problems["Collision"], 1);
    assert_eq!(world.engine.summary().orphans, 1);
    assert_eq!(world.count(Kind::Delete), 0);
    // When a person gives the orphan up, the namesake takes its place.
    world.approve(Approvals { orphans: Some(1), ..Approvals::default() }, &[]);
    world.settle(60_000);
    let copy = world.cluster.get(&at_cluster("configmaps", "a0")).unwrap();
    assert_eq!(copy["data"]["key"], "2");
    assert_eq!(world.engine.summary().orphans, 0);
}

/// A SyncTarget that is made again has another UID: its copies are taken over, and nothing is made
/// twice.
#[test]
fn a_target_that_is_made_again() {
    let mut world = with_configs(3);
    let uids = |world: &World| -> Vec<Value> {
        let copies = world.cluster.objects.iter().filter(|(key, _)| key.0 == "configmaps");
        copies.map(|(_, object)| object["metadata"]["uid"].clone()).collect()
    };
    let before = uids(&world);
    world.target.identity.target = "target-2".into();
    world.identity = Some(world.target.identity.clone());
    world.start();
    world.settle(10_000);
    assert_eq!(uids(&world), before);
    assert_eq!(world.engine.summary().synced, 3);
    assert_eq!(world.settle(600_000), []);
}

/// Two targets over one physical cluster don't fight about a copy.
#[test]
fn a_copy_that_another_target_takes() {
    let mut world = with_configs(1);
    let key = at_cluster("configmaps", "a0");
    let label = json!({"metadata": {"labels": {"workloads.kcp.io/synctarget": "target-2"}}});
    world.meddle(&key, "", "kcp-syncer", label);
    let before = world.cluster.get(&key).unwrap();
    world.settle(600_000);
    assert_eq!(world.cluster.get(&key).unwrap(), before);
    assert_eq!(world.engine.summary().problems["Collision"], 1);
    // A label that is taken off altogether is put back.
    let mut world = with_configs(1);
    let label = json!({"metadata": {"labels": {"workloads.kcp.io/synctarget": null}}});
    world.meddle(&key, "", "admin", label);
    world.settle(10_000);
    assert_eq!(world.engine.summary().synced, 1);
    let labels = &world.cluster.get(&key).unwrap()["metadata"]["labels"];
    assert_eq!(labels["workloads.kcp.io/synctarget"], "target-1");
}

/// A copy that somebody else has copied, marks and all, under another name is not ours.
#[test]
fn copies_of_copies() {
    let mut world = with_configs(1);
    let mut object = world.cluster.get(&at_cluster("configmaps", "a0")).unwrap();
    object["metadata"]["name"] = "theirs".into();
    world.cluster.create(&at_cluster("configmaps", ""), object, "admin");
    let key = at_cluster("configmaps", "theirs");
    let before = world.cluster.get(&key).unwrap();
    world.start();
    assert_eq!(world.settle(60_000), []);
    world.hub.delete(&at_hub("configmaps", "a0"), None);
    world.settle(60_000);
    assert_eq!(world.cluster.get(&key).unwrap(), before);
    assert_eq!(world.cluster.get(&at_cluster("configmaps", "a0")), None);
}

/// A removal that is taken back between the read and the delete is not done.
#[test]
fn evidence_that_is_outdated() {
    let mut world = with_configs(1);
    let key = at_hub("configmaps", "a0");
    world.set_state(&key, Some("Remove"));
    world.watch();
    let read = loop {
        let now = world.now();
        let actions = world.engine.plan(now, 1);
        let action = actions.into_iter().next().expect("it reads the object first");
        if action.kind == Kind::GetUpstream {
            break action;
        }
        assert!(!action.kind.is_write(), "{action:?}");
        let outcome = world.make(&action);
        world.answer(&action, outcome);
    };
    let outcome = world.make(&read);
    world.set_state(&key, Some("Sync"));
    world.watch();
    world.answer(&read, outcome);
    world.settle(10_000);
    assert_eq!(copies(&world), 1);
    assert_eq!(world.count(Kind::Delete), 0);
}

/// The agent works on with what it knows while the hub is away: it repairs, and deletes nothing.
#[test]
fn repairs_without_the_hub() {
    let mut world = with_configs(2);
    world.identify(None);
    world.set_state(&at_hub("configmaps", "a1"), Some("Remove"));
    world.watch();
    let key = at_cluster("configmaps", "a0");
    world.meddle(&key, "", "admin", json!({"data": {"key": "9"}}));
    for _ in 0..200 {
        world.pass(500);
        world.step(Side::Downstream, "configmaps");
        let now = world.now();
        for action in world.engine.plan(now, 8) {
            if action.request.side == Side::Upstream {
                world.lose(&action);
            } else {
                let outcome = world.make(&action);
                world.answer(&action, outcome);
            }
        }
    }
    assert_eq!(world.cluster.get(&key).unwrap()["data"]["key"], "1");
    assert_eq!(copies(&world), 2);
}

/// An answer that never came: what was asked may have been done.
#[test]
fn lost_answers() {
    let mut world = World::new();
    world.create(config("a", "1"));
    let mut lost = 0;
    for round in 0..400 {
        world.watch();
        world.pass(500);
        let now = world.now();
        for action in world.engine.plan(now, 1) {
            let outcome = world.make(&action);
            if lost < 20 && action.kind.is_write() {
                lost += 1;
                let failure = if lost % 2 == 0 { Failure::Timeout } else { Failure::Unreachable };
                world.answer(&action, Outcome::Failed(failure));
            } else {
                world.answer(&action, outcome);
            }
        }
        if round == 100 {
            world.hub.delete(&at_hub("configmaps", "a"), None);
        }
    }
    world.settle(60_000);
    assert_eq!(copies(&world), 0);
    assert_eq!(world.hub.get(&at_hub("configmaps", "a")), None);
}

/// A whole side that refuses is asked again now and then, not once for each object.
#[test]
fn sides_that_do_not_answer() {
    for outcome in [
        Outcome::Failed(Failure::Unreachable),
        Outcome::answer(401, Value::Null),
        Outcome::Answer {
            status: 429,
            body: Value::Null,
            retry_after: Some(Duration::from_secs(5)),
        },
    ] {
        let mut world = World::new();
        for index in 0..100 {
            world.create(config(&format!("a{index}"), "1"));
        }
        world.watch();
        let mut asked = 0;
        for _ in 0..60 {
            world.pass(1000);
            let now = world.now();
            for action in world.engine.plan(now, 4) {
                asked += 1;
                world.answer(&action, outcome.clone());
            }
        }
        assert!(asked <= 150, "{outcome:?}: {asked} in a minute");
        world.settle(60_000);
        assert_eq!(copies(&world), 100);
    }
}

/// A namespace that is being deleted downstream, by others, comes back when it has gone.
#[test]
fn namespaces_that_others_delete() {
    let mut world = with_configs(3);
    let namespace = ("namespaces".into(), String::new(), String::new(), "shop".into());
    world.cluster.delete(&namespace, None);
    assert_eq!(copies(&world), 0);
    world.settle(60_000);
    assert_eq!(copies(&world), 3);
}

/// Types that are gone from the list of what is synced are left as they are.
#[test]
fn types_that_are_no_longer_synced() {
    let mut world = with_configs(3);
    let now = world.now();
    let without: Vec<_> =
        kinds().into_iter().filter(|kind| &*kind.resource.resource != "configmaps").collect();
    world.engine.types(without, now);
    world.set_state(&at_hub("configmaps", "a0"), Some("Remove"));
    world.change(&at_hub("configmaps", "a1"), json!({"data": {"key": "2"}}));
    assert_eq!(world.settle(60_000), []);
    assert_eq!(copies(&world), 3);
    world.engine.types(kinds(), now);
    world.relist();
    world.settle(60_000);
    assert_eq!(copies(&world), 2);
}

/// Immutable fields: only with permission is a copy deleted and made again.
#[test]
fn copies_that_are_made_again() {
    for permitted in [false, true] {
        let mut world = with_configs(1);
        let (hub, key) = (at_hub("configmaps", "a0"), at_cluster("configmaps", "a0"));
        let before = world.cluster.get(&key).unwrap()["metadata"]["uid"].clone();
        if permitted {
            let annotation = json!({"workloads.kcp.io/on-immutable": "Recreate"});
            world.change(&hub, json!({"metadata": {"annotations": annotation}}));
        }
        let refusal = status(422, "Invalid", "data: field is immutable", json!({}));
        world.cluster.refusals.insert("a0".into(), refusal);
        world.change(&hub, json!({"data": {"key": "2"}}));
        world.settle(100);
        let deleted = world.count(Kind::Delete);
        assert_eq!(deleted, usize::from(permitted));
        world.cluster.refusals.clear();
        if permitted {
            world.settle(60_000);
            let copy = world.cluster.get(&key).unwrap();
            assert_eq!(copy["data"]["key"], "2");
            assert_ne!(copy["metadata"]["uid"], before);
            assert_eq!(world.settle(600_000), []);
        }
    }
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
