//! Forms of requests and answers: methods, media types, sizes, options.

use http::Method;
use serde_json::json;

use crate::client::{Ask, Hub};

#[tokio::test]
async fn methods_that_a_path_does_not_have() {
    let hub = Hub::start().await;
    let text = "the server does not allow this method on the requested resource";
    for (method, path, allow) in [
        (Method::PUT, "/api/v1/namespaces/a/configmaps", "GET, HEAD, POST, DELETE"),
        (Method::POST, "/api/v1/namespaces/a/configmaps/b", "GET, HEAD, PUT, PATCH, DELETE"),
        (Method::OPTIONS, "/api/v1/namespaces", "GET, HEAD, POST"),
        (Method::DELETE, "/api/v1/namespaces", "GET, HEAD, POST"),
        (Method::POST, "/api/v1/configmaps", "GET, HEAD"),
        (Method::POST, "/version", "GET, HEAD"),
        (Method::DELETE, "/api/v1/namespaces/a/status", "GET, HEAD, PUT, PATCH"),
    ] {
        let answer = hub.admin(Ask::new(method, path)).await;
        assert_eq!(answer.fails(405, "MethodNotAllowed"), text, "{path}");
        assert_eq!(answer.header("allow"), allow, "{path}");
    }
    let wildcard = hub.get("/clusters/*/api/v1/namespaces/a").await;
    assert_eq!(
        wildcard.fails(405, "MethodNotAllowed"),
        "get is not supported on resources of kind \"namespaces\" in the \"*\" logical cluster"
    );
    hub.shutdown().await;
}

#[tokio::test]
async fn places_where_nothing_is() {
    let hub = Hub::start().await;
    // In groups that are served clients get a Status, elsewhere a page.
    for path in [
        "/api/v1/nothing",
        "/api/v2/configmaps",
        "/api/v1/configmaps/a",
        "/api/v1/namespaces/a/namespaces/b",
        "/api/v1/namespaces/a/configmaps/b/status",
        "/api/v1/namespaces/a/configmaps/b/status/c",
        "/api/v1/namespaces//configmaps",
    ] {
        let text = hub.get(path).await.fails(404, "NotFound");
        assert_eq!(text, "the server could not find the requested resource", "{path}");
    }
    for path in ["/apis/nothing/v1/things", "/clusters/a/clusters/b/api", "/clusters", "//api"] {
        let answer = hub.get(path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.text()),
            (404, "404 page not found\n"),
            "{path}"
        );
    }
    let text = hub.get("/clusters/NOT/api").await.fails(400, "BadRequest");
    assert!(text.starts_with("invalid logical cluster name \"NOT\""), "{text}");
    hub.shutdown().await;
}

#[tokio::test]
async fn media_types() {
    let hub = Hub::start().await;
    let list = "/api/v1/namespaces";
    let text =
        hub.admin(Ask::get(list).header("accept", "text/html")).await.fails(406, "NotAcceptable");
    assert_eq!(
        text,
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf"
    );
    let post = Ask::new(Method::POST, list).header("content-type", "text/plain").body("x");
    let text = hub.admin(post).await.fails(415, "UnsupportedMediaType");
    assert_eq!(
        text,
        "the body of the request was in an unknown format - accepted media types include: \
         application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
    let patch = Ask::new(Method::PATCH, "/api/v1/namespaces/default")
        .header("content-type", "application/json")
        .body("{}");
    let text = hub.admin(patch).await.fails(415, "UnsupportedMediaType");
    assert!(text.contains("application/json-patch+json, application/merge-patch+json, "), "{text}");
    let review = Ask::new(Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .json(&json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}));
    hub.admin(review).await.fails(406, "NotAcceptable");
    hub.shutdown().await;
}

#[tokio::test]
async fn bodies_and_options() {
    let hub = Hub::start().await;
    let create = |query: &str| Ask::new(Method::POST, &format!("/api/v1/namespaces{query}"));
    let huge = create("").body(vec![b' '; 3 * 1024 * 1024 + 1]);
    let text = hub.admin(huge).await.fails(413, "RequestEntityTooLarge");
    assert_eq!(text, "Request entity too large: limit is 3145728");
    for body in ["", "{", "[]", "\u{0}", "{\"a\":", "null", "{\"kind\":7}"] {
        let answer = hub.admin(create("").body(body)).await;
        assert!(answer.status.is_client_error(), "{body:?}: {answer:?}");
        assert_eq!(answer.json()["kind"], "Status");
    }
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    assert!(hub.admin(create("").body(deep)).await.status.is_client_error());
    let namespace = json!({"metadata": {"name": "x"}});
    for (query, code, reason) in [
        ("?dryRun=Some", 422, "Invalid"),
        ("?fieldValidation=x", 422, "Invalid"),
        ("?timeout=x", 400, "BadRequest"),
        ("?%zz", 400, "BadRequest"),
    ] {
        hub.admin(create(query).json(&namespace)).await.fails(code, reason);
    }
    for (query, code, reason) in [
        ("?limit=x", 400, "BadRequest"),
        ("?labelSelector=a+b", 400, "BadRequest"),
        ("?resourceVersionMatch=Newest", 422, "Invalid"),
        ("?includeObject=x", 200, ""),
    ] {
        let answer = hub.get(&format!("/api/v1/namespaces{query}")).await;
        assert_eq!(answer.status.as_u16(), code, "{query}");
        if code != 200 {
            answer.fails(code, reason);
        }
    }
    hub.shutdown().await;
}
