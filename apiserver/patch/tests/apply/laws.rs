//! Laws of server-side apply, for any objects and any managers.

use std::sync::LazyLock;

use jiff::Timestamp;
use machinery::time::Time;
use patch::apply::{ApplyError, FieldSet, Tracker, Write};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::openapi::Thing;

static TYPES: LazyLock<Value> = LazyLock::new(|| {
    let cases: Value = serde_json::from_str(include_str!("../data/apply/cases.json")).unwrap();
    cases["types"].clone()
});

fn write(manager: &str) -> Write<'_> {
    let now = Time::at(Timestamp::new(1_577_836_800, 0).unwrap());
    Write { manager, api_version: "test.kcp.io/v1", kind: "Thing", subresource: "", now }
}

fn thing(spec: &Value) -> Value {
    json!({
        "apiVersion": "test.kcp.io/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec,
    })
}

fn word() -> impl Strategy<Value = String> {
    proptest::sample::select(vec!["a", "b", "c", "name", "spec", "f:a", "k:{}"])
        .prop_map(str::to_owned)
}

/// Any JSON, over few names.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..3_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(word(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A valid spec over few names; its lists repeat nothing.
fn spec() -> impl Strategy<Value = Value> {
    let words = || proptest::sample::subsequence(vec!["a", "b", "c", "d"], 0..4);
    let items = words().prop_flat_map(|names| {
        let values = vec(0..3, names.len());
        (Just(names), values).prop_map(|(names, values)| {
            let items = names.into_iter().zip(values);
            items.map(|(name, value)| json!({"name": name, "value": value})).collect::<Value>()
        })
    });
    let map = || btree_map(word(), word(), 0..3);
    (
        proptest::option::of(0..3),
        proptest::option::of(items),
        proptest::option::of(words()),
        proptest::option::of(map()),
        proptest::option::of(map()),
        proptest::option::of(btree_map(word(), any_value(), 0..3)),
    )
        .prop_map(|(replicas, items, tags, labels, limits, free)| {
            let mut spec = json!({
                "replicas": replicas, "items": items, "tags": tags, "labels": labels,
                "limits": limits, "free": free,
            });
            if let Some(fields) = spec.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
            spec
        })
}

/// Sets of fields as hostile clients may write them.
fn fields() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        word().prop_map(|name| format!("f:{name}")),
        word().prop_map(|name| format!("v:{name:?}")),
        word().prop_map(|name| format!("k:{{\"name\":{name:?}}}")),
        any::<i8>().prop_map(|at| format!("i:{at}")),
        any::<i8>().prop_map(|at| format!("v:{at}")),
        Just(".".to_owned()),
    ];
    Just(json!({})).prop_recursive(5, 40, 5, move |inner| {
        btree_map(name.clone(), inner, 0..4)
            .prop_map(|fields| Value::Object(fields.into_iter().collect()))
    })
}

/// Any list of managers.
fn managers() -> impl Strategy<Value = Value> {
    let entry = (word(), any::<bool>(), 0..3, fields(), proptest::option::of(any_value()));
    let entry = entry.prop_map(|(manager, applied, version, fields, odd)| {
        json!({
            "manager": manager, "operation": if applied { "Apply" } else { "Update" },
            "apiVersion": format!("test.kcp.io/v{version}"), "fieldsType": "FieldsV1",
            "fieldsV1": odd.unwrap_or(fields),
        })
    });
    vec(entry, 0..14).prop_map(Value::from)
}

