//! Who owns what over HTTP: every write has its manager, and apply obeys and changes that.
//!
//! What is expected here is what a real kube-apiserver answers.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Ask, Hub};

const MAPS: &str = "/clusters/one/api/v1/namespaces/default/configmaps";

/// A request of a client with a name.
fn ask(method: Method, path: &str, media: &str, body: &Value) -> Ask {
    let ask = Ask::new(method, path).header("user-agent", "tester/v1.0 (test)");
    ask.header("content-type", media).body(body.to_string())
}

async fn apply(hub: &Hub, path: &str, query: &str, body: &Value) -> Answer {
    let media = "application/apply-patch+yaml";
    hub.admin(ask(Method::PATCH, &format!("{path}?{query}"), media, body)).await
}

fn map(name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data,
    })
}

/// The managers of an object: name, operation, subresource, fields. Those who apply come first,
/// then by name: the order in the object is also that of the seconds in which they wrote.
#[track_caller]
fn managers(answer: &Answer) -> Value {
    let object = answer.json();
    assert!(answer.status.is_success(), "{object}");
    let fields = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let short = fields.into_iter().map(|entry| {
        let mut short = vec![entry["manager"].clone(), entry["operation"].clone()];
        short.extend(entry.get("subresource").cloned());
        short.push(entry["fieldsV1"].clone());
        Value::from(short)
    });
    let mut short: Vec<Value> = short.collect();
    short.sort_by_key(|entry| (entry[1] != "Apply", entry[0].to_string()));
    short.into()
}

#[tokio::test]
async fn every_write_has_a_manager() {
    let hub = Hub::start().await;
    let path = format!("{MAPS}/a");
    let json = "application/json";
    let created = hub.admin(ask(Method::POST, MAPS, json, &map("a", &json!({"k": "1"})))).await;
    let k = json!({"f:data": {".": {}, "f:k": {}}});
    assert_eq!(managers(&created), json!([["tester", "Update", k]]));
    let entry = &created.json()["metadata"]["managedFields"][0];
    assert_eq!((&entry["fieldsType"], &entry["apiVersion"]), (&json!("FieldsV1"), &json!("v1")));
    assert!(entry["time"].is_string());
    // Patches of all forms, by a name of one's own.
    let merge = ask(
        Method::PATCH,
        &format!("{path}?fieldManager=merger"),
        "application/merge-patch+json",
        &json!({"data": {"m": "1"}}),
    );
    let m = json!({"f:data": {"f:m": {}}});
    let merged = hub.admin(merge).await;
    assert_eq!(managers(&merged), json!([["merger", "Update", m], ["tester", "Update", k]]));
    // What another writer sends again is still the first one's.
    let mut same = merged.json();
    let put = format!("{path}?fieldManager=putter");
    let unchanged = hub.admin(ask(Method::PUT, &put, json, &same)).await;
    assert_eq!(unchanged.json(), merged.json());
    same["data"] = json!({"k": "2"});
    let changed = hub.admin(ask(Method::PUT, &put, json, &same)).await;
    assert_eq!(
        managers(&changed),
        json!([
            ["putter", "Update", {"f:data": {"f:k": {}}}],
            ["tester", "Update", {"f:data": {}}],
        ])
    );
    // An empty list, or one empty entry, resets; then nothing is tracked until the next apply.
    for reset in [json!([]), json!([{}])] {
        let mut object = hub.get(&path).await.json();
        object["metadata"]["managedFields"] = reset;
        let answer = hub.admin(ask(Method::PUT, &put, json, &object)).await;
        assert_eq!(managers(&answer), json!([]));
    }
    let answer = hub.admin(ask(Method::PUT, &put, json, &map("a", &json!({"z": "1"})))).await;
    assert_eq!(managers(&answer), json!([]));
    let z = json!({"f:data": {".": {}, "f:z": {}}});
    let applied = apply(&hub, &path, "fieldManager=ann", &map("a", &json!({"x": "1"}))).await;
    assert_eq!(
        managers(&applied),
        json!([["ann", "Apply", {"f:data": {"f:x": {}}}], ["before-first-apply", "Update", z]])
    );
    // Entries that can't be read are as good as none.
    let mut object = hub.get(&path).await.json();
    object["metadata"]["managedFields"][0]["operation"] = json!("Other");
    let kept = hub.admin(ask(Method::PUT, &put, json, &object)).await;
    assert_eq!(managers(&kept), managers(&applied));
    hub.shutdown().await;
}

