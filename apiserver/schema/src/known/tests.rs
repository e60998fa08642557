//! The facts fit the types' data.

use std::collections::HashSet;

use jiff::Timestamp;
use machinery::{GroupVersion, Gvk};
use serde_json::{Value, json};

use super::*;
use crate::table::known_columns;
use crate::{CoerceMode, Types};

/// Our objects as a real kube-apiserver returned them, with their tables
/// (`kind-tests/tools/schema-data/oracle/server`).
#[derive(Deserialize)]
struct Served {
    object: Value,
    columns: Vec<Value>,
    cells: Vec<Value>,
}

#[derive(Deserialize)]
struct Input {
    path: String,
}

fn served() -> Vec<(Input, Served)> {
    let inputs: Vec<Input> =
        serde_json::from_str(include_str!("../../tests/data/import/objects.json")).unwrap();
    let answers: Vec<Served> =
        serde_json::from_str(include_str!("../../tests/data/import/served.json")).unwrap();
    assert_eq!(inputs.len(), answers.len(), "run the oracle again");
    // What this server has come to serve itself is recorded, too.
    let pairs = inputs.into_iter().zip(answers);
    pairs.filter(|(input, _)| !input.path.ends_with("/resourcequotas")).collect()
}

fn gvk(object: &Value) -> Gvk {
    let gv = GroupVersion::parse(object["apiVersion"].as_str().unwrap()).unwrap();
    gv.kind(object["kind"].as_str().unwrap())
}

#[test]
fn served_objects_are_canonical() {
    for (_, Served { object, .. }) in served() {
        let schema = Types::known(&gvk(&object)).unwrap();
        let mut again = object.clone();
        assert_eq!(schema.coerce(&mut again, CoerceMode::Report).unwrap(), [], "{object}");
        assert_eq!(format!("{again:#}"), format!("{object:#}"));
    }
}

#[test]
fn generations_are_where_upstream_has_them() {
    for (input, Served { object, .. }) in served() {
        let gv = gvk(&object).group_version;
        let known = resource(&gv.group, input.path.rsplit('/').next().unwrap()).unwrap();
        let has = object["metadata"].get("generation").is_some();
        assert_eq!(has, known.generation != Generation::None, "{object}");
    }
}

#[test]
fn fields_of_other_releases_stay() {
    let (_, Served { object, .. }) = served().remove(0);
    let schema = Types::known(&gvk(&object)).unwrap();
    let mut newer = object.clone();
    newer["spec"]["template"]["spec"]["containers"][0]["new"] = json!({"a": [null]});
    newer["status"]["replicas"] = json!(null);
    let mut expect = newer.clone();
    expect["status"].as_object_mut().unwrap().remove("replicas");
    assert_eq!(schema.coerce(&mut newer, CoerceMode::Keep).unwrap(), []);
    assert_eq!(newer, expect);
    schema.coerce(&mut newer, CoerceMode::Drop).unwrap();
    assert_ne!(newer, expect);
}

