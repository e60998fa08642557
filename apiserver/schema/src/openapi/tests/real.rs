//! Documents of the types in `tests/data/openapi/gadgets.yaml`, compared with those of a real
//! kube-apiserver 1.36 that has the same types (`answers.json` there): the paths and components of
//! the types, without texts that aren't the types' own, and with parameters by name, references
//! followed.

use std::collections::BTreeSet;
use std::sync::Arc;

use machinery::json::{Limits, yaml};

use super::*;
use crate::crd;

/// Parameters that ours don't have: sharded lists (alpha there, and off), and deleting what can't
/// be read (which this server has no need of, as it doesn't encrypt).
const ABSENT: [&str; 2] = ["shardSelector", "ignoreStoreReadErrorWithClusterBreakingPotential"];

pub(super) struct Shop {
    pub(super) crds: Vec<Value>,
    pub(super) types: Vec<Arc<crd::CustomType>>,
}

impl Shop {
    pub(super) fn open() -> Self {
        let text = include_str!("../../../tests/data/openapi/gadgets.yaml");
        let mut crds = Vec::new();
        for text in text.split("\n---\n") {
            let mut crd = yaml(text.as_bytes(), &Limits::default()).unwrap().value;
            crd::complete(&mut crd);
            crds.push(crd);
        }
        let types = crds.iter().map(|crd| crd::compile(crd).unwrap()).collect();
        Self { crds, types }
    }

    pub(super) fn sources(&self) -> Vec<Source<'_>> {
        let both = self.types.iter().zip(&self.crds);
        both.flat_map(|(custom, crd)| sources(custom, Some(crd))).collect()
    }

    pub(super) fn v3(&self, version: &str) -> Value {
        let gv = GroupVersion::new("shop.example.com", version);
        v3(&gv, &self.sources(), &Types::builtin())
    }

    pub(super) fn v2(&self) -> Value {
        let types = Types::builtin();
        let builtin = types.resources().iter().map(|def| Source { def, crd: None });
        let all: Vec<Source<'_>> = builtin.chain(self.sources()).collect();
        serde_json::from_slice(&v2(&all, &types)).unwrap()
    }
}

pub(super) fn sources<'a>(custom: &'a crd::CustomType, crd: Option<&'a Value>) -> Vec<Source<'a>> {
    custom.defs.iter().map(|def| Source { def, crd }).collect()
}

/// The texts of the types themselves.
fn texts(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            if let Some(text) = object.get("description").and_then(Value::as_str) {
                into.insert(text.to_owned());
            }
            object.values().for_each(|value| texts(value, into));
        }
        Value::Array(items) => items.iter().for_each(|value| texts(value, into)),
        _ => {}
    }
}

fn strip(value: &mut Value, own: &BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            let foreign = object.get("description").and_then(Value::as_str);
            if foreign.is_some_and(|text| !own.contains(text)) {
                object.remove("description");
            }
            object.values_mut().for_each(|value| strip(value, own));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| strip(value, own)),
        _ => {}
    }
}

fn normal(mut document: Value, schemas: &str, own: &BTreeSet<String>) -> Value {
    strip(&mut document, own);
    let follow = |parameter: &Value| match parameter["$ref"].as_str() {
        Some(target) => document.pointer(target.trim_start_matches('#')).unwrap().clone(),
        None => parameter.clone(),
    };
    let sorted = |part: &mut Value| {
        let Value::Array(parameters) = part else { return };
        *parameters = parameters.iter().map(follow).collect();
        parameters.retain(|parameter| !ABSENT.iter().any(|name| parameter["name"] == *name));
        parameters.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    };
    let mut paths = document["paths"].clone();
    paths.as_object_mut().unwrap().retain(|path, _| path.starts_with("/apis/shop.example.com/"));
    for item in paths.as_object_mut().unwrap().values_mut() {
        for (name, part) in item.as_object_mut().unwrap() {
            sorted(if name == "parameters" { &mut *part } else { &mut part["parameters"] });
            if let Some(Value::Array(kinds)) = part.get_mut("consumes") {
                kinds.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            }
        }
    }
    let mut schemas = document.pointer(schemas).unwrap().clone();
    schemas.as_object_mut().unwrap().retain(|name, _| name.starts_with("com.example."));
    json!({ "paths": without_null(paths), "schemas": schemas })
}

/// Indexing made parameters where there were none.
fn without_null(mut paths: Value) -> Value {
    for item in paths.as_object_mut().unwrap().values_mut() {
        for part in item.as_object_mut().unwrap().values_mut().filter_map(Value::as_object_mut) {
            part.retain(|_, value| !value.is_null());
        }
    }
    paths
}

fn compare(at: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    if ours == theirs {
        return;
    }
    let (Value::Object(a), Value::Object(b)) = (ours, theirs) else {
        found.push(format!("{at}: {ours} instead of {theirs}"));
        return;
    };
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for key in keys {
        let value = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or_default();
        compare(&format!("{at} {key}"), &value(a), &value(b), found);
    }
}

#[test]
fn documents_are_those_of_a_real_server() {
    let shop = Shop::open();
    let answers: Value =
        serde_json::from_str(include_str!("../../../tests/data/openapi/answers.json")).unwrap();
    let mut own = BTreeSet::new();
    shop.crds.iter().for_each(|crd| texts(crd, &mut own));
    let mut found = Vec::new();
    for (name, document, schemas) in [
        ("v1", shop.v3("v1"), "/components/schemas"),
        ("v1alpha1", shop.v3("v1alpha1"), "/components/schemas"),
        ("v2", shop.v2(), "/definitions"),
    ] {
        let real = normal(answers[name].clone(), "/schemas", &own);
        compare(name, &normal(document, schemas, &own), &real, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
