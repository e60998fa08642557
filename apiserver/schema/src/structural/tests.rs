//! Schemas as a whole. Texts are what a real kube-apiserver answered.

mod judged;
mod laws;

use serde_json::json;

use super::*;
use crate::coerce::CoerceMode;

fn compile(schema: &Value) -> Arc<Structural> {
    let path = FieldPath::root("schema");
    Structural::compile(schema, &path).unwrap_or_else(|e| panic!("{schema}: {e:?}"))
}

/// A schema of an object whose `spec` has these properties.
fn of_spec(properties: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

fn texts(problems: &[FieldError]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn equal_schemas_are_one() {
    let schema = of_spec(&json!({"a": {"type": "string", "pattern": "^shared$"}}));
    let (one, other) = (compile(&schema), compile(&schema.clone()));
    assert!(Arc::ptr_eq(&one, &other));
    let different = compile(&of_spec(&json!({"a": {"type": "string"}})));
    assert_ne!(one.hash(), different.hash());
}

#[test]
fn equal_parts_are_one_node() {
    let container = json!({"type": "object", "properties": {
        "image": {"type": "string"},
        "env": {"type": "array", "items": {"type": "object", "properties": {
            "name": {"type": "string"}, "value": {"type": "string"}}}},
    }});
    let list = json!({"type": "array", "items": container});
    let schema = compile(&of_spec(&json!({"containers": list, "initContainers": list})));
    // string, env's item, env, container, list, spec, root.
    assert_eq!(schema.len(), 7);
    let spec = schema.root().property("spec").unwrap();
    let number = |name| spec.property(name).unwrap().number();
    assert_eq!(number("containers"), number("initContainers"));
}

#[test]
fn nodes_are_compact() {
    assert!(size_of::<NodeData>() <= 64, "{}", size_of::<NodeData>());
    assert!(size_of::<node::Facet>() <= 32, "{}", size_of::<node::Facet>());
    assert!(size_of::<node::Property>() <= 24, "{}", size_of::<node::Property>());
}

/// The bytes of a schema: its nodes and the lists that they have.
fn size(schema: &Structural) -> usize {
    let node = |node: &NodeData| {
        let names = node.properties.iter().map(|p| size_of_val(p) + p.name.len() + 8);
        size_of_val(node) + names.sum::<usize>() + size_of_val(&*node.facets)
    };
    schema.nodes.iter().map(node).sum()
}

#[test]
fn a_large_object_is_small() {
    let kinds = ["string", "integer", "boolean"];
    let field = |at: usize| {
        let name = format!("someFieldWithALongName{at}");
        let part = json!({"type": kinds[at % 3], "description": "d".repeat(200),
                          "maxLength": at, "minimum": at});
        (name, part)
    };
    let properties: serde_json::Map<String, Value> = (0..300).map(field).collect();
    let schema = compile(&of_spec(&Value::Object(properties)));
    assert!(size(&schema) < 64 * 1024, "{}", size(&schema));
}

#[test]
fn work_is_bounded() {
    // Each item is judged by every alternative: 200 × 100,000.
    let alternatives: Vec<Value> = (0..200).map(|n| json!({"minimum": 1_000 + n})).collect();
    let item = json!({"type": "integer", "anyOf": alternatives});
    let schema = compile(&of_spec(&json!({"l": {"type": "array", "items": item}})));
    let object = json!({"spec": {"l": vec![1; 100_000]}});
    let problems = texts(&schema.validate(&object, None));
    assert!(problems.len() <= validate::MAX_PROBLEMS + 1, "{}", problems.len());
    let last = problems.last().unwrap();
    assert_eq!(last, "<nil>: Invalid value: \"\": takes more than 10000000 steps to validate");
}

#[test]
fn nested_alternatives_cost_no_more_than_their_number() {
    let mut schema = json!({"minLength": 5});
    for _ in 0..50 {
        schema = json!({"anyOf": [schema]});
    }
    schema["type"] = "string".into();
    let schema = compile(&of_spec(&json!({"a": schema})));
    let problems = schema.validate(&json!({"spec": {"a": "x"}}), None);
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn too_deep_schemas_are_refused() {
    let mut schema = json!({"type": "string"});
    for _ in 0..200 {
        schema = json!({"type": "array", "items": schema});
    }
    let problems = Structural::compile(&of_spec(&json!({"a": schema})), &FieldPath::root("s"));
    assert_eq!(
        texts(&problems.unwrap_err()),
        ["s: Invalid value: \"\": must not nest deeper than 128 levels"]
    );
}

#[test]
fn nodes_tell_what_is_written() {
    let schema = compile(&of_spec(&json!({
        "s": {"type": "string", "format": "odd", "pattern": "^a", "minLength": 1, "maxLength": 9,
              "enum": ["a"], "default": "a", "nullable": true},
        "n": {"type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 2.5,
              "multipleOf": 0.5},
        "l": {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string"}}},
              "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
              "minItems": 1, "maxItems": 3},
        "m": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true},
              "x-kubernetes-map-type": "atomic", "minProperties": 1, "maxProperties": 2,
              "x-kubernetes-validations": [{"rule": "true", "message": "m", "reason": "FieldValueInvalid"}]},
        "e": {"type": "object", "x-kubernetes-embedded-resource": true,
              "x-kubernetes-preserve-unknown-fields": true,
              "allOf": [{"required": ["a"], "properties": {"a": {}}}], "not": {"required": ["b"]},
              "properties": {"a": {"type": "boolean"}}},
    })));
    let spec = schema.root().property("spec").unwrap();
    let names: Vec<&str> = spec.properties().map(|(name, _)| name).collect();
    assert_eq!(names, ["e", "l", "m", "n", "s"]);
    let part = |name| spec.property(name).unwrap();
    let s = part("s");
    assert_eq!((s.kind(), s.format(), s.pattern()), (Some(Kind::String), "odd", Some("^a")));
    assert_eq!((s.min_length(), s.max_length()), (Some(1), Some(9)));
    assert_eq!((s.enum_values(), s.default_value()), (&[json!("a")][..], Some(&json!("a"))));
    assert!(s.is_nullable());
    let n = part("n");
    assert_eq!(n.minimum(), Some(Bound { value: 1.0, exclusive: true }));
    assert_eq!(n.maximum(), Some(Bound { value: 2.5, exclusive: false }));
    assert_eq!(n.multiple_of(), Some(0.5));
    let l = part("l");
    assert_eq!((l.list_type(), &*l.list_map_keys()[0]), (ListType::Map, "k"));
    assert_eq!((l.min_items(), l.max_items()), (Some(1), Some(3)));
    assert_eq!(&*l.items().unwrap().required()[0], "k");
    let m = part("m");
    assert_eq!(
        (m.map_type(), m.min_properties(), m.max_properties()),
        (MapType::Atomic, Some(1), Some(2))
    );
    assert!(matches!(m.additional(), Additional::Of(v) if v.is_int_or_string()));
    assert_eq!(&*m.validation_rules()[0].message, "m");
    assert!(m.has_rules() && schema.root().has_rules() && !l.has_rules());
    let e = part("e");
    assert!(e.is_embedded() && e.preserves_unknown());
    assert_eq!((e.all_of().count(), e.any_of().count(), e.one_of().count()), (1, 0, 0));
    assert_eq!(&*e.none_of().unwrap().required()[0], "b");
}

#[test]
fn stored_objects_are_repaired() {
    let template = json!({"type": "object", "x-kubernetes-embedded-resource": true,
                          "x-kubernetes-preserve-unknown-fields": true});
    let schema = compile(&of_spec(&json!({"template": template, "a": {"type": "string"}})));
    let check = |object: Value, expect: Value| {
        let mut found = object.clone();
        schema.repair(&mut found);
        assert_eq!(found, expect, "{object}");
        let again = found.clone();
        schema.repair(&mut found);
        assert_eq!(found, again);
    };
    check(
        json!({"metadata": {"name": "n", "labels": 5, "odd": 1, "generation": 3}, "x": 1}),
        json!({"metadata": {"name": "n", "generation": 3}}),
    );
    check(json!({"metadata": {"name": "n"}}), json!({"metadata": {"name": "n", "generation": 1}}));
    check(
        json!({"spec": {"a": null, "template": {"kind": 5, "metadata": {"name": 1, "uid": "u"}}}}),
        json!({"spec": {"template": {"metadata": {"uid": "u"}}}}),
    );
    check(json!({"metadata": []}), json!({"metadata": []}));
    check(json!(5), json!(5));
}
