//! What is made of an issuer's tokens, and when its keys are fetched.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::auth::jwt::SigningKey;
use crate::auth::recent::digest;
use crate::dialer::CallError;

const ISSUER: &str = "https://issuer.example/one";
const NOW: i64 = 1_800_000_000;

fn key() -> SigningKey {
    let pair = rcgen::KeyPair::generate().unwrap();
    SigningKey::from_der(pair.serialized_der()).unwrap()
}

/// An issuer's documents, which count how often they are fetched.
#[derive(Debug, Default)]
struct Site {
    keys: Mutex<Vec<Value>>,
    down: AtomicBool,
    fetched: AtomicUsize,
    issuer: Mutex<Option<&'static str>>,
}

#[async_trait]
impl Documents for Site {
    async fn document(&self, url: &str) -> Result<Bytes, CallError> {
        if self.down.load(Ordering::Relaxed) {
            return Err(CallError::Timeout);
        }
        let page = match url {
            "https://issuer.example/one/.well-known/openid-configuration" => {
                let issuer = self.issuer.lock().unwrap_or(ISSUER);
                json!({"issuer": issuer, "jwks_uri": "https://keys.example/"})
            }
            "https://keys.example/" => {
                self.fetched.fetch_add(1, Ordering::Relaxed);
                json!({"keys": *self.keys.lock()})
            }
            other => panic!("{other}"),
        };
        Ok(page.to_string().into())
    }
}

impl Site {
    fn publish(&self, keys: &[&SigningKey]) {
        *self.keys.lock() = keys.iter().map(|key| key.public().jwk(key.id())).collect();
    }

    fn fetched(&self) -> usize {
        self.fetched.load(Ordering::Relaxed)
    }
}

fn options() -> OidcOptions {
    OidcOptions {
        issuer: ISSUER.into(),
        client_id: "kcp".into(),
        groups_claim: "groups".into(),
        algorithms: vec!["ES256".into()],
        ..OidcOptions::default()
    }
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": "kcp", "sub": "ann", "exp": NOW + 60})
}

async fn identify(oidc: &Oidc, token: &str) -> Result<Option<Arc<UserInfo>>, Refusal> {
    oidc.identify(token, &digest(token), Timestamp::from_second(NOW).unwrap()).await
}

/// Who claims are, under options: (name, groups), or why nobody.
async fn judged(options: OidcOptions, claims: &Value) -> Result<(String, Vec<String>), String> {
    let (key, site) = (key(), Arc::new(Site::default()));
    site.publish(&[&key]);
    let oidc = Oidc::new(&options, site).unwrap();
    let user = identify(&oidc, &key.sign(claims).unwrap()).await;
    let user = user.map_err(|refusal| refusal.to_string())?;
    let user = user.ok_or_else(|| "another issuer".to_owned())?;
    assert_eq!(user.home, None);
    Ok((user.name.clone(), user.groups.clone()))
}

#[tokio::test]
async fn whom_claims_are_of() {
    let check = async |options: OidcOptions, change: Value, name: &str, groups: &[&str]| {
        let mut claims = claims();
        claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let mut expect: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        expect.push("system:authenticated".into());
        assert_eq!(judged(options, &claims).await, Ok((name.to_owned(), expect)), "{change}");
    };
    let name = "https://issuer.example/one#ann";
    check(options(), json!({}), name, &[]).await;
    check(options(), json!({"aud": ["x", "kcp"], "nbf": NOW + 300}), name, &[]).await;
    check(options(), json!({"groups": "a"}), name, &["a"]).await;
    check(options(), json!({"groups": ["a", "system:masters", "", "b"]}), name, &["a", "b"]).await;
    let prefixed =
        OidcOptions { username_prefix: "oidc:".into(), groups_prefix: "oidc:".into(), ..options() };
    let groups = json!({"groups": ["system:masters"]});
    check(prefixed, groups, "oidc:ann", &["oidc:system:masters"]).await;
    check(OidcOptions { username_prefix: "-".into(), ..options() }, json!({}), "ann", &[]).await;
    let email = OidcOptions { username_claim: "email".into(), ..options() };
    let address = "ann@example.com";
    check(email.clone(), json!({"email": address}), address, &[]).await;
    check(email, json!({"email": address, "email_verified": true}), address, &[]).await;
    let required = vec![("team".to_owned(), "blue".to_owned())];
    let required = OidcOptions { required_claims: required, ..options() };
    check(required, json!({"team": "blue"}), name, &[]).await;
}

