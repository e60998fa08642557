//! Lists that are merged with what the physical cluster has in them.

use std::collections::BTreeSet;

use engine::{Approvals, Kind};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::objects::{assigned, at_cluster, at_hub};
use crate::steady::assert_steady;
use crate::world::World;

fn pull_secrets(world: &World, name: &str) -> Vec<String> {
    let copy = world.cluster.get(&at_cluster("serviceaccounts", name)).unwrap();
    let items = copy["imagePullSecrets"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

fn with_pull_secrets(names: &[&str]) -> Value {
    let items: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"imagePullSecrets": items})
}

/// Pull secrets are one value to server-side apply: what the cluster has in them stays all the same,
/// in the account that every namespace has as in any other.
#[test]
fn pull_secrets_are_merged() {
    for name in ["default", "robot"] {
        let mut world = World::new();
        let (hub, key) = (at_hub("serviceaccounts", name), at_cluster("serviceaccounts", name));
        if name == "default" {
            let namespace = ("namespaces".into(), String::new(), String::new(), "shop".into());
            world.cluster.create(&namespace, json!({"metadata": {"name": "shop"}}), "admin");
            let mut theirs = with_pull_secrets(&["theirs"]);
            theirs["metadata"] = json!({"name": name});
            world.cluster.create(&key, theirs, "admin");
        }
        world.create(assigned("serviceaccounts", name, with_pull_secrets(&["ours"])));
        world.settle(1000);
        if name == "robot" {
            let both = with_pull_secrets(&["ours", "theirs"]);
            world.meddle(&key, "", "admin", both);
        }
        let is = |world: &World, expect: &[&str]| {
            let mut found = pull_secrets(world, name);
            found.sort();
            assert_eq!(found, expect, "{name}");
        };
        assert_steady(&mut world);
        is(&world, &["ours", "theirs"]);
        // More at the hub, and less.
        world.change(&hub, with_pull_secrets(&["ours", "second"]));
        world.settle(1000);
        is(&world, &["ours", "second", "theirs"]);
        world.change(&hub, with_pull_secrets(&["second"]));
        world.settle(1000);
        is(&world, &["second", "theirs"]);
        assert_steady(&mut world);
        // More in the cluster, and what is ours taken out there: it comes back, and theirs stays.
        world.meddle(&key, "", "admin", with_pull_secrets(&["theirs", "fourth"]));
        world.settle(2000);
        is(&world, &["fourth", "second", "theirs"]);
        assert_steady(&mut world);
        // Something that both have isn't taken away with the hub's.
        world.change(&hub, with_pull_secrets(&["fourth"]));
        world.settle(1000);
        is(&world, &["fourth", "theirs"]);
        world.change(&hub, json!({"imagePullSecrets": null}));
        world.settle(1000);
        is(&world, &["fourth", "theirs"]);
        assert_steady(&mut world);
        world.change(&hub, with_pull_secrets(&["last"]));
        world.settle(1000);
        is(&world, &["fourth", "last", "theirs"]);
        world.hub.delete(&hub, None);
        world.settle(1000);
        assert_eq!(world.hub.get(&hub), None);
        if name == "default" {
            is(&world, &["fourth", "theirs"]);
            assert_eq!(world.count(Kind::Delete), 0);
        } else {
            assert_eq!(world.cluster.get(&key), None);
        }
    }
}

/// Somebody writes between our look and our apply: nothing of it is lost.
#[test]
fn pull_secrets_that_come_in_between() {
    let mut world = World::new();
    let key = at_cluster("serviceaccounts", "robot");
    world.create(assigned("serviceaccounts", "robot", with_pull_secrets(&["ours"])));
    world.settle(1000);
    world.change(&at_hub("serviceaccounts", "robot"), with_pull_secrets(&["ours", "second"]));
    world.watch();
    world.pending = world.engine.plan(world.now(), 8);
    assert_eq!(world.pending.len(), 1, "{:?}", world.pending);
    world.meddle(&key, "", "admin", with_pull_secrets(&["ours", "theirs"]));
    world.settle(10_000);
    let mut found = pull_secrets(&world, "robot");
    found.sort();
    assert_eq!(found, ["ours", "second", "theirs"]);
    assert_steady(&mut world);
}

