//! What is never deleted, and what is: evidence, the brake, orphans, hubs that are not what they
//! were.

use engine::{Approvals, Exemption, Identity, Kind, Paused, UpstreamChange};
use serde_json::{Value, json};

use crate::objects::{STATE, at_cluster, at_hub, config, deployment, target};
use crate::threads::{copies, with_configs};
use crate::world::World;

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
