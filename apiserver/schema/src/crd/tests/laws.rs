//! What holds for any JSON that comes as a CRD.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;

/// JSON made of a CRD's words.
fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..5).prop_map(Value::from),
        prop::sample::select(vec![
            "v1",
            "v1beta1",
            "object",
            "string",
            "array",
            "map",
            "set",
            "a",
            ".spec.a",
            "Webhook",
            "None",
            "Namespaced",
            "example.com",
            "core",
            "https://a/b",
            "[",
            "date",
            "",
        ])
        .prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(6, 60, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(word(), inner, 0..6).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    });
    tree.boxed()
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "metadata",
        "name",
        "annotations",
        "spec",
        "group",
        "names",
        "plural",
        "kind",
        "versions",
        "served",
        "storage",
        "schema",
        "openAPIV3Schema",
        "type",
        "properties",
        "items",
        "anyOf",
        "not",
        "default",
        "pattern",
        "format",
        "required",
        "additionalProperties",
        "conversion",
        "strategy",
        "webhook",
        "clientConfig",
        "url",
        "service",
        "path",
        "subresources",
        "status",
        "scale",
        "specReplicasPath",
        "additionalPrinterColumns",
        "jsonPath",
        "selectableFields",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-validations",
        "rule",
        "fieldPath",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "storedVersions",
        "acceptedNames",
        "conditions",
        "shortNames",
        "a",
    ])
    .prop_map(str::to_owned)
}

fn exercise(mut crd: Value, old: &Value) {
    record_storage_version(&mut crd);
    complete(&mut crd);
    let mut again = crd.clone();
    complete(&mut again);
    record_storage_version(&mut again);
    assert_eq!(again, crd);
    validate_create(&crd);
    validate_update(&crd, old);
    warnings(&crd, Some(old));
    approval(&crd);
    let names = accept_names(&crd, [old, &crd].into_iter());
    set_condition(&mut crd, &names.accepted, "2026-01-01T00:00:00Z");
    assert!(names.accepted.holds(&crd) || crd.pointer("/status/conditions").is_none());
    if let Ok(custom) = compile(&crd) {
        for def in &custom.defs {
            crate::table::row(def, old, jiff::Timestamp::UNIX_EPOCH);
        }
        for version in &custom.versions {
            version.schema.validate(old, None);
            version.scale.as_ref().map(|scale| scale.validate(old));
        }
    }
}

proptest! {
    #[test]
    fn any_json(crd in value(), old in value()) {
        exercise(crd, &old);
    }

    #[test]
    fn any_schema_in_a_crd(schema in value(), more in value(), old in value()) {
        let mut version = json!({"name": "v1", "served": true, "storage": true});
        version["schema"] = json!({"openAPIV3Schema": schema});
        if let Some(fields) = more.as_object() {
            for (name, value) in fields {
                version[name] = value.clone();
            }
        }
        let crd = |versions: Value| json!({
            "metadata": {"name": "foos.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "versions": versions,
                     "names": {"plural": "foos", "kind": "Foo"}},
        });
        exercise(crd(json!([version])), &crd(json!([old])));
    }

    #[test]
    fn a_crd_without_problems_has_none_as_its_own_change(schema in value()) {
        let mut crd = json!({
            "metadata": {"name": "foos.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                     "names": {"plural": "foos", "kind": "Foo"},
                     "versions": [{"name": "v1", "served": true, "storage": true,
                                   "schema": {"openAPIV3Schema": schema}}]},
        });
        record_storage_version(&mut crd);
        complete(&mut crd);
        if validate_create(&crd).is_empty() {
            prop_assert_eq!(validate_update(&crd, &crd), vec![]);
            prop_assert!(compile(&crd).is_ok());
        }
    }
}
