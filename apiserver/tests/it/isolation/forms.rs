//! Every verb on every resource of `b`, `root` and all logical clusters, by every form of path and
//! with every header that might lead there.

use futures::{StreamExt, stream};
use http::Method;
use schema::resource::Verb;
use serde_json::json;

use super::world::{CLUSTERS, World, tells_nothing};
use crate::client::{Ask, Who};

/// Who attacks: a person and a ServiceAccount, both administrators of `a`.
const ATTACKERS: [char; 2] = ['A', 'P'];

/// What may stand before a path to lead out of `a`.
const PLAIN: [&str; 4] = ["/clusters/b", "/clusters/root", "/clusters/*", "/clusters/system:crds"];
const ODD: [&str; 25] = [
    "//clusters/b",
    "/clusters//b",
    "/clusters/b/",
    "/clusters/a/clusters/b",
    "/clusters/a//clusters/b",
    "/clusters/b/clusters/a",
    "/clusters/a/../b",
    "/clusters/a/%2e%2e/b",
    "/clusters/a%2f..%2fb",
    "/clusters/a%2f%2e%2e%2fb",
    "/clusters%2fb",
    "/%63lusters/b",
    "/clusters/%62",
    "/clusters/%2a",
    "/clusters/a%2fclusters%2fb",
    "/clusters/a,b",
    "/clusters/a;b",
    "/clusters/B",
    "/clusters/b%00",
    "/clusters/b%2f",
    "/CLUSTERS/b",
    "/./clusters/b",
    "/clusters/a/api/v1/../../../b",
    "/clusters/a/api/v1/namespaces/default/services/kubernetes/proxy/clusters/b",
    "/clusters/b?/clusters/a",
];

/// The resources for which odd forms are tried.
const ODD_FOR: [&str; 5] = [
    "secrets",
    "namespaces",
    "clusterrolebindings",
    "customresourcedefinitions",
    "serviceaccounts",
];

/// The asks of one resource under a prefix, for what is there and what is not.
fn asks(resource: &schema::ResourceDef, prefix: &str) -> Vec<Ask> {
    let version = &resource.versions[0].name;
    let base = match &*resource.group {
        "" => format!("{prefix}/api/{version}"),
        group => format!("{prefix}/apis/{group}/{version}"),
    };
    let namespace = if resource.namespaced { "/namespaces/default" } else { "" };
    let plural = &resource.plural;
    let collection = format!("{base}{namespace}/{plural}");
    let one = format!("{collection}/treasure");
    let body = json!({"metadata": {"name": "treasure", "labels": {"mine": "yes"}}});
    let merge = "application/merge-patch+json";
    let apply = json!({
        "apiVersion": base.rsplit_once("/api").map(|(_, rest)| rest), "kind": &*resource.kind,
        "metadata": {"name": "treasure"},
    });
    let mut asks = vec![
        Ask::get(&one),
        Ask::new(Method::HEAD, &one),
        Ask::new(Method::OPTIONS, &one),
        Ask::new(Method::PUT, &one).json(&body),
        Ask::new(Method::PATCH, &one).header("content-type", merge).body(body.to_string()),
        Ask::new(Method::PATCH, &format!("{one}?fieldManager=x&force=true"))
            .header("content-type", "application/apply-patch+yaml")
            .body(apply.to_string()),
        Ask::new(Method::DELETE, &one),
        Ask::new(Method::DELETE, &format!("{one}?dryRun=All")),
        Ask::get(&collection),
        Ask::get(&format!("{base}/{plural}")),
        Ask::get(&format!("{collection}?watch=1&timeoutSeconds=1")),
        Ask::get(&format!("{base}/watch{namespace}/{plural}")),
        Ask::get(&format!("{base}/watch{namespace}/{plural}/treasure")),
        Ask::get(&format!("{collection}?fieldSelector=metadata.name%3Dtreasure")),
        Ask::get(&format!("{collection}?resourceVersion=1&resourceVersionMatch=Exact")),
        Ask::new(Method::POST, &collection).json(&body),
        Ask::new(Method::POST, &format!("{collection}?dryRun=All")).json(&body),
        Ask::new(Method::DELETE, &collection),
    ];
    for part in &resource.subresources {
        for verb in &part.verbs {
            let path = format!("{one}/{}", part.name);
            asks.push(match verb {
                Verb::Create => Ask::new(Method::POST, &path).json(&json!({})),
                Verb::Update => Ask::new(Method::PUT, &path).json(&body),
                Verb::Patch => Ask::new(Method::PATCH, &path)
                    .header("content-type", merge)
                    .body(body.to_string()),
                _ => Ask::get(&path),
            });
        }
    }
    asks
}

