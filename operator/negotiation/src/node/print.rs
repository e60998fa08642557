//! Nodes to JSON.

use serde_json::{Map, Value, json};

use super::{Additional, Condition, List, Node};
use crate::kind::Kind;

pub(super) fn node(node: &Node) -> Value {
    let mut made = node.about.clone();
    if node.conditions.iter().any(|condition| condition.keyword == "format") {
        made.remove("format");
    }
    let mut set = |keyword: &str, value: Value| drop(made.insert(keyword.to_owned(), value));
    match node.kind {
        Kind::INT_OR_STRING => set("x-kubernetes-int-or-string", true.into()),
        Kind::ANY => {}
        kind => set("type", kind.name().into()),
    }
    let flags = [
        ("nullable", node.nullable),
        ("x-kubernetes-preserve-unknown-fields", node.preserve),
        ("x-kubernetes-embedded-resource", node.embedded),
    ];
    for (keyword, _) in flags.into_iter().filter(|(_, on)| *on) {
        set(keyword, true.into());
    }
    if !node.properties.is_empty() {
        let parts = node.properties.iter().map(|(name, part)| (name.clone(), self::node(part)));
        set("properties", Value::Object(parts.collect()));
    }
    match &node.additional {
        Additional::None => {}
        Additional::Bare => set("additionalProperties", true.into()),
        Additional::Of(part) => set("additionalProperties", self::node(part)),
    }
    if let Some(items) = &node.items {
        set("items", self::node(items));
    }
    match &node.list {
        List::Atomic => {}
        List::Set => set("x-kubernetes-list-type", "set".into()),
        List::Map(keys) => {
            set("x-kubernetes-list-type", "map".into());
            set("x-kubernetes-list-map-keys", json!(keys));
        }
    }
    if node.atomic {
        set("x-kubernetes-map-type", "atomic".into());
    }
    if !node.required.is_empty() {
        set("required", json!(node.required));
    }
    if let Some(allowed) = &node.allowed {
        set("enum", allowed.values().cloned().collect());
    }
    if let Some(default) = &node.default {
        set("default", default.clone());
    }
    if !node.rules.is_empty() {
        set("x-kubernetes-validations", node.rules.values().cloned().collect());
    }
    node.limits.print(&mut made);
    conditions(node, &mut made);
    Value::Object(made)
}

/// A schema has one value for each keyword; what else there is goes into an `allOf`.
fn conditions(node: &Node, made: &mut Map<String, Value>) {
    let mut all: Vec<Value> = Vec::new();
    // Formats of numbers are looked at beside their type alone.
    let of_numbers = |condition: &&Condition| {
        condition.keyword == "format" && matches!(&*condition.value, "\"int32\"" | "\"float\"")
    };
    let first = node.conditions.iter().filter(of_numbers);
    let rest = node.conditions.iter().filter(|condition| !of_numbers(condition));
    for Condition { keyword, value } in first.chain(rest) {
        let value: Value = serde_json::from_str(value).unwrap_or_default();
        if keyword == "allOf" {
            all.push(value);
        } else if made.contains_key(keyword) {
            all.push(json!({keyword.as_str(): value}));
        } else {
            made.insert(keyword.clone(), value);
        }
    }
    if !all.is_empty() {
        made.insert("allOf".into(), Value::Array(all));
    }
}