#[tokio::test]
async fn applying() {
    let hub = Hub::start().await;
    let path = format!("{MAPS}/a");
    let created = apply(&hub, &path, "fieldManager=ann", &map("a", &json!({"k": "1"}))).await;
    assert_eq!(created.status, 201, "{created:?}");
    let again = apply(&hub, &path, "fieldManager=ann", &map("a", &json!({"k": "1"}))).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, created.json()));
    let wanted = map("a", &json!({"k": "2", "m": "1"}));
    let refused = apply(&hub, &path, "fieldManager=bob", &wanted).await;
    let text = refused.fails(409, "Conflict");
    assert_eq!(text, "Apply failed with 1 conflict: conflict with \"ann\": .data.k");
    assert_eq!(
        refused.json()["details"],
        json!({"causes": [{
            "reason": "FieldManagerConflict", "message": "conflict with \"ann\"",
            "field": ".data.k",
        }]})
    );
    let forced = apply(&hub, &path, "fieldManager=bob&force=true", &wanted).await;
    let both = json!({"f:data": {"f:k": {}, "f:m": {}}});
    assert_eq!(managers(&forced), json!([["bob", "Apply", both]]));
    // Equal values are owned together, and what nobody applies any more is gone.
    let shared = apply(&hub, &path, "fieldManager=ann", &map("a", &json!({"k": "2"}))).await;
    let k = json!({"f:data": {"f:k": {}}});
    assert_eq!(managers(&shared), json!([["ann", "Apply", k], ["bob", "Apply", both]]));
    let empty = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let left = apply(&hub, &path, "fieldManager=bob", &empty).await;
    assert_eq!(managers(&left), json!([["ann", "Apply", k]]));
    assert_eq!(left.json()["data"], json!({"k": "2"}));
    // YAML, and a dry run.
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  a: b\n";
    let dry = Ask::new(Method::PATCH, &format!("{MAPS}/x?fieldManager=ann&dryRun=All"));
    let dry = dry.header("content-type", "application/apply-patch+yaml").body(yaml);
    assert_eq!(hub.admin(dry).await.status, 201);
    hub.get(&format!("{MAPS}/x")).await.fails(404, "NotFound");
    hub.shutdown().await;
}

#[tokio::test]
async fn configurations_that_are_refused() {
    let hub = Hub::start().await;
    let path = format!("{MAPS}/a");
    let created = apply(&hub, &path, "fieldManager=ann", &map("a", &json!({"k": "1"}))).await;
    assert_eq!(created.status, 201, "{created:?}");
    let mut check = Vec::new();
    let mut with =
        |place: &str, value: Value, code: u16, reason: &'static str, text: &'static str| {
            let mut body = map("a", &json!({"k": "1"}));
            *body.pointer_mut(place).unwrap() = value;
            check.push((body, code, reason, text));
        };
    let uid = json!({"name": "a", "managedFields": [{}]});
    with("/metadata", uid, 400, "BadRequest", "metadata.managedFields must be nil");
    with("/apiVersion", json!("v2"), 400, "BadRequest", "invalid object type: /v2, Kind=ConfigMap");
    with("/kind", json!("Secret"), 400, "BadRequest", "invalid object type: /v1, Kind=Secret");
    with(
        "/metadata/name",
        json!("b"),
        400,
        "BadRequest",
        "the name of the object (b) does not match the name on the URL (a)",
    );
    with(
        "/data",
        json!({"k": 5}),
        500,
        "",
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.k: expected string, \
         got &value.valueUnstructured{Value:5}",
    );
    for (body, code, reason, text) in check {
        let answer = apply(&hub, &path, "fieldManager=ann", &body).await;
        let status = answer.json();
        assert_eq!((answer.status.as_u16(), &status["message"]), (code, &json!(text)), "{status}");
        assert_eq!(status.get("reason").and_then(Value::as_str).unwrap_or_default(), reason);
    }
    let good = map("a", &json!({}));
    let text = apply(&hub, &path, "", &good).await.fails(422, "Invalid");
    assert!(text.ends_with("fieldManager: Required value: is required for apply patch"), "{text}");
    let mut absent = map("c", &json!({}));
    absent["metadata"]["uid"] = json!("11111111-1111-1111-1111-111111111111");
    let text = apply(&hub, &format!("{MAPS}/c"), "fieldManager=ann", &absent).await;
    let text = text.fails(409, "Conflict");
    assert!(text.contains("uid mismatch: the provided object specified uid 1111"), "{text}");
    let mut stale = map("a", &json!({"k": "2"}));
    stale["metadata"]["resourceVersion"] = json!("1");
    apply(&hub, &path, "fieldManager=ann", &stale).await.fails(409, "Conflict");
    let text = "a: b: c";
    let bad = Ask::new(Method::PATCH, &format!("{path}?fieldManager=ann"));
    let bad = bad.header("content-type", "application/apply-patch+yaml").body(text);
    let text = hub.admin(bad).await.fails(400, "BadRequest");
    assert!(text.starts_with("error decoding YAML: error converting YAML to JSON: "), "{text}");
    hub.shutdown().await;
}

