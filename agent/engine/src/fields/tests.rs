//! What is ours in objects as real API servers show them.

use serde_json::{Value, json};

use super::*;

/// A Deployment as a server shows it: applied by us, with a sidecar of a webhook, defaults, and
/// replicas that an autoscaler has set after us where `scaled`.
fn live(scaled: bool) -> Value {
    let mut spec = json!({
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {
                ".": {}, "f:name": {}, "f:image": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                    ".": {}, "f:containerPort": {},
                }},
            }}},
        },
    });
    if scaled {
        spec.as_object_mut().unwrap().remove("f:replicas");
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "5",
            "labels": {"app": "web", "team": "a"},
            "annotations": {UPSTREAM: "{}", "deployment.kubernetes.io/revision": "1"},
            "managedFields": [
                {"manager": SYNCER, "operation": "Apply", "fieldsV1": {
                    "f:metadata": {
                        "f:labels": {"f:app": {}},
                        "f:annotations": {format!("f:{UPSTREAM}"): {}},
                    },
                    "f:spec": spec,
                }},
                {"manager": SYNCER, "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}},
                {"manager": "autoscaler", "operation": "Update", "subresource": "scale",
                    "fieldsV1": if scaled { json!({"f:spec": {"f:replicas": {}}}) } else { json!({}) }},
            ],
        },
        "spec": {
            "replicas": if scaled { 7 } else { 2 },
            "strategy": {"type": "RollingUpdate"},
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web", "injected": "yes"}},
                "spec": {"containers": [
                    {"name": "sidecar", "image": "proxy"},
                    {"name": "web", "image": "web:1", "ports": [
                        {"containerPort": 80, "protocol": "TCP"},
                    ]},
                ]},
            },
        },
        "status": {"replicas": 2},
    })
}

fn desired() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [
                    {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]},
                ]},
            },
        },
    })
}

/// What a change of an object means: (what is changed, whether the view differs, whether it still
/// matches).
#[test]
fn what_is_ours() {
    let cases: [(&str, Value, bool, bool); 9] = [
        ("/status/replicas", json!(3), false, true),
        ("/metadata/resourceVersion", json!("6"), false, true),
        ("/metadata/labels/team", json!("b"), false, true),
        ("/metadata/annotations/deployment.kubernetes.io~1revision", json!("2"), false, true),
        ("/spec/strategy/type", json!("Recreate"), false, true),
        ("/spec/template/spec/containers/0/image", json!("proxy:2"), false, true),
        ("/spec/template/spec/containers/1/image", json!("web:2"), true, false),
        ("/spec/replicas", json!(3), true, false),
        ("/spec/selector/matchLabels", json!({}), true, false),
    ];
    let before = view(&live(false), None);
    assert!(matches(&desired(), &live(false), None));
    for (path, value, differs, same) in cases {
        let mut object = live(false);
        *object.pointer_mut(path).unwrap() = value;
        assert_eq!(view(&object, None) != before, differs, "{path}");
        assert_eq!(matches(&desired(), &object, None), same, "{path}");
    }
}

/// Who takes a field away from us is seen, even if the value stays.
#[test]
fn what_is_taken_away() {
    let mut object = live(false);
    let fields = "/metadata/managedFields/0/fieldsV1/f:spec";
    object.pointer_mut(fields).unwrap().as_object_mut().unwrap().remove("f:selector");
    assert_ne!(view(&object, None), view(&live(false), None));
    assert!(!matches(&desired(), &object, None));
}

/// Replicas that are yielded may be anybody's.
#[test]
fn yielded_replicas() {
    let without = Some(&REPLICAS[..]);
    assert_eq!(view(&live(true), without), view(&live(false), without));
    assert!(matches(&desired(), &live(true), without));
    assert!(!matches(&desired(), &live(true), None));
    assert!(others_own(&live(true), &REPLICAS));
    assert!(!others_own(&live(false), &REPLICAS));
}

/// What is desired otherwise doesn't match: (path of what is taken out or put in, value).
#[test]
fn other_desires() {
    let cases = [
        ("/metadata/labels/more", json!("x")),
        ("/metadata/annotations", json!({"more": "x"})),
        ("/spec/paused", json!(true)),
        ("/spec/template/spec/containers/0/args", json!(["x"])),
        ("/spec/template/spec/containers/1", json!({"name": "more"})),
        ("/spec/template/spec/containers/0/ports", json!([])),
        ("/spec/replicas", Value::Null),
    ];
    for (path, value) in cases {
        let mut wanted = desired();
        let (parent, key) = path.rsplit_once('/').unwrap();
        match wanted.pointer_mut(parent).unwrap() {
            Value::Array(items) => items.push(value),
            Value::Object(members) if value.is_null() => drop(members.remove(key)),
            Value::Object(members) => drop(members.insert(key.to_owned(), value)),
            _ => unreachable!(),
        }
        assert!(!matches(&wanted, &live(false), None), "{path}");
    }
    assert!(!matches(&json!(null), &live(false), None));
    assert!(!matches(&desired(), &json!({}), None));
}

/// Managers may write what they like.
#[test]
fn fields_that_are_none() {
    for fields in [
        json!({"k:nonsense": {}, "i:x": {}, "v:{": {}, "f:": {}, "x": {}}),
        json!({"f:spec": {"k:{\"name\":\"web\"}": {"f:a": 1}}}),
        json!([1]),
        json!(null),
    ] {
        let mut object = live(false);
        *object.pointer_mut("/metadata/managedFields/0/fieldsV1").unwrap() = fields;
        view(&object, Some(&REPLICAS));
        assert!(!matches(&desired(), &object, None));
    }
}

/// What kube-apiserver 1.36 answered to applies, beside what was applied: defaults, allocated ports
/// and keys of lists that it has added are no differences. So a new process writes nothing.
#[test]
fn objects_as_a_real_server_shows_them() {
    let captured: Vec<Value> = serde_json::from_str(include_str!("applied.json")).unwrap();
    assert_eq!(captured.len(), 13);
    for pair in captured {
        let (desired, live) = (&pair["desired"], &pair["live"]);
        assert!(matches(desired, live, None), "{}", desired["kind"]);
        let mut changed = live.clone();
        changed["metadata"]["labels"]["app"] = "other".into();
        assert!(!matches(desired, &changed, None), "{}", desired["kind"]);
        assert_ne!(view(&changed, None), view(live, None));
    }
}
