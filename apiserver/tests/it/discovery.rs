//! Discovery and OpenAPI as clients fetch them.

use serde_json::json;

use crate::client::{Ask, Hub};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;\
                          as=APIGroupDiscoveryList,application/json";

#[tokio::test]
async fn aggregated_discovery_is_tagged_and_the_same_everywhere() {
    let hub = Hub::start().await;
    for path in ["/api", "/apis"] {
        let fetch =
            |prefix: &str| Ask::get(&format!("{prefix}{path}")).header("accept", AGGREGATED);
        // Before anything is written to the logical cluster.
        let first = hub.admin(fetch("/clusters/one")).await;
        assert_eq!(
            first.header("content-type"),
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        );
        assert_eq!(first.header("vary"), "Accept");
        let tag = first.header("etag");
        assert_eq!(tag.len(), 130, "a quoted SHA-512: {tag}");
        assert!(!first.json()["items"].as_array().unwrap().is_empty());
        let again = hub.admin(fetch("/clusters/two").header("if-none-match", tag)).await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
        let slash = hub.admin(fetch("").header("accept", AGGREGATED)).await;
        assert_eq!(slash.status, 200);
    }
    hub.shutdown().await;
}

#[tokio::test]
async fn legacy_discovery() {
    let hub = Hub::start().await;
    assert_eq!(hub.get("/api").await.json()["versions"], json!(["v1"]));
    assert_eq!(hub.get("/apis/").await.json()["kind"], "APIGroupList");
    let group = hub.get("/clusters/a/apis/coordination.k8s.io").await.json();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let list = hub.get("/clusters/*/apis/coordination.k8s.io/v1").await.json();
    assert_eq!(list["resources"][0]["name"], "leases");
    for path in ["/apis/nothing", "/apis/nothing/v1"] {
        let answer = hub.get(path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.text()),
            (404, "404 page not found\n"),
            "{path}"
        );
    }
    for path in ["/api/v2", "/apis/coordination.k8s.io/v9"] {
        hub.get(path).await.fails(404, "NotFound");
    }
    hub.shutdown().await;
}

#[tokio::test]
async fn openapi_leads_from_index_to_document() {
    let hub = Hub::start().await;
    let index = hub.get("/clusters/one/openapi/v3").await.json();
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = hub.get(&format!("/clusters/one{url}")).await;
    assert_eq!(document.header("cache-control"), "public, immutable");
    let paths = &document.json()["paths"];
    let patch = &paths["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"];
    let parameters = patch["parameters"].as_array().unwrap();
    assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"));
    let wrong = hub.get("/clusters/one/openapi/v3/api/v1?hash=x").await;
    assert_eq!(
        (wrong.status.as_u16(), wrong.header("location")),
        (301, &*format!("/clusters/one{url}"))
    );
    let whole = hub.get("/clusters/one/openapi/v2").await;
    let paths = &whole.json()["paths"];
    assert!(paths["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"].is_object());
    assert_eq!(hub.get("/openapi/v3/apis/nothing/v1").await.status, 404);
    hub.shutdown().await;
}
