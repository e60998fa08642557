//! Asking for a certificate: one CertificateSigningRequest, found again by its key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Ask, Error, JSON, Link, Told};
use contract::{AGENT_SIGNER, AGENTS, agent_name};
use http::Method;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::PairError;
use crate::target::TargetRef;

/// How far a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It waits for its signer.
    Pending,
    /// The certificate, as PEM.
    Issued(Vec<u8>),
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("make a key")]
    Key(#[source] rcgen::Error),
    #[error("reach the hub")]
    Hub(#[source] Error),
    #[error("the hub refuses the credential ({0}): {1}")]
    Credential(u16, String),
    #[error("the hub answers {0}: {1}")]
    Answer(u16, String),
    #[error("the request was {0}: {1}")]
    Refused(&'static str, String),
    #[error("read what was issued")]
    Certificate(#[source] PairError),
    #[error("what was issued is not for the agent of this SyncTarget")]
    Foreign,
}

// === impl RequestError ===

impl RequestError {
    /// Whether the same request can come to nothing any more.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Key(_) | Self::Refused(..) | Self::Certificate(_) | Self::Foreign => true,
            // Another identity has made it, which is gone now.
            Self::Credential(code, _) => *code == 403,
            Self::Hub(_) | Self::Answer(..) => false,
        }
    }
}

/// A new key, as PEM.
pub(super) fn new_key() -> Result<Vec<u8>, RequestError> {
    let key = KeyPair::generate().map_err(RequestError::Key)?;
    Ok(key.serialize_pem().into_bytes())
}

/// Asks for the certificate of a key, or how far that is.
pub(super) async fn step(
    link: &Link,
    target: &TargetRef,
    key: &[u8],
) -> Result<Progress, RequestError> {
    let key = std::str::from_utf8(key).ok().and_then(|key| KeyPair::from_pem(key).ok());
    let key = key.ok_or(RequestError::Key(rcgen::Error::CouldNotParseKeyPair))?;
    let collection =
        format!("{}/apis/certificates.k8s.io/v1/certificatesigningrequests", target.base());
    let path = format!("{collection}/{}", name(target, &key));
    let told = link.ask(Ask::get(&path)).await.map_err(RequestError::Hub)?;
    match told.status.as_u16() {
        200 => return progress(&body(&told)),
        // An agent is not told whether one is there that it may not see.
        404 | 403 => {}
        _ => return Err(failed(&told)),
    }
    let request = object(target, &key)?;
    let ask = Ask::with(Method::POST, &collection, JSON, request.to_string().into_bytes());
    let told = link.ask(ask).await.map_err(RequestError::Hub)?;
    match told.status.as_u16() {
        201 => progress(&body(&told)),
        // It is there, and is not ours to see.
        409 => Err(RequestError::Credential(403, message(&told))),
        _ => Err(failed(&told)),
    }
}

fn failed(told: &Told) -> RequestError {
    match told.status.as_u16() {
        code @ (401 | 403) => RequestError::Credential(code, message(told)),
        code => RequestError::Answer(code, message(told)),
    }
}

/// The name of the request for a key: a request is found again by it, and made once.
fn name(target: &TargetRef, key: &KeyPair) -> String {
    let digest = Sha256::digest(key.subject_public_key_info());
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("kcp-agent-{}-{digest}", target.uid)
}

fn object(target: &TargetRef, key: &KeyPair) -> Result<Value, RequestError> {
    let mut params = CertificateParams::new(Vec::new()).map_err(RequestError::Key)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, agent_name(&target.uid));
    params.distinguished_name.push(DnType::OrganizationName, AGENTS);
    let request = params.serialize_request(key).and_then(|request| request.pem());
    let request = request.map_err(RequestError::Key)?;
    Ok(json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name(target, key)},
        "spec": {
            "request": STANDARD.encode(request),
            "signerName": AGENT_SIGNER,
            "usages": ["client auth", "digital signature"],
        },
    }))
}

/// How far a request is.
fn progress(request: &Value) -> Result<Progress, RequestError> {
    let conditions = request.pointer("/status/conditions").and_then(Value::as_array);
    for condition in conditions.into_iter().flatten() {
        let text = |field: &str| condition.get(field).and_then(Value::as_str).unwrap_or_default();
        let what = match text("type") {
            "Denied" => "denied",
            "Failed" => "not fulfilled",
            _ => continue,
        };
        return Err(RequestError::Refused(what, text("message").to_owned()));
    }
    let issued = request.pointer("/status/certificate").and_then(Value::as_str);
    match issued.filter(|text| !text.is_empty()) {
        None => Ok(Progress::Pending),
        Some(text) => {
            // What is no base64 is no certificate, as its reader will say.
            Ok(Progress::Issued(STANDARD.decode(text).unwrap_or_default()))
        }
    }
}

fn body(told: &Told) -> Value {
    serde_json::from_slice(&told.body).unwrap_or_default()
}

/// The message of a `Status`.
fn message(told: &Told) -> String {
    body(told).get("message").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_a_request_is() {
        let check = |status: Value, expect: Result<Progress, &str>| {
            let got = progress(&json!({"status": status}));
            assert_eq!(got.map_err(|error| error.to_string()), expect.map_err(str::to_owned));
        };
        check(json!({}), Ok(Progress::Pending));
        check(json!({"conditions": [{"type": "Approved"}]}), Ok(Progress::Pending));
        check(json!({"certificate": "YQ=="}), Ok(Progress::Issued(b"a".to_vec())));
        let denied = json!({"conditions": [{"type": "Denied", "message": "no"}]});
        check(denied, Err("the request was denied: no"));
        let failed = json!({"conditions": [{"type": "Failed", "message": "no"}]});
        check(failed, Err("the request was not fulfilled: no"));
        check(json!(1), Ok(Progress::Pending));
    }

    #[test]
    fn a_request_is_named_by_its_key() {
        let target = TargetRef::new("infra", "east", "1234");
        let (one, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        assert_eq!(name(&target, &one), name(&target, &one));
        assert_ne!(name(&target, &one), name(&target, &other));
        assert!(name(&target, &one).starts_with("kcp-agent-1234-"));
    }
}