#[tokio::test]
async fn subresources_have_managers_of_their_own() {
    let hub = Hub::start().await;
    let all = "/clusters/one/api/v1/namespaces";
    let json = "application/json";
    let namespace = |more: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "Namespace"});
        for (name, value) in more.as_object().unwrap() {
            object[name] = value.clone();
        }
        object["metadata"]["name"] = json!("n");
        object
    };
    let body = namespace(json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(hub.admin(ask(Method::POST, all, json, &body)).await.status, 201);
    let path = format!("{all}/n/status");
    let condition = json!([{"type": "X", "status": "True"}]);
    let status = namespace(json!({
        "status": {"conditions": condition}, "spec": {"finalizers": ["a/b"]},
    }));
    let applied = apply(&hub, &path, "fieldManager=ann", &status).await;
    // The specification is not the endpoint's, and so nobody comes to own it there.
    let fields = json!({"f:status": {"f:conditions": {"k:{\"type\":\"X\"}": {
        ".": {}, "f:status": {}, "f:type": {},
    }}}});
    assert_eq!(managers(&applied)[0], json!(["ann", "Apply", "status", fields]));
    assert_eq!(applied.json()["spec"], json!({"finalizers": ["kubernetes"]}));
    // Nor does anybody own a status that the main endpoint resets.
    let main = namespace(json!({"status": {"phase": "Terminating"}}));
    let main = apply(&hub, &format!("{all}/n"), "fieldManager=bob", &main).await;
    assert!(!managers(&main).to_string().contains("bob"), "{main:?}");
    let missing = apply(&hub, &format!("{all}/m/status"), "fieldManager=ann", &status).await;
    missing.fails(404, "NotFound");
    hub.shutdown().await;
}

