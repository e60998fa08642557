//! Headers and the rules of metadata.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::field::{FieldError, FieldPath};
use crate::name;

#[test]
fn a_header_is_read_and_the_rest_skipped() {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1, "x": [{"a": null}]},
        "metadata": {
            "name": "web", "namespace": "ns", "uid": "u", "generation": 3, "resourceVersion": "9",
            "creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": null,
            "labels": {"b": "2", "a": "1"}, "finalizers": ["x/y"], "managedFields": [{"a": 1}],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "A", "name": "n", "uid": "o"},
                {"apiVersion": "v1", "kind": "B", "name": "m", "uid": "p", "controller": true,
                 "blockOwnerDeletion": true, "other": 1},
            ],
        },
    });
    let header = Header::scan(&serde_json::to_vec(&object).unwrap()).unwrap();
    assert_eq!((header.api_version(), header.kind()), ("apps/v1", "Deployment"));
    assert_eq!((header.name(), header.namespace(), header.uid()), ("web", "ns", "u"));
    assert_eq!((header.generation(), header.resource_version()), (Some(3), Some("9")));
    assert_eq!(header.creation_timestamp(), "2020-01-01T00:00:00Z");
    assert!(!header.is_deleting());
    assert_eq!(
        (header.label("a"), header.label("b"), header.label("c")),
        (Some("1"), Some("2"), None)
    );
    assert_eq!(header.finalizers(), ["x/y".into()]);
    let owner = header.controller().unwrap();
    assert_eq!((&*owner.kind, owner.block_owner_deletion), ("B", true));
    assert!(!header.owner_references()[0].controller);
}

