//! Tokens signed by each kind of key, and those that nobody has signed.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{self, EcdsaKeyPair, KeyPair};
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::{any, proptest};
use serde_json::{Value, json};

use super::jwk::JwkSet;
use super::*;

fn pem(name: &str, der: &[u8]) -> String {
    format!("-----BEGIN {name}-----\n{}\n-----END {name}-----\n", STANDARD.encode(der))
}

/// Every kind of key: its PKCS #8 form and its public one.
fn keys() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut keys = Vec::new();
    for curve in [
        &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
        &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
        &signature::ECDSA_P521_SHA512_FIXED_SIGNING,
    ] {
        let pair = EcdsaKeyPair::generate(curve).unwrap();
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        let private = pair.to_pkcs8v1().unwrap();
        keys.push((private.as_ref().to_vec(), public.as_ref().to_vec()));
    }
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    let private: Pkcs8V1Der<'_> = pair.as_der().unwrap();
    keys.push((private.as_ref().to_vec(), public.as_ref().to_vec()));
    keys
}

#[test]
fn each_kind_of_key_signs_and_is_believed_alone() {
    let claims = json!({"iss": "me", "exp": 5});
    let all = keys();
    for (index, (private, public)) in all.iter().enumerate() {
        let pem = pem("PRIVATE KEY", private) + &pem("PUBLIC KEY", public);
        let read = read_keys(&pem).unwrap();
        let [PemKey::Private(signing), PemKey::Public(id, public)] = read.as_slice() else {
            panic!("{read:?}")
        };
        assert_eq!((signing.id(), signing.public()), (&**id, public));
        let text = signing.sign(&claims).unwrap();
        let token = Token::parse(&text).unwrap();
        assert_eq!(token.claims::<Value>().unwrap(), claims);
        assert_eq!(token.key_id(), Some(&**id));
        for (other, (_, spki)) in all.iter().enumerate() {
            let other_key = PublicKey::from_spki(spki).unwrap();
            let signed = token.is_signed_by(&other_key, other_key.algorithm());
            assert_eq!(signed, index == other, "{} {}", public.algorithm().name(), other);
        }
        // The algorithm is the key's, whatever the token says.
        let algorithm = public.algorithm();
        assert!(token.is_signed_by(public, algorithm));
        let wrong = if algorithm == Algorithm::Rs256 { Algorithm::Ps256 } else { Algorithm::Rs256 };
        assert!(!token.is_signed_by(public, wrong));
        // By a key set it is the same key.
        let set = json!({"keys": [public.jwk(id)]}).to_string();
        let set = JwkSet::parse(set.as_bytes()).unwrap();
        let found: Vec<&PublicKey> = set.candidates(Some(id), algorithm).collect();
        assert_eq!(found, [public]);
        assert!(set.knows(Some(id)) && !set.knows(Some("other")));
        assert_eq!(set.candidates(Some("other"), algorithm).count(), 0);
        assert_eq!(set.candidates(Some(id), wrong).count(), 0);
    }
}

#[test]
fn nothing_in_a_token_can_be_changed() {
    let (private, _) = keys().swap_remove(0);
    let signing = SigningKey::from_der(&private).unwrap();
    let key = signing.public();
    let text = signing.sign(&json!({"sub": "a"})).unwrap();
    let parts: Vec<&str> = text.split('.').collect();
    let [header, claims, signed] = parts.as_slice() else { panic!("{text}") };
    let other = URL_SAFE_NO_PAD.encode(json!({"sub": "b"}).to_string());
    let check = |text: String, good: bool| {
        let token = Token::parse(&text);
        let found = token.is_some_and(|token| token.is_signed_by(key, key.algorithm()));
        assert_eq!(found, good, "{text}");
    };
    check(format!("{header}.{claims}.{signed}"), true);
    check(format!("{header}.{other}.{signed}"), false);
    check(format!("{header}.{claims}."), false);
    check(format!("{header}.{claims}"), false);
    check(format!("{header}.{claims}.{signed}.{signed}"), false);
    for algorithm in ["none", "HS256", "RS256", "ES384", "es256", ""] {
        let header = json!({"alg": algorithm, "kid": signing.id()}).to_string();
        check(format!("{}.{claims}.{signed}", URL_SAFE_NO_PAD.encode(header)), false);
    }
    let extended = json!({"alg": "ES256", "crit": ["b64"], "b64": false}).to_string();
    check(format!("{}.{claims}.{signed}", URL_SAFE_NO_PAD.encode(extended)), false);
}

