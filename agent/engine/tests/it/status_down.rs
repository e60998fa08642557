//! Status that controllers write at the hub goes down, and only what is the hub's.

use std::sync::Arc;

use engine::{GroupResource, Kind, StatusDown, Target};
use serde_json::{Value, json};

use crate::model::{Key, merge, status};
use crate::objects::{at_cluster, at_hub, deployment, target};
use crate::steady::assert_steady;
use crate::world::World;

const DEPLOYMENTS: &str = "deployments.apps";

fn hub() -> Key {
    at_hub(DEPLOYMENTS, "web")
}

fn copy() -> Key {
    at_cluster(DEPLOYMENTS, "web")
}

fn sharing(fields: &[&str]) -> Target {
    let rule = StatusDown::new(GroupResource::new("apps", "deployments"), fields.iter().copied());
    Target { status_down: Arc::from([rule]), ..target() }
}

/// A world with one object, whose copy is there.
fn with(fields: &[&str]) -> World {
    let mut world = World::with(sharing(fields));
    world.create(deployment("web", "web:1", 1));
    world.settle(1000);
    world
}

/// A controller of the hub writes its status.
fn says(world: &mut World, content: Value) {
    let patch = json!({"status": content});
    let (code, body) = world.hub.patch(&hub(), "status", "hub-controller", |object| {
        merge(object, &patch);
        true
    });
    assert_eq!(code, 200, "{body}");
}

/// A controller of the physical cluster writes the copy's.
fn does(world: &mut World, content: Value) {
    world.meddle(&copy(), "status", "controller", json!({"status": content}));
}

fn statuses(world: &World) -> [Value; 2] {
    [world.hub.get(&hub()), world.cluster.get(&copy())].map(|one| one.unwrap()["status"].clone())
}

/// (fields, what the hub's controller writes, what the cluster's does, the hub's, the copy's)
#[test]
fn each_field_has_one_owner() {
    for (fields, above, below, expect) in [
        (
            &["address"][..],
            json!({"address": "a.example"}),
            json!({"replicas": 1}),
            [
                json!({"address": "a.example", "replicas": 1}),
                json!({"address": "a.example", "replicas": 1}),
            ],
        ),
        // Each writes what is the other's.
        (
            &["address"],
            json!({"address": "a.example", "replicas": 7}),
            json!({"address": "b.example", "replicas": 1}),
            [
                json!({"address": "a.example", "replicas": 1}),
                json!({"address": "a.example", "replicas": 1}),
            ],
        ),
        // Within the same member.
        (
            &["network.address"],
            json!({"network": {"address": "a", "ready": false}}),
            json!({"network": {"address": "b", "ready": true}}),
            [
                json!({"network": {"address": "a", "ready": true}}),
                json!({"network": {"address": "a", "ready": true}}),
            ],
        ),
        // Lists are whole.
        (
            &["conditions"],
            json!({"conditions": [{"type": "Bound", "status": "True"}]}),
            json!({"replicas": 1}),
            [
                json!({"conditions": [{"type": "Bound", "status": "True"}], "replicas": 1}),
                json!({"conditions": [{"type": "Bound", "status": "True"}], "replicas": 1}),
            ],
        ),
        // The whole status: nothing comes up, and what others add stays theirs.
        (
            &[],
            json!({"address": "a"}),
            json!({"replicas": 1}),
            [json!({"address": "a"}), json!({"address": "a", "replicas": 1})],
        ),
        // Nobody at the hub says anything: nothing is made up.
        (
            &["address"],
            json!({}),
            json!({"replicas": 1}),
            [json!({"replicas": 1}), json!({"replicas": 1})],
        ),
    ] {
        let mut world = with(fields);
        says(&mut world, above.clone());
        does(&mut world, below.clone());
        world.settle(10_000);
        // Each writes once more, now that all is as it is to be.
        says(&mut world, above);
        does(&mut world, below);
        assert_steady(&mut world);
        assert_eq!(statuses(&world), expect, "{fields:?}");
    }
}

#[test]
fn what_the_hub_takes_back_goes() {
    let mut world = with(&["address", "network.name"]);
    says(&mut world, json!({"address": "a", "network": {"name": "n"}}));
    does(&mut world, json!({"replicas": 1}));
    world.settle(1000);
    assert_eq!(
        statuses(&world)[1],
        json!({"address": "a", "network": {"name": "n"}, "replicas": 1})
    );
    says(&mut world, json!({"address": null, "network": null}));
    world.settle(1000);
    assert_eq!(statuses(&world), [json!({"replicas": 1}), json!({"replicas": 1})]);
    assert_steady(&mut world);
}

/// Somebody in the cluster changes what is the hub's: it is put back, up to a point, and told.
#[test]
fn what_is_the_hubs_is_put_back() {
    let mut world = with(&["address"]);
    says(&mut world, json!({"address": "a"}));
    world.settle(1000);
    for address in [json!("b"), Value::Null] {
        does(&mut world, json!({"address": address}));
        world.settle(1000);
        assert_eq!(statuses(&world)[1]["address"], "a");
    }
    assert_steady(&mut world);
    let before = world.count(Kind::StatusDown);
    for round in 0..50 {
        does(&mut world, json!({"address": format!("c{round}")}));
        world.settle(200);
    }
    let repairs = world.count(Kind::StatusDown) - before;
    assert!(repairs <= 10, "{repairs} in 10 s");
    assert!(world.engine.summary().problems.contains_key("Drifted"));
    world.settle(120_000);
    assert_eq!(statuses(&world)[1]["address"], "a");
    assert!(world.engine.summary().problems.is_empty());
    // The copy itself was never touched, nor anything at the hub.
    assert_eq!(world.count(Kind::Apply), 1);
}