#[test]
fn headers_of_odd_objects() {
    for (text, empty) in
        [("{}", true), (r#"{"metadata":null,"kind":null}"#, true), ("{\"a\":1}", true)]
    {
        assert_eq!(Header::scan(text.as_bytes()).unwrap() == Header::default(), empty);
    }
    let labels = r#"{"metadata":{"labels":{"b":"1","a":"x","b":"2","c":null}}}"#;
    let header = Header::scan(labels.as_bytes()).unwrap();
    assert_eq!(
        (header.label("b"), header.label("c"), header.labels().len()),
        (Some("2"), Some(""), 3)
    );
    for bad in [
        "",
        "[]",
        "1",
        "{\"kind\":1}",
        "{}x",
        "{\"metadata\":[\"a\"]}",
        "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}",
        "{\"metadata\":{\"ownerReferences\":[[\"v1\"]]}}",
    ] {
        assert!(Header::scan(bad.as_bytes()).is_err(), "{bad}");
    }
    let deep = format!("{{\"spec\":{}1{}}}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(Header::scan(deep.as_bytes()).is_ok());
}

#[test]
fn escaped_strings_of_headers_are_read() {
    let text =
        r#"{"metadata":{"uid":"\u00e4\"","name":"n\u0061","labels":{"\u0062":"\\","a":""}}}"#;
    let header = Header::scan(text.as_bytes()).unwrap();
    assert_eq!((header.uid(), header.name(), header.namespace()), ("\u{e4}\"", "na", ""));
    assert_eq!(header.labels().collect::<Vec<_>>(), [("a", ""), ("b", "\\")]);
}

#[test]
fn an_empty_header_is_small() {
    assert!(size_of::<Header>() <= 80, "{}", size_of::<Header>());
}

#[test]
fn fields_by_path() {
    let mut object = json!({"metadata": {"name": "a", "generation": 2}, "x": null, "y": 1});
    assert_eq!(get_str(&object, &["metadata", "name"]), Some("a"));
    assert_eq!(get_i64(&object, &["metadata", "generation"]), Some(2));
    assert_eq!(get_str(&object, &["metadata", "name", "deeper"]), None);
    assert!(set(&mut object, &["x", "p", "q"], json!(true)));
    assert_eq!(get_bool(&object, &["x", "p", "q"]), Some(true));
    assert!(!set(&mut object, &["y", "p"], json!(1)) && !set(&mut object, &[], json!(1)));
    assert_eq!(remove(&mut object, &["x", "p", "q"]), Some(json!(true)));
    assert_eq!(remove(&mut object, &["x", "z", "q"]), None);
}

fn object(metadata: Value) -> Value {
    Value::Object([("metadata".to_owned(), metadata)].into_iter().collect())
}

#[track_caller]
fn check(metadata: Value, expect: &[&str]) {
    let object = object(metadata);
    let at = FieldPath::root("metadata");
    let problems = validate_object_meta(&object, true, name::dns1123_subdomain, &at);
    begins(&problems, expect);
}

/// Each problem begins with the expected text; name rules have tests of their own.
#[track_caller]
fn begins(problems: &[FieldError], expect: &[&str]) {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let same =
        texts.len() == expect.len() && texts.iter().zip(expect).all(|(t, e)| t.starts_with(e));
    assert!(same, "{texts:#?}");
}

#[test]
fn rules_at_creation() {
    check(json!({"name": "a", "namespace": "n"}), &[]);
    check(
        json!({"namespace": "n"}),
        &["metadata.name: Required value: name or generateName is required"],
    );
    check(json!({"name": "a"}), &["metadata.namespace: Required value"]);
    check(
        json!({"name": "A", "namespace": "n.m"}),
        &[
            "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain",
            "metadata.namespace: Invalid value: \"n.m\": must not contain dots",
        ],
    );
    check(json!({"name": "a", "namespace": "n", "generateName": "a-", "generation": 0}), &[]);
    check(
        json!({"name": "a", "namespace": "n", "generateName": "A-"}),
        &["metadata.generateName: Invalid value: \"A-\": a lowercase"][..0],
    );
    check(
        json!({"name": "a", "namespace": "n", "generateName": "aA-b"}),
        &["metadata.generateName: Invalid value: \"aA-b\": a lowercase"],
    );
    check(
        json!({"name": "a", "namespace": "n", "generation": -1}),
        &["metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
    );
    check(
        json!({"name": "a", "namespace": "n", "labels": {"a/b/c": "x y"}, "annotations": {"A.b/C": "x", "-": ""}}),
        &[
            "metadata.labels: Invalid value: \"a/b/c\": a valid label key must consist",
            "metadata.labels: Invalid value: \"x y\": a valid label must be an empty string",
            "metadata.annotations: Invalid value: \"-\": name part must consist",
        ],
    );
    check(
        json!({"name": "a", "namespace": "n", "annotations": {"a": "x".repeat(256 * 1024)}}),
        &["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
    check(
        json!({"name": "a", "namespace": "n", "annotations": {"a": "x".repeat(256 * 1024 - 1)}}),
        &[],
    );
    check(
        json!({"name": "a", "namespace": "n", "finalizers": ["orphan", "foregroundDeletion", "a b"]}),
        &[
            "metadata.finalizers: Invalid value: \"a b\": name part",
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\",\"a b\"]: finalizer \
         orphan and foregroundDeletion cannot be both set",
        ],
    );
    check(
        json!({"name": "a", "namespace": "n", "managedFields": [
            {"operation": "Apply", "fieldsType": "FieldsV1", "manager": "m"},
            {"operation": "x", "fieldsType": "y", "manager": "m".repeat(129), "subresource": "s".repeat(257)},
        ]}),
        &[
            "metadata.managedFields[1].operation: Invalid value: \"x\": must be `Apply` or `Update`",
            "metadata.managedFields[1].fieldsType: Invalid value: \"y\": must be `FieldsV1`",
            "metadata.managedFields[1].manager: Too long: may not be more than 128 bytes",
            "metadata.managedFields[1].subresource: Too long: may not be more than 256 bytes",
        ],
    );
    let cluster_scoped = json!({"metadata": {"name": "a", "namespace": "n"}});
    let at = FieldPath::root("metadata");
    let problems = validate_object_meta(&cluster_scoped, false, name::path_segment, &at);
    begins(&problems, &["metadata.namespace: Forbidden: not allowed on this type"]);
}

#[test]
fn rules_of_owners() {
    let owner = |kind: &str, controller: bool| json!({"apiVersion": "v1", "kind": kind, "name": "n", "uid": "u", "controller": controller});
    let at = |owners: Value| json!({"name": "a", "namespace": "n", "ownerReferences": owners});
    check(at(json!([owner("A", true), owner("B", false)])), &[]);
    check(
        at(json!([{}])),
        &[
            "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
            "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ],
    );
    let event = json!([{"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"}]);
    check(at(event), &["metadata.ownerReferences: Invalid value: {"]);
    let both = json!([owner("A", true), owner("B", true)]);
    let object = json!({"metadata": at(both)});
    let path = FieldPath::root("metadata");
    let problems = validate_object_meta(&object, true, name::path_segment, &path);
    assert_eq!(
        problems[0].detail,
        "Only one reference can have Controller set to true. Found \"true\" in references for \
         A/n and B/n"
    );
    assert_eq!(problems.len(), 1);
}

#[track_caller]
fn check_update(new: Value, old: Value, expect: &[&str]) {
    let at = FieldPath::root("metadata");
    let (new, old) = (object(new), object(old));
    begins(&validate_object_meta_update(&new, &old, &at), expect);
}

#[test]
fn rules_of_updates() {
    let old = json!({
        "name": "a", "namespace": "n", "uid": "u", "generation": 2,
        "creationTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["x/a", "x/b"],
    });
    check_update(old.clone(), old.clone(), &[]);
    let changed = json!({
        "name": "b", "namespace": "m", "uid": "v", "generation": 1,
        "creationTimestamp": "2021-01-01T00:00:00Z", "deletionTimestamp": "2021-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 0, "finalizers": ["x/c"],
    });
    check_update(
        changed,
        old.clone(),
        &[
            "metadata.generation: Invalid value: 1: must not be decremented",
            "metadata.name: Invalid value: \"b\": field is immutable",
            "metadata.namespace: Invalid value: \"m\": field is immutable",
            "metadata.uid: Invalid value: \"v\": field is immutable",
            "metadata.creationTimestamp: Invalid value: \"2021-01-01T00:00:00Z\": field is immutable",
            "metadata.deletionTimestamp: Invalid value: \"2021-01-01T00:00:00Z\": field is immutable",
            "metadata.deletionGracePeriodSeconds: Invalid value: 0: field is immutable",
        ],
    );
    let mut deleting = old;
    deleting["deletionTimestamp"] = json!("2021-01-01T00:00:00Z");
    let mut fewer = deleting.clone();
    fewer["finalizers"] = json!(["x/b"]);
    check_update(fewer, deleting.clone(), &[]);
    let mut more = deleting.clone();
    more["finalizers"] = json!(["x/b", "x/d", "x/c"]);
    check_update(
        more,
        deleting,
        &["metadata.finalizers: Forbidden: no new finalizers can be added if the object is being \
         deleted, found new finalizers []string{\"x/c\", \"x/d\"}"],
    );
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, text in "\\{(\"(kind|metadata|labels|a)\":[\"a1{}\\[\\],]{0,9}){0,4}\\}{0,3}") {
        for bytes in [&bytes, text.as_bytes()] {
            let valid = serde_json::from_slice::<Value>(bytes).is_ok_and(|v| v.is_object());
            prop_assert!(valid || Header::scan(bytes).is_err());
        }
    }

    #[test]
    fn no_shape_panics(name in "[ab]", value in prop_oneof![
        Just(json!(null)), Just(json!(1)), Just(json!("x")), Just(json!([1, "a", {}])),
        Just(json!({"a": 1, "b": [{}]})),
    ], field in 0..12_usize) {
        let fields = [
            "name", "namespace", "uid", "generation", "labels", "annotations", "finalizers",
            "ownerReferences", "managedFields", "generateName", "deletionTimestamp", "creationTimestamp",
        ];
        let object = json!({"metadata": {"name": name, fields[field]: value}});
        let odd = json!({"metadata": value});
        let at = FieldPath::root("metadata");
        for (new, old) in [(&object, &odd), (&odd, &object), (&value, &value)] {
            validate_object_meta(new, true, name::path_segment, &at);
            validate_object_meta_update(new, old, &at);
        }
    }

    #[test]
    fn labels_are_found(labels in proptest::collection::btree_map("[a-z]{1,3}", "[a-z]{0,3}", 0..12)) {
        let object = json!({"metadata": {"labels": labels}});
        let header = Header::scan(&serde_json::to_vec(&object).unwrap()).unwrap();
        prop_assert_eq!(header.labels().len(), labels.len());
        for (key, value) in &labels {
            prop_assert_eq!(header.label(key), Some(value.as_str()));
        }
    }
}
