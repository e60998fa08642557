//! What fails holds up nothing else, and is told.

use std::time::Duration;

use engine::{Failure, Kind, Outcome, Side};
use serde_json::{Value, json};

use crate::model::status;
use crate::objects::{assigned, at_cluster, at_hub, config, deployment, kinds};
use crate::threads::{copies, record, with_configs};
use crate::world::World;

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

/// What is refused, and why, is told even where the value in between is long, as of a Job's template.
#[test]
fn the_reason_stands_after_a_long_value() {
    let mut world = World::new();
    let text = format!("spec.template: Invalid value: {}: field is immutable", "x".repeat(5000));
    world.cluster.refusals.insert("bad".into(), status(422, "Invalid", &text, json!({})));
    world.create(config("bad", "1"));
    world.settle(60_000);
    let seen = record(&world, "configmaps.bad").unwrap();
    let applied = &seen["status"]["conditions"][0];
    assert_eq!(applied["reason"], "ApplyImmutable");
    let told = applied["message"].as_str().unwrap();
    assert!(told.contains("spec.template") && told.ends_with("field is immutable"), "{told}");
    assert!(told.chars().count() < 1100, "{told}");
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

/// A copy that can't be deleted to be made again is tried now and then.
#[test]
fn copies_that_cannot_be_made_again() {
    let mut world = with_configs(1);
    let (hub, key) = (at_hub("configmaps", "a0"), at_cluster("configmaps", "a0"));
    let annotation = json!({"workloads.kcp.io/on-immutable": "Recreate"});
    world.change(&hub, json!({"metadata": {"annotations": annotation}}));
    world.settle(1000);
    let refusal = status(422, "Invalid", "data: field is immutable", json!({}));
    world.cluster.refusals.insert("a0".into(), refusal);
    world.cluster.keeps = true;
    world.change(&hub, json!({"data": {"key": "2"}}));
    world.settle(60_000);
    let tried = world.count(Kind::Delete);
    assert!((1..=20).contains(&tried), "{tried} in a minute");
    assert!(world.cluster.get(&key).is_some());
}
