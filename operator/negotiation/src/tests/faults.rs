//! Each way in which comparisons of schemas were wrong elsewhere, and each keyword.

use super::*;

/// `existing`, `new`, and what is blocking between them.
#[track_caller]
fn check(existing: &Value, new: &Value, expect: &[&str]) {
    assert_eq!(blocking(existing, new), expect, "{existing} → {new}");
}

fn object(fields: &Value) -> Value {
    json!({"type": "object", "properties": fields})
}

/// A schema with more keywords.
fn with(schema: &Value, more: &Value) -> Value {
    let mut made = schema.clone();
    made.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    made
}

#[test]
fn what_was_never_compared() {
    let text = json!({"type": "string"});
    let field = object(&json!({"a": text}));
    let required = with(&field, &json!({"required": ["a"]}));
    check(&field, &required, &[".spec.a: required"]);
    check(&required, &field, &[]);
    let filled = with(
        &object(&json!({"a": {"type": "string", "default": "x"}})),
        &json!({"required": ["a"]}),
    );
    check(&field, &filled, &[]);
    check(&with(&text, &json!({"nullable": true})), &text, &[".spec: nullable"]);
    check(&text, &with(&text, &json!({"nullable": true})), &[]);
    let rule = |text: &str| json!({"x-kubernetes-validations": [{"rule": text, "message": "m"}]});
    check(&field, &with(&field, &rule("has(self.a)")), &[".spec: x-kubernetes-validations"]);
    let mut other = rule("has(self.a)");
    other["x-kubernetes-validations"][0]["message"] = json!("another");
    check(&with(&field, &rule("has(self.a)")), &with(&field, &other), &[]);
    for keyword in ["maxProperties", "minProperties"] {
        let limit = with(&field, &json!({keyword: 1}));
        check(&field, &limit, &[&format!(".spec: {keyword}")]);
        check(&limit, &field, &[]);
    }
    check(&text, &with(&text, &json!({"not": {"pattern": "^x"}})), &[".spec: not"]);
    let embedded = json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    });
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    check(&open, &embedded, &[".spec: x-kubernetes-embedded-resource"]);
    check(&embedded, &open, &[]);
    let default = with(&text, &json!({"default": "x"}));
    let list = differences(&thing(&text), &thing(&default), ["hub", "east"]);
    assert_eq!(told(&list, false), [".spec: default"]);
}

/// What is free of all else is not free if other fields have a schema.
#[test]
fn fields_that_are_kept_and_judged() {
    let free = json!({"x-kubernetes-preserve-unknown-fields": true, "nullable": true});
    let texts = with(&free, &json!({"additionalProperties": {"type": "string"}}));
    let whole = object(&json!({"a": free}));
    check(&whole, &object(&json!({"a": texts})), &[".spec.a[*]: type"]);
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let kept = json!({"x-kubernetes-preserve-unknown-fields": true});
    check(&open, &with(&object(&json!({"a": texts})), &kept), &[".spec.a: type"]);
    check(&open, &with(&object(&json!({"a": free})), &kept), &[]);
}

/// Of metadata a schema may say something of the names, which are any texts where it doesn't.
#[test]
fn names_of_objects() {
    let with_metadata = |metadata: &Value| {
        let mut made = thing(&json!({"type": "object"}));
        if !metadata.is_null() {
            made.schema["properties"]["metadata"] = metadata.clone();
        }
        made
    };
    let plain = json!({"type": "object"});
    let named =
        json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}});
    let text = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let told_of = |existing: &Value, new: &Value| {
        let (existing, new) = (with_metadata(existing), with_metadata(new));
        told(&differences(&existing, &new, ["hub", "east"]), true)
    };
    let limit = [".metadata.name: maxLength"];
    for free in [&Value::Null, &plain, &text] {
        assert_eq!(told_of(free, &named), limit, "{free}");
        assert_eq!(told_of(&named, free), [""; 0], "{free}");
        assert_eq!(told_of(free, &text), [""; 0], "{free}");
        let (free, named) = (with_metadata(free), with_metadata(&named));
        let made = agree(&[("a", "1", &free), ("b", "2", &named)]);
        let schema = made.merged.unwrap().schema;
        let length = schema.pointer("/properties/metadata/properties/name/maxLength");
        assert_eq!(length, Some(&json!(8)), "{schema}");
    }
    let mut kind = thing(&json!({"type": "object"}));
    kind.schema["properties"]["kind"] = json!({"type": "string", "enum": ["Thing"]});
    let list = differences(&with_metadata(&plain), &kind, ["hub", "east"]);
    assert_eq!(told(&list, true), [".kind: enum"]);
}

