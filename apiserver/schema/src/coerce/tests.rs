//! Coercion against the recorded answers of Kubernetes' own decoder (see
//! `kind-tests/tools/schema-data/oracle`), and its laws.

use std::collections::BTreeSet;

use machinery::GroupVersion;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::Types;

#[derive(Deserialize)]
struct Answer {
    object: Option<Value>,
    #[serde(default)]
    unknown: BTreeSet<String>,
    error: Option<String>,
}

fn cases() -> Vec<(Value, Answer)> {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../tests/data/cases.json")).unwrap();
    let answers: Vec<Answer> =
        serde_json::from_str(include_str!("../../tests/data/answers.json")).unwrap();
    assert_eq!(cases.len(), answers.len(), "run the oracle again");
    cases.into_iter().zip(answers).collect()
}

fn schema_of(value: &Value) -> Schema {
    let gv = GroupVersion::parse(value["apiVersion"].as_str().unwrap()).unwrap();
    let gvk = gv.kind(value["kind"].as_str().unwrap());
    Schema::clone(Types::builtin().kind(&gvk).unwrap_or_else(|| panic!("no schema of {gvk}")))
}

#[test]
fn decodes_as_upstream() {
    let mut differences = Vec::new();
    for (input, answer) in cases() {
        let mut value = input.clone();
        let result = schema_of(&input).coerce(&mut value, CoerceMode::Report);
        let same = match (&result, &answer.error) {
            (Ok(unknown), None) => {
                let unknown: BTreeSet<String> = unknown.iter().map(ToString::to_string).collect();
                answer.object.as_ref() == Some(&value) && unknown == answer.unknown
            }
            (Err(error), Some(text)) => error.to_string() == *text,
            _ => false,
        };
        if !same {
            let upstream = answer.object.map_or_else(|| answer.error.unwrap(), |o| o.to_string());
            let ours = result.map_or_else(|e| e.to_string(), |u| format!("{value} {u:?}"));
            differences
                .push(format!("input:    {input}\nupstream: {upstream}\nours:     {ours}\n"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn answers_round_trip() {
    let mut kinds = BTreeSet::new();
    for object in cases().into_iter().filter_map(|(_, answer)| answer.object) {
        let mut again = object.clone();
        let unknown = schema_of(&object).coerce(&mut again, CoerceMode::Report).unwrap();
        assert_eq!((&again, unknown), (&object, vec![]));
        kinds.insert(format!("{}/{}", object["apiVersion"], object["kind"]));
    }
    for def in Types::builtin().resources().iter().filter(|d| &*d.group != "core.kcp.io") {
        let gv = GroupVersion::new(&def.group, &def.versions[0].name);
        let kind = format!("{}/{}", json!(gv.to_string()), json!(&*def.kind));
        assert!(kinds.contains(&kind), "no case of {kind}");
    }
}

#[test]
fn our_own_kind() {
    let gvk = GroupVersion::new("core.kcp.io", "v1alpha1").kind("LogicalCluster");
    let schema = Types::builtin().kind(&gvk).unwrap().clone();
    let mut value = json!({"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster"});
    assert_eq!(schema.coerce(&mut value, CoerceMode::Report).unwrap(), []);
    assert_eq!(value["spec"], json!({}));
    assert_eq!(value["status"], json!({}));
}

#[test]
fn drop_mode_tells_nothing() {
    let mut value = json!({"apiVersion": "v1", "kind": "ConfigMap", "foo": 1});
    assert_eq!(schema_of(&value).coerce(&mut value, CoerceMode::Drop).unwrap(), []);
    assert_eq!(value.get("foo"), None);
}

#[test]
fn reported_fields_are_bounded() {
    let many: Map<String, Value> = (0..1000).map(|n| (format!("x{n}"), json!(1))).collect();
    let mut value = Value::Object(many);
    value["apiVersion"] = "v1".into();
    value["kind"] = "ConfigMap".into();
    let unknown = schema_of(&value).coerce(&mut value, CoerceMode::Report).unwrap();
    assert_eq!(unknown.len(), MAX_UNKNOWN);
}

/// Any JSON whose names are mostly those of a type.
fn json_like(names: Vec<String>) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-zA-Z0-9:. =-]{0,12}".prop_map(Value::from),
        Just(Value::from("2024-01-01T00:00:00Z")),
        Just(Value::from("YQ==")),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let name = prop_oneof![4 => prop::sample::select(names.clone()), 1 => "[a-z.]{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn all_names() -> Vec<String> {
    let types = Types::builtin();
    let mut names = BTreeSet::new();
    for (_, schema) in types.kinds() {
        let pool = schema.pool();
        names.extend(pool.json_fields(schema.root()).map(|f| f.name.to_string()));
        names.insert("spec".to_owned());
    }
    for name in ["ObjectMeta", "OwnerReference", "ManagedFieldsEntry", "LabelSelector"] {
        let full = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}");
        let schema = types.named(&full).unwrap();
        names.extend(schema.pool().json_fields(schema.root()).map(|f| f.name.to_string()));
    }
    names.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// No input panics; what is accepted is stable, also after defaults.
    #[test]
    fn coerce_is_idempotent(value in json_like(all_names()), pick in any::<prop::sample::Index>()) {
        let types = Types::builtin();
        let mut kinds: Vec<_> = types.kinds().collect();
        kinds.sort_by_key(|(gvk, _)| gvk.to_string());
        let (_, schema) = kinds[pick.index(kinds.len())];
        let mut once = value;
        if schema.coerce(&mut once, CoerceMode::Report).is_ok() {
            let mut twice = once.clone();
            prop_assert_eq!(schema.coerce(&mut twice, CoerceMode::Report), Ok(vec![]));
            prop_assert_eq!(&twice, &once);
            schema.default(&mut once);
            let mut again = once.clone();
            schema.default(&mut again);
            prop_assert_eq!(&again, &once);
            prop_assert_eq!(schema.coerce(&mut again, CoerceMode::Report), Ok(vec![]));
            prop_assert_eq!(&again, &once);
        }
    }
}
