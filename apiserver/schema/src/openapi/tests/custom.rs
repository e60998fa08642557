//! Custom types: what kubectl and the conformance specs look for, and laws over any definition.

use proptest::prelude::*;

use super::real::{Shop, sources};
use super::*;

/// Every reference of a document; data isn't one, and `named` says that keys are names.
fn references(value: &Value, named: bool, into: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            let target = object.get("$ref").and_then(Value::as_str).filter(|_| !named);
            into.extend(target.map(str::to_owned));
            for (key, value) in object {
                let is_data = ["default", "enum", "example"].contains(&key.as_str());
                if named || !(is_data || key.starts_with("x-")) {
                    references(value, !named && key == "properties", into);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, false, into)),
        _ => {}
    }
}

fn assert_closed(document: &Value) {
    let mut targets = Vec::new();
    references(document, false, &mut targets);
    assert!(!targets.is_empty());
    for target in targets {
        let name = target.strip_prefix('#').unwrap();
        assert!(document.pointer(name).is_some_and(Value::is_object), "{target}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let shop = Shop::open();
    for document in [shop.v3("v1"), shop.v3("v1alpha1"), shop.v2()] {
        assert_closed(&document);
    }
}

#[test]
fn versions_that_are_not_served_are_not_published() {
    let shop = Shop::open();
    let names: Vec<String> =
        shop.v2()["definitions"].as_object().unwrap().keys().cloned().collect();
    let published = |name: &str| names.iter().any(|known| known == name);
    assert!(published("com.example.shop.v1alpha1.Gadget"));
    assert!(!published("com.example.shop.v1beta1.Gadget"));
}

#[test]
fn a_definition_that_is_missing_leaves_an_object_of_which_nothing_is_known() {
    let shop = Shop::open();
    let gv = GroupVersion::new("shop.example.com", "v1");
    let all = shop.types.iter().flat_map(|custom| sources(custom, None)).collect::<Vec<_>>();
    let document = v3(&gv, &all, &Types::builtin());
    assert_closed(&document);
    let gvk = json!([{"group": "shop.example.com", "version": "v1", "kind": "Shelf"}]);
    assert_eq!(
        document["components"]["schemas"]["com.example.shop.v1.Shelf"],
        json!({"type": "object", "x-kubernetes-group-version-kind": gvk})
    );
}

#[test]
fn operation_ids_are_those_of_go() {
    let shop = Shop::open();
    let document = shop.v3("v1alpha1");
    let path = "/apis/shop.example.com/v1alpha1/namespaces/{namespace}/gadgets";
    let list = &document["paths"][path]["get"];
    assert_eq!(list["operationId"], "listShopExampleComV1alpha1NamespacedGadget");
    assert_eq!(list["tags"], json!(["shopExampleCom_v1alpha1"]));
}

/// A Deployment as an import makes it, in short.
fn deployments() -> Value {
    let text = |text: &str| json!({"type": "string", "description": text});
    let list = |items: Value| json!({"type": "array", "items": items});
    let env =
        json!({"type": "object", "properties": {"name": text("Name."), "value": text("Value.")}});
    let container = json!({
        "type": "object",
        "properties": {"name": text("Name."), "env": list(env), "args": list(text("Argument."))},
    });
    let template = json!({
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "description": "Of the pods.", "properties": {"name": text("Name.")}},
            "spec": {"type": "object", "properties": {"containers": list(container)}},
        },
    });
    let schema = json!({
        "type": "object",
        "description": "Text of the cluster.",
        "properties": {
            "spec": {"type": "object", "properties": {"template": template, "later": {"type": "integer"}}},
        },
    });
    json!({
        "metadata": {"name": "deployments.apps"},
        "spec": {
            "group": "apps",
            "scope": "Namespaced",
            "names": {"plural": "deployments", "singular": "deployment", "kind": "Deployment", "listKind": "DeploymentList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

#[test]
fn imported_types_are_published_as_built_in_ones() {
    let crd = deployments();
    let custom = crate::crd::compile(&crd).unwrap();
    let sources = sources(&custom, Some(&crd));
    let document = v3(&GroupVersion::new("apps", "v1"), &sources, &Types::builtin());
    assert_closed(&document);
    let schemas = &document["components"]["schemas"];
    let own = &schemas["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(own["description"], "Text of the cluster.");
    assert!(schemas["io.k8s.api.apps.v1.DeploymentList"].is_object());
    let template = &own["properties"]["spec"]["properties"]["template"]["properties"];
    assert_eq!(template["metadata"]["description"], "Of the pods.");
    let object_meta = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(template["metadata"]["allOf"], json!([{ "$ref": object_meta }]));
    let containers = &template["spec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    let env = &containers["items"]["properties"]["env"];
    assert_eq!(env["x-kubernetes-patch-merge-key"], "name");
    assert!(containers["items"]["properties"]["args"].get("x-kubernetes-patch-strategy").is_none());
    assert_eq!(own["properties"]["spec"]["properties"]["later"], json!({"type": "integer"}));
    let item = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let patch = &document["paths"][item]["patch"];
    assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object());
    let get = &document["paths"][item]["get"]["responses"]["200"]["content"];
    assert!(get["application/vnd.kubernetes.protobuf"].is_object());
    let scale = &document["paths"][format!("{item}/scale")]["get"];
    let gvk = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
    assert_eq!(scale["x-kubernetes-group-version-kind"], gvk);
    assert!(document["paths"]["/apis/apps/v1/"].is_object());
}

/// Any JSON that looks somewhat like a schema.
fn schemas() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just("#/components/schemas/nothing"),
        Just("#/definitions/nothing"),
        Just("object"),
        Just("array"),
        Just("string"),
        Just("integer"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.prop_map(Value::from),
        "\\PC{0,6}|[\\x00-\\x9f]{0,3}".prop_map(Value::from),
    ];
    let keywords = prop::sample::select(vec![
        "$ref",
        "type",
        "properties",
        "items",
        "additionalProperties",
        "allOf",
        "anyOf",
        "not",
        "oneOf",
        "default",
        "enum",
        "required",
        "nullable",
        "description",
        "minimum",
        "maxLength",
        "example",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
        "spec",
        "metadata",
    ]);
    leaf.prop_recursive(12, 120, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(keywords.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|object| Value::Object(object.into_iter().collect())),
        ]
    })
}

fn with_schema(schema: Value) -> Value {
    let mut crd = deployments();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
    crd
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_definition_gives_closed_documents_of_bounded_size(schema in schemas(), own in any::<bool>()) {
        let compiled = deployments();
        let mut crd = with_schema(schema);
        let mut compiled = if own { compiled } else {
            crd["spec"]["group"] = "shop.example.com".into();
            with_schema(json!({"type": "object"}))
        };
        compiled["spec"]["group"] = crd["spec"]["group"].clone();
        let custom = crate::crd::compile(&compiled).unwrap();
        let types = Types::builtin();
        let gv = GroupVersion { group: custom.group.clone(), version: "v1".into() };
        let empty = v3(&gv, &sources(&custom, None), &types).to_string().len();
        let all = sources(&custom, Some(&crd));
        let v3 = v3(&gv, &all, &types);
        let text = v2(&all, &types);
        let v2: Value = serde_json::from_slice(&text).unwrap();
        assert_closed(&v3);
        assert_closed(&v2);
        let bound = empty + 2_000 + 400 * crd.to_string().len();
        prop_assert!(v3.to_string().len() <= bound);
        prop_assert!(text.len() <= bound);
        prop_assert!(!v3_protobuf(&v3).is_empty() && !v2_protobuf(&all, &types).is_empty());
    }
}

#[test]
fn deep_schemas_end() {
    let mut schema = json!({"type": "string"});
    for _ in 0..300 {
        schema = json!({"type": "object", "properties": {"a": schema}, "not": {}});
    }
    let crd = with_schema(schema);
    let custom = crate::crd::compile(&deployments()).unwrap();
    let sources = sources(&custom, Some(&crd));
    let document = v3(&GroupVersion::new("apps", "v1"), &sources, &Types::builtin());
    assert_closed(&document);
    assert!(document.to_string().len() < 200_000);
}