/// What the hub has observed of its object has observed the copy as it is, in the copy's generations.
#[test]
fn generations_are_the_copys() {
    let mut world = with(&["observedGeneration"]);
    // Others change the copy: its generation runs ahead of the object's.
    for image in ["x", "y"] {
        let spec = json!({"spec": {"other": image}});
        world.meddle(&copy(), "", "admin", spec);
    }
    world.settle(1000);
    let of = |object: Option<Value>| object.unwrap()["metadata"]["generation"].clone();
    let (above, below) = (of(world.hub.get(&hub())), of(world.cluster.get(&copy())));
    assert_ne!(above, below);
    says(&mut world, json!({"observedGeneration": above}));
    world.settle(1000);
    let [hubs, copys] = statuses(&world);
    assert_eq!((&hubs["observedGeneration"], &copys["observedGeneration"]), (&above, &below));
    // Changed since: nobody is told too early.
    world.change(&hub(), json!({"spec": {"replicas": 5}}));
    world.settle(1000);
    let after = of(world.cluster.get(&copy()));
    assert!(statuses(&world)[1]["observedGeneration"].as_i64() < after.as_i64());
    let changed = of(world.hub.get(&hub()));
    says(&mut world, json!({"observedGeneration": changed}));
    world.settle(1000);
    assert_eq!(statuses(&world)[1]["observedGeneration"], after);
    assert_steady(&mut world);
}

/// Of a type that isn't opted in, and where the cluster has no such subresource, all is as ever.
#[test]
fn nothing_goes_down_unasked() {
    let unasked = |world: &mut World| {
        world.create(deployment("web", "web:1", 1));
        world.settle(1000);
        says(world, json!({"address": "a", "replicas": 7}));
        does(world, json!({"replicas": 1}));
        assert_steady(world);
        assert_eq!(statuses(world), [json!({"replicas": 1}), json!({"replicas": 1})]);
        assert_eq!(world.count(Kind::StatusDown), 0);
    };
    unasked(&mut World::new());
    let mut world = World::with(sharing(&["address"]));
    for kind in &mut world.kinds {
        kind.downstream_status = false;
    }
    world.start();
    unasked(&mut world);
}

/// The SyncTarget says so later, and then no more.
#[test]
fn a_rule_comes_and_goes() {
    let mut world = World::new();
    world.create(deployment("web", "web:1", 1));
    world.settle(1000);
    does(&mut world, json!({"address": "b", "replicas": 1}));
    world.settle(1000);
    assert_eq!(statuses(&world)[0], json!({"address": "b", "replicas": 1}));
    // What has come up stays, and is the hub's from now on.
    let set = |world: &mut World, target: Target| {
        world.target = target.clone();
        let now = world.now();
        world.engine.set_target(target, now);
        world.settle(1000);
    };
    set(&mut world, sharing(&["address"]));
    says(&mut world, json!({"address": "a"}));
    world.settle(1000);
    assert_eq!(statuses(&world)[1], json!({"address": "a", "replicas": 1}));
    assert_steady(&mut world);
    // No more: what went down stays, and is the cluster's.
    set(&mut world, target());
    assert_eq!(statuses(&world)[1]["address"], "a");
    does(&mut world, json!({"address": "c"}));
    assert_steady(&mut world);
    let both = json!({"address": "c", "replicas": 1});
    assert_eq!(statuses(&world), [both.clone(), both]);
}

/// What the cluster doesn't take is told, and tried again when it changes; the copy goes on.
#[test]
fn a_status_that_is_refused_is_told() {
    let mut world = with(&["address"]);
    let refused = status(422, "Invalid", "address: Invalid value", json!({}));
    world.cluster.refusals.insert("web".to_owned(), refused);
    says(&mut world, json!({"address": "?"}));
    world.settle(10_000);
    assert_eq!(world.engine.summary().problems.get("StatusRefused"), Some(&1));
    world.cluster.refusals.clear();
    says(&mut world, json!({"address": "a"}));
    let before = world.clock;
    world.settle(1000);
    assert!(world.clock - before <= 1000);
    assert_eq!(statuses(&world)[1]["address"], "a");
    world.change(&hub(), json!({"spec": {"replicas": 4}}));
    world.settle(1000);
    assert_eq!(world.cluster.get(&copy()).unwrap()["spec"]["replicas"], 4);
    assert!(world.engine.summary().problems.is_empty());
    assert_steady(&mut world);
}

/// Lost answers and new copies: whatever happens in between, it ends as it is to be.
#[test]
fn a_copy_that_was_made_again_has_it_again() {
    let mut world = with(&["address"]);
    says(&mut world, json!({"address": "a"}));
    world.watch();
    let now = world.now();
    let actions = world.engine.plan(now, 8);
    assert_eq!(actions.iter().map(|action| action.kind).collect::<Vec<_>>(), [Kind::StatusDown]);
    for action in &actions {
        let _unseen = world.make(action);
        world.lose(action);
    }
    world.settle(60_000);
    assert_eq!(statuses(&world)[1]["address"], "a");
    world.cluster.delete(&copy(), None);
    world.settle(60_000);
    assert_eq!(statuses(&world)[1]["address"], "a");
    assert_steady(&mut world);
}