/// What may not be deleted isn't, whatever is asked for: not to make it again with other fields, nor
/// when a person gives up what the hub doesn't know any more.
#[test]
fn shared_objects_are_never_deleted() {
    let mut world = World::new();
    let namespace = ("namespaces".into(), String::new(), String::new(), "shop".into());
    world.cluster.create(&namespace, json!({"metadata": {"name": "shop"}}), "admin");
    let key = at_cluster("serviceaccounts", "default");
    let mut theirs = with_pull_secrets(&["theirs"]);
    theirs["metadata"] = json!({"name": "default"});
    world.cluster.create(&key, theirs, "admin");
    let mut account = assigned("serviceaccounts", "default", with_pull_secrets(&["ours"]));
    account["metadata"]["annotations"] = json!({"workloads.kcp.io/on-immutable": "Recreate"});
    world.create(account);
    world.settle(10_000);
    let why = crate::model::status(422, "Invalid", "field is immutable", json!({}));
    world.cluster.refusals.insert("default".into(), why);
    world.change(&at_hub("serviceaccounts", "default"), with_pull_secrets(&["second"]));
    world.settle(10_000);
    world.cluster.refusals.clear();
    assert_eq!(world.count(Kind::Delete), 0);
    world.settle(600_000);
    // The hub forgets it.
    world.hub.objects.remove(&at_hub("serviceaccounts", "default"));
    world.relist();
    world.settle(10_000);
    assert_eq!(world.engine.summary().orphans, 1);
    world.approve(Approvals { orphans: Some(1), ..Approvals::default() }, &[]);
    world.settle(60_000);
    assert_eq!(world.count(Kind::Delete), 0);
    assert_eq!(pull_secrets(&world, "default"), ["theirs"]);
    let copy = world.cluster.get(&key).unwrap();
    assert_eq!(copy["metadata"]["labels"].get("workloads.kcp.io/synctarget"), None);
}

/// Who writes the list anew has it, also when nothing but the hub's is in it.
#[test]
fn what_somebody_else_has_written_again_goes_with_the_hub_s() {
    let mut world = World::new();
    let (hub, key) = (at_hub("serviceaccounts", "robot"), at_cluster("serviceaccounts", "robot"));
    world.create(assigned("serviceaccounts", "robot", with_pull_secrets(&["c"])));
    world.settle(1000);
    for names in [["c", "y"].as_slice(), &["c"]] {
        world.meddle(&key, "", "admin", with_pull_secrets(names));
        world.settle(1000);
        assert_eq!(pull_secrets(&world, "robot"), names);
    }
    world.change(&hub, with_pull_secrets(&[]));
    world.settle(300_000);
    assert_eq!(pull_secrets(&world, "robot"), [""; 0]);
    assert_steady(&mut world);
}

/// What happens to an account, on either side and between.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// The hub has this one, or hasn't any more.
    Hub(&'static str, bool),
    /// The cluster has put this one in, or taken it out; of the hub's, too.
    Cluster(&'static str, bool),
    /// What the agent was about to do is done only after what comes next.
    Late,
    /// Its connections break.
    Relist,
    /// Another process begins.
    Restart,
    Settle,
}

fn deed() -> impl Strategy<Value = Deed> {
    let ours = prop::sample::select(vec!["a", "b", "c"]);
    let theirs = prop::sample::select(vec!["x", "y", "a", "b"]);
    prop_oneof![
        4 => (ours, any::<bool>()).prop_map(|(name, there)| Deed::Hub(name, there)),
        4 => (theirs, any::<bool>()).prop_map(|(name, there)| {
            // What both put in is of who was first: a table tells of that.
            Deed::Cluster(name, there && matches!(name, "x" | "y"))
        }),
        3 => Just(Deed::Late),
        1 => Just(Deed::Relist),
        1 => Just(Deed::Restart),
        3 => Just(Deed::Settle),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever comes between, in the end all of the hub's and of the cluster's is there, and nothing else;
    /// and then nothing is written any more.
    #[test]
    fn pull_secrets_of_both_sides(deeds in prop::collection::vec(deed(), 1..25)) {
        let mut world = World::new();
        let (hub, key) = (at_hub("serviceaccounts", "robot"), at_cluster("serviceaccounts", "robot"));
        world.create(assigned("serviceaccounts", "robot", json!({})));
        world.settle(1000);
        let (mut ours, mut theirs) = (BTreeSet::new(), BTreeSet::new());
        for deed in &deeds {
            match *deed {
                Deed::Hub(name, there) => {
                    if there { ours.insert(name) } else { ours.remove(name) };
                    let names: Vec<&str> = ours.iter().copied().collect();
                    world.change(&hub, with_pull_secrets(&names));
                }
                Deed::Cluster(name, there) => {
                    let is_theirs = matches!(name, "x" | "y");
                    let mut names = pull_secrets(&world, "robot");
                    names.retain(|other| other != name);
                    if there {
                        names.push(name.to_owned());
                        theirs.insert(name);
                    } else if is_theirs {
                        theirs.remove(name);
                    }
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    world.meddle(&key, "", "admin", with_pull_secrets(&names));
                }
                Deed::Late => {
                    world.watch();
                    let now = world.now();
                    let more = world.engine.plan(now, 8);
                    world.pending.extend(more);
                }
                Deed::Relist => world.relist(),
                Deed::Restart => {
                    world.pending.clear();
                    world.start();
                }
                Deed::Settle => drop(world.settle(5_000)),
            }
        }
        // Somebody who keeps changing what is the hub's is waited for.
        world.settle(300_000);
        let found: BTreeSet<String> = pull_secrets(&world, "robot").into_iter().collect();
        let expect: BTreeSet<String> = ours.union(&theirs).map(|name| (*name).to_owned()).collect();
        prop_assert_eq!(found, expect, "{:?}", deeds);
        assert_steady(&mut world);
    }
}
