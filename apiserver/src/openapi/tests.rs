//! Index and documents, over the built-in resources.

use http::header::{ETAG, LOCATION};
use http_body_util::BodyExt;

use super::*;

async fn value(response: Response<Body>) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

#[tokio::test]
async fn the_index_leads_to_every_document() {
    let types = Types::builtin();
    let openapi = Arc::new(OpenApi::new(types.clone()));
    let resources: Resources = types.resources().to_vec().into();
    let none = HeaderMap::new();
    let index = value(openapi.index(&resources, &none).await.unwrap()).await;
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/coordination.k8s.io/v1"));
    for (path, entry) in paths {
        let url: Uri = entry["serverRelativeURL"].as_str().unwrap().parse().unwrap();
        assert_eq!(url.path(), format!("/openapi/v3/{path}"));
        let hash = url.query().unwrap().strip_prefix("hash=").unwrap();
        let page = |hash| openapi.page(&resources, path, hash, &url, &none);
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
        openapi.page(&resources, "api/v9", None, &Uri::default(), &none).await.unwrap().is_none()
    );
    assert_eq!(openapi.held.lock().len(), paths.len());
}
