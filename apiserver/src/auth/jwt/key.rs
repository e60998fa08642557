//! Public keys: what signatures are checked by.

use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{self, RsaParameters, UnparsedPublicKey, VerificationAlgorithm};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey as Parsed;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::Algorithm;

/// A public key. Texts of bytes are big-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PublicKey {
    Rsa {
        /// The modulus, without leading zeros.
        modulus: Vec<u8>,
        /// The exponent, without leading zeros.
        exponent: Vec<u8>,
    },
    Ec {
        curve: Curve,
        /// The uncompressed point.
        point: Vec<u8>,
    },
    Ed25519(Vec<u8>),
}

/// A curve of NIST's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curve {
    P256,
    P384,
    P521,
}

/// Why something is no key of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    /// It can't be read.
    #[error("it is not well formed")]
    Malformed,
    /// Tokens aren't signed by its kind.
    #[error(
        "its kind is not supported: keys are RSA of 2048 bits or more, or EC on P-256, P-384 or P-521"
    )]
    Unsupported,
}

// === impl Curve ===

impl Curve {
    /// The name in key sets.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::P521 => "P-521",
        }
    }

    /// The bytes of one coordinate.
    pub(super) fn width(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    fn of_oid(oid: &str) -> Option<Self> {
        match oid {
            "1.2.840.10045.3.1.7" => Some(Self::P256),
            "1.3.132.0.34" => Some(Self::P384),
            "1.3.132.0.35" => Some(Self::P521),
            _ => None,
        }
    }
}

// === impl PublicKey ===

impl PublicKey {
    /// Reads a `SubjectPublicKeyInfo`.
    ///
    /// # Errors
    /// For what is none, and for other kinds of keys.
    pub(crate) fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        let (_, info) = SubjectPublicKeyInfo::from_der(der).map_err(|_| KeyError::Malformed)?;
        match info.parsed().map_err(|_| KeyError::Malformed)? {
            Parsed::RSA(rsa) => Self::rsa(rsa.modulus, rsa.exponent),
            Parsed::EC(point) => {
                let oid = info.algorithm.parameters.as_ref().and_then(|any| any.as_oid().ok());
                let curve = oid.and_then(|oid| Curve::of_oid(&oid.to_id_string()));
                Self::ec(curve.ok_or(KeyError::Unsupported)?, point.data())
            }
            _ => Err(KeyError::Unsupported),
        }
    }

    /// An RSA key.
    pub(super) fn rsa(modulus: &[u8], exponent: &[u8]) -> Result<Self, KeyError> {
        let strip =
            |bytes: &[u8]| bytes.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<u8>>();
        let (modulus, exponent) = (strip(modulus), strip(exponent));
        // The smallest and largest that signatures are checked by.
        if !(256..=1024).contains(&modulus.len()) || !(1..=8).contains(&exponent.len()) {
            return Err(KeyError::Unsupported);
        }
        Ok(Self::Rsa { modulus, exponent })
    }

    /// A key on a curve.
    pub(super) fn ec(curve: Curve, point: &[u8]) -> Result<Self, KeyError> {
        let whole = point.len() == 1 + 2 * curve.width() && point.first() == Some(&4);
        if whole { Ok(Self::Ec { curve, point: point.to_vec() }) } else { Err(KeyError::Malformed) }
    }

    /// The algorithm that tokens are signed by with such a key, unless something else is said.
    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::Ec { curve: Curve::P256, .. } => Algorithm::Es256,
            Self::Ec { curve: Curve::P384, .. } => Algorithm::Es384,
            Self::Ec { curve: Curve::P521, .. } => Algorithm::Es512,
            Self::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// Whether the signature is by this key and algorithm; never, where they don't fit.
    pub(super) fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let raw = |by: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(by, key).verify(message, signature).is_ok()
        };
        match (self, algorithm) {
            (Self::Rsa { modulus, exponent }, algorithm) => {
                let Some(by) = rsa_parameters(algorithm) else { return false };
                let key = PublicKeyComponents { n: &**modulus, e: &**exponent };
                key.verify(by, message, signature).is_ok()
            }
            (Self::Ec { curve: Curve::P256, point }, Algorithm::Es256) => {
                raw(&signature::ECDSA_P256_SHA256_FIXED, point)
            }
            (Self::Ec { curve: Curve::P384, point }, Algorithm::Es384) => {
                raw(&signature::ECDSA_P384_SHA384_FIXED, point)
            }
            (Self::Ec { curve: Curve::P521, point }, Algorithm::Es512) => {
                raw(&signature::ECDSA_P521_SHA512_FIXED, point)
            }
            (Self::Ed25519(key), Algorithm::EdDsa) => raw(&signature::ED25519, key),
            _ => false,
        }
    }
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::Rs256 => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Rs384 => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::Rs512 => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::Ps256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::Ps384 => Some(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::Ps512 => Some(&signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::Es512 | Algorithm::EdDsa => None,
    }
}

/// The id of a key as upstream gives it: the hash of its `SubjectPublicKeyInfo`.
pub(super) fn key_id(spki: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(spki))
}
