//! A token that shows an agent's certificate (RFC 7519, with `x5c` of RFC 7515 section 4.1.6), signed
//! with the certificate's key.

use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use contract::{AGENT_SIGNER, AGENT_TOKEN_SECONDS, agent_name};
use jiff::Timestamp;
use rcgen::KeyPair;
use serde_json::json;
use x509_parser::pem::Pem;

use super::Pair;
use crate::target::TargetRef;

/// How long after it was signed a token is replaced: at 80 % of its life.
pub(super) const RENEWAL: Duration =
    Duration::from_secs(AGENT_TOKEN_SECONDS.unsigned_abs() / 5 * 4);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenError {
    #[error("the certificate can't be read")]
    Certificate,
    #[error("the certificate's key is none that tokens are signed with")]
    Key,
}

/// Signs a token for the agent of a SyncTarget.
pub(super) fn sign(pair: &Pair, target: &TargetRef, now: Timestamp) -> Result<String, TokenError> {
    let chain = Pem::iter_from_buffer(pair.chain());
    let chain = chain.map(|pem| pem.map(|pem| STANDARD.encode(pem.contents)));
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|_| TokenError::Certificate)?;
    let key = std::str::from_utf8(pair.key()).ok().and_then(|key| KeyPair::from_pem(key).ok());
    let key = key.ok_or(TokenError::Key)?;
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key.serialize_der());
    let key = key.map_err(|_| TokenError::Key)?;
    let begin = now.as_second();
    let header = json!({"alg": "ES256", "typ": "JWT", "x5c": chain});
    let claims = json!({
        "aud": AGENT_SIGNER,
        "sub": agent_name(&target.uid),
        "iat": begin,
        "exp": begin.saturating_add(AGENT_TOKEN_SECONDS),
    });
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let text = format!("{header}.{claims}");
    let signature = key.sign(&SystemRandom::new(), text.as_bytes()).map_err(|_| TokenError::Key)?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use rcgen::{CertificateParams, PKCS_ED25519};
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_token_shows_the_certificate_and_is_signed_by_its_key() {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
        let chain = [certificate.pem(), certificate.pem()].concat();
        let pair = Pair::new(chain.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
        let target = TargetRef::new("infra", "east", "1234");
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let token = sign(&pair, &target, now).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key_raw());
        public.verify(signed.as_bytes(), &signature).unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let json = |part: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        let der = STANDARD.encode(certificate.der());
        assert_eq!(json(header), json!({"alg": "ES256", "typ": "JWT", "x5c": [der, der]}));
        let claims = json(claims);
        assert_eq!(claims["sub"], "system:syncer:1234");
        assert_eq!(claims["aud"], "kcp.io/syncer");
        let length = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
        assert_eq!(length, 3600);
        assert_eq!(RENEWAL.as_secs(), 2880);
    }

    #[test]
    fn a_key_of_another_kind_signs_nothing() {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
        let chain = certificate.pem();
        let pair = Pair::new(chain.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
        let target = TargetRef::new("infra", "east", "1234");
        assert!(matches!(sign(&pair, &target, Timestamp::UNIX_EPOCH), Err(TokenError::Key)));
    }
}
