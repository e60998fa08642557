//! Index and documents, over the built-in resources.

use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION};
use http_body_util::BodyExt;
use serde_json::Value;

use super::*;

async fn value(response: Response<Body>) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

#[tokio::test]
async fn the_index_leads_to_every_document() {
    let types = Types::builtin();
    let openapi = Arc::new(OpenApi::new(types.clone()));
    let surface = Surface::builtin(&types);
    let none = HeaderMap::new();
    let index = value(openapi.index(&surface, &none).await.unwrap()).await;
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/coordination.k8s.io/v1"));
    for (path, entry) in paths {
        let url: Uri = entry["serverRelativeURL"].as_str().unwrap().parse().unwrap();
        assert_eq!(url.path(), format!("/openapi/v3/{path}"));
        let hash = url.query().unwrap().strip_prefix("hash=").unwrap();
        let page = |hash| openapi.page(&surface, path, hash, &url, &none);
        let response = page(Some(hash)).await.unwrap().unwrap();
        assert_eq!(response.headers()[CACHE_CONTROL], "public, immutable");
        assert!(response.headers().contains_key(EXPIRES));
        assert_eq!(response.headers()[ETAG], format!("\"{hash}\""));
        let document = value(response).await;
        assert!(!document["paths"].as_object().unwrap().is_empty(), "{path}");
        let response = page(Some("wrong")).await.unwrap().unwrap();
        assert_eq!(response.status(), 301);
        assert_eq!(response.headers()[LOCATION], format!("/openapi/v3/{path}?hash={hash}"));
        let response = page(None).await.unwrap().unwrap();
        assert_eq!(response.headers()[CACHE_CONTROL], "public");
    }
    assert!(
        openapi.page(&surface, "api/v9", None, &Uri::default(), &none).await.unwrap().is_none()
    );
}

#[tokio::test]
async fn all_that_is_served_in_one_document() {
    let types = Types::builtin();
    let openapi = OpenApi::new(types.clone());
    let surface = Surface::builtin(&types);
    let mut headers = HeaderMap::new();
    let response = openapi.whole(&surface, &headers).await.unwrap();
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    let tag = response.headers()[ETAG].clone();
    let document = value(response).await;
    assert_eq!(document["swagger"], "2.0");
    assert!(document["definitions"]["io.k8s.api.core.v1.ConfigMap"].is_object());
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    headers.insert(ACCEPT, HeaderValue::from_static(protobuf));
    let response = openapi.whole(&surface, &headers).await.unwrap();
    let media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    assert_eq!(response.headers()[CONTENT_TYPE], media);
    assert_eq!(response.headers()[ETAG], tag);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body.slice(..5), b"\n\x032.0".as_slice());
    headers.insert(IF_NONE_MATCH, tag);
    let response = openapi.whole(&surface, &headers).await.unwrap();
    assert_eq!(response.status(), 304);
}
