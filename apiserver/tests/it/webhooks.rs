//! Webhooks, over a table of what a real kube-apiserver (1.36) asked them and answered.

use std::sync::Arc;

use base64::Engine;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Ask, Hub};
use crate::deeds::create;
use crate::hook::Hook;

const GROUP: &str = "/clusters/a/apis/admissionregistration.k8s.io/v1";

/// Where ours differs, and why: the text of our answer.
const DIFFERENCES: [(&str, &str); 3] = [
    // What a webhook sent is not repeated.
    (
        "wrong-uid",
        "Internal error occurred: failed calling webhook \"a.example.com\": received invalid webhook \
         response: expected response.uid=\"UID\", got another",
    ),
    (
        "patch-not-a-list",
        "Internal error occurred: failed calling webhook \"a.example.com\": received undecodable patch \
         in webhook response: it is not a list",
    ),
    (
        "patch-not-json",
        "Internal error occurred: failed calling webhook \"a.example.com\": received undecodable patch \
         in webhook response: it is not a list",
    ),
];

fn texts<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// What a webhook of a case answers.
fn answer(cases: &[Value], hook: &str, question: &Value) -> Value {
    let namespace = texts(&question["request"], "namespace");
    let case = cases.iter().find(|case| texts(case, "name") == namespace).unwrap();
    let hook = items(&case["hooks"]).iter().find(|known| texts(known, "name") == hook).unwrap();
    let mut answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
    let mut response = hook["answer"].clone();
    let Some(fields) = response.as_object_mut() else { return answer };
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let uid = fields.remove("uidIs").unwrap_or_else(|| question["request"]["uid"].clone());
    fields.insert("uid".into(), uid);
    if let Some(operations) = fields.remove("patchOps") {
        fields.insert("patch".into(), json!(encode(&operations.to_string())));
    }
    if let Some(text) = fields.remove("patchText") {
        fields.insert("patch".into(), json!(encode(text.as_str().unwrap())));
    }
    answer["response"] = response;
    answer
}

/// What of a question the table has.
fn question(name: &str, asked: &Value) -> Value {
    let request = &asked["request"];
    json!({
        "hook": name, "operation": request["operation"], "kind": request["kind"],
        "resource": request["resource"], "requestKind": request["requestKind"],
        "object": request["object"]["data"], "oldObject": request["oldObject"]["data"],
        "dryRun": request["dryRun"], "options": request["options"]["kind"],
    })
}

async fn configure(hub: &Hub, case: &str, described: &Value, hook: &Hook) {
    let mut webhook = json!({
        "name": format!("{}.example.com", texts(described, "name")),
        "clientConfig": {"url": hook.url("/hook"), "caBundle": hook.ca()},
        "rules": [{
            "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"],
        }],
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": case}},
    });
    for (field, value) in described["with"].as_object().unwrap() {
        webhook[field] = value.clone();
    }
    let mutates = described["mutates"] == true;
    let kind =
        if mutates { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": format!("{case}-{}", texts(described, "name"))}, "webhooks": [webhook],
    });
    create(hub, &format!("{GROUP}/{}s", kind.to_lowercase()), &configuration).await;
}

/// What a client sees of an answer.
fn shown(answer: &Answer) -> Value {
    let warnings = answer.headers.get_all("warning").iter();
    let warnings = warnings.map(|warning| warning.to_str().unwrap()).collect::<Vec<_>>();
    let (code, body) = (answer.status.as_u16(), answer.json());
    if code < 300 {
        return json!({"code": code, "warnings": warnings, "data": body["data"]});
    }
    let part = |field: &str| body[field].clone();
    let (reason, message, details) = (part("reason"), part("message"), part("details"));
    let shown = json!({
        "code": code, "warnings": warnings, "reason": reason, "message": message,
        "details": details,
    });
    // UIDs of questions are told.
    let text = shown.to_string();
    let Some((before, after)) = text.split_once("uid=\\\"") else { return shown };
    let uid = after.get(..36).unwrap().to_owned();
    serde_json::from_str(&format!("{before}uid=\\\"{after}").replace(&uid, "UID")).unwrap()
}

fn object(case: &Value, part: &Value) -> Value {
    let name = texts(case, "name");
    let kind = if case["resource"] == "events" { "Event" } else { "ConfigMap" };
    let text = part.to_string().replace("\"NS\"", &json!(name).to_string());
    let mut object = serde_json::from_str::<Value>(&text).unwrap();
    object["apiVersion"] = json!("v1");
    object["kind"] = json!(kind);
    object["metadata"]["name"] = json!("x");
    object
}

async fn ask(hub: &Hub, case: &Value) -> Answer {
    let resource = case["resource"].as_str().unwrap_or("configmaps");
    let name = texts(case, "name");
    let path = format!("/clusters/a/api/v1/namespaces/{name}/{resource}");
    let query = if case["dryRun"] == true { "?dryRun=All" } else { "" };
    let mut body = object(case, &case["object"]);
    if !case["labels"].is_null() {
        body["metadata"]["labels"] = case["labels"].clone();
    }
    let ask = match texts(case, "operation") {
        "CREATE" => Ask::new(Method::POST, &format!("{path}{query}")).json(&body),
        "UPDATE" => Ask::new(Method::PUT, &format!("{path}/x{query}")).json(&body),
        _ => Ask::new(Method::DELETE, &format!("{path}/x{query}")),
    };
    hub.admin(ask).await
}

#[tokio::test]
async fn webhooks_are_asked_and_believed_as_by_a_real_server() {
    let hub = Hub::start().await;
    let cases: Arc<Vec<Value>> =
        Arc::new(serde_json::from_str(include_str!("data/webhooks.json")).unwrap());
    let namespaces = "/clusters/a/api/v1/namespaces";
    let mut wrong = Vec::new();
    for case in cases.iter() {
        let name = texts(case, "name");
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        });
        create(&hub, namespaces, &namespace).await;
        if case["operation"] != "CREATE" {
            let old = if case["old"].is_null() { &case["object"] } else { &case["old"] };
            let path = format!("{namespaces}/{name}/configmaps");
            create(&hub, &path, &object(case, old)).await;
        }
        let mut hooks = Vec::new();
        for described in items(&case["hooks"]) {
            let (cases, own) = (cases.clone(), texts(described, "name").to_owned());
            let hook = Hook::start(move |asked| answer(&cases, &own, asked)).await;
            configure(&hub, name, described, &hook).await;
            hooks.push((described, hook));
        }
        let answered = shown(&ask(&hub, case).await);
        let mut expect = case["answer"].clone();
        if let Some((_, message)) = DIFFERENCES.iter().find(|(known, _)| *known == name) {
            let inner = message.strip_prefix("Internal error occurred: ").unwrap();
            expect["message"] = json!(message);
            expect["details"] = json!({"causes": [{"message": inner}]});
        }
        if answered != expect {
            wrong.push(format!("{name} answers\n  {answered}\nnot\n  {expect}"));
        }
        for (described, hook) in &hooks {
            let own = texts(described, "name");
            let seen = hook.seen().iter().map(|asked| question(own, asked)).collect::<Vec<_>>();
            let told = items(&case["asked"]).iter().filter(|asked| texts(asked, "hook") == own);
            let told = told.cloned().collect::<Vec<_>>();
            if seen != told {
                wrong.push(format!("{name} asks {own}\n  {}\nnot\n  {}", json!(seen), json!(told)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases.len() > 40, "the table is whole");
    hub.shutdown().await;
}
