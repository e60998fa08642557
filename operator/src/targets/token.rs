//! Bootstrap tokens: what an agent without a certificate introduces itself with.
//!
//! Invariants: a token is of one SyncTarget, by name and UID, and expires; it is there only as long as
//! the agent is not; no Secret is overwritten that is not such a token of this SyncTarget.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::{BOOTSTRAP_TARGET_NAME, BOOTSTRAP_TARGET_UID};
use jiff::{Timestamp, ToSpan};
use rustls::crypto::aws_lc_rs;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::index::TargetKey;
use crate::api::{Api, CallError};

/// How long a token is good for. Images are pulled within, even over slow lines.
const LIFE_MINUTES: i64 = 60;

/// A token with less than this left is made anew.
const LEAST_LEFT_MINUTES: i64 = 20;

/// How many names are tried, if others have those before.
const ATTEMPTS: u8 = 4;

/// The letters of tokens.
const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// The type of the Secrets of tokens.
const TYPE: &str = "bootstrap.kubernetes.io/token";

/// A token of the target that is good for some time, made if need be.
///
/// # Errors
/// When the hub takes none.
pub(crate) async fn ensure(
    hub: &Api,
    key: &TargetKey,
    now: Timestamp,
) -> Result<String, CallError> {
    for attempt in 0..ATTEMPTS {
        let id = id(key, attempt);
        let found = hub.get(&path(&id)).await?;
        match found.as_ref().map(|secret| held(secret, key)) {
            Some(None) => continue,
            Some(Some(held)) if held.expires > now + LEAST_LEFT_MINUTES.minutes() => {
                return Ok(format!("{id}.{}", held.secret));
            }
            Some(Some(_)) | None => {}
        }
        let secret = random()?;
        let expires = now + LIFE_MINUTES.minutes();
        hub.apply(&path(&id), &rendered(key, &id, &secret, expires)).await?;
        return Ok(format!("{id}.{secret}"));
    }
    Err(CallError::Nonsense)
}

/// Takes the tokens of a target away.
///
/// # Errors
/// When the hub does not answer.
pub(crate) async fn revoke(hub: &Api, key: &TargetKey) -> Result<(), CallError> {
    for attempt in 0..ATTEMPTS {
        let path = path(&id(key, attempt));
        let Some(secret) = hub.get(&path).await? else { return Ok(()) };
        if held(&secret, key).is_some() {
            let uid = secret["metadata"]["uid"].as_str().unwrap_or_default();
            return hub.delete(&path, uid).await;
        }
    }
    Ok(())
}

/// What is in the Secret of a token.
struct Held {
    secret: String,
    expires: Timestamp,
}

/// What is in a Secret, if it is a token of this very target.
fn held(secret: &Value, key: &TargetKey) -> Option<Held> {
    let entry = |name: &str| {
        let bytes = STANDARD.decode(secret["data"][name].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    let ours = secret["type"] == TYPE
        && entry(BOOTSTRAP_TARGET_UID)? == *key.uid
        && entry(BOOTSTRAP_TARGET_NAME)? == *key.name;
    // One that can't be read any more is ours, and worth nothing.
    ours.then(|| Held {
        secret: entry("token-secret").unwrap_or_default(),
        expires: entry("expiration")
            .and_then(|text| text.parse().ok())
            .unwrap_or(Timestamp::UNIX_EPOCH),
    })
}

fn rendered(key: &TargetKey, id: &str, secret: &str, expires: Timestamp) -> Value {
    let text = |text: &str| Value::from(STANDARD.encode(text));
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": format!("bootstrap-token-{id}"),
            "namespace": "kube-system",
            "labels": {agent::manifest::MANAGED_BY: agent::manifest::MANAGED_BY_OPERATOR},
        },
        "type": TYPE,
        "data": {
            "description": text(&format!("The agent of SyncTarget {}, until it has a certificate.", key.name)),
            "token-id": text(id),
            "token-secret": text(secret),
            "expiration": text(&format!("{expires:.0}")),
            "usage-bootstrap-authentication": text("true"),
            BOOTSTRAP_TARGET_NAME: text(&key.name),
            BOOTSTRAP_TARGET_UID: text(&key.uid),
        },
    })
}

fn path(id: &str) -> String {
    format!("/api/v1/namespaces/kube-system/secrets/bootstrap-token-{id}")
}

/// The public part of a target's token: always the same, so that it is found again.
fn id(key: &TargetKey, attempt: u8) -> String {
    letters(&Sha256::digest(format!("{}|{attempt}", key.uid)), 6)
}

/// The secret part of a token.
fn random() -> Result<String, CallError> {
    let mut bytes = [0; 32];
    let provider = aws_lc_rs::default_provider();
    provider.secure_random.fill(&mut bytes).map_err(|_| CallError::Nonsense)?;
    // Digests of what is random, so that every letter is as likely within a thousandth.
    Ok(letters(&bytes, 16))
}

/// Letters made of bytes, two for each.
fn letters(bytes: &[u8], number: usize) -> String {
    let pairs = bytes.chunks_exact(2).take(number);
    pairs
        .map(|pair| {
            let value = usize::from(pair[0]) << 8 | usize::from(pair[1]);
            char::from(LETTERS[value % LETTERS.len()])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(uid: &str) -> TargetKey {
        TargetKey { cluster: "a".into(), name: "east".into(), uid: uid.into() }
    }

    #[test]
    fn tokens_have_their_form() {
        let plain = |text: &str| text.bytes().all(|byte| LETTERS.contains(&byte));
        let id = id(&key("u"), 0);
        assert!(id.len() == 6 && plain(&id), "{id}");
        assert_ne!(id, super::id(&key("u"), 1));
        assert_ne!(id, super::id(&key("v"), 0));
        let (one, other) = (random().unwrap(), random().unwrap());
        assert!(one.len() == 16 && plain(&one), "{one}");
        assert_ne!(one, other);
    }

    #[test]
    fn only_tokens_of_the_target_are_its_own() {
        let expires: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let secret = rendered(&key("u"), "abcdef", "0123456789abcdef", expires);
        let found = held(&secret, &key("u")).unwrap();
        assert_eq!((found.secret.as_str(), found.expires), ("0123456789abcdef", expires));
        assert!(held(&secret, &key("v")).is_none(), "of the one before");
        let mut other = secret.clone();
        other["type"] = "Opaque".into();
        assert!(held(&other, &key("u")).is_none());
        assert!(held(&json!({}), &key("u")).is_none());
        let mut broken = secret;
        broken["data"]["expiration"] = "!".into();
        assert_eq!(held(&broken, &key("u")).unwrap().expires, Timestamp::UNIX_EPOCH);
    }
}
