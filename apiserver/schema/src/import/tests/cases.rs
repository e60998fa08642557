//! Single parts of schemas, right and wrong, and what holds for any.

use machinery::FieldPath;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::import::node::Converter;
use crate::import::{groups, resource_list};
use crate::structural::Structural;

/// The schema that comes of one component, and what is lost.
fn convert(components: &Value) -> (Value, Vec<String>) {
    let document = json!({"components": {"schemas": components}});
    let (schema, losses) = Converter::new(&document, "v1").root("g", "v1", "K").unwrap();
    let compiled = Structural::compile(&schema, &FieldPath::root("s"));
    assert!(compiled.is_ok(), "{:#?} of {schema:#}", compiled.unwrap_err());
    assert_eq!(schema["properties"]["metadata"], json!({"type": "object"}));
    assert_eq!(schema["properties"]["kind"], json!({"type": "string", "description": "d"}));
    assert_eq!((&schema["required"], &schema["description"]), (&json!(["x"]), &json!("d")));
    (schema, losses.iter().map(ToString::to_string).collect())
}

fn root(mut properties: Value) -> Value {
    properties["metadata"] = json!({"type": "string", "description": "d", "nullable": true});
    properties["kind"] = json!({"type": "integer", "description": "d", "default": "K"});
    json!({
        "type": "object",
        "description": "d",
        "nullable": true,
        "required": ["kind", "metadata", "x", "absent"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "K"}],
    })
}

fn check(property: impl Into<Value>, expect: impl Into<Value>, lost: &[&str]) {
    let property: Value = property.into();
    let components = json!({
        "K": root(json!({"x": property})),
        "Named": {"type": "object", "description": "inner", "required": ["a"],
            "properties": {"a": {"type": "string", "default": ""}, "b": {"type": "string"}}},
        "Ring": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Ring"}}},
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
    });
    let (schema, losses) = convert(&components);
    assert_eq!(schema["properties"]["x"], expect.into());
    assert_eq!(losses, lost);
}

/// Whatever a document says of a kind, its objects are objects with metadata.
#[test]
fn roots() {
    let check = |description: Value, lost: &[&str]| {
        let mut component = description;
        component["x-kubernetes-group-version-kind"] =
            json!([{"group": "g", "version": "v1", "kind": "K"}]);
        let document = json!({"components": {"schemas": {"K": component}}});
        let (schema, losses) = Converter::new(&document, "v1").root("g", "v1", "K").unwrap();
        let compiled = Structural::compile(&schema, &FieldPath::root("s"));
        assert!(compiled.is_ok(), "{:#?} of {schema:#}", compiled.unwrap_err());
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["x-kubernetes-preserve-unknown-fields"], true);
        assert_eq!(losses.iter().map(ToString::to_string).collect::<Vec<_>>(), lost);
    };
    let fields = "v1: a CRD can't describe fields of any name beside metadata: not checked";
    let odd = "v1: it is described as something else than an object: not checked";
    check(json!({}), &[]);
    check(json!({"additionalProperties": {"type": "string"}}), &[fields]);
    let both = json!({"properties": {"a": {"type": "string"}}, "additionalProperties": {}});
    check(both, &["v1: fields beside the named ones: they are kept, but not checked"]);
    check(json!({"type": "array", "items": {"type": "string"}}), &[odd]);
    check(json!({"type": "string", "format": "int-or-string"}), &[odd]);
    check(json!({"type": "integer", "minimum": 1}), &[odd]);
}

#[test]
fn parts() {
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let named = json!({
        "type": "object", "required": ["a"],
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    });
    let with = |text: &str| {
        let mut named = named.clone();
        named["description"] = text.into();
        named
    };
    check(reference("Named"), with("inner"), &[]);
    check(
        json!({"allOf": [reference("Named")], "default": {}, "description": "outer"}),
        with("outer"),
        &[],
    );
    check(
        reference("Ring"),
        json!({"type": "object", "properties": {"next": {"x-kubernetes-preserve-unknown-fields": true}}}),
        &["v1.x.next: it contains itself: what lies below isn't checked"],
    );
    check(
        reference("Absent"),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        &["v1.x: it refers to a schema that the document lacks: not checked"],
    );
    let int_or_string = json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true});
    check(
        json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        int_or_string,
        &[],
    );
    let (schema, _) = convert(&json!({
        "K": root(json!({"x": reference("io.k8s.apimachinery.pkg.api.resource.Quantity")})),
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    }));
    assert_eq!(schema["properties"]["x"]["x-kubernetes-int-or-string"], true);
    check(
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "string", "format": "date-time", "nullable": true}),
        &[],
    );
    check(
        json!({"type": "object"}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        &[],
    );
    check(json!({}), json!({"x-kubernetes-preserve-unknown-fields": true}), &[]);
    check(
        json!({"type": "object", "additionalProperties": {"type": "string", "default": ""}}),
        json!({"type": "object", "additionalProperties": {"type": "string"}, "nullable": true}),
        &[],
    );
}

