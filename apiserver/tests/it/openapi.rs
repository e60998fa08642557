//! OpenAPI documents follow the types that a logical cluster serves.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Ask, Hub};
use crate::deeds::{create, eventually};
use crate::types::{CRDS, definition, is, version};

const WIDGET: &str = "com.example.v1.Widget";
const OLD_WIDGET: &str = "com.example.v1beta1.Widget";

async fn definitions(hub: &Hub, cluster: &str) -> Value {
    let answer = hub.get(&format!("/clusters/{cluster}/openapi/v2")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["definitions"].clone()
}

#[tokio::test]
async fn documents_follow_the_types() {
    let hub = Hub::start().await;
    let crds = format!("/clusters/a/{CRDS}");
    let path = format!("{crds}/widgets.example.com");
    let index = hub.get("/clusters/a/openapi/v3").await;
    assert_eq!(index.json()["paths"].get("apis/example.com/v1"), None);
    let both = json!([version("v1beta1", false), version("v1", true)]);
    create(&hub, &crds, &definition(&both)).await;
    let crd = eventually(&hub, &path, is("Established")).await;

    // From the moment that it is established, in v3 and in v2, with its schema.
    let changed = hub.get("/clusters/a/openapi/v3").await.json();
    let url = changed["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    let document = hub.get(&format!("/clusters/a{url}")).await;
    assert_eq!(document.header("cache-control"), "public, immutable");
    let schemas = &document.json()["components"]["schemas"];
    let size = &schemas[WIDGET]["properties"]["spec"]["properties"]["size"];
    assert_eq!(size, &json!({"type": "integer", "minimum": 1, "default": 1}));
    let known = definitions(&hub, "a").await;
    assert!(known[WIDGET].is_object() && known[OLD_WIDGET].is_object());
    assert_eq!(known[WIDGET]["properties"]["spec"]["properties"]["size"]["minimum"], 1);
    assert!(known["io.k8s.api.core.v1.ConfigMap"].is_object());

    // In no other logical cluster, and in the union.
    assert_eq!(definitions(&hub, "b").await.get(WIDGET), None);
    assert!(definitions(&hub, "*").await[WIDGET].is_object());

    // What isn't served isn't published, at once; the other version stays as it was.
    let mut alone = crd;
    alone["spec"]["versions"][0]["served"] = false.into();
    let tag = hub.get("/clusters/a/openapi/v2").await.header("etag").to_owned();
    let answer = hub.admin(Ask::new(Method::PUT, &path).json(&alone)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let polled = Ask::get("/clusters/a/openapi/v2").header("if-none-match", &tag);
    let answer = hub.admin(polled).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["definitions"].get(OLD_WIDGET), None);
    let polled = Ask::get("/clusters/a/openapi/v2").header("if-none-match", answer.header("etag"));
    assert_eq!(hub.admin(polled).await.status, 304);
    assert!(definitions(&hub, "a").await[WIDGET].is_object());
    let again = hub.get(&format!("/clusters/a{url}")).await;
    assert_eq!((again.status.as_u16(), &again.body), (200, &document.body));

    // A type that is deleted leaves both.
    let deleted = hub.admin(Ask::new(Method::DELETE, &path)).await;
    assert_eq!(deleted.status, 200, "{deleted:?}");
    eventually(&hub, &path, |status, _| status == 404).await;
    assert_eq!(definitions(&hub, "a").await.get(WIDGET), None);
    assert_eq!(hub.get(&format!("/clusters/a{url}")).await.status, 404);
    hub.shutdown().await;
}

#[tokio::test]
async fn equal_types_have_equal_documents() {
    let hub = Hub::start().await;
    let mut tags = Vec::new();
    for cluster in ["a", "b"] {
        let crds = format!("/clusters/{cluster}/{CRDS}");
        create(&hub, &crds, &definition(&json!([version("v1", true)]))).await;
        let path = format!("{crds}/widgets.example.com");
        eventually(&hub, &path, is("Established")).await;
        let index = hub.get(&format!("/clusters/{cluster}/openapi/v3")).await;
        let whole = hub.get(&format!("/clusters/{cluster}/openapi/v2")).await;
        tags.push((index.header("etag").to_owned(), whole.header("etag").to_owned()));
    }
    assert_eq!(tags[0], tags[1]);
    hub.shutdown().await;
}

#[tokio::test]
async fn go_clients_get_protobuf() {
    let hub = Hub::start().await;
    for (path, asked, media) in [
        (
            "/openapi/v2",
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        ),
        (
            "/openapi/v3/api/v1",
            "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
            "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        ),
    ] {
        let answer = hub.admin(Ask::get(path).header("accept", asked)).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, media));
        let json = hub.get(path).await;
        assert_eq!(answer.header("etag"), json.header("etag"));
        assert_ne!(answer.body, json.body);
        let refused = hub.admin(Ask::get(path).header("accept", "application/yaml")).await;
        refused.fails(406, "NotAcceptable");
    }
    hub.shutdown().await;
}