/// The example of RFC 7515, appendix A.3.
#[test]
fn a_token_of_somebody_else() {
    let set = json!({"keys": [{
        "kty": "EC",
        "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    }]});
    let set = JwkSet::parse(set.to_string().as_bytes()).unwrap();
    let text = "eyJhbGciOiJFUzI1NiJ9.\
        eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
        DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let token = Token::parse(text).unwrap();
    let algorithm = token.algorithm().unwrap();
    let mut keys = set.candidates(token.key_id(), algorithm);
    assert!(keys.any(|key| token.is_signed_by(key, algorithm)));
}

#[test]
fn key_sets_hold_what_can_be_used() {
    let point = URL_SAFE_NO_PAD.encode([1; 32]);
    let ec = json!({"kty": "EC", "crv": "P-256", "x": point, "y": point, "kid": "a"});
    let with = |changes: Value| {
        let mut key = ec.clone();
        key.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        key
    };
    let check = |key: Value, expect: usize| {
        let set = json!({"keys": [key]}).to_string();
        let set = JwkSet::parse(set.as_bytes()).unwrap();
        assert_eq!(set.candidates(None, Algorithm::Es256).count(), expect, "{key}");
    };
    check(ec.clone(), 1);
    check(with(json!({"use": "sig", "alg": "ES256", "x5c": ["unknown"]})), 1);
    for change in [
        json!({"use": "enc"}),
        json!({"alg": "HS256"}),
        json!({"alg": "ES384"}),
        json!({"crv": "P-384"}),
        json!({"crv": "secp256k1"}),
        json!({"kty": "oct", "k": "c2VjcmV0"}),
        json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"}),
        json!({"x": URL_SAFE_NO_PAD.encode([1; 31])}),
        json!({"x": URL_SAFE_NO_PAD.encode([1; 33])}),
        json!({"x": "?"}),
        json!({"x": null}),
    ] {
        check(with(change), 0);
    }
    check(json!("no key"), 0);
    assert!(JwkSet::parse(b"{}").is_none() && JwkSet::parse(b"[]").is_none());
}

#[test]
fn files_hold_keys_or_are_refused() {
    let check = |pem: &str, expect: Result<usize, KeyError>| {
        assert_eq!(read_keys(pem).map(|keys| keys.len()), expect, "{pem}");
    };
    check("", Ok(0));
    check("no PEM", Ok(0));
    check(&pem("SOMETHING ELSE", b"x"), Ok(0));
    check(&pem("PUBLIC KEY", b"x"), Err(KeyError::Malformed));
    check(&pem("CERTIFICATE", b"x"), Err(KeyError::Malformed));
    check(&pem("PRIVATE KEY", b"x"), Err(KeyError::Unsupported));
}

#[test]
fn times_and_texts() {
    let time = |text: &str| serde_json::from_str::<NumericDate>(text).ok().map(|time| time.0);
    assert_eq!((time("5"), time("5.9"), time("-1")), (Some(5), Some(5), Some(-1)));
    assert_eq!((time("\"5\""), time("1e300"), time("null")), (None, None, None));
    let texts = |text: &str| serde_json::from_str::<Texts>(text).ok().map(|texts| texts.0);
    assert_eq!(texts("\"a\""), Some(vec!["a".into()]));
    assert_eq!(texts("[\"a\",\"b\"]"), Some(vec!["a".into(), "b".into()]));
    assert_eq!((texts("5"), texts("[5]")), (None, None));
}

proptest! {
    #[test]
    fn outside_bytes_do_no_harm(text in ".{0,200}", der in any::<Vec<u8>>()) {
        drop(Token::parse(&text));
        drop(Token::parse(&format!("{}.{text}.", URL_SAFE_NO_PAD.encode(&der))));
        drop(JwkSet::parse(&der));
        drop(PublicKey::from_spki(&der));
        drop(SigningKey::from_der(&der));
        drop(read_keys(&text));
    }
}