/// The same rule says another thing of a number with a fraction than of a whole one.
#[test]
fn rules_about_other_numbers() {
    let rule = json!({"x-kubernetes-validations": [{"rule": "self.a / 2 == 1"}]});
    let of = |kind: &str| with(&object(&json!({"a": {"type": kind}})), &rule);
    check(&of("integer"), &of("number"), &[".spec.a: type"]);
    check(&of("integer"), &of("integer"), &[]);
    let loose = |kind: &str| object(&json!({"a": {"type": kind}}));
    check(&loose("integer"), &loose("number"), &[]);
    let rule = json!({"x-kubernetes-validations": [{"rule": "self.a == self.b"}]});
    let list = |kind: &str| {
        let list =
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": kind});
        with(&object(&json!({"a": list, "b": list})), &rule)
    };
    let both = [".spec.a: x-kubernetes-list-type", ".spec.b: x-kubernetes-list-type"];
    check(&list("set"), &list("atomic"), &both);
    assert_eq!(merged(&[list("set"), list("atomic")]), Err(both.map(str::to_owned).to_vec()));
}

#[test]
fn enumerations() {
    let text = json!({"type": "string"});
    let of = |values: &[&str]| with(&text, &json!({"enum": values}));
    check(&text, &of(&["a"]), &[".spec: enum"]);
    check(&of(&["a"]), &text, &[]);
    check(&of(&["a"]), &of(&["b", "a"]), &[]);
    check(&of(&["a", "b"]), &of(&["b"]), &[".spec: enum"]);
    assert_eq!(merged(&[text.clone(), of(&["a"])]), Ok(of(&["a"])));
    assert_eq!(merged(&[of(&["a", "b"]), of(&["b", "c"])]), Ok(of(&["b"])));
    assert_eq!(merged(&[of(&["a"]), of(&["b"])]), Err(vec![".spec: enum".to_owned()]));
    let numbers = json!({"type": "number", "enum": [1, 2.0]});
    check(&numbers, &json!({"type": "number", "enum": [2, 1.0]}), &[]);
}

#[test]
fn combinations() {
    let types = [
        json!({"type": "string"}),
        json!({"type": "boolean"}),
        json!({"type": "array", "items": {"type": "string"}}),
        object(&json!({"a": {"type": "string"}})),
        json!({"type": "integer"}),
    ];
    for schema in types {
        for keyword in ["anyOf", "oneOf", "allOf"] {
            let part = json!([{"enum": ["x"]}, {"enum": ["y"], "maxLength": 3}]);
            let new = with(&schema, &json!({keyword: part}));
            let expect = format!(".spec: {keyword}");
            let found = blocking(&schema, &new);
            assert!(found.contains(&expect), "{schema} {keyword}: {found:?}");
            check(&new, &schema, &[]);
            check(&new, &new, &[]);
        }
    }
    // One condition alone says the same in and out of `allOf`.
    let text = json!({"type": "string"});
    let outside = with(&text, &json!({"pattern": "^x"}));
    let inside = with(&text, &json!({"allOf": [{"pattern": "^x"}]}));
    check(&outside, &inside, &[]);
    check(&inside, &outside, &[]);
}

#[test]
fn limits() {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let text = json!({"type": "string"});
    let number = json!({"type": "number"});
    for (schema, keyword, wide, narrow) in [
        (&list, "maxItems", 5, 4),
        (&list, "minItems", 1, 2),
        (&text, "maxLength", 5, 4),
        (&text, "minLength", 1, 2),
        (&number, "maximum", 5, 4),
        (&number, "minimum", -2, -1),
    ] {
        let [wide, narrow] = [wide, narrow].map(|n| with(schema, &json!({keyword: n})));
        let expect = format!(".spec: {keyword}");
        check(&wide, &narrow, &[&expect]);
        check(schema, &wide, &[&expect]);
        check(&narrow, &wide, &[]);
        assert_eq!(merged(&[wide.clone(), narrow.clone()]), Ok(narrow.clone()));
        assert_eq!(merged(&[schema.clone(), narrow.clone()]), Ok(narrow));
    }
    let within = |low: i64, high: i64| with(&number, &json!({"minimum": low, "maximum": high}));
    assert_eq!(merged(&[within(0, 2), within(1, 3)]), Ok(within(1, 2)));
    assert_eq!(merged(&[within(0, 1), within(2, 3)]), Err(vec![".spec: minimum".to_owned()]));
    let exclusive = with(&number, &json!({"maximum": 5, "exclusiveMaximum": true}));
    let inclusive = with(&number, &json!({"maximum": 5}));
    check(&inclusive, &exclusive, &[".spec: maximum"]);
    check(&exclusive, &inclusive, &[]);
    let multiple = |n: i64| json!({"type": "integer", "multipleOf": n});
    check(&multiple(4), &multiple(2), &[]);
    check(&multiple(2), &multiple(4), &[".spec: multipleOf"]);
    check(
        &json!({"type": "integer"}),
        &json!({"type": "integer", "format": "int32"}),
        &[".spec: format"],
    );
    check(&json!({"type": "integer"}), &json!({"type": "integer", "format": "int64"}), &[]);
}