#[tokio::test]
async fn no_form_of_path_leads_out() {
    let world = World::new().await;
    let before = world.state().await;
    let types = schema::Types::builtin();
    for letter in ATTACKERS {
        let caller = world.by(letter);
        let all = types.resources().iter().flat_map(|resource| {
            let odd = ODD_FOR.contains(&&*resource.plural).then_some(ODD).into_iter().flatten();
            // Reviews of the caller are for everybody whom root knows; they tell of the caller.
            let of_self = resource.plural.starts_with("selfsubject");
            let plain = PLAIN.into_iter().filter(move |form| !of_self || *form != "/clusters/root");
            plain.chain(odd).flat_map(|form| asks(resource, form))
        });
        let answers = stream::iter(all).map(async |ask| {
            let what = format!("{letter} {ask:?}");
            (what, caller.ask(ask).await)
        });
        let mut answers = std::pin::pin!(answers.buffer_unordered(8));
        let mut count = 0;
        while let Some((what, answer)) = answers.next().await {
            let code = answer.status.as_u16();
            assert!(matches!(code, 400 | 401 | 403 | 404 | 405), "{what}: {answer:?}");
            tells_nothing(&what, &answer);
            count += 1;
        }
        assert!(count > 4000, "{count} were tried");
    }
    assert_eq!(world.state().await, before, "nothing was written");
    world.end().await;
}

/// Pages of `b`, and those of the server.
#[tokio::test]
async fn no_page_of_another_is_shown() {
    let world = World::new().await;
    for letter in ATTACKERS {
        for place in ["/clusters/b", "/clusters/*", "/clusters/system:crds"] {
            for page in [
                "/",
                "/api",
                "/api/v1",
                "/apis",
                "/apis/apps",
                "/metrics",
                "/openapi/v2",
                "/openapi/v3",
                "/openapi/v3/api/v1",
                "/.well-known/openid-configuration",
                "/openid/v1/jwks",
                "/debug/pprof/",
                "/logs",
                "/configz",
                "/statusz",
                "/flagz",
            ] {
                let path = format!("{place}{page}");
                let answer = world.by(letter).ask(Ask::get(&path)).await;
                let code = answer.status.as_u16();
                assert!(matches!(code, 401 | 403), "{letter} {path}: {answer:?}");
            }
        }
        // The server's own figures are nobody's but root's.
        for path in ["/clusters/a/metrics", "/clusters/root/metrics"] {
            let answer = world.by(letter).ask(Ask::get(path)).await;
            let code = answer.status.as_u16();
            assert!(matches!(code, 401 | 403 | 404), "{letter} {path}: {answer:?}");
        }
    }
    world.end().await;
}

