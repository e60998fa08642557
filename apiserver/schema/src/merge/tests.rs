//! Strategic merge patches of built-in kinds.

use patch::strategic::apply;
use serde_json::{Value, json};

use crate::Types;

#[allow(clippy::needless_pass_by_value)]
fn check(kind: &str, doc: Value, patch: Value, expect: Value) {
    let schema = Types::builtin().named(kind).unwrap();
    assert_eq!(apply(&doc, &patch, &schema.merge()).unwrap(), expect);
}

#[test]
fn merges_by_the_keys_of_the_data() {
    check(
        "io.k8s.api.core.v1.Service",
        json!({"spec": {"ports": [{"port": 80, "name": "a"}], "externalIPs": ["1"]}}),
        json!({"spec": {"ports": [{"port": 80, "name": "b"}, {"port": 81}], "externalIPs": ["2"]}}),
        json!({"spec": {"ports": [{"port": 80, "name": "b"}, {"port": 81}], "externalIPs": ["2"]}}),
    );
    check(
        "io.k8s.api.core.v1.ServiceAccount",
        json!({"secrets": [{"name": "a"}], "metadata": {"finalizers": ["x"]}}),
        json!({
            "secrets": [{"name": "b"}, {"$patch": "delete", "name": "a"}],
            "metadata": {"finalizers": ["y"], "labels": {"k": "v"}},
        }),
        json!({
            "secrets": [{"name": "b"}],
            "metadata": {"finalizers": ["y", "x"], "labels": {"k": "v"}},
        }),
    );
    check(
        "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
        json!({"webhooks": [{"name": "a", "rules": [{"scope": "*"}]}]}),
        json!({"webhooks": [{"name": "a", "rules": []}]}),
        json!({"webhooks": [{"name": "a", "rules": []}]}),
    );
}

#[test]
fn maps_merge_by_name() {
    check(
        "io.k8s.api.core.v1.ConfigMap",
        json!({"data": {"a": "1", "b": "2"}}),
        json!({"data": {"a": null, "c": "3"}}),
        json!({"data": {"b": "2", "c": "3"}}),
    );
}
