//! Callers by ID tokens of an issuer that is asked over real TLS.

use std::sync::{Arc, OnceLock};

use apiserver::{AuthOptions, OidcOptions};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::client::{Answer, Ask, Hub, TOKEN, Who};
use crate::hook::Hook;

const WHOAMI: &str = "apis/authentication.k8s.io/v1/selfsubjectreviews";

/// A key of an issuer.
struct Key {
    pair: EcdsaKeyPair,
    id: &'static str,
}

impl Key {
    fn new(id: &'static str) -> Self {
        let made = rcgen::KeyPair::generate().unwrap().serialize_der();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &made).unwrap();
        Self { pair, id }
    }

    fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let (x, y) = point[1..].split_at(32);
        let encode = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
        json!({
            "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.id,
            "x": encode(x), "y": encode(y),
        })
    }

    fn sign(&self, claims: &Value) -> String {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = json!({"alg": "ES256", "kid": self.id});
        let said = format!("{}.{}", encode(&head), encode(claims));
        let signature = self.pair.sign(&SystemRandom::new(), said.as_bytes()).unwrap();
        format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// An issuer that answers both its paths with one document.
async fn issuer(keys: &[&Key]) -> (Hook, String) {
    let page = Arc::new(OnceLock::<Value>::new());
    let told = page.clone();
    let hook = Hook::start(move |_| told.get().cloned().unwrap_or_default()).await;
    let url = hook.url("");
    let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
    let jwks = format!("{url}/keys");
    page.set(json!({"issuer": url, "jwks_uri": jwks, "keys": keys})).unwrap();
    (hook, url)
}

/// A server that trusts an issuer whose certificate is signed by `authority`.
async fn hub(url: &str, authority: &[u8]) -> (Hub, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("issuer.crt");
    std::fs::write(&file, authority).unwrap();
    let hub = Hub::start_with(|server| {
        server.auth(AuthOptions {
            admin_token: Some(TOKEN.into()),
            oidc: Some(OidcOptions {
                issuer: url.to_owned(),
                client_id: "hub".into(),
                groups_claim: "groups".into(),
                groups_prefix: "oidc:".into(),
                username_prefix: "oidc:".into(),
                authorities: Some(file.clone()),
                algorithms: vec!["ES256".into()],
                ..OidcOptions::default()
            }),
            ..AuthOptions::default()
        })
    })
    .await;
    (hub, folder)
}

async fn whoami(hub: &Hub, token: &str) -> Answer {
    let ask = Ask::new(Method::POST, &format!("/clusters/root/{WHOAMI}")).json(&json!({}));
    hub.ask(Who::Anonymous, ask.header("authorization", &format!("Bearer {token}"))).await
}

fn claims(url: &str) -> Value {
    let expires = Timestamp::now().as_second() + 600;
    json!({
        "iss": url, "aud": "hub", "sub": "ann", "exp": expires,
        "groups": ["devs", "system:masters"],
    })
}

#[tokio::test]
async fn callers_by_an_issuer_s_tokens() {
    let (key, stranger) = (Key::new("one"), Key::new("one"));
    let (hook, url) = issuer(&[&key]).await;
    let (hub, _folder) = hub(&url, &STANDARD.decode(hook.ca()).unwrap()).await;
    let token = key.sign(&claims(&url));
    for _ in 0..3 {
        let user = whoami(&hub, &token).await.json()["status"]["userInfo"].take();
        let groups = json!(["oidc:devs", "oidc:system:masters", "system:authenticated"]);
        assert_eq!(user, json!({"username": "oidc:ann", "groups": groups}));
    }
    // What it is asked for is its description and its keys, once for each server.
    assert_eq!(hook.seen().len(), 2 * hub.servers());
    // In each logical cluster such a caller may what is given there.
    let maps = "/clusters/a/api/v1/namespaces/default/configmaps";
    let made = Ask::new(Method::POST, maps).json(&json!({"metadata": {"name": "m"}}));
    assert_eq!(hub.admin(made).await.status, 201);
    let get = || Ask::get(maps).header("authorization", &format!("Bearer {token}"));
    hub.ask(Who::Anonymous, get()).await.fails(403, "Forbidden");
    let binding = json!({
        "metadata": {"name": "devs"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": "oidc:devs"}],
    });
    let path = "/clusters/a/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(hub.admin(Ask::new(Method::POST, path).json(&binding)).await.status, 201);
    assert_eq!(hub.ask(Who::Anonymous, get()).await.status, 200);
    // What is not the issuer's, not for us, or not for now, is nobody's.
    let changed = |field: &str, value: Value| {
        let mut claims = claims(&url);
        claims[field] = value;
        key.sign(&claims)
    };
    for token in [
        stranger.sign(&claims(&url)),
        changed("aud", json!("another")),
        changed("exp", json!(Timestamp::now().as_second() - 1)),
        changed("nbf", json!(Timestamp::now().as_second() + 3600)),
        changed("iss", json!(format!("{url}/"))),
        changed("sub", Value::Null),
        format!("{token}x"),
    ] {
        whoami(&hub, &token).await.fails(401, "Unauthorized");
    }
    hub.shutdown().await;
}

#[tokio::test]
async fn an_issuer_whose_certificate_is_not_trusted_is_not_believed() {
    let key = Key::new("one");
    let (hook, url) = issuer(&[&key]).await;
    let (another, _) = issuer(&[&key]).await;
    let (hub, _folder) = hub(&url, &STANDARD.decode(another.ca()).unwrap()).await;
    whoami(&hub, &key.sign(&claims(&url))).await.fails(401, "Unauthorized");
    assert!(hook.seen().is_empty(), "nothing was asked over a connection that is not trusted");
    hub.shutdown().await;
}
