//! Tokens of one logical cluster in another, and reviews of them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use serde_json::{Value, json};

use super::world::{WHOAMI, World};
use crate::client::{Answer, Ask};

const REVIEWS: &str = "apis/authentication.k8s.io/v1/tokenreviews";
const ISSUER: &str = "https://kubernetes.default.svc";

fn account(cluster: &str, name: &str) -> String {
    format!("/clusters/{cluster}/api/v1/namespaces/default/serviceaccounts/{name}")
}

/// Asks with a token and nothing else.
async fn with(world: &World, token: &str, path: &str) -> Answer {
    let ask = Ask::get(path).header("authorization", &format!("Bearer {token}"));
    world.by('X').ask(ask).await
}

#[tokio::test]
async fn a_token_is_good_at_home_alone() {
    let world = World::new().await;
    let pod = world.by('P').token.clone().unwrap();
    // A path that names no logical cluster leads home.
    let secrets = "/api/v1/namespaces/default/secrets";
    let body = json!({"metadata": {"name": "written-without-a-path"}});
    let made = world.by('P').ask(Ask::new(Method::POST, secrets).json(&body)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let there = format!("/clusters/a{secrets}/written-without-a-path");
    assert_eq!(world.get(&there).await["metadata"]["uid"], made.json()["metadata"]["uid"]);
    for cluster in ["b", "root"] {
        let path = format!("/clusters/{cluster}{secrets}/written-without-a-path");
        world.by('M').ask(Ask::get(&path)).await.fails(404, "NotFound");
    }
    let ended = world.by('P').ask(Ask::new(Method::DELETE, &made_path(secrets))).await;
    assert_eq!(ended.status, 200, "{ended:?}");
    let who =
        world.by('P').ask(Ask::new(Method::POST, &format!("/{WHOAMI}")).json(&json!({}))).await;
    let name = "system:serviceaccount:default:pod";
    assert_eq!(who.json()["status"]["userInfo"]["username"], name);
    assert_eq!(with(&world, &pod, "/apis").await.status, 200);
    // An audience of another is none of its issuer's; the issuer decides.
    let spec = json!({"spec": {"audiences": [format!("{ISSUER}/clusters/b"), ISSUER]}});
    let minted = world.make(&format!("{}/token", account("a", "pod")), &spec).await;
    let minted = minted["status"]["token"].as_str().unwrap().to_owned();
    for token in [&pod, &minted] {
        for place in ["/clusters/b", "/clusters/root", "/clusters/*", "/clusters/none"] {
            for page in ["/healthz", "/api", "/version"] {
                let path = format!("{place}{page}");
                with(&world, token, &path).await.fails(401, "Unauthorized");
            }
        }
    }
    world.end().await;
}

fn made_path(secrets: &str) -> String {
    format!("{secrets}/written-without-a-path")
}

#[tokio::test]
async fn a_token_that_was_changed_is_nobodys() {
    let world = World::new().await;
    let pod = world.by('P').token.clone().unwrap();
    let parts: Vec<&str> = pod.split('.').collect();
    let decode = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let (head, claims) = (decode(parts[0]), decode(parts[1]));
    let text = claims.to_string();
    let of_b: Value =
        serde_json::from_str(&text.replace("/clusters/a", "/clusters/b").replace("\"a\"", "\"b\""))
            .unwrap();
    let none = json!({"alg": "none", "typ": "JWT"});
    let mut mac = head.clone();
    mac["alg"] = json!("HS256");
    for token in [
        format!("{}.{}.{}", parts[0], encode(&of_b), parts[2]),
        format!("{}.{}.", encode(&none), encode(&of_b)),
        format!("{}.{}.{}", encode(&none), encode(&claims), parts[2]),
        format!("{}.{}.{}", encode(&mac), encode(&claims), parts[2]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{pod}."),
        {
            let mut other = pod.clone();
            other.pop();
            other + "A"
        },
        "\u{fffd}".to_owned(),
    ] {
        if token == pod {
            continue;
        }
        for place in ["/clusters/a", "/clusters/b", "/clusters/root", ""] {
            let ask = Ask::get(&format!("{place}/api/v1/secrets"));
            let ask = match http::HeaderValue::from_str(&format!("Bearer {token}")) {
                Ok(_) => ask.header("authorization", &format!("Bearer {token}")),
                Err(_) => continue,
            };
            world.by('X').ask(ask).await.fails(401, "Unauthorized");
        }
    }
    world.end().await;
}

#[tokio::test]
async fn reviews_in_one_tell_nothing_of_another() {
    let world = World::new().await;
    let far = world.by('F').token.clone().unwrap();
    for letter in ['A', 'P'] {
        let caller = world.by(letter);
        let ask = |path: &str, body: &Value| {
            Ask::new(Method::POST, &format!("/clusters/a/{path}")).json(body)
        };
        // Of a token of b, good or not, the same is told as of any text.
        let issuer_of_b = format!("{ISSUER}/clusters/b");
        for token in [far.clone(), format!("{far}x"), "text".to_owned()] {
            for audiences in [json!([]), json!([issuer_of_b]), json!([ISSUER])] {
                let body = json!({"spec": {"token": token, "audiences": audiences}});
                let answer = caller.ask(ask(REVIEWS, &body)).await.json();
                let told = &answer["status"];
                assert_eq!(told["user"], json!({}), "{answer}");
                assert_eq!(told["authenticated"], Value::Null, "{answer}");
            }
        }
        // Whoever holds rights in b, or in root, has none here by them.
        for (user, groups) in [
            ("bob", json!([])),
            ("olga", json!([])),
            ("system:serviceaccount:default:far", json!(["system:serviceaccounts"])),
        ] {
            let attributes = json!({"verb": "get", "resource": "secrets", "namespace": "default"});
            let spec = json!({"user": user, "groups": groups, "resourceAttributes": attributes});
            let path = "apis/authorization.k8s.io/v1/subjectaccessreviews";
            let answer = caller.ask(ask(path, &json!({"spec": spec}))).await.json();
            // Olga owns a.
            assert_eq!(answer["status"]["allowed"], user == "olga", "{answer}");
        }
        // Nor are such reviews to be had elsewhere.
        for place in ["b", "root", "*", "none"] {
            let spec = json!({"user": "bob", "resourceAttributes": {"verb": "*", "resource": "*"}});
            for (path, spec) in [
                ("apis/authorization.k8s.io/v1/subjectaccessreviews", spec),
                (REVIEWS, json!({"token": far})),
            ] {
                let path = format!("/clusters/{place}/{path}");
                let answer = caller.ask(Ask::new(Method::POST, &path).json(&json!({"spec": spec})));
                let code = answer.await.status.as_u16();
                assert!(matches!(code, 401 | 403), "{letter} {path}: {code}");
            }
        }
        // A token is made for what is in a alone.
        let uid = world.get("/clusters/b/api/v1/namespaces/default/secrets/treasure").await;
        let uid = uid["metadata"]["uid"].clone();
        let bound = json!({"apiVersion": "v1", "kind": "Secret", "name": "treasure", "uid": uid});
        let body = json!({"spec": {"boundObjectRef": bound}});
        let path = format!("{}/token", account("a", "pod"));
        caller.ask(Ask::new(Method::POST, &path).json(&body)).await.fails(404, "NotFound");
        let path = format!("{}/token", account("a", "far"));
        caller.ask(Ask::new(Method::POST, &path).json(&json!({}))).await.fails(404, "NotFound");
    }
    world.end().await;
}

/// A name of a ServiceAccount in a certificate is a name of nobody: it would be one in each logical
/// cluster.
#[tokio::test]
async fn nobody_is_a_service_account_by_name() {
    let world = World::new().await;
    let far = world.person("system:serviceaccount:default:far", &["system:serviceaccounts"]).await;
    for place in ["/clusters/a", "/clusters/b", "/clusters/root", ""] {
        far.ask(Ask::get(&format!("{place}/api"))).await.fails(401, "Unauthorized");
    }
    world.end().await;
}