#[test]
fn kinds() {
    let of = |kind: &str| json!({"type": kind});
    let either = json!({"x-kubernetes-int-or-string": true});
    let spelled = with(&either, &json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}));
    let all_of = json!({"x-kubernetes-int-or-string": true,
        "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]});
    let any = json!({"x-kubernetes-preserve-unknown-fields": true, "nullable": true});
    check(&of("integer"), &of("number"), &[]);
    check(&of("number"), &of("integer"), &[".spec: type"]);
    check(&of("string"), &of("integer"), &[".spec: type"]);
    for form in [&either, &spelled, &all_of] {
        check(&of("integer"), form, &[]);
        check(&of("string"), form, &[]);
        check(&of("number"), form, &[".spec: type"]);
        check(form, &of("string"), &[".spec: type"]);
        check(form, &either, &[]);
        check(form, &any, &[]);
    }
    check(&object(&json!({"a": of("string")})), &any, &[]);
    assert_eq!(merged(&[of("integer"), of("number")]), Ok(of("integer")));
    assert_eq!(merged(&[either.clone(), of("number")]), Ok(of("integer")));
    assert_eq!(merged(&[of("string"), of("object")]), Err(vec![".spec: type".to_owned()]));
}

/// A map of values and an object with fields: either may be on either side.
#[test]
fn maps_and_fields() {
    let map = |values: &Value| json!({"type": "object", "additionalProperties": values});
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let fields = object(&json!({"a": text, "b": number}));
    let texts = map(&text);
    check(&texts, &fields, &[".spec.b: type", ".spec[*]: properties"]);
    check(&fields, &texts, &[".spec.b: type"]);
    check(&object(&json!({"a": text})), &texts, &[]);
    check(&texts, &map(&number), &[".spec[*]: type"]);
    check(&texts, &map(&json!(true)), &[]);
    check(&map(&json!(true)), &texts, &[".spec[*]: type"]);
    check(&fields, &map(&json!(true)), &[]);
    let nested = object(&json!({"a": fields}));
    check(&nested, &map(&json!(true)), &[".spec.a: additionalProperties"]);
    check(&fields, &map(&json!(false)), &[".spec.a: properties", ".spec.b: properties"]);
    assert_eq!(
        merged(&[texts.clone(), object(&json!({"a": text}))]),
        Ok(object(&json!({"a": text})))
    );
    assert_eq!(merged(&[texts, fields]), Err(vec![".spec.b: type".to_owned()]));
    let open = |fields: &Value| {
        with(&object(fields), &json!({"x-kubernetes-preserve-unknown-fields": true}))
    };
    check(&open(&json!({})), &open(&json!({"a": text})), &[".spec.a: type"]);
    check(&open(&json!({"a": text})), &open(&json!({})), &[]);
    assert_eq!(
        merged(&[open(&json!({})), open(&json!({"a": text}))]),
        Ok(open(&json!({"a": text})))
    );
}

#[test]
fn lists() {
    let list = |more: &Value| with(&json!({"type": "array", "items": {"type": "string"}}), more);
    let plain = list(&json!({}));
    let atomic = list(&json!({"x-kubernetes-list-type": "atomic"}));
    let set = list(&json!({"x-kubernetes-list-type": "set"}));
    check(&plain, &atomic, &[]);
    check(&plain, &set, &[".spec: x-kubernetes-list-type"]);
    check(&set, &plain, &[]);
    check(&list(&json!({"maxItems": 1})), &set, &[]);
    let map = |keys: &[&str]| {
        let mut schema = json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": object(&json!({"k": {"type": "string"}, "l": {"type": "string"}})),
        });
        schema["items"]["required"] = json!(["k", "l"]);
        schema
    };
    check(&map(&["k", "l"]), &map(&["l", "k"]), &[]);
    check(&map(&["k"]), &map(&["l"]), &[".spec: x-kubernetes-list-type"]);
    assert_eq!(merged(&[plain, set.clone()]), Ok(set));
    let failed = vec![".spec: x-kubernetes-list-type".to_owned()];
    assert_eq!(merged(&[map(&["k"]), map(&["l"])]), Err(failed));
    // A key that not all fill in must be there.
    let mut filled = map(&["k"]);
    filled["items"]["required"] = json!(["l"]);
    filled["items"]["properties"]["k"]["default"] = json!("x");
    let mut both = filled.clone();
    both["items"]["properties"]["k"]["default"] = json!("y");
    assert_eq!(merged(&[filled, both]), Ok(map(&["k"])));
}

