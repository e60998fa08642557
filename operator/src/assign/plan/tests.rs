//! What becomes of marks: a table, and laws.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::marks::patch;

const TEAM: &str = "team";
const EAST: &str = "team.east";
const WEST: &str = "infra.west";

/// Standings by global name; others are gone.
#[derive(Clone, Debug)]
struct Fixed(BTreeMap<&'static str, Standing>);

impl Targets for Fixed {
    fn standing(&self, global: &str, _: &str, _: &GroupResource) -> Standing {
        self.0.get(global).copied().unwrap_or(Standing::Gone)
    }
}

fn both(east: Standing, west: Standing) -> Fixed {
    Fixed(BTreeMap::from([(EAST, east), (WEST, west)]))
}

fn deployments() -> GroupResource {
    ("apps".to_owned(), "deployments".to_owned())
}

/// An object's metadata: its intent, its states, its finalizers.
fn metadata(intent: Option<&str>, states: &[(&str, &str)], finalizers: &[&str]) -> Value {
    let mut labels = json!({});
    if let Some(intent) = intent {
        labels["workloads.kcp.io/cluster"] = intent.into();
    }
    for (target, state) in states {
        labels[format!("sync.workloads.kcp.io/{target}")] = (*state).into();
    }
    let finalizers: Vec<String> =
        finalizers.iter().map(|target| format!("workloads.kcp.io/{target}")).collect();
    json!({"uid": "u", "resourceVersion": "1", "labels": labels, "finalizers": finalizers})
}

fn planned(metadata: &Value, around: Around<'_>, targets: &Fixed) -> Plan {
    let (marks, resource) = (Marks::of(metadata), deployments());
    let subject =
        Subject { cluster: TEAM, resource: &resource, name: "web", marks: &marks, around };
    plan(&subject, targets)
}

#[track_caller]
fn check(
    metadata: &Value,
    around: Around<'_>,
    targets: &Fixed,
    expect: &[(&str, Change)],
    problem: &str,
) {
    let plan = planned(metadata, around, targets);
    let changes: Vec<(&str, Change)> =
        plan.changes.iter().map(|(global, change)| (global.as_str(), *change)).collect();
    assert_eq!(changes, expect, "{metadata} {around:?}");
    assert_eq!(plan.problem.map_or("", |problem| problem.reason), problem, "{metadata} {around:?}");
}

#[test]
fn intents_become_states() {
    use Around::{Deleting, Intent, Nothing};
    use Change::{Assign, Unassign};
    let fit = both(Standing::Fit, Standing::Fit);
    let plain = metadata(None, &[], &[]);
    let held = |intent: Option<&str>| metadata(intent, &[(EAST, "Sync")], &[EAST]);
    check(&plain, Nothing, &fit, &[], "");
    // By name, by global name, and by the namespace.
    check(&metadata(Some("east"), &[], &[]), Nothing, &fit, &[(EAST, Assign)], "");
    check(&metadata(Some(EAST), &[], &[]), Nothing, &fit, &[(EAST, Assign)], "");
    check(&metadata(Some(WEST), &[], &[]), Nothing, &fit, &[(WEST, Assign)], "");
    check(&plain, Intent("east"), &fit, &[(EAST, Assign)], "");
    // The object's own goes before its namespace's, even one that says nowhere.
    check(&metadata(Some(WEST), &[], &[]), Intent("east"), &fit, &[(WEST, Assign)], "");
    check(&metadata(Some(""), &[], &[]), Intent("east"), &fit, &[], "");
    // Nothing is done twice.
    check(&held(Some("east")), Nothing, &fit, &[], "");
    check(&held(None), Intent("east"), &fit, &[], "");
    // Taken back, or moved.
    check(&held(None), Nothing, &fit, &[(EAST, Unassign)], "");
    check(&held(Some("")), Intent("east"), &fit, &[(EAST, Unassign)], "");
    check(&held(Some(WEST)), Nothing, &fit, &[(WEST, Assign), (EAST, Unassign)], "");
    let leaving = metadata(None, &[(EAST, "Remove")], &[EAST]);
    check(&leaving, Nothing, &fit, &[], "");
    check(&leaving, Intent("east"), &fit, &[(EAST, Assign)], "");
    // Half of the marks, as somebody left them.
    check(&metadata(Some("east"), &[(EAST, "Sync")], &[]), Nothing, &fit, &[(EAST, Assign)], "");
    check(&metadata(Some("east"), &[], &[EAST]), Nothing, &fit, &[(EAST, Assign)], "");
    check(&metadata(None, &[], &[EAST]), Nothing, &fit, &[(EAST, Unassign)], "");
    check(&metadata(Some("east"), &[(EAST, "odd")], &[EAST]), Nothing, &fit, &[(EAST, Assign)], "");
    // A namespace that goes takes everything along.
    check(&plain, Deleting, &fit, &[], "");
    check(&held(None), Deleting, &fit, &[], "");
}

#[test]
fn targets_that_cannot_take_it() {
    use Around::Nothing;
    use Change::{Assign, Release, Unassign};
    let wanted = metadata(Some("east"), &[], &[]);
    let held = metadata(Some("east"), &[(EAST, "Sync")], &[EAST]);
    // One that moves from west, where it is, to east.
    let moving = metadata(Some("east"), &[(WEST, "Sync")], &[WEST]);
    type Changes<'a> = &'a [(&'a str, Change)];
    let table: [(Standing, Changes<'_>, Changes<'_>, Changes<'_>, &str); 7] = [
        (Standing::Fit, &[(EAST, Assign)], &[], &[(WEST, Unassign), (EAST, Assign)], ""),
        (
            Standing::NotReady,
            &[(EAST, Assign)],
            &[],
            &[(WEST, Unassign), (EAST, Assign)],
            "TargetNotReady",
        ),
        // It stays where it is until there is another place.
        (Standing::OtherTypes, &[], &[], &[], "TypeNotSynced"),
        (Standing::Deleting, &[], &[(EAST, Unassign)], &[], "TargetDeleting"),
        (Standing::NotAllowed, &[], &[(EAST, Release)], &[], "TargetNotAllowed"),
        (Standing::Gone, &[], &[(EAST, Release)], &[], "TargetNotFound"),
        (Standing::Unknown, &[], &[], &[], ""),
    ];
    for (standing, at_first, afterwards, on_moving, problem) in table {
        let targets = both(standing, Standing::Fit);
        check(&wanted, Nothing, &targets, at_first, problem);
        check(&held, Nothing, &targets, afterwards, problem);
        check(&moving, Nothing, &targets, on_moving, problem);
    }
}

#[test]
fn objects_that_are_being_deleted() {
    let deleted = |intent: Option<&str>, states: &[(&str, &str)], finalizers: &[&str]| {
        let mut metadata = metadata(intent, states, finalizers);
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        metadata
    };
    let fit = both(Standing::Fit, Standing::Fit);
    let nothing = Around::Nothing;
    check(&deleted(Some("east"), &[], &[]), nothing, &fit, &[], "");
    // Its agent sees that it is being deleted.
    check(&deleted(Some("east"), &[(EAST, "Sync")], &[EAST]), nothing, &fit, &[], "");
    check(&deleted(None, &[(EAST, "Sync")], &[EAST]), nothing, &fit, &[], "");
    // One that no agent sees would stay for ever.
    check(&deleted(None, &[], &[EAST]), nothing, &fit, &[(EAST, Change::Unassign)], "");
    check(&deleted(Some("east"), &[], &[EAST]), nothing, &fit, &[(EAST, Change::Unassign)], "");
    let gone = both(Standing::Gone, Standing::Gone);
    check(
        &deleted(None, &[(EAST, "Sync")], &[EAST]),
        nothing,
        &gone,
        &[(EAST, Change::Release)],
        "",
    );
}

/// What every namespace has by itself stays at home, unless somebody says otherwise of it.
#[test]
fn what_is_everywhere_is_not_meant() {
    let targets = both(Standing::Fit, Standing::Fit);
    for (resource, name, expect) in [
        ("configmaps", "kube-root-ca.crt", 0),
        ("configmaps", "mine", 1),
        ("serviceaccounts", "default", 0),
        ("serviceaccounts", "mine", 1),
        ("secrets", "sh.helm.release.v1.app.v3", 0),
        ("services", "kubernetes", 0),
    ] {
        let resource = (String::new(), resource.to_owned());
        let changes = |marks: &Marks, around| {
            let subject = Subject { cluster: TEAM, resource: &resource, name, marks, around };
            plan(&subject, &targets).changes.len()
        };
        let plain = Marks::default();
        assert_eq!(changes(&plain, Around::Intent("east")), expect, "{resource:?} {name}");
        let own = Marks { intent: Some("east".into()), ..plain };
        assert_eq!(changes(&own, Around::Nothing), 1, "{resource:?} {name}");
    }
}

fn any_standing() -> impl Strategy<Value = Standing> {
    prop_oneof![
        Just(Standing::Fit),
        Just(Standing::NotReady),
        Just(Standing::OtherTypes),
        Just(Standing::Deleting),
        Just(Standing::NotAllowed),
        Just(Standing::Gone),
        Just(Standing::Unknown),
    ]
}

prop_compose! {
    fn any_metadata()(
        intent in proptest::option::of(prop_oneof![Just(""), Just("east"), Just(EAST), Just(WEST), Just("x")]),
        states in proptest::collection::btree_map(
            prop_oneof![Just(EAST), Just(WEST)], prop_oneof![Just("Sync"), Just("Remove"), Just("?")], 0..3),
        finalizers in proptest::collection::btree_set(prop_oneof![Just(EAST), Just(WEST)], 0..3),
        deleting in any::<bool>(),
    ) -> Value {
        let states: Vec<(&str, &str)> = states.into_iter().collect();
        let finalizers: Vec<&str> = finalizers.into_iter().collect();
        let mut metadata = metadata(intent, &states, &finalizers);
        metadata["finalizers"].as_array_mut().unwrap().push("a.io/b".into());
        metadata["labels"]["app"] = "web".into();
        if deleting {
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        metadata
    }
}

fn any_around() -> impl Strategy<Value = Around<'static>> {
    prop_oneof![
        Just(Around::Nothing),
        Just(Around::Intent("east")),
        Just(Around::Intent(WEST)),
        Just(Around::Intent("nowhere")),
        Just(Around::Deleting),
    ]
}

/// What the server makes of a merge patch.
fn merge(metadata: &Value, patch: &Value) -> Value {
    let mut merged = metadata.clone();
    let patch = &patch["metadata"];
    for (key, value) in patch["labels"].as_object().into_iter().flatten() {
        match value {
            Value::Null => drop(merged["labels"].as_object_mut().unwrap().remove(key)),
            value => merged["labels"][key] = value.clone(),
        }
    }
    if let Some(finalizers) = patch.get("finalizers") {
        merged["finalizers"] = finalizers.clone();
    }
    merged
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn laws(metadata in any_metadata(), around in any_around(), east in any_standing(), west in any_standing()) {
        let targets = both(east, west);
        let standing = |global: &str| targets.standing(global, TEAM, &deployments());
        let first = planned(&metadata, around, &targets);
        let before = Marks::of(&metadata);
        let after = patch(&metadata, &first.changes).map_or(metadata.clone(), |patch| merge(&metadata, &patch));
        let marks = Marks::of(&after);

        // It comes to rest at once: nobody writes for ever.
        let second = planned(&after, around, &targets);
        prop_assert_eq!(patch(&after, &second.changes), None, "{} {:?}", after, second);

        for (global, change) in &first.changes {
            match change {
                // Only where it can be.
                Change::Assign => prop_assert!(matches!(standing(global), Standing::Fit | Standing::NotReady | Standing::OtherTypes | Standing::Unknown)),
                // A finalizer goes by our hand only if no agent could take it off.
                Change::Release => prop_assert!(matches!(standing(global), Standing::Gone | Standing::NotAllowed)),
                Change::Unassign => {
                    // Nothing is taken from a target that nothing is known of, unless it goes anyhow.
                    prop_assert!(standing(global) != Standing::Unknown || before.deleting);
                }
            }
        }
        // Something new is given to nobody who is on the way out.
        if before.deleting || around == Around::Deleting {
            prop_assert!(marks.finalizers.is_subset(&before.finalizers));
        }
        // A copy is asked back because the intent is gone, or leads to where the object can be.
        let unassigned = first.changes.iter().filter(|(global, change)| {
            **change == Change::Unassign && standing(global) != Standing::Deleting && !before.deleting
        });
        if unassigned.count() > 0 {
            let resource = deployments();
            let subject = Subject { cluster: TEAM, resource: &resource, name: "web", marks: &before, around };
            let place = wanted(&subject);
            prop_assert!(place.is_none_or(|place| matches!(standing(&place), Standing::Fit | Standing::NotReady)));
        }
        // At most one target is to hold it by our doing, and each that is has both marks.
        let ours: BTreeSet<&String> = first.changes.iter().filter(|(_, change)| **change == Change::Assign).map(|(global, _)| global).collect();
        prop_assert!(ours.len() <= 1);
        if !before.deleting {
            for global in ours {
                prop_assert!(marks.finalizers.contains(global) && marks.states.get(global) == Some(&State::Sync));
            }
        }
        // What isn't ours stays.
        prop_assert_eq!(&after["labels"]["app"], "web");
        prop_assert!(after["finalizers"].as_array().unwrap().contains(&"a.io/b".into()));
        prop_assert_eq!(marks.intent, before.intent);
    }
}
