//! How types of both sorts are typed, seen by what is owned after a create.

use std::borrow::Cow;

use jiff::Timestamp;
use machinery::FieldPath;
use machinery::time::Time;
use patch::apply::{FieldSet, Tracker, Type, Versions, Write};
use serde_json::{Value, json};

use super::ApplyType;
use crate::structural::Structural;
use crate::{CoerceMode, Types};

/// One version of one kind.
struct Of<'s>(Type<ApplyType<'s>>, Value);

impl<'s> Versions<'s> for Of<'s> {
    type Schema = ApplyType<'s>;

    fn schema(&self, _: &str) -> Option<Type<ApplyType<'s>>> {
        Some(self.0)
    }

    fn convert<'v>(&self, object: Cow<'v, Value>, _: &str) -> Result<Cow<'v, Value>, String> {
        Ok(object)
    }

    fn reset(&self, _: &str) -> Option<&FieldSet> {
        None
    }

    fn empty(&self, _: &str) -> Value {
        self.1.clone()
    }
}

/// The fields that the creator of `object` owns, as JSON.
fn owned(of: &Of<'_>, object: &Value) -> String {
    let now = Time::at(Timestamp::UNIX_EPOCH);
    let write = Write { manager: "m", api_version: "v1", kind: "Kind", subresource: "", now };
    let created = Tracker::new(of).update(&write, None, object.clone());
    let fields = &created["metadata"]["managedFields"][0]["fieldsV1"];
    FieldSet::from_value(fields).unwrap_or_default().to_json()
}

fn builtin(name: &str, mut object: Value, expect: &str) {
    let schema = Types::builtin().named(name).unwrap();
    let mut empty = json!({});
    schema.coerce(&mut empty, CoerceMode::Drop).unwrap();
    schema.coerce(&mut object, CoerceMode::Drop).unwrap();
    assert_eq!(owned(&Of(schema.apply(), empty), &object), expect);
}

#[test]
fn built_in_types() {
    builtin(
        "io.k8s.api.core.v1.ConfigMap",
        json!({
            "metadata": {"name": "x", "labels": {"a": "b"}, "finalizers": ["f/a"]},
            "data": {"k": "v"}, "immutable": true,
        }),
        r#"{"f:data":{".":{},"f:k":{}},"f:immutable":{},"f:metadata":{"f:finalizers":{".":{},"v:\"f/a\"":{}},"f:labels":{".":{},"f:a":{}}}}"#,
    );
    builtin(
        "io.k8s.api.core.v1.ServiceAccount",
        json!({
            "metadata": {"ownerReferences": [
                {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"},
            ]},
            "secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "i"}],
        }),
        r#"{"f:imagePullSecrets":{},"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"u\"}":{}}},"f:secrets":{".":{},"k:{\"name\":\"s\"}":{}}}"#,
    );
    builtin(
        "io.k8s.api.core.v1.Service",
        json!({"spec": {
            "ports": [{"port": 80, "targetPort": 8080}, {"port": 80, "protocol": "UDP"}],
            "selector": {"a": "b"}, "externalIPs": ["1"], "type": "ClusterIP",
        }}),
        r#"{"f:spec":{"f:externalIPs":{},"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:targetPort":{}},"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{},"f:targetPort":{}}},"f:selector":{},"f:type":{}}}"#,
    );
}

#[test]
fn custom_resources() {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "count": {"type": "integer"},
            "list": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "value": {"x-kubernetes-int-or-string": true},
                }},
            },
            "whole": {
                "type": "object", "x-kubernetes-map-type": "atomic",
                "additionalProperties": {"type": "string"},
            },
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "embedded": {
                "type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
            },
        }},
    }});
    let schema = Structural::compile(&schema, &FieldPath::root("s")).unwrap();
    let check = |spec: Value, expect: &str| {
        let object = json!({"apiVersion": "v1", "kind": "K", "spec": spec, "metadata": {
            "name": "x", "annotations": {"a": "b"},
        }});
        let annotations = r#"{"f:metadata":{"f:annotations":{".":{},"f:a":{}}},"#;
        let owned = owned(&Of(schema.apply(), json!({})), &object);
        assert_eq!(
            owned,
            if expect.is_empty() { "{}".into() } else { format!("{annotations}{expect}") }
        );
    };
    check(
        json!({"count": 1, "list": [{"name": "a", "value": "x"}], "whole": {"a": "b"}}),
        r#""f:spec":{".":{},"f:count":{},"f:list":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:value":{}}},"f:whole":{}}}"#,
    );
    check(
        json!({"open": {"a": {"b": [1]}}}),
        r#""f:spec":{".":{},"f:open":{".":{},"f:a":{".":{},"f:b":{}}}}}"#,
    );
    check(
        json!({"embedded": {
            "apiVersion": "v1", "kind": "K", "metadata": {"finalizers": ["a"]}, "x": {"y": [1]},
        }}),
        r#""f:spec":{".":{},"f:embedded":{".":{},"f:apiVersion":{},"f:kind":{},"f:metadata":{".":{},"f:finalizers":{".":{},"v:\"a\"":{}}},"f:x":{".":{},"f:y":{}}}}}"#,
    );
    // What the schema doesn't know has no owner, and neither has anything else then.
    check(json!({"unknown": 1}), "");
}
