//! What holds for any schema and any object.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Map;

use super::*;

/// Any JSON over few names, so that schemas and objects meet.
fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        (-2.0..2.0_f64).prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(name(), inner, 0..5).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    });
    tree.boxed()
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "spec", "status", "metadata", "kind", "apiVersion"])
        .prop_map(str::to_owned)
}

/// A schema that is structural, with every keyword.
fn schema() -> BoxedStrategy<Value> {
    let scalar = (
        prop::sample::select(vec!["string", "integer", "number", "boolean"]),
        any::<bool>(),
        prop::option::of(value()),
        prop::option::of(0_i64..3),
        prop::option::of(prop::sample::select(vec!["date", "int32", "byte", "strange"])),
    );
    let scalar = scalar.prop_map(|(kind, nullable, default, least, format)| {
        let mut schema = json!({"type": kind, "nullable": nullable});
        if let Some(default) = default {
            schema["default"] = default;
        }
        if let Some(least) = least {
            schema["minLength"] = least.into();
            schema["minimum"] = least.into();
            schema["not"] = json!({"enum": [least, "a"]});
        }
        if let Some(format) = format {
            schema["format"] = format.into();
        }
        schema
    });
    let other = prop::sample::select(vec![
        json!({"x-kubernetes-int-or-string": true}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "x-kubernetes-embedded-resource": true,
               "x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "additionalProperties": true}),
    ]);
    let tree = prop_oneof![3 => scalar, 1 => other].prop_recursive(4, 30, 4, |inner| {
        let fields = btree_map(name(), inner.clone(), 1..5);
        let object = (fields, any::<bool>(), any::<bool>(), prop::option::of(name()));
        prop_oneof![
            object.prop_map(|(fields, preserve, nullable, required)| {
                let properties: Map<String, Value> = fields.into_iter().collect();
                let mut schema = json!({"type": "object", "nullable": nullable});
                if preserve {
                    schema["x-kubernetes-preserve-unknown-fields"] = true.into();
                }
                if let Some(required) = required {
                    schema["required"] = json!([required]);
                    schema["anyOf"] = json!([{"required": ["a"]}, {"required": [required]}]);
                }
                schema["properties"] = Value::Object(properties);
                schema
            }),
            inner.clone().prop_map(|i| json!({"type": "object", "additionalProperties": i})),
            (inner, prop::sample::select(vec!["atomic", "set", "map"])).prop_map(|(i, list)| {
                json!({"type": "array", "items": i, "x-kubernetes-list-type": list,
                       "x-kubernetes-list-map-keys": ["a"]})
            }),
        ]
    });
    let root = tree.prop_map(|mut spec| {
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("default");
        }
        json!({"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}})
    });
    root.boxed()
}

/// An object that goes with the schemas above.
fn object() -> impl Strategy<Value = Value> {
    (value(), value()).prop_map(|(spec, other)| json!({"spec": spec, "kind": "K", "a": other}))
}

/// Whether every field and item of `part` is in `whole`, list items at the same place.
fn is_within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(name, value)| whole.get(name).is_some_and(|w| is_within(value, w)))
        }
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(p, w)| is_within(p, w))
        }
        (part, whole) => part == whole,
    }
}

proptest! {
    #[test]
    fn pruning_never_adds(schema in schema(), object in object()) {
        let schema = compile(&schema);
        let mut pruned = object.clone();
        let told = schema.prune(&mut pruned, CoerceMode::Report);
        prop_assert!(is_within(&pruned, &object), "{pruned} of {object}");
        let mut again = pruned.clone();
        prop_assert_eq!(schema.prune(&mut again, CoerceMode::Report), vec![]);
        prop_assert_eq!(&again, &pruned);
        let mut silent = object.clone();
        prop_assert_eq!(schema.prune(&mut silent, CoerceMode::Drop), vec![]);
        prop_assert_eq!(&silent, &pruned);
        prop_assert!(told.is_sorted_by(|a, b| a.path <= b.path));
    }

    #[test]
    fn defaulting_is_idempotent_and_keeps_what_is_there(schema in schema(), object in object()) {
        let schema = compile(&schema);
        let mut filled = object.clone();
        schema.default(&mut filled);
        let mut again = filled.clone();
        schema.default(&mut again);
        prop_assert_eq!(&again, &filled);
        let mut kept = object.clone();
        schema.prune(&mut kept, CoerceMode::Drop);
        let mut both = kept.clone();
        schema.default(&mut both);
        schema.default(&mut both);
    }

    #[test]
    fn unknown_fields_change_no_verdict(schema in schema(), object in object()) {
        let schema = compile(&schema);
        let mut pruned = object.clone();
        schema.prune(&mut pruned, CoerceMode::Drop);
        let mut nulls_kept = object.clone();
        drop_unknown(schema.root(), &mut nulls_kept);
        prop_assert_eq!(
            texts(&schema.validate(&nulls_kept, None)),
            texts(&schema.validate(&object, None))
        );
    }

    #[test]
    fn what_did_not_change_is_forgiven(schema in schema(), object in object()) {
        let schema = compile(&schema);
        let mut pruned = object.clone();
        schema.prune(&mut pruned, CoerceMode::Drop);
        let problems = schema.validate(&pruned, None);
        let kept = schema.validate(&pruned, Some(&pruned));
        prop_assert!(kept.len() <= problems.len());
    }

    #[test]
    fn any_schema_and_any_object(schema in value(), object in value(), old in value()) {
        if let Ok(schema) = Structural::compile(&schema, &FieldPath::default()) {
            exercise(&schema, &object, &old);
        }
    }

    #[test]
    fn any_structural_schema_and_any_object(schema in schema(), object in value(), old in value()) {
        let schema = compile(&schema);
        exercise(&schema, &json!({"spec": object, "metadata": old}), &json!({"spec": old}));
    }
}

/// Drops what no schema knows and leaves nulls alone; under a node that preserves, nothing.
fn drop_unknown(node: Node<'_>, value: &mut Value) {
    match value {
        Value::Object(fields) if node.kind() == Some(Kind::Object) && !node.is_embedded() => {
            let undeclared =
                matches!(node.additional(), Additional::Absent) && !node.preserves_unknown();
            let counted = node.required().len() + node.any_of().count();
            if undeclared && counted == 0 {
                fields.retain(|name, _| node.property(name).is_some());
            }
            for (name, part) in node.properties() {
                if let Some(value) = fields.get_mut(name) {
                    drop_unknown(part, value);
                }
            }
        }
        _ => {}
    }
}

fn exercise(schema: &Structural, object: &Value, old: &Value) {
    let mut changed = object.clone();
    if schema.coerce(&mut changed, CoerceMode::Report).is_err() {
        schema.repair(&mut changed);
    }
    schema.default(&mut changed);
    schema.validate(&changed, Some(old));
    schema.validate_status(&changed, old);
    schema.validate(object, None);
}
