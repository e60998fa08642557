//! Private keys: what tokens are signed with.

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair, RSA_PKCS1_SHA256};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::json;

use super::key::key_id;
use super::{Algorithm, KeyError, PublicKey};

/// A private key, with the public one that goes with it.
pub(crate) struct SigningKey {
    id: String,
    public: PublicKey,
    pair: Pair,
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// Why a token was not signed: the key's own failure.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("sign a token")]
pub(crate) struct SignError;

// === impl SigningKey ===

impl SigningKey {
    /// Reads a private key in any of its usual forms: PKCS #8, SEC 1, PKCS #1.
    ///
    /// # Errors
    /// For what is none, and for other kinds of keys.
    pub(crate) fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let curves: [&'static EcdsaSigningAlgorithm; 3] = [
            &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
            &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
            &signature::ECDSA_P521_SHA512_FIXED_SIGNING,
        ];
        for curve in curves {
            if let Ok(pair) = EcdsaKeyPair::from_private_key_der(curve, der) {
                let spki = pair.public_key().as_der().map_err(|_| KeyError::Malformed)?;
                return Self::new(spki.as_ref(), Pair::Ecdsa(pair));
            }
        }
        let pair = RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der));
        let pair = pair.map_err(|_| KeyError::Unsupported)?;
        let spki = pair.public_key().as_der().map_err(|_| KeyError::Malformed)?;
        Self::new(spki.as_ref(), Pair::Rsa(pair))
    }

    fn new(spki: &[u8], pair: Pair) -> Result<Self, KeyError> {
        Ok(Self { id: key_id(spki), public: PublicKey::from_spki(spki)?, pair })
    }

    /// The id under which its public key is known.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The public key.
    pub(crate) fn public(&self) -> &PublicKey {
        &self.public
    }

    /// A token that makes these claims.
    ///
    /// # Errors
    /// When the key can't sign, which does not happen with one that could be read.
    pub(crate) fn sign(&self, claims: &impl Serialize) -> Result<String, SignError> {
        let algorithm: Algorithm = self.public.algorithm();
        let header = json!({"alg": algorithm.name(), "kid": self.id});
        let claims = serde_json::to_vec(claims).map_err(|_| SignError)?;
        let mut token = URL_SAFE_NO_PAD.encode(header.to_string());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Ecdsa(pair) => {
                pair.sign(&random, token.as_bytes()).map_err(|_| SignError)?.as_ref().to_vec()
            }
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, token.as_bytes(), &mut signature)
                    .map_err(|_| SignError)?;
                signature
            }
        };
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }
}

/// Never shows the key.
impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}
