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

/// The managers of an object: name, operation, subresource, fields.
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
    short.collect()
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