/// Headers that other servers are led astray by.
#[tokio::test]
async fn no_header_leads_out() {
    let world = World::new().await;
    let before = world.state().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let sets: [&[(&'static str, &str)]; 14] = [
        &[("x-remote-user", "master"), ("x-remote-group", "system:masters")],
        &[("x-remote-user", "bob"), ("x-remote-extra-authentication.kcp.io%2fscopes", "cluster:b")],
        &[("x-kubernetes-cluster", "b")],
        &[("x-kubernetes-cluster", "*")],
        &[("x-kcp-cluster", "b"), ("x-kcp-workspace", "b")],
        &[("x-forwarded-uri", "/clusters/b"), ("x-forwarded-prefix", "/clusters/b")],
        &[("x-original-url", "/clusters/b"), ("x-rewrite-url", "/clusters/b")],
        &[("x-http-method-override", "DELETE")],
        &[("forwarded", "for=127.0.0.1"), ("x-forwarded-for", "127.0.0.1")],
        &[("x-forwarded-client-cert", "Subject=\"CN=master,O=system:masters\"")],
        &[
            ("ssl-client-subject-dn", "CN=master,O=system:masters"),
            ("ssl-client-verify", "SUCCESS"),
        ],
        &[("authorization", "Basic bWFzdGVyOm1hc3Rlcg==")],
        &[("kubernetes-cluster", "b"), ("host", "b")],
        &[("impersonate-group", "system:masters")],
    ];
    for letter in ATTACKERS {
        let caller = world.by(letter);
        for set in sets {
            let with = |mut ask: Ask| {
                for (name, value) in set {
                    ask = ask.header(name, value);
                }
                ask
            };
            for place in ["/clusters/b", "/clusters/root", "/clusters/*"] {
                let answer = caller.ask(with(Ask::get(&format!("{place}{secrets}")))).await;
                let code = answer.status.as_u16();
                assert!(matches!(code, 400 | 401 | 403), "{letter} {set:?} {place}: {answer:?}");
                tells_nothing("a header", &answer);
            }
            // At home they change nothing, or are refused.
            let answer = caller.ask(with(Ask::get(&format!("/clusters/a{secrets}")))).await;
            tells_nothing("a header at home", &answer);
            if answer.status == 200 {
                assert_eq!(answer.json()["items"], json!([]), "{letter} {set:?}");
            }
            let made = with(Ask::new(Method::POST, CLUSTERS).json(&json!({})));
            let code = caller.ask(made).await.status.as_u16();
            assert!(matches!(code, 400 | 401 | 403), "{letter} {set:?}");
        }
    }
    assert_eq!(world.state().await, before);
    world.end().await;
}

/// Bytes of HTTP/1.1 that a client library would not send.
#[tokio::test]
async fn no_raw_request_leads_out() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let world = World::new().await;
    let token = world.by('P').token.clone().unwrap();
    let target = "/clusters/b/api/v1/namespaces/default/secrets";
    for (line, headers) in [
        (
            format!("GET {target} HTTP/1.1"),
            "X-REMOTE-USER: master\r\nX-Remote-Group: system:masters",
        ),
        (
            format!("GET {target} HTTP/1.1"),
            "X_Remote_User: master\r\nX_Remote_Group: system:masters",
        ),
        (format!("GET https://localhost{target} HTTP/1.1"), "Accept: */*"),
        (format!("GET http://localhost/clusters/a@b{target} HTTP/1.1"), "Accept: */*"),
        (
            format!("GET {target} HTTP/1.1"),
            "IMPERSONATE-USER: x\r\nImpersonate-Group: system:masters",
        ),
        (format!("GET {target} HTTP/1.1"), "Authorization: Bearer x"),
        (format!("GET {target}#/clusters/a HTTP/1.1"), "Accept: */*"),
        ("GET /clusters/a\\..\\b/api HTTP/1.1".to_owned(), "Accept: */*"),
    ] {
        let mut stream = world.hub.connect(Who::Anonymous, b"http/1.1").await;
        let request = format!(
            "{line}\r\nHost: b\r\nAuthorization: Bearer {token}\r\n{headers}\r\nConnection: \
             close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        tokio::time::timeout(crate::client::PATIENCE, read).await.expect("it closes").ok();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let code = answer.split(' ').nth(1).unwrap_or("closed");
        assert!(matches!(code, "400" | "401" | "403" | "404" | "closed"), "{request}: {answer}");
        assert!(!answer.contains(super::world::TREASURE), "{answer}");
    }
    world.end().await;
}
