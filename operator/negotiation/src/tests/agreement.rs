//! Who agrees, who is left, and what reports say of it.

use super::*;

fn said(value: &str, targets: &[&str]) -> Said {
    Said { value: value.into(), targets: targets.iter().map(|t| (*t).to_owned()).collect() }
}

#[test]
fn those_who_were_first_agree() {
    let text = thing(&json!({"type": "object", "properties": {"size": {"type": "string"}}}));
    let number = thing(&json!({"type": "object", "properties": {"size": {"type": "integer"}}}));
    let inputs = [
        ("east", "2026-01-02T00:00:00Z", &text),
        ("west", "2026-01-01T00:00:00Z", &number),
        ("north", "2026-01-03T00:00:00Z", &text),
        ("south", "2026-01-03T00:00:00Z", &number),
    ];
    let agreement = agree(&inputs);
    assert_eq!(agreement.merged.as_ref().unwrap().schema, number.schema);
    let left: Vec<&str> = agreement.left.iter().map(|left| &*left.target).collect();
    assert_eq!(left, ["east", "north"]);
    let difference = &agreement.left[0].differences[0];
    assert_eq!((&*difference.path, &*difference.what), (".spec.size", "type"));
    assert_eq!(
        difference.said,
        [said("integer", &["south", "west"]), said("string", &["east", "north"])]
    );
    for turn in 1..inputs.len() {
        let mut other = inputs;
        other.rotate_left(turn);
        assert_eq!(agree(&other), agreement);
    }
}

#[test]
fn a_narrowed_field_is_told_with_who_knows_it() {
    let old = thing(&json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let new = thing(&json!({"type": "object", "properties": {
        "a": {"type": "string", "description": "d"}, "b": {"type": "string"},
    }}));
    let agreement = agree(&[("east", "1", &old), ("west", "2", &new)]);
    assert!(agreement.left.is_empty());
    let [difference] = &*agreement.differences else { panic!("{:?}", agreement.differences) };
    assert!(!difference.blocking);
    assert_eq!((&*difference.path, &*difference.what), (".spec.b", "properties"));
    assert_eq!(difference.said, [said("", &["east"]), said("known", &["west"])]);
    let schema = agreement.merged.unwrap().schema;
    assert_eq!(schema["properties"]["spec"]["properties"]["a"]["description"], "d");
}

#[test]
fn what_stands_around_is_merged() {
    let column = |name: &str, path: &str| Column {
        name: name.into(),
        type_: "string".into(),
        json_path: path.into(),
        description: None,
        format: None,
        priority: None,
    };
    let scale = |path: &str| Scale {
        spec_replicas_path: path.into(),
        status_replicas_path: ".status.replicas".into(),
        label_selector_path: None,
    };
    let mut one = thing(&json!({"type": "object"}));
    let mut two = one.clone();
    one.columns = vec![column("A", ".spec.a"), column("B", ".spec.b")];
    two.columns = vec![column("B", ".spec.b"), column("A", ".spec.other")];
    one.subresources = Some(Subresources { status: true, scale: Some(scale(".spec.replicas")) });
    one.names.short_names = vec!["t".into()];
    two.names.short_names = vec!["th".into()];
    two.selectable_fields = vec![".spec.a".into()];
    let made = agree(&[("a", "1", &one), ("b", "2", &two)]).merged.unwrap();
    assert_eq!(made.columns, [column("B", ".spec.b")]);
    assert_eq!(made.subresources, one.subresources);
    assert_eq!(made.names.short_names, ["t", "th"]);
    assert!(made.selectable_fields.is_empty());
    two.subresources = Some(Subresources { status: false, scale: Some(scale(".spec.size")) });
    let made = agree(&[("a", "1", &one), ("b", "2", &two)]).merged.unwrap();
    assert_eq!(made.subresources, Some(Subresources { status: true, scale: None }));
    assert_eq!(agree(&[]), Agreement::default());
}

#[test]
fn fields_that_an_object_uses_and_a_type_lacks() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "object", "properties": {
            "b": {"type": "string"},
        }}},
    }}}});
    let object = json!({
        "apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "a", "odd": 1},
        "spec": {
            "a": "x", "c": 1, "open": {"any": {"thing": 1}}, "map": {"k": "v"},
            "list": [{"b": "x"}, {"b": "x", "d": [1]}],
        },
        "status": {"x": 1},
        "data": {},
    });
    assert_eq!(missing(&schema, &object), [".data", ".spec.c", ".spec.list[1].d"]);
    assert_eq!(missing(&json!({}), &object), ["."]);
    assert!(missing(&schema, &json!([])).is_empty());
}

/// What says nothing of values stays where all say it, so that equal types are published as they are.
#[test]
fn spelling_is_kept() {
    let fields = json!({
        "n": {"type": "integer", "format": "int64"},
        "l": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
        "m": {"type": "object", "x-kubernetes-map-type": "granular"},
    });
    let one = thing(&json!({"type": "object", "properties": fields}));
    let mut more = one.clone();
    more.schema["properties"]["spec"]["properties"]["x"] = json!({"type": "string"});
    for inputs in [vec![("a", "1", &one)], vec![("a", "1", &one), ("b", "2", &more)]] {
        assert_eq!(agree(&inputs).merged.unwrap().schema, one.schema);
    }
    // It gives way to what says something.
    let mut narrow = one.clone();
    let spec = &mut narrow.schema["properties"]["spec"]["properties"];
    spec["n"]["format"] = json!("int32");
    spec["l"]["x-kubernetes-list-type"] = json!("set");
    spec["m"]["x-kubernetes-map-type"] = json!("atomic");
    let merged = agree(&[("a", "1", &one), ("b", "2", &narrow)]).merged.unwrap();
    assert_eq!(merged.schema, narrow.schema);
}
