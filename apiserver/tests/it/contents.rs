//! Descriptions of types, which agents write and whose names are made of their content.

use http::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::client::Ask;
use crate::deeds::{eventually, merge};
use crate::types::{CRDS, is};
use crate::yard::Yard;

const SCHEMAS: &str = "apis/apiresource.kcp.io/v1alpha1/apiresourceschemas";
const IMPORTS: &str = "apis/apiresource.kcp.io/v1alpha1/apiresourceimports";

/// The committed types, which the server takes as they are.
const TYPES: [(&str, &str); 5] = [
    (
        "apiresourceschemas.apiresource.kcp.io",
        include_str!("../../../crds/apiresourceschemas.apiresource.kcp.io.yaml"),
    ),
    (
        "apiresourceimports.apiresource.kcp.io",
        include_str!("../../../crds/apiresourceimports.apiresource.kcp.io.yaml"),
    ),
    (
        "negotiatedapiresources.apiresource.kcp.io",
        include_str!("../../../crds/negotiatedapiresources.apiresource.kcp.io.yaml"),
    ),
    ("objectsyncs.workload.kcp.io", include_str!("../../../crds/objectsyncs.workload.kcp.io.yaml")),
    (
        "placements.scheduling.kcp.io",
        include_str!("../../../crds/placements.scheduling.kcp.io.yaml"),
    ),
];

async fn install(yard: &Yard) {
    let path = format!("/clusters/system:crds/{CRDS}");
    for (name, definition) in TYPES {
        let ask = Ask::new(Method::POST, &path).header("content-type", "application/yaml");
        let made = yard.hub.admin(ask.body(definition)).await;
        assert_eq!(made.status, 201, "{made:?}");
        eventually(&yard.hub, &format!("{path}/{name}"), |status, value| {
            status == 200 && is("Established")(status, value)
        })
        .await;
    }
}

fn spec(kind: &str) -> Value {
    json!({
        "group": "apps",
        "version": "v1",
        "names": {
            "plural": "deployments", "singular": "deployment", "kind": kind,
            "listKind": "DeploymentList",
        },
        "scope": "Namespaced",
        "schema": {"type": "object", "properties": {"spec": {
            "type": "object", "properties": {"replicas": {"type": "number", "minimum": 2}},
        }}},
        "subresources": {"status": true},
    })
}

fn name(spec: &Value) -> String {
    let digest = Sha256::digest(serde_json::to_vec(spec).unwrap());
    contract::schema_name(&digest.into())
}

fn object(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "apiresource.kcp.io/v1alpha1", "kind": "APIResourceSchema",
           "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_schema_has_the_name_of_its_content() {
    let yard = Yard::new().await;
    install(&yard).await;
    yard.begin("infra").await;
    let east = yard.target("infra", "east", &json!({}), "aaaaaa").await;
    let agent = yard.agent(&east).await;
    let path = format!("/clusters/infra/{SCHEMAS}");
    let (good, other) = (spec("Deployment"), spec("Other"));

    let made = yard.send(&agent, Method::POST, &path, &object(&name(&good), &good)).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.json()["spec"], good, "it is stored as it was digested");
    let wrong = object(&name(&good), &other);
    let again = yard.send(&agent, Method::POST, &path, &wrong).await;
    again.fails(422, "Invalid");
    let free = yard.send(&agent, Method::POST, &path, &object("x", &other)).await;
    free.fails(422, "Invalid");
    // A number that is whole is one however it is written; a field that the type lacks is dropped.
    let mut float = other.clone();
    float["schema"]["properties"]["spec"]["properties"]["replicas"]["minimum"] = json!(2.0);
    float["unknown"] = json!(1);
    let made = yard.send(&agent, Method::POST, &path, &object(&name(&other), &float)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let again = yard.send(&agent, Method::POST, &path, &object(&name(&good), &good)).await;
    again.fails(409, "AlreadyExists");

    let one = format!("{path}/{}", name(&good));
    assert_eq!(yard.get(&agent, &one).await.json()["spec"], good);
    yard.get(&agent, &format!("{path}/{}", name(&json!({})))).await.fails(404, "NotFound");
    yard.get(&agent, &path).await.fails(403, "Forbidden");
    yard.patch(&agent, &one, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .fails(403, "Forbidden");
    yard.send(&agent, Method::DELETE, &one, &json!({})).await.fails(403, "Forbidden");
    let elsewhere = format!("/clusters/root/{SCHEMAS}");
    let foreign = yard.send(&agent, Method::POST, &elsewhere, &object(&name(&good), &good)).await;
    foreign.fails(403, "Forbidden");

    // Nobody changes what is in one, whatever else they may.
    let change = json!({"spec": {"schema": {"description": "changed"}}});
    let ask = merge(&one, &change);
    yard.hub.admin(ask).await.fails(422, "Invalid");
    yard.change(&one, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    yard.hub.shutdown().await;
}

#[tokio::test]
async fn an_agent_imports_for_its_own_target() {
    let yard = Yard::new().await;
    install(&yard).await;
    yard.begin("infra").await;
    let east = yard.target("infra", "east", &json!({}), "aaaaaa").await;
    let agent = yard.agent(&east).await;
    let import = |uid: &str| {
        json!({
            "apiVersion": "apiresource.kcp.io/v1alpha1",
            "kind": "APIResourceImport",
            "metadata": {
                "name": "deployments.v1.apps--east",
                "labels": {"workloads.kcp.io/synctarget": uid},
            },
            "spec": {
                "target": "east", "group": "apps", "version": "v1", "plural": "deployments",
                "schema": name(&spec("Deployment")),
            },
        })
    };
    let path = format!("/clusters/infra/{IMPORTS}");
    let foreign = yard.send(&agent, Method::POST, &path, &import("another")).await;
    foreign.fails(403, "Forbidden");
    let apply = |value: &Value| {
        let path = format!("{path}/deployments.v1.apps--east?fieldManager=kcp-agent&force=true");
        let ask = Ask::new(Method::PATCH, &path);
        ask.header("content-type", "application/apply-patch+yaml").body(value.to_string())
    };
    let made = yard.ask(&agent, apply(&import(&east.uid))).await;
    assert_eq!(made.status, 201, "{made:?}");
    let mut other = import(&east.uid);
    other["spec"]["plural"] = json!("daemonsets");
    yard.ask(&agent, apply(&other)).await.fails(422, "Invalid");
    let mut vanished = import(&east.uid);
    vanished["spec"]["vanishedSince"] = json!("2030-01-01T00:00:00Z");
    assert_eq!(yard.ask(&agent, apply(&vanished)).await.status, 200);
    yard.hub.shutdown().await;
}