#[tokio::test]
async fn claims_that_are_refused() {
    let check = async |options: OidcOptions, change: Value, why: &str| {
        let mut claims = claims();
        claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let judged = judged(options, &claims).await.unwrap_err();
        assert!(judged.contains(why), "{judged:?} {change}");
    };
    check(options(), json!({"iss": "https://issuer.example/two"}), "another issuer").await;
    check(options(), json!({"aud": "other"}), "expected audience \"kcp\"").await;
    check(options(), json!({"aud": null}), "\"aud\" is missing").await;
    check(options(), json!({"exp": NOW}), "token is expired").await;
    check(options(), json!({"exp": null}), "\"exp\" is missing").await;
    check(options(), json!({"exp": "later"}), "\"exp\" is malformed").await;
    check(options(), json!({"nbf": NOW + 301}), "not before").await;
    check(options(), json!({"sub": null}), "\"sub\" is missing").await;
    check(options(), json!({"sub": 5}), "\"sub\" is malformed").await;
    check(options(), json!({"groups": {"a": 1}}), "\"groups\" is malformed").await;
    let bare = OidcOptions { username_prefix: "-".into(), ..options() };
    check(bare.clone(), json!({"sub": "system:admin"}), "Kubernetes' own").await;
    check(bare, json!({"sub": ""}), "Kubernetes' own").await;
    let email = OidcOptions { username_claim: "email".into(), ..options() };
    check(email.clone(), json!({"email": "a", "email_verified": false}), "not verified").await;
    check(email, json!({"email": "a", "email_verified": "true"}), "malformed").await;
    let required = vec![("team".to_owned(), "blue".to_owned())];
    let required = OidcOptions { required_claims: required, ..options() };
    check(required.clone(), json!({}), "\"team\" is missing").await;
    check(required, json!({"team": "red"}), "value does not match").await;
    check(OidcOptions { algorithms: vec![], ..options() }, json!({}), "algorithm").await;
}

#[test]
fn options_that_make_no_sense() {
    let check = |options: OidcOptions, why: &str| {
        let site = Arc::new(Site::default());
        let error = Oidc::new(&options, site).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    check(OidcOptions { issuer: "http://a.example".into(), ..options() }, "URL of https");
    check(OidcOptions { issuer: "https://a.example?x".into(), ..options() }, "URL of https");
    check(OidcOptions { issuer: "issuer".into(), ..options() }, "URL of https");
    check(OidcOptions { client_id: String::new(), ..options() }, "client id");
    check(OidcOptions { username_prefix: "system:".into(), ..options() }, "Kubernetes' own");
    check(OidcOptions { groups_prefix: "system:a".into(), ..options() }, "Kubernetes' own");
    check(OidcOptions { algorithms: vec!["HS256".into()], ..options() }, "no algorithm");
}

#[tokio::test(start_paused = true)]
async fn keys_are_fetched_when_they_must_and_no_more() {
    let (first, second, foreign) = (key(), key(), key());
    let site = Arc::new(Site::default());
    site.publish(&[&first]);
    let oidc = Oidc::new(&options(), site.clone()).unwrap();
    let token = |key: &SigningKey, name: &str| {
        let mut claims = claims();
        claims["sub"] = json!(name);
        key.sign(&claims).unwrap()
    };
    let good = async |token: String| identify(&oidc, &token).await.is_ok();
    assert_eq!(site.fetched(), 0, "not before there is a token");
    assert!(good(token(&first, "a")).await && good(token(&first, "b")).await);
    assert_eq!(site.fetched(), 1);
    // Unknown keys lead to a fetch, but not to many.
    for name in ["a", "b", "c"] {
        assert!(!good(token(&foreign, name)).await);
    }
    assert_eq!(site.fetched(), 1, "too soon");
    site.publish(&[&first, &second]);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(good(token(&second, "a")).await);
    assert_eq!(site.fetched(), 2);
    // One at a time, for all who ask.
    tokio::time::advance(Duration::from_secs(10)).await;
    let many = (0..20).map(|number| good(token(&foreign, &number.to_string())));
    assert!(futures::future::join_all(many).await.iter().all(|good| !good));
    assert_eq!(site.fetched(), 3);
    // What the issuer has taken back is forgotten, unless the issuer is down.
    site.publish(&[&second]);
    site.down.store(true, Ordering::Relaxed);
    tokio::time::advance(Duration::from_secs(3600)).await;
    let kept = token(&first, "c");
    assert!(good(kept.clone()).await && good(token(&second, "c")).await);
    site.down.store(false, Ordering::Relaxed);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(!good(token(&first, "d")).await && good(token(&second, "d")).await);
    assert!(good(kept).await, "a token that was good is, until its end");
}

#[tokio::test(start_paused = true)]
async fn a_site_of_another_issuer_is_not_believed() {
    let key = key();
    let site = Arc::new(Site::default());
    site.publish(&[&key]);
    *site.issuer.lock() = Some("https://issuer.example/two");
    let oidc = Oidc::new(&options(), site.clone()).unwrap();
    let token = key.sign(&claims()).unwrap();
    let why = Refusal::wrong("oidc: authenticator not initialized");
    assert_eq!(identify(&oidc, &token).await, Err(why));
    *site.issuer.lock() = None;
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(identify(&oidc, &token).await.is_ok());
}
