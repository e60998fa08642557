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