#[test]
fn patches_merge_by_the_keys_of_the_types() {
    let pod = json!({"spec": {"containers": [
        {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]},
        {"name": "b", "image": "1"},
    ]}});
    let patch = json!({"spec": {"containers": [
        {"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]},
        {"name": "b", "$patch": "delete"},
    ]}});
    let schema = Types::known(&GroupVersion::new("", "v1").kind("Pod")).unwrap();
    let merged = patch::strategic::apply(&pod, &patch, &schema.merge()).unwrap();
    let env = json!([{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]);
    let expect = json!({"spec": {"containers": [{"name": "a", "image": "2", "env": env}]}});
    assert_eq!(merged, expect);
}

#[test]
fn tables_as_upstream_prints() {
    let now: Timestamp = "2026-11-28T03:21:00Z".parse().unwrap();
    for (input, Served { mut object, columns: expected, mut cells }) in served() {
        let gv = gvk(&object).group_version;
        let plural = input.path.rsplit('/').next().unwrap();
        let columns = known_columns(&gv.group, plural, &gv.version).unwrap();
        let definition = |column: &Column| {
            let mut definition = column.definition();
            let description = definition.as_object_mut().unwrap().remove("description").unwrap();
            assert!(!description.as_str().unwrap().is_empty());
            definition
        };
        assert_eq!(columns.iter().map(definition).collect::<Vec<_>>(), expected);

        // Only these differ from run to run.
        object["metadata"]["creationTimestamp"] = json!(now.to_string());
        // Upstream gives IPAddresses a cell more than they have columns.
        cells.truncate(columns.len());
        for (column, cell) in columns.iter().zip(&mut cells) {
            match &*column.name {
                "Age" => *cell = json!("0s"),
                "Created At" => *cell = json!(now.to_string()),
                _ => {}
            }
        }
        assert_eq!(crate::table::cells(&columns, &object, now), cells, "{object}");
    }
}

#[test]
fn every_function_takes_anything() {
    let now = Timestamp::UNIX_EPOCH;
    let odd = json!({"metadata": 1, "spec": [], "status": {"conditions": [null, 1, {"type": 5}]}});
    let lists = json!({
        "metadata": {"labels": [], "ownerReferences": [1, {"controller": true}]},
        "spec": {"metrics": [1, {"type": "Resource"}], "rules": [1], "initContainers": [2]},
        "status": {"containerStatuses": [{"restartCount": i64::MAX}, {"restartCount": i64::MAX}]},
        "subsets": [{"addresses": [1], "ports": [null]}],
    });
    for known in all() {
        for object in [json!(null), json!([]), json!({}), odd.clone(), lists.clone()] {
            let cells = crate::table::cells(&known.columns, &object, now);
            assert_eq!(cells.len(), known.columns.len());
        }
    }
}

#[test]
fn facts_are_of_kinds_that_are_known() {
    let mut seen = HashSet::new();
    for known in all() {
        assert!(seen.insert((&known.group, &known.plural)), "{} twice", known.plural);
        for version in &known.versions {
            let gv = GroupVersion::new(&known.group, version);
            let schema = Types::known(&gv.kind(&known.kind)).unwrap();
            assert!(Types::known(&gv.kind(&format!("{}List", known.kind))).is_some());
            if let Generation::Fields(fields) = &known.generation {
                for field in fields {
                    assert!(schema.pool().field(schema.root(), field).is_some(), "{field}");
                }
            }
        }
    }
    assert!(seen.len() > 35, "{}", seen.len());
}

#[test]
fn selectors_read_values() {
    let check = |plural: &str, label: &str, object: serde_json::Value, expect: &str| {
        let group = if plural == "jobs" { "batch" } else { "" };
        let known = resource(group, plural).unwrap();
        let selector = known.field_selectors.iter().find(|s| &*s.label == label).unwrap();
        assert_eq!(selector.value(&object), expect, "{plural} {label}");
    };
    let pod = json!({"spec": {"nodeName": "n"}, "status": {"phase": "Running", "podIP": "x"}});
    check("pods", "spec.nodeName", pod.clone(), "n");
    check("pods", "spec.host", pod.clone(), "n");
    check("pods", "status.phase", pod.clone(), "Running");
    check("pods", "spec.hostNetwork", pod.clone(), "false");
    // Upstream accepts the label and compares it with nothing.
    check("pods", "status.podIPs", pod, "");
    check("pods", "spec.hostNetwork", json!({"spec": {"hostNetwork": true}}), "true");
    check("nodes", "spec.unschedulable", json!({}), "false");
    check("jobs", "status.successful", json!({"status": {"succeeded": 3}}), "3");
    check("jobs", "status.successful", json!({"status": {}}), "0");
}

#[test]
fn columns_hold_for_known_versions() {
    let has =
        |group, plural, version| crate::table::known_columns(group, plural, version).is_some();
    assert!(has("apps", "deployments", "v1"));
    assert!(!has("apps", "deployments", "v2"));
    assert!(has("autoscaling", "horizontalpodautoscalers", "v1"));
    assert!(has("autoscaling", "horizontalpodautoscalers", "v2"));
    assert!(!has("example.com", "deployments", "v1"));
}
