//! Types of a real cluster, as its documents have them.

use std::collections::BTreeMap;
use std::time::Duration;

use schema::import::{VersionSource, document_path, groups, import_group};
use serde::Deserialize;
use serde_json::Map;

use super::*;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    documents: BTreeMap<String, Map<String, Value>>,
    shared_by: BTreeMap<String, Vec<String>>,
    shared: Map<String, Value>,
}

/// Every version of every type that can be imported.
fn types() -> Vec<Type> {
    const DATA: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../apiserver/schema/tests/data/import");
    let read = |name: &str| std::fs::read_to_string(format!("{DATA}/{name}.json")).unwrap();
    let published: Published = serde_json::from_str(&read("openapi")).unwrap();
    let Published { documents, shared_by, shared } = published;
    let documents: BTreeMap<String, Value> = { documents.into_iter() }
        .map(|(path, mut schemas)| {
            for name in shared_by.get(&path).into_iter().flatten() {
                schemas.insert(name.clone(), shared[name].clone());
            }
            (path, json!({"components": {"schemas": schemas}}))
        })
        .collect();
    let discovery: Value = serde_json::from_str(&read("discovery")).unwrap();
    let lists = discovery["groups"].as_array().unwrap();
    let mut made = Vec::new();
    for group in lists.iter().flat_map(groups) {
        let source = |discovered| {
            let version: &schema::import::DiscoveredVersion = discovered;
            let path = document_path(&group.name, &version.version);
            let openapi = documents.get(path.strip_prefix("/openapi/v3/")?)?;
            Some(VersionSource { discovered, openapi })
        };
        let versions: Vec<_> = group.versions.iter().filter_map(source).collect();
        for imported in import_group(&group.name, &versions).types {
            for version in imported.crd["spec"]["versions"].as_array().unwrap() {
                let mut ty = thing(&json!({}));
                ty.group = group.name.to_string();
                ty.version = version["name"].as_str().unwrap().to_owned();
                ty.names.kind = imported.crd["spec"]["names"]["kind"].as_str().unwrap().to_owned();
                ty.schema = version["schema"]["openAPIV3Schema"].clone();
                made.push(ty);
            }
        }
    }
    made
}

/// A schema as a release before may have had it: without some fields that nothing needs.
fn older(schema: &Value, keys: &Value, step: &mut usize) -> Value {
    match schema {
        Value::Object(keywords) => {
            let mut made = Map::new();
            let below = keywords.get("x-kubernetes-list-map-keys").unwrap_or(&Value::Null);
            for (key, value) in keywords {
                let mut value = older(value, below, step);
                if let ("properties", Value::Object(fields)) = (&**key, &mut value) {
                    let required = keywords.get("required").unwrap_or(&Value::Null);
                    let needed = [keys, required].into_iter().filter_map(Value::as_array).flatten();
                    let needed: Vec<&str> = needed.filter_map(Value::as_str).collect();
                    fields.retain(|name, _| {
                        *step += 1;
                        !step.is_multiple_of(23) || needed.contains(&&**name)
                    });
                }
                made.insert(key.clone(), value);
            }
            Value::Object(made)
        }
        Value::Array(items) => items.iter().map(|item| older(item, keys, step)).collect(),
        other => other.clone(),
    }
}

#[test]
fn three_clusters_with_types_of_three_releases_agree() {
    let types = types();
    assert!(types.len() > 20, "{}", types.len());
    let mut spent = Duration::ZERO;
    let mut narrowed = 0;
    for newest in &types {
        let (mut first, mut second) = (7, 0);
        let old =
            Type { schema: older(&newest.schema, &Value::Null, &mut first), ..newest.clone() };
        let oldest =
            Type { schema: older(&old.schema, &Value::Null, &mut second), ..newest.clone() };
        let inputs = [("east", "1", newest), ("west", "2", &old), ("north", "3", &oldest)];
        let start = std::time::SystemTime::now();
        let agreement = agree(&inputs);
        spent += start.elapsed().unwrap();
        assert_eq!(agreement.left, [], "{}", newest.names.kind);
        let merged = agreement.merged.unwrap();
        for (target, _, ty) in inputs {
            let list = differences(&merged, ty, ["hub", target]);
            assert_eq!(told(&list, true), Vec::<String>::new(), "{}", newest.names.kind);
        }
        assert!(super::generated::judge(&merged.schema).is_some(), "{}", newest.names.kind);
        narrowed += agreement.differences.len();
    }
    assert!(narrowed > 100, "{narrowed}");
    // Some 60 types are what a cluster has. The test runs without optimisation, and not alone.
    let each = spent / u32::try_from(types.len()).unwrap();
    println!("{each:?} for each of {} types", types.len());
    assert!(each < Duration::from_millis(500), "{each:?} for each of {}", types.len());
}