#[test]
fn defaults_and_lists() {
    for zero in [json!(""), json!(0), json!(false), json!({}), json!([])] {
        check(json!({"type": "boolean", "default": zero}), json!({"type": "boolean"}), &[]);
    }
    let real = json!({"type": "string", "default": "TCP"});
    check(real.clone(), real, &[]);
    let list = |keys: &[&str]| {
        json!({
            "type": "array", "items": {"$ref": "#/components/schemas/Named"},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "x-kubernetes-patch-merge-key": "a", "x-kubernetes-patch-strategy": "merge",
        })
    };
    let items = json!({
        "type": "object", "description": "inner", "required": ["a"],
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    });
    check(
        list(&["a"]),
        json!({
            "type": "array", "nullable": true, "items": items,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
        }),
        &[],
    );
    // A key that may be absent tells nothing apart.
    check(
        list(&["a", "b"]),
        json!({"type": "array", "nullable": true, "items": items, "x-kubernetes-list-type": "atomic"}),
        &["v1.x: items that CRDs can't tell apart: the list is owned as a whole"],
    );
    let optional = json!({
        "type": "array", "nullable": true,
        "items": {"type": "object", "properties": {"k": {"type": "string", "default": ""}}},
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
    });
    check(optional.clone(), optional, &[]);
    check(
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "uniqueItems": true}),
        json!({"type": "array", "nullable": true, "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        &[],
    );
}

#[test]
fn conditions() {
    let fields = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    check(
        json!({"type": "object", "properties": fields,
            "oneOf": [{"required": ["a"], "description": "d"}, {"required": ["b"]}],
            "not": {"properties": {"a": {"pattern": "^x"}}}}),
        json!({"type": "object", "properties": fields,
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "not": {"properties": {"a": {"pattern": "^x"}}}}),
        &[],
    );
    check(
        json!({"type": "object", "properties": fields, "not": {"properties": {"c": {}}}}),
        json!({"type": "object", "properties": fields}),
        &["v1.x: a combination of conditions that CRDs don't have: not checked"],
    );
}

#[test]
fn size_and_depth_are_bounded() {
    // Each component holds the next one twice: 2^40 parts if nothing ended it.
    let mut components = Map::new();
    for at in 0..40 {
        let next = json!({"$ref": format!("#/components/schemas/C{}", at + 1)});
        let schema = json!({"type": "object", "properties": {"a": next, "b": next}});
        components.insert(format!("C{at}"), schema);
    }
    components.insert("C40".into(), json!({"type": "string"}));
    components.insert("K".into(), root(json!({"x": {"$ref": "#/components/schemas/C0"}})));
    let document = json!({"components": {"schemas": components}});
    let (_, losses) = Converter::new(&document, "v1").root("g", "v1", "K").unwrap();
    let reasons: Vec<&str> = losses.iter().map(|loss| loss.reason).collect();
    assert_eq!(reasons, ["the schema is too large: from here on nothing is checked"]);

    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    let (_, losses) = convert(&json!({"K": root(json!({"x": deep}))}));
    assert_eq!(losses.len(), 1);
    assert!(losses[0].ends_with("it nests too deep: what lies below isn't checked"), "{losses:?}");
}

/// Schemas of anything that a document may hold, right and wrong.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "default": "x"})),
        Just(json!({"type": "integer", "format": "int32", "minimum": 1})),
        Just(json!({"$ref": "#/components/schemas/K"})),
        Just(json!({"$ref": "#/components/schemas/A"})),
        Just(json!({"$ref": 5})),
        Just(json!({"type": 7, "properties": 3, "items": []})),
        Just(json!(null)),
        Just(json!({})),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let fields = proptest::collection::btree_map("[a-c]", inner.clone(), 0..3);
        prop_oneof![
            fields.prop_map(|f| json!({"type": "object", "properties": f, "required": ["a", 1]})),
            inner.clone().prop_map(|i| json!({"type": "object", "additionalProperties": i})),
            (inner.clone(), any::<bool>()).prop_map(|(i, map)| {
                let kind = if map { "map" } else { "set" };
                json!({"type": "array", "items": i, "x-kubernetes-list-type": kind,
                    "x-kubernetes-list-map-keys": ["a"]})
            }),
            inner.clone().prop_map(|i| json!({"allOf": [i], "nullable": true})),
            (inner.clone(), inner).prop_map(|(a, b)| json!({"oneOf": [a, b], "not": b})),
        ]
    })
}

proptest! {
    #[test]
    fn any_document_gives_structural_schemas(x in any_schema(), a in any_schema()) {
        let components = json!({"K": root(json!({"x": x})), "A": a});
        convert(&components);
    }

    #[test]
    fn any_discovery_is_read(text in r#"[\[\]{}:,"a-z0-9]{0,60}"#) {
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        groups(&value);
        groups(&json!({"items": [value, {"versions": value}, {"versions": [value]}]}));
        resource_list(&value);
        resource_list(&json!({"groupVersion": "a/v1", "resources": [value]}));
    }
}
