//! What anybody may see, and what nobody may without credentials.

use http::Method;

use crate::client::{Ask, Hub, TOKEN, Who, ask_over};

#[tokio::test]
async fn anybody_may_see_that_the_server_is_well() {
    let hub = Hub::start().await;
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/clusters/one/healthz"] {
        let answer = hub.ask(Who::Anonymous, Ask::get(path)).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "ok"), "{path}");
    }
    let verbose = hub.ask(Who::Anonymous, Ask::get("/readyz?verbose&exclude=store")).await;
    assert!(verbose.text().contains("[+]ping ok\n"), "{verbose:?}");
    assert!(verbose.text().ends_with("readyz check passed\n"));
    let version = hub.ask(Who::Anonymous, Ask::get("/version")).await.json();
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1.36."));
    hub.shutdown().await;
}

#[tokio::test]
async fn everything_else_is_forbidden_to_strangers() {
    let hub = Hub::start().await;
    let check = async |ask: Ask, message: &str| {
        let answer = hub.ask(Who::Anonymous, ask).await;
        assert_eq!(answer.fails(403, "Forbidden"), message);
    };
    for path in
        ["/", "/api", "/apis", "/metrics", "/openapi/v2", "/openapi/v3", "/nothing", "/readyzz"]
    {
        let text = format!("forbidden: User \"system:anonymous\" cannot get path \"{path}\"");
        check(Ask::get(path), &text).await;
    }
    let text = "forbidden: User \"system:anonymous\" cannot post path \"/version\"";
    check(Ask::new(Method::POST, "/version"), text).await;
    check(
        Ask::get("/clusters/one/api/v1/namespaces/a/secrets/b"),
        "secrets \"b\" is forbidden: User \"system:anonymous\" cannot get resource \"secrets\" in \
         API group \"\" in the namespace \"a\"",
    )
    .await;
    check(
        Ask::get("/clusters/*/apis/coordination.k8s.io/v1/leases"),
        "leases.coordination.k8s.io is forbidden: User \"system:anonymous\" cannot list resource \
         \"leases\" in API group \"coordination.k8s.io\" at the cluster scope",
    )
    .await;
    hub.shutdown().await;
}

#[tokio::test]
async fn credentials() {
    let hub = Hub::start().await;
    let with = |token: &str| Ask::get("/api/v1/namespaces").header("authorization", token);
    let good = hub.ask(Who::Anonymous, with(&format!("Bearer {TOKEN}"))).await;
    assert_eq!(good.status, 200, "{good:?}");
    for bad in ["Bearer wrong", "bearer ", &format!("Bearer {TOKEN}x")] {
        let answer = hub.ask(Who::Anonymous, with(bad)).await;
        assert_eq!(answer.fails(401, "Unauthorized"), "Unauthorized", "{bad}");
    }
    // Also where anonymous callers would pass.
    let health = Ask::get("/healthz").header("authorization", "Bearer wrong");
    hub.ask(Who::Anonymous, health).await.fails(401, "Unauthorized");
    assert_eq!(hub.get("/api/v1/namespaces").await.status, 200);
    // A certificate of another CA is no credential.
    let other = Hub::start().await;
    for path in ["/api/v1/namespaces", "/healthz"] {
        let foreign = hub.connect_with(Some(&other), b"h2").await;
        ask_over(foreign, &Ask::get(path)).await.fails(401, "Unauthorized");
    }
    let foreign = hub.connect_with(Some(&other), b"h2").await;
    let answer = ask_over(foreign, &with(&format!("Bearer {TOKEN}"))).await;
    assert_eq!(answer.status, 200, "a good token counts for itself");
    other.shutdown().await;
    hub.shutdown().await;
}

#[tokio::test]
async fn every_answer_has_an_id_and_is_not_cached() {
    let hub = Hub::start().await;
    let answer = hub.ask(Who::Anonymous, Ask::get("/api")).await;
    assert!(!answer.header("audit-id").is_empty());
    assert_eq!(answer.header("cache-control"), "no-cache, private");
    let kept = hub.get("/nothing").await;
    assert_eq!((kept.status.as_u16(), kept.text()), (404, "404 page not found\n"));
    let kept = hub.admin(Ask::get("/version").header("audit-id", "my-id")).await;
    assert_eq!(kept.header("audit-id"), "my-id");
    let head = hub.admin(Ask::new(Method::HEAD, "/version")).await;
    assert!(head.status.is_success() && head.body.is_empty());
    assert_eq!(hub.get("/clusters/one/metrics").await.status, 404);
    let text = hub.get("/clusters/root/metrics").await;
    assert!(text.text().contains("apiserver_request_total{"), "{text:?}");
    let clusters =
        "apiserver_resource_objects{group=\"core.kcp.io\",resource=\"logicalclusters\"} 2";
    assert!(text.text().contains(clusters), "{text:?}");
    assert!(!text.text().contains("my-id") && !text.text().contains("nothing"));
    hub.shutdown().await;
}
