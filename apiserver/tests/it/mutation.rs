//! Policies that change objects, over a table of what a real kube-apiserver (1.36) answered.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Ask, Hub};
use crate::deeds::{create, eventually};
use crate::types::{CRDS, is};

const GROUP: &str = "/clusters/a/apis/admissionregistration.k8s.io/v1";

fn table() -> Value {
    serde_json::from_str(include_str!("data/mutating-policies.json")).unwrap()
}

/// Writes a policy of a case, and what puts it into force for the objects of that case.
async fn enforce(hub: &Hub, case: &str, given: &Value) {
    let mut spec = json!({
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "matchConstraints": {
            "objectSelector": {"matchLabels": {"case": case}},
            "resourceRules": [{
                "operations": ["CREATE"], "apiGroups": ["", "oracle.example.com"],
                "apiVersions": ["v1"], "resources": ["configmaps", "serviceaccounts", "widgets"],
            }],
        },
    });
    let mut binding = json!({});
    let mut suffix = "a";
    for (field, value) in given.as_object().unwrap() {
        match field.as_str() {
            "name" => suffix = value.as_str().unwrap(),
            "binding" => binding = value.clone(),
            _ => spec[field] = value.clone(),
        }
    }
    let name = format!("{case}-{suffix}");
    binding["policyName"] = json!(name);
    let object = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        })
    };
    let policy = object("MutatingAdmissionPolicy", spec);
    create(hub, &format!("{GROUP}/mutatingadmissionpolicies"), &policy).await;
    let binding = object("MutatingAdmissionPolicyBinding", binding);
    create(hub, &format!("{GROUP}/mutatingadmissionpolicybindings"), &binding).await;
}

/// What of an answer is compared.
fn shown(code: u16, mut answer: Value) -> Value {
    if code != 201 {
        let part = |field: &str| answer[field].clone();
        let (reason, message, details) = (part("reason"), part("message"), part("details"));
        return json!({"code": code, "reason": reason, "message": message, "details": details});
    }
    let metadata = answer["metadata"].take();
    let mut shown = json!({});
    for field in ["name", "annotations", "finalizers", "labels"] {
        if !metadata[field].is_null() {
            shown[field] = metadata[field].clone();
        }
    }
    for field in ["apiVersion", "kind", "metadata"] {
        answer.as_object_mut().unwrap().remove(field);
    }
    json!({"code": code, "object": answer, "metadata": shown})
}

#[tokio::test]
async fn policies_change_objects_as_a_real_servers_do() {
    let hub = Hub::start().await;
    let table = table();
    create(&hub, &format!("/clusters/a/{CRDS}"), &table["definition"]).await;
    let definition = format!("/clusters/a/{CRDS}/widgets.oracle.example.com");
    eventually(&hub, &definition, is("Established")).await;
    for param in table["params"].as_array().unwrap() {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"value": param["value"]},
            "metadata": {"name": param["name"], "labels": {"oracle": "param"}},
        });
        create(&hub, "/clusters/a/api/v1/namespaces/default/configmaps", &map).await;
    }
    let cases = table["cases"].as_array().unwrap();
    for case in cases {
        let name = case["name"].as_str().unwrap();
        for policy in case["policies"].as_array().unwrap() {
            enforce(&hub, name, policy).await;
        }
    }
    let mut wrong = Vec::new();
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let mut object = case["object"].clone();
        object["metadata"]["name"] = json!(name);
        object["metadata"]["labels"] = json!({"case": name});
        let path = match object["kind"].as_str().unwrap() {
            "ConfigMap" => "api/v1/namespaces/default/configmaps",
            "ServiceAccount" => "api/v1/namespaces/default/serviceaccounts",
            _ => "apis/oracle.example.com/v1/namespaces/default/widgets",
        };
        let ask = Ask::new(Method::POST, &format!("/clusters/a/{path}?dryRun=All"));
        let answer = hub.admin(ask.json(&object)).await;
        let mut expect = case["answer"].clone();
        if let Some(message) = case["differs"]["message"].as_str() {
            expect["message"] = json!(message);
            expect["details"]["causes"] = json!([{"message": message}]);
        }
        let found = shown(answer.status.as_u16(), answer.json());
        if found != expect {
            wrong.push(format!("{name}:\n  {found}\nnot\n  {expect}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(cases.len() > 60, "the table is whole");
    hub.shutdown().await;
}