#[tokio::test]
async fn kubectl_takes_over_from_its_older_self() {
    let hub = Hub::start().await;
    let path = format!("{MAPS}/a");
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let mut body = map("a", &json!({"k": "1"}));
    let record = format!("{body}\n");
    body["metadata"]["annotations"] = json!({annotation: record});
    let client_side = format!("{MAPS}?fieldManager=kubectl-client-side-apply");
    let created = hub.admin(ask(Method::POST, &client_side, "application/json", &body)).await;
    assert_eq!(created.status, 201, "{created:?}");
    let wanted = map("a", &json!({"k": "2"}));
    // Nobody else may.
    apply(&hub, &path, "fieldManager=ann", &wanted).await.fails(409, "Conflict");
    let taken = apply(&hub, &path, "fieldManager=kubectl", &wanted).await;
    assert_eq!(managers(&taken)[0], json!(["kubectl", "Apply", {"f:data": {"f:k": {}}}]));
    let record = taken.json()["metadata"]["annotations"][annotation].to_string();
    assert!(record.contains(r#"\"k\":\"2\""#), "{record}");
    hub.shutdown().await;
}

#[tokio::test]
async fn an_apply_that_races_with_its_like_is_made_once() {
    let hub = Hub::start().await;
    let path = format!("{MAPS}/a");
    let (one, two) = (map("a", &json!({"one": "1"})), map("a", &json!({"two": "2"})));
    let (first, second) = tokio::join!(
        apply(&hub, &path, "fieldManager=ann", &one),
        apply(&hub, &path, "fieldManager=bob", &two),
    );
    let mut codes = [first.status.as_u16(), second.status.as_u16()];
    codes.sort_unstable();
    assert_eq!(codes, [200, 201], "{first:?} {second:?}");
    assert_eq!(hub.get(&path).await.json()["data"], json!({"one": "1", "two": "2"}));
    hub.shutdown().await;
}

const THINGS: &str = "/clusters/one/apis/example.com";

/// A type in two versions, whose `parts` and `labels` are `atomic` or not.
fn definition(atomic: bool) -> Value {
    let (list, map) = if atomic { ("atomic", "atomic") } else { ("map", "granular") };
    let mut parts = json!({
        "type": "array", "x-kubernetes-list-type": list, "items": {
            "type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "size": {"type": "integer"},
            },
        },
    });
    if !atomic {
        parts["x-kubernetes-list-map-keys"] = json!(["name"]);
    }
    let spec = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"}, "parts": parts,
        "labels": {
            "type": "object", "x-kubernetes-map-type": map,
            "additionalProperties": {"type": "string"},
        },
    }});
    let schema = json!({"type": "object", "properties": {
        "spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
            }},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1"), version("v2")],
        },
    })
}

fn thing(version: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Thing",
        "metadata": {"name": "a"}, "spec": spec,
    })
}

