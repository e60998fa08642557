//! Keys from files of PEM.

use rustls_pki_types::pem::{PemObject, SectionKind};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::key::key_id;
use super::{KeyError, PublicKey, SigningKey};

/// One key of a file.
#[derive(Debug)]
pub(crate) enum PemKey {
    /// A public key, and its id.
    Public(String, PublicKey),
    /// A private key.
    Private(Box<SigningKey>),
}

/// Reads all keys of a file: private and public ones, and those of certificates. Other sections
/// are passed over, as upstream does.
///
/// # Errors
/// When a section is malformed, or a key of no use.
pub(crate) fn read_keys(pem: &str) -> Result<Vec<PemKey>, KeyError> {
    let mut keys = Vec::new();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem.as_bytes()) {
        let (kind, der) = section.map_err(|_| KeyError::Malformed)?;
        keys.push(match kind {
            SectionKind::PublicKey => PemKey::public(&der)?,
            SectionKind::Certificate => {
                let (_, certificate) =
                    X509Certificate::from_der(&der).map_err(|_| KeyError::Malformed)?;
                PemKey::public(certificate.public_key().raw)?
            }
            SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey => {
                PemKey::Private(Box::new(SigningKey::from_der(&der)?))
            }
            _ => continue,
        });
    }
    Ok(keys)
}

// === impl PemKey ===

impl PemKey {
    fn public(spki: &[u8]) -> Result<Self, KeyError> {
        Ok(Self::Public(key_id(spki), PublicKey::from_spki(spki)?))
    }

    /// The id and the public key.
    pub(crate) fn verifying(&self) -> (&str, &PublicKey) {
        match self {
            Self::Public(id, key) => (id, key),
            Self::Private(key) => (key.id(), key.public()),
        }
    }
}