/// Work grows with the size of bodies, and no faster than sorting does: the bound is wide because
/// tests run without optimisation and beside others.
#[test]
fn the_largest_bodies_take_bounded_time() {
    const MANY: usize = 5_000;
    let versions = Thing::new(&TYPES["thing"], "");
    let tracker = Tracker::new(&versions);
    let entries: Value = (0..MANY)
        .map(|at| {
            json!({
                "manager": format!("m{at}"), "operation": "Update", "fieldsType": "FieldsV1",
                "apiVersion": format!("test.kcp.io/v{}", at % 7),
                "fieldsV1": {"f:spec": {"f:items": {
                    format!("k:{{\"name\":\"n{at}\"}}"): {".": {}, "f:name": {}},
                }}},
            })
        })
        .collect();
    let items = |skip: usize| -> Value {
        let names = (0..MANY).rev().skip(skip);
        names.map(|at| json!({"name": format!("n{at}"), "value": at})).collect()
    };
    let start = Timestamp::now();
    let mut live = thing(&json!({"items": items(0)}));
    live["metadata"]["managedFields"] = entries;
    let changed = thing(&json!({"items": items(1), "title": "t"}));
    let mut updated = tracker.update(&write("eve"), Some(&live), changed.clone());
    assert!(updated["metadata"]["managedFields"].as_array().unwrap().len() <= 10);
    for config in [&changed, &thing(&json!({"items": items(MANY / 2)}))] {
        updated = tracker.apply(&write("ann"), Some(&updated), config, true).unwrap();
    }
    let took = Timestamp::now().duration_since(start);
    assert!(took.as_secs() < 60, "{took:?}");
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(live in spec(), config in spec()) {
        let versions = Thing::new(&TYPES["thing"], "");
        let tracker = Tracker::new(&versions);
        let live = tracker.update(&write("eve"), None, thing(&live));
        let once = tracker.apply(&write("ann"), Some(&live), &thing(&config), true).unwrap();
        let twice = tracker.apply(&write("ann"), Some(&once), &thing(&config), false).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn what_was_applied_is_there(live in spec(), config in spec()) {
        let versions = Thing::new(&TYPES["thing"], "");
        let tracker = Tracker::new(&versions);
        let live = tracker.update(&write("eve"), None, thing(&live));
        let new = tracker.apply(&write("ann"), Some(&live), &thing(&config), true).unwrap();
        for (name, value) in config.as_object().unwrap() {
            if matches!(&**name, "replicas" | "limits") {
                prop_assert_eq!(&new["spec"][name], value);
            }
        }
    }

    #[test]
    fn managers_of_different_fields_commute(a in spec(), b in spec()) {
        let versions = Thing::new(&TYPES["thing"], "");
        let tracker = Tracker::new(&versions);
        let a = json!({"replicas": a.get("replicas"), "tags": a.get("tags")});
        let b = json!({"labels": b.get("labels"), "items": b.get("items")});
        let apply = |live: Option<&Value>, by: &str, spec: &Value| {
            let mut spec = spec.clone();
            // Nobody owns a list without items, and an object that nobody owns is taken for one
            // from before the first apply.
            let empty = |value: &Value| value.is_null() || *value == json!([]);
            spec.as_object_mut().unwrap().retain(|_, value| !empty(value));
            tracker.apply(&write(by), live, &thing(&spec), false).unwrap()
        };
        let left = apply(Some(&apply(None, "ann", &a)), "bob", &b);
        let right = apply(Some(&apply(None, "bob", &b)), "ann", &a);
        prop_assert_eq!(&left["spec"], &right["spec"]);
        let owned = |object: &Value| object["metadata"]["managedFields"].clone();
        // Whoever changed nothing has no time, which also orders the entries.
        let without_times = |fields: Value| {
            let mut entries = fields.as_array().cloned().unwrap_or_default();
            entries.sort_by_key(|entry| entry["manager"].to_string());
            entries.iter_mut().for_each(|entry| {
                entry.as_object_mut().unwrap().remove("time");
            });
            entries
        };
        prop_assert_eq!(without_times(owned(&left)), without_times(owned(&right)));
    }

    #[test]
    fn without_force_nothing_of_others_changes(live in spec(), config in spec()) {
        let versions = Thing::new(&TYPES["thing"], "");
        let tracker = Tracker::new(&versions);
        let live = tracker.update(&write("eve"), None, thing(&live));
        match tracker.apply(&write("ann"), Some(&live), &thing(&config), false) {
            Ok(new) => {
                for name in ["replicas", "limits"] {
                    if let Some(value) = live["spec"].get(name) {
                        prop_assert_eq!(&new["spec"][name], value);
                    }
                }
            }
            Err(ApplyError::Conflicts(conflicts)) => prop_assert!(!conflicts.0.is_empty()),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn sets_round_trip(fields in fields()) {
        let set = FieldSet::from_value(&fields).unwrap();
        prop_assert_eq!(FieldSet::from_value(&set.to_value()).unwrap(), set.clone());
        let json: Value = serde_json::from_str(&set.to_json()).unwrap();
        prop_assert_eq!(json, set.to_value());
        let mut rest = set.clone();
        rest.subtract(&set);
        prop_assert!(rest.is_empty());
        prop_assert_eq!(set.intersection(&set), set);
    }

    #[test]
    fn set_operations_agree(a in fields(), b in fields()) {
        let (a, b) = (FieldSet::from_value(&a).unwrap(), FieldSet::from_value(&b).unwrap());
        let mut union = a.clone();
        union.add(b.clone());
        let mut only = a.clone();
        only.subtract(&b);
        let both = a.intersection(&b);
        for path in union.paths() {
            let (in_a, in_b) = (a.contains(&path), b.contains(&path));
            prop_assert!(in_a || in_b);
            prop_assert_eq!(only.contains(&path), in_a && !in_b);
            prop_assert_eq!(both.contains(&path), in_a && in_b);
        }
        prop_assert!(a.paths().iter().chain(b.paths().iter()).all(|path| union.contains(path)));
    }

    #[test]
    fn nothing_panics(
        live in any_value(),
        config in any_value(),
        given in managers(),
        schema in any_value(),
        force in any::<bool>(),
    ) {
        // A schema of any form, and a good one.
        let odd = json!({"v1": {"properties": {"spec": schema}, "additionalProperties": true}});
        for types in [&odd, &TYPES["thing"]] {
            let versions = Thing::new(types, "");
            let tracker = Tracker::new(&versions);
            let mut live = thing(&live);
            live["metadata"]["managedFields"] = given.clone();
            let updated = tracker.update(&write("bob"), Some(&live), thing(&config));
            let created = tracker.update(&write("bob"), None, live.clone());
            for live in [live, updated, created] {
                let applied = tracker.apply(&write("ann"), Some(&live), &thing(&config), force);
                if let Ok(applied) = applied {
                    prop_assert!(applied.is_object());
                }
            }
        }
    }
}