/// A field that goes can't be required, nor spoken of.
#[test]
fn fields_that_not_all_know() {
    let text = json!({"type": "string"});
    let both = object(&json!({"a": text, "b": text}));
    let one = object(&json!({"a": text}));
    check(&both, &one, &[".spec.b: properties"]);
    assert_eq!(merged(&[both.clone(), one.clone()]), Ok(one.clone()));
    let required = with(&both, &json!({"required": ["b"]}));
    assert_eq!(merged(&[required, one.clone()]), Err(vec![".spec.b: properties".to_owned()]));
    let ruled = |text: &str| with(&both, &json!({"x-kubernetes-validations": [{"rule": text}]}));
    let failed = Err(vec![".spec.b: properties".to_owned()]);
    assert_eq!(merged(&[ruled("self.a != self.b"), one.clone()]), failed);
    let kept = with(&one, &json!({"x-kubernetes-validations": [{"rule": "self.a != 'b1'"}]}));
    assert_eq!(merged(&[ruled("self.a != 'b1'"), one.clone()]), Ok(kept));
    let combined = with(&both, &json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}));
    assert_eq!(merged(&[combined, one]), failed);
}

/// What several say goes into `allOf`.
#[test]
fn conditions_are_collected() {
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
    let both = json!({"type": "string", "pattern": "^x", "allOf": [{"pattern": "y$"}]});
    assert_eq!(merged(&[text("^x"), text("y$")]), Ok(both.clone()));
    assert_eq!(merged(&[both.clone(), text("y$")]), Ok(both));
    let unknown = |value: i64| json!({"type": "string", "x-unknown": value});
    check(&unknown(1), &unknown(2), &[".spec: x-unknown"]);
    check(&unknown(1), &unknown(1), &[]);
    assert_eq!(merged(&[unknown(1), unknown(2)]), Err(vec![".spec: x-unknown".to_owned()]));
}

#[test]
fn what_stands_around_schemas() {
    let plain = thing(&json!({"type": "string"}));
    let mut other = plain.clone();
    other.scope = "Cluster".into();
    other.names.kind = "Other".into();
    other.names.short_names = vec!["th".into()];
    other.subresources = Some(Subresources { status: true, scale: None });
    let list = differences(&plain, &other, ["hub", "east"]);
    assert_eq!(told(&list, true), [": kind", ": scope"]);
    assert_eq!(told(&list, false), [": names", ": subresources"]);
    let scope = list.iter().find(|difference| difference.what == "scope").unwrap();
    let says =
        |value: &str, target: &str| Said { value: value.into(), targets: vec![target.into()] };
    assert_eq!(scope.said, [says("Cluster", "east"), says("Namespaced", "hub")]);
}

/// No schema is too strange to be answered.
#[test]
fn strange_schemas() {
    let mut deep = json!({"type": "string"});
    for _ in 0..MAX_DEPTH + 1 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let text = json!({"type": "string"});
    for strange in [deep, json!(7), json!({}), json!({"type": "x"}), json!({"type": 7})] {
        let found = differences(&thing(&text), &thing(&strange), ["hub", "east"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].blocking && found[0].what == "schema", "{found:?}");
        assert!(merged(&[text.clone(), strange]).is_err());
    }
    // Work is bounded, however schemas are made.
    let wide = |value: &Value| {
        let fields = (0..150).map(|n| (format!("f{n}"), value.clone()));
        json!({"type": "object", "properties": fields.collect::<serde_json::Map<_, _>>()})
    };
    let map = |value: &Value| json!({"type": "object", "additionalProperties": value});
    let (one, other) = (map(&map(&wide(&wide(&text)))), wide(&wide(&map(&map(&text)))));
    let found = differences(&thing(&other), &thing(&one), ["hub", "east"]);
    assert!(found.iter().any(|difference| difference.blocking && difference.what == "schema"));
}
