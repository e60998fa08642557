//! Tokens that agents sign with the key of their certificate, and whatever resembles one.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::Method;
use jiff::Timestamp;
use rcgen::KeyPair;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::agents::{secrets, yard};
use crate::authority::{Pair, params};
use crate::client::Ask;
use crate::yard::{Target, Yard, uri};

/// A token with these parts, signed with the key of a pair.
fn sign((_, key): &Pair, header: &Value, claims: &Value) -> String {
    let key = KeyPair::from_pem(key).unwrap().serialize_der();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key).unwrap();
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let text = format!("{header}.{claims}");
    let signature = key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// The header that shows the certificate of a pair.
fn header((certificate, _): &Pair) -> Value {
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    json!({"alg": "ES256", "typ": "JWT", "x5c": [STANDARD.encode(der)]})
}

/// What a token of a SyncTarget's agent claims that was made `age` seconds ago and lives so long.
fn claims(target: &Target, age: i64, seconds: i64) -> Value {
    let issued = Timestamp::now().as_second() - age;
    json!({
        "aud": "kcp.io/syncer",
        "sub": format!("system:syncer:{}", target.uid),
        "iat": issued,
        "exp": issued + seconds,
    })
}

async fn status(yard: &Yard, token: &str, path: &str) -> u16 {
    yard.by_token(token, Ask::get(path)).await.status.as_u16()
}

#[tokio::test]
async fn a_token_gives_what_the_certificate_gives() {
    let (yard, east, agent) = yard().await;
    let token = sign(&agent, &header(&agent), &claims(&east, 0, 3600));
    assert_eq!(status(&yard, &token, &east.path()).await, 200);
    let given = format!("{}/given", secrets("infra"));
    assert_eq!(status(&yard, &token, &given).await, 200);
    for path in [secrets("infra"), secrets("other"), format!("{}/plain", secrets("infra"))] {
        yard.by_token(&token, Ask::get(&path)).await.fails(403, "Forbidden");
    }
    let list = yard.by_token(&token, Ask::get(&format!("{}?{}", secrets("app"), east.query())));
    assert_eq!(list.await.json()["items"].as_array().unwrap().len(), 1);
    // It asks for the next certificate with it.
    let (body, _) = crate::yard::request(&east.params(), "kcp.io/syncer");
    let requests = format!("/clusters/infra/{}", crate::yard::REQUESTS);
    let made = yard.by_token(&token, Ask::new(Method::POST, &requests).json(&body)).await;
    assert_eq!(made.status, 201, "{made:?}");

    // A watch lasts no longer than the token.
    let short = sign(&agent, &header(&agent), &claims(&east, 0, 3));
    let path = format!("{}?{}&watch=1&resourceVersion=0", secrets("infra"), east.query());
    let watch = yard.by_token(&short, Ask::get(&path)).await;
    assert_eq!(watch.status, 200);
    assert!(watch.text().contains("\"ADDED\""), "{watch:?}");
    yard.by_token(&short, Ask::get(&east.path())).await.fails(401, "Unauthorized");

    // It goes when the certificate goes, and with the SyncTarget.
    let now = Timestamp::now() - jiff::SignedDuration::from_secs(2);
    let revoke = |time: Value| json!({"status": {"credentialsNotBefore": time}});
    let path = format!("{}/status", east.path());
    yard.change(&path, &revoke(json!(now.to_string()))).await;
    yard.by_token(&token, Ask::get(&east.path())).await.fails(401, "Unauthorized");
    yard.change(&path, &revoke(Value::Null)).await;
    assert_eq!(status(&yard, &token, &east.path()).await, 200);
    assert_eq!(yard.hub.admin(Ask::new(Method::DELETE, &east.path())).await.status, 200);
    yard.by_token(&token, Ask::get(&east.path())).await.fails(401, "Unauthorized");
    yard.hub.shutdown().await;
}

#[tokio::test]
async fn what_is_no_token_of_an_agent() {
    let (yard, east, agent) = yard().await;
    let (good, whole) = (header(&agent), claims(&east, 0, 600));
    assert_eq!(status(&yard, &sign(&agent, &good, &whole), &east.path()).await, 200);
    let with = |change: Value| {
        let mut claims = whole.clone();
        claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        sign(&agent, &good, &claims)
    };
    let shown = |change: Value| {
        let mut header = good.clone();
        header.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        sign(&agent, &header, &whole)
    };
    let west = yard.target("infra", "west", &json!({}), "bbbbbb").await;
    let other = yard.agent(&west).await;
    let named = || {
        let mut params = east.params();
        params.subject_alt_names = vec![uri(&east.uri())];
        params
    };
    let stranger = yard.by_people(&named());
    let master = yard.by_server(&params("ann", &["system:masters"]));
    let as_ann =
        json!({"aud": "kcp.io/syncer", "sub": "ann", "iat": whole["iat"], "exp": whole["exp"]});
    let own = yard.by_server(&named());
    let tokens = [
        ("for somebody else", with(json!({"aud": "https://kubernetes.default.svc"}))),
        ("for others, too", with(json!({"aud": ["kcp.io/syncer", "x"]}))),
        ("for nobody", with(json!({"aud": []}))),
        ("of somebody else", with(json!({"sub": format!("system:syncer:{}", west.uid)}))),
        ("of nobody", with(json!({"sub": ""}))),
        ("too long", sign(&agent, &good, &claims(&east, 0, 3601))),
        ("over", sign(&agent, &good, &claims(&east, 700, 600))),
        ("made tomorrow", sign(&agent, &good, &claims(&east, -86_400, 600))),
        ("without an end", with(json!({"exp": null}))),
        ("without a beginning", with(json!({"iat": null}))),
        ("without a certificate", shown(json!({"x5c": null}))),
        ("with an empty chain", shown(json!({"x5c": []}))),
        ("with nonsense for one", shown(json!({"x5c": ["AAAA"]}))),
        ("with no base64", shown(json!({"x5c": ["*"]}))),
        ("with another algorithm", shown(json!({"alg": "RS256"}))),
        ("unsigned", shown(json!({"alg": "none"}))),
        ("with an extension", shown(json!({"crit": ["x"]}))),
        ("with a chain without end", {
            let one = good["x5c"][0].clone();
            shown(json!({"x5c": vec![one; 50]}))
        }),
        ("by another key", sign(&other, &good, &whole)),
        ("by another agent", sign(&other, &header(&other), &whole)),
        ("by another authority", sign(&stranger, &header(&stranger), &whole)),
        ("of a person", sign(&master, &header(&master), &as_ann)),
    ];
    for (what, token) in &tokens {
        for path in [east.path(), secrets("root"), "/clusters/root/healthz".to_owned()] {
            let answer = yard.by_token(token, Ask::get(&path)).await;
            assert_eq!(answer.status, 401, "{what}: {path}: {answer:?}");
        }
    }
    let (mut text, _) =
        sign(&agent, &good, &whole).rsplit_once('.').map(|(a, b)| (a.to_owned(), b.len())).unwrap();
    text.push('.');
    assert_eq!(status(&yard, &text, &east.path()).await, 401, "without a signature");
    // The authority is what counts.
    assert_eq!(status(&yard, &sign(&own, &header(&own), &whole), &east.path()).await, 200);
    yard.hub.shutdown().await;
}
