//! What refusals tell: nothing of whether a logical cluster or an object exists.

use http::Method;
use serde_json::json;

use super::world::World;
use crate::client::{Answer, Ask};

/// A refusal without what differs by nature: the names that were asked for.
fn plain(answer: &Answer, names: &[&str]) -> (u16, String, Vec<String>) {
    let mut text = answer.text().to_owned();
    for name in names {
        text = text.replace(name, "NAME");
    }
    let mut headers: Vec<String> = answer.headers.keys().map(ToString::to_string).collect();
    headers.sort();
    headers.retain(|name| name != "content-length");
    (answer.status.as_u16(), text, headers)
}

#[tokio::test]
async fn refusals_are_the_same_whether_or_not_something_is_there() {
    let world = World::new().await;
    let paths = [
        "/api",
        "/apis",
        "/openapi/v2",
        "/openapi/v3",
        "/",
        "/metrics",
        "/nothing",
        "/api/v1/namespaces/default/secrets",
        "/api/v1/namespaces/none/secrets",
        "/api/v1/namespaces/default/secrets?watch=1",
        "/apis/none.io/v1/nothings",
        "/api/v1/namespaces/default/secrets?resourceVersion=99999999",
    ];
    for letter in ['A', 'P', 'N', 'R', 'S', 'X'] {
        let caller = world.by(letter);
        for path in paths {
            // One is there, one is not, one can't be.
            let mut seen = Vec::new();
            for cluster in ["b", "c", "system:none"] {
                let answer = caller.ask(Ask::get(&format!("/clusters/{cluster}{path}"))).await;
                seen.push(plain(&answer, &[]));
            }
            assert!(seen.iter().all(|other| *other == seen[0]), "{letter} {path}: {seen:#?}");
        }
        for method in [Method::GET, Method::PUT, Method::PATCH, Method::DELETE] {
            let mut seen = Vec::new();
            for name in ["treasure", "nonesuch"] {
                let path = format!("/clusters/b/api/v1/namespaces/default/secrets/{name}");
                let ask = Ask::new(method.clone(), &path).json(&json!({}));
                seen.push(plain(&caller.ask(ask).await, &[name]));
            }
            assert_eq!(seen[0], seen[1], "{letter} {method}");
        }
    }
    world.end().await;
}

/// What is public says the same everywhere, and nothing of what the server holds.
#[tokio::test]
async fn public_pages_tell_of_the_server_alone() {
    let world = World::new().await;
    for path in ["/healthz", "/livez?verbose", "/readyz?verbose=1", "/version", "/healthz/ping"] {
        let mut seen = Vec::new();
        for cluster in ["a", "b", "c"] {
            let answer = world.by('X').ask(Ask::get(&format!("/clusters/{cluster}{path}"))).await;
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            seen.push(answer.text().to_owned());
        }
        assert!(seen.iter().all(|other| *other == seen[0]), "{path}: {seen:?}");
    }
    world.end().await;
}

/// Counts, continuations and versions of a tenant's lists are of that tenant's objects.
#[tokio::test]
async fn lists_of_one_count_nothing_of_another() {
    let world = World::new().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["m1", "m2", "m3"] {
        let body = json!({"metadata": {"name": name}});
        world.make(&format!("/clusters/a{maps}"), &body).await;
        world.make(&format!("/clusters/b{maps}"), &body).await;
    }
    let first = world.by('P').ask(Ask::get(&format!("/clusters/a{maps}?limit=2"))).await.json();
    // The two of four that are left: three, and kube-root-ca.crt.
    assert_eq!(first["metadata"]["remainingItemCount"], 2, "{first}");
    // What goes on a list of b goes on in a where it is taken to a, and shows a's objects.
    let of_b = world.get(&format!("/clusters/b{maps}?limit=1")).await;
    let token = of_b["metadata"]["continue"].as_str().unwrap();
    let path = format!("/clusters/a{maps}?limit=10&continue={token}");
    let answer = world.by('P').ask(Ask::get(&path)).await;
    let uids = |value: &serde_json::Value| -> Vec<String> {
        let items = value["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["uid"].as_str().unwrap().to_owned()).collect()
    };
    let own = uids(&world.get(&format!("/clusters/a{maps}")).await);
    assert!(uids(&answer.json()).iter().all(|uid| own.contains(uid)), "{answer:?}");
    // Nor does a token that was made up lead out of the list.
    for start in ["../b/", "/../../b/default/", "default/../../b/", "\u{0}", "b/default/m", "~"] {
        let token = json!({"v": "meta.k8s.io/v1", "rv": -1, "start": format!("{start}\u{0}")});
        use base64::Engine;
        let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token.to_string());
        let path = format!("/clusters/a{maps}?continue={token}");
        let answer = world.by('P').ask(Ask::get(&path)).await;
        match answer.status.as_u16() {
            400 => {}
            200 => assert!(uids(&answer.json()).iter().all(|uid| own.contains(uid)), "{start:?}"),
            code => panic!("{start:?}: {code}"),
        }
    }
    world.end().await;
}