/// Defines the type, or changes it, and waits until it is served.
async fn define(hub: &Hub, atomic: bool) {
    let all = "/clusters/one/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let one = format!("{all}/things.example.com");
    let present = hub.get(&one).await;
    let mut crd = definition(atomic);
    let (method, path) = if present.status == 404 {
        (Method::POST, all)
    } else {
        crd["metadata"] = present.json()["metadata"].clone();
        (Method::PUT, &*one)
    };
    let answer = hub.admin(ask(method, path, "application/json", &crd)).await;
    assert!(answer.status.is_success(), "{answer:?}");
    let started = tokio::time::Instant::now();
    while !schema::crd::is_condition_true(&hub.get(&one).await.json(), "Established") {
        assert!(started.elapsed() < crate::client::PATIENCE, "the type is never served");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn custom_resources() {
    let hub = Hub::start().await;
    define(&hub, false).await;
    let path = |version: &str| format!("{THINGS}/{version}/namespaces/default/things/a");
    let spec = json!({"replicas": 1, "parts": [{"name": "x", "size": 1}], "labels": {"a": "1"}});
    let created = apply(&hub, &path("v1"), "fieldManager=ann", &thing("v1", &spec)).await;
    assert_eq!(created.status, 201, "{created:?}");
    // Another version sees the same owners.
    let wanted = thing("v2", &json!({"parts": [{"name": "x", "size": 2}, {"name": "y"}]}));
    let text = apply(&hub, &path("v2"), "fieldManager=bob", &wanted).await.fails(409, "Conflict");
    let conflict = ".spec.parts[name=\"x\"].size";
    assert_eq!(text, format!("Apply failed with 1 conflict: conflict with \"ann\": {conflict}"));
    let wanted = thing("v2", &json!({"parts": [{"name": "y"}], "labels": {"b": "2"}}));
    let shared = apply(&hub, &path("v2"), "fieldManager=bob", &wanted).await;
    let owned = &shared.json()["metadata"]["managedFields"];
    assert_eq!(owned[0]["apiVersion"], "example.com/v1");
    assert_eq!(owned[1]["apiVersion"], "example.com/v2");
    let kept = json!({"replicas": 1, "parts": [{"name": "x", "size": 1}]});
    let applied = apply(&hub, &path("v1"), "fieldManager=ann", &thing("v1", &kept)).await;
    assert_eq!(applied.json()["spec"]["labels"], json!({"b": "2"}));
    // What isn't in the schema, or there twice.
    let check = [
        (json!({"x": 1}), ".spec.x: field not declared in schema"),
        (
            json!({"parts": [{"name": "d"}, {"name": "d"}]}),
            ".spec.parts: duplicate entries for key [name=\"d\"]",
        ),
    ];
    for (spec, problem) in check {
        let answer = apply(&hub, &path("v1"), "fieldManager=ann", &thing("v1", &spec)).await;
        let kind = "(/a; example.com/v1, Kind=Thing)";
        let text = format!("failed to create typed patch object {kind}: {problem}");
        assert_eq!((answer.status.as_u16(), &answer.json()["message"]), (500, &json!(text)));
    }
    // When the type becomes atomic, who owned a part owns the whole.
    define(&hub, true).await;
    let atomic = json!({"f:spec": {"f:labels": {}, "f:parts": {}}});
    let text = apply(&hub, &path("v1"), "fieldManager=eve&force=false", &thing("v1", &spec)).await;
    let text = text.fails(409, "Conflict");
    assert_eq!(
        text,
        "Apply failed with 3 conflicts: conflicts with \"ann\":\n- .spec.parts\nconflicts with \
         \"bob\":\n- .spec.labels\n- .spec.parts"
    );
    let same = json!({"parts": [{"name": "x", "size": 1}, {"name": "y"}], "labels": {"b": "2"}});
    let whole = apply(&hub, &path("v1"), "fieldManager=bob", &thing("v1", &same)).await;
    let of_bob = managers(&whole);
    let of_bob = of_bob.as_array().unwrap().iter().find(|entry| entry[0] == "bob").unwrap();
    assert_eq!(*of_bob, json!(["bob", "Apply", atomic]));
    hub.shutdown().await;
}

#[tokio::test]
async fn whoever_scales_owns_the_replicas() {
    let hub = Hub::start().await;
    define(&hub, false).await;
    let path = format!("{THINGS}/v1/namespaces/default/things/a");
    let spec = json!({"replicas": 1, "labels": {"a": "1"}});
    let created = apply(&hub, &path, "fieldManager=ann", &thing("v1", &spec)).await;
    assert_eq!(created.status, 201, "{created:?}");
    let scale = format!("{path}/scale?fieldManager=scaler");
    let body = json!({"spec": {"replicas": 3}});
    let merge = "application/merge-patch+json";
    let scaled = hub.admin(ask(Method::PATCH, &scale, merge, &body)).await;
    assert_eq!(scaled.json()["spec"], json!({"replicas": 3}));
    let replicas = json!({"f:spec": {"f:replicas": {}}});
    let labels = json!({"f:spec": {"f:labels": {"f:a": {}}}});
    let object = hub.get(&path).await;
    let owned = managers(&object);
    assert!(owned.as_array().unwrap().contains(&json!(["ann", "Apply", labels])), "{owned}");
    assert!(
        owned.as_array().unwrap().contains(&json!(["scaler", "Update", "scale", replicas])),
        "{owned}"
    );
    let text = apply(&hub, &path, "fieldManager=ann", &thing("v1", &spec)).await;
    assert_eq!(
        text.fails(409, "Conflict"),
        "Apply failed with 1 conflict: conflict with \"scaler\" with subresource \"scale\" using \
         example.com/v1: .spec.replicas"
    );
    let wanted = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"},
        "spec": {"replicas": 5},
    });
    let place = format!("{path}/scale");
    apply(&hub, &place, "fieldManager=hpa", &wanted).await.fails(409, "Conflict");
    let forced = apply(&hub, &place, "fieldManager=hpa&force=true", &wanted).await;
    assert_eq!(forced.json()["spec"], json!({"replicas": 5}));
    let owned = managers(&hub.get(&path).await);
    assert!(
        owned.as_array().unwrap().contains(&json!(["hpa", "Apply", "scale", replicas])),
        "{owned}"
    );
    hub.shutdown().await;
}
