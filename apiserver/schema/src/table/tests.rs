//! Tables and defaults against what a real kube-apiserver answered (see
//! `kind-tests/tools/schema-data/oracle/server`), and single rules.

use machinery::GroupVersion;
use serde_json::json;

use super::*;
use crate::{CoerceMode, Types};

#[derive(Deserialize)]
struct Input {
    path: String,
    object: Value,
}

#[derive(Deserialize)]
struct Answer {
    object: Value,
    columns: Vec<Value>,
    cells: Vec<Value>,
}

fn now() -> Timestamp {
    "2026-11-28T00:39:20Z".parse().unwrap()
}

fn recorded() -> Vec<(Input, Answer)> {
    let inputs: Vec<Input> =
        serde_json::from_str(include_str!("../../tests/data/objects.json")).unwrap();
    let answers: Vec<Answer> =
        serde_json::from_str(include_str!("../../tests/data/served.json")).unwrap();
    assert_eq!(inputs.len(), answers.len(), "run the oracle again");
    inputs.into_iter().zip(answers).collect()
}

/// Fields that admission, allocation or controllers set, not the schema.
fn without_registry_fields(object: &mut Value) {
    let remove = |value: Option<&mut Value>, names: &[&str]| {
        if let Some(Value::Object(object)) = value {
            names.iter().for_each(|name| drop(object.remove(*name)));
        }
    };
    remove(object.get_mut("metadata"), &["namespace", "generation"]);
    remove(object.get_mut("status"), &["conditions"]);
    if object["kind"] == "Service" {
        let allocated = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];
        remove(object.get_mut("spec"), &allocated);
    }
}

#[test]
fn stored_as_upstream_stores() {
    for (input, mut answer) in recorded() {
        let mut object = input.object;
        let gv = GroupVersion::parse(object["apiVersion"].as_str().unwrap()).unwrap();
        let gvk = gv.kind(object["kind"].as_str().unwrap());
        let schema = Types::builtin().kind(&gvk).unwrap().clone();
        assert_eq!(schema.coerce(&mut object, CoerceMode::Report).unwrap(), []);
        schema.default(&mut object);
        assert_eq!(schema.coerce(&mut object, CoerceMode::Report).unwrap(), []);
        without_registry_fields(&mut object);
        without_registry_fields(&mut answer.object);
        assert_eq!(object, answer.object);
    }
}

#[test]
fn tables_as_upstream_prints() {
    for (input, answer) in recorded() {
        let gv = GroupVersion::parse(input.object["apiVersion"].as_str().unwrap()).unwrap();
        let plural = input.path.rsplit('/').next().unwrap();
        let types = Types::builtin();
        let def = types.resource(&gv.group, plural).unwrap();

        let definitions: Vec<Value> = columns(def)
            .iter()
            .map(|column| {
                let mut definition = column.definition();
                assert!(!definition["description"].as_str().unwrap().is_empty());
                definition.as_object_mut().unwrap().remove("description");
                definition
            })
            .collect();
        assert_eq!(definitions, answer.columns);

        let mut object = answer.object;
        object["metadata"]["creationTimestamp"] = json!(now().to_string());
        let mut expected = answer.cells;
        if &*def.kind == "FlowSchema" {
            // A controller had set the condition between the object's and the table's read.
            *expected.last_mut().unwrap() = json!("?");
        }
        for (column, cell) in columns(def).iter().zip(&mut expected) {
            if &*column.kind == "date" {
                // Times of the recording are put to now, here as in the object.
                *cell = json!(now().to_string());
            }
        }
        assert_eq!(row(def, &object, now()), expected, "{object}");
    }
}

#[test]
fn every_table_has_rows_for_anything() {
    for def in Types::builtin().resources() {
        for object in [json!(null), json!({}), json!([]), json!({"spec": 1, "metadata": []})] {
            assert_eq!(row(def, &object, now()).len(), columns(def).len());
        }
    }
}

#[test]
fn columns_of_custom_resources() {
    let check = |kind: &str, value: Value, expect: Value| {
        let path = JsonPath::parse(".spec.x").unwrap();
        let column = Column::new("X", kind, "", CellRule::Typed(path));
        assert_eq!(column.cell(&json!({"spec": {"x": value}}), now()), expect, "{kind}");
    };
    check("integer", json!(3), json!(3));
    check("integer", json!(3.9), json!(3));
    check("integer", json!("3"), json!(null));
    check("string", json!(3), json!("3"));
    check("string", json!(["a"]), json!("[\"a\"]"));
    check("boolean", json!(true), json!(true));
    check("boolean", json!("true"), json!(null));
    check("date", json!("2026-11-27T00:39:20Z"), json!("24h"));
    check("date", json!("never"), json!("<invalid>"));
    check("string", json!(null), json!("<no value>"));
}
