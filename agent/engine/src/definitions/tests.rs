#![allow(clippy::needless_pass_by_value, reason = "versions are written where they are used")]

use serde_json::json;

use super::*;

fn version(name: &str, fields: Value) -> Value {
    json!({
        "name": name, "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": fields},
        }}},
        "subresources": {"status": {}},
    })
}

fn definition(versions: Value) -> Value {
    json!({
        "spec": {
            "group": "x.io", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": versions,
        },
    })
}

/// One with a single version, and a change of it: what is told, as `what path`.
#[track_caller]
fn check(live: &Value, change: impl FnOnce(&mut Value), expect: &[&str]) {
    let mut desired = live.clone();
    if let Some(rest) = desired.as_object_mut() {
        rest.remove("status");
    }
    change(&mut desired);
    let labels = Labels { live: "east", desired: "hub" };
    let found = hurts(live, &desired, labels);
    let told: Vec<_> = found.iter().map(|one| format!("{} {}", one.what, one.path)).collect();
    assert_eq!(told, expect, "{found:?}");
    assert!(found.iter().all(|one| one.blocking && !one.message.is_empty()));
}

fn one() -> Value {
    definition(json!([version(
        "v1",
        json!({
            "size": {"type": "integer"}, "colour": {"type": "string"},
        })
    )]))
}

const FIELDS: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

#[test]
fn what_hurts_nobody() {
    let live = one();
    check(&live, |_| {}, &[]);
    let add = |desired: &mut Value, value: Value| {
        let fields = desired.pointer_mut(FIELDS).unwrap();
        fields["properties"]["shape"] = value;
    };
    check(&live, |desired| add(desired, json!({"type": "string"})), &[]);
    check(&live, |desired| desired["spec"]["names"]["shortNames"] = json!(["th"]), &[]);
    let columns = json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]);
    check(
        &live,
        |desired| desired["spec"]["versions"][0]["additionalPrinterColumns"] = columns,
        &[],
    );
    check(
        &live,
        |desired| {
            let mut more = version("v2", json!({"size": {"type": "integer"}}));
            more["storage"] = false.into();
            desired["spec"]["versions"].as_array_mut().unwrap().push(more);
        },
        &[],
    );
}

#[test]
fn schemas_that_narrow() {
    let live = one();
    let fields = |desired: &mut Value, key: &str, value: Value| {
        desired.pointer_mut(FIELDS).unwrap()[key] = value;
    };
    check(
        &live,
        |desired| fields(desired, "properties", json!({"size": {"type": "integer"}})),
        &["properties .spec.colour"],
    );
    check(&live, |desired| fields(desired, "required", json!(["size"])), &["required .spec.size"]);
    check(
        &live,
        |desired| {
            fields(
                desired,
                "properties",
                json!({"size": {"type": "string"}, "colour": {"type": "string"}}),
            );
        },
        &["type .spec.size"],
    );
    check(
        &live,
        |desired| {
            drop(desired["spec"]["versions"][0].as_object_mut().unwrap().remove("subresources"))
        },
        &["subresources /spec/versions/v1/subresources/status"],
    );
}

#[test]
fn versions_that_go() {
    let mut old = version("v1beta1", json!({"size": {"type": "integer"}}));
    old["storage"] = false.into();
    let mut live = definition(json!([version("v1", json!({"size": {"type": "integer"}})), old]));
    let without = |desired: &mut Value| {
        desired["spec"]["versions"].as_array_mut().unwrap().truncate(1);
    };
    check(&live, without, &["served /spec/versions/v1beta1"]);
    live["status"] = json!({"storedVersions": ["v1beta1", "v1"]});
    check(&live, without, &["storedVersions /spec/versions/v1beta1"]);
    check(
        &live,
        |desired| desired["spec"]["versions"][1]["served"] = false.into(),
        &["served /spec/versions/v1beta1"],
    );
    // Nobody uses it, and nothing is stored in it.
    live["spec"]["versions"][1]["served"] = false.into();
    live["status"] = json!({"storedVersions": ["v1"]});
    check(&live, without, &[]);
}

#[test]
fn another_version_to_store() {
    let live = one();
    let with = |fields: Value| {
        move |desired: &mut Value| {
            desired["spec"]["versions"][0]["storage"] = false.into();
            let versions = desired["spec"]["versions"].as_array_mut().unwrap();
            versions.push(version("v2", fields));
        }
    };
    check(&live, with(json!({"size": {"type": "integer"}, "colour": {"type": "string"}})), &[]);
    check(&live, with(json!({"size": {"type": "integer"}})), &["properties .spec.colour"]);
    // Somebody converts them.
    check(
        &live,
        |desired| {
            with(json!({"size": {"type": "integer"}}))(desired);
            desired["spec"]["conversion"] = json!({"strategy": "Webhook"});
        },
        &[],
    );
}

#[test]
fn what_it_is_and_who_converts() {
    let live = one();
    let other = |pointer: &'static str, value: &'static str| {
        move |desired: &mut Value| *desired.pointer_mut(pointer).unwrap() = value.into()
    };
    check(&live, other("/spec/scope", "Cluster"), &["scope /spec/scope"]);
    check(&live, other("/spec/names/kind", "Other"), &["kind /spec/names/kind"]);
    check(&live, other("/spec/names/plural", "others"), &["names /spec/names/plural"]);
    check(&live, other("/spec/group", "y.io"), &["group /spec/group"]);
    let mut two = live.clone();
    let mut more = version("v2", json!({"size": {"type": "integer"}}));
    more["storage"] = false.into();
    two["spec"]["versions"].as_array_mut().unwrap().push(more);
    two["spec"]["conversion"] = json!({"strategy": "Webhook"});
    check(
        &two,
        other("/spec/conversion/strategy", "None"),
        &["conversion /spec/conversion/strategy"],
    );
    // What is not said stays as it is.
    check(&two, |desired| drop(desired["spec"].as_object_mut().unwrap().remove("conversion")), &[]);
    let mut open = live.clone();
    open["spec"]["preserveUnknownFields"] = true.into();
    check(
        &open,
        |desired| desired["spec"]["preserveUnknownFields"] = false.into(),
        &["preserveUnknownFields /spec/preserveUnknownFields"],
    );
}

#[test]
fn who_is_established() {
    let of = |status: &str| json!({"status": {"conditions": [{"type": "Established", "status": status}]}});
    assert!(is_established(&of("True")));
    assert!(!is_established(&of("False")) && !is_established(&json!({})));
}

#[test]
fn any_definition() {
    let labels = Labels { live: "east", desired: "hub" };
    for odd in [json!(null), json!({"spec": 1}), json!({"spec": {"versions": [1, {"name": 2}]}})] {
        hurts(&odd, &one(), labels);
        hurts(&one(), &odd, labels);
        assert!(!is_established(&odd));
    }
}
