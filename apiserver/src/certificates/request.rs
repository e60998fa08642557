//! PKCS#10 requests (RFC 2986).

use std::io::Cursor;

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension};
use x509_parser::public_key::PublicKey;

/// Largest request that is looked at, in bytes; one for an RSA key of 16 kbit has 5 KB.
const LARGEST: usize = 64 << 10;

/// Bits of the weakest RSA key that is taken.
const WEAKEST_RSA: usize = 2048;

/// What is asked for. The holder of the key has signed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Every CN.
    pub(crate) names: Vec<String>,
    /// Every O.
    pub(crate) groups: Vec<String>,
    /// Alternative names that are URIs.
    pub(crate) uris: Vec<String>,
    /// Whether the subject has other parts, or parts that are no text.
    pub(crate) other_subject: bool,
    /// Whether there are other alternative names.
    pub(crate) other_names: bool,
    /// Whether it is to be an authority.
    pub(crate) authority: bool,
    /// Whether the key is too weak to be used.
    pub(crate) weak: bool,
    /// The public key (SubjectPublicKeyInfo).
    pub(crate) key: Vec<u8>,
}

// === impl Request ===

impl Request {
    /// Reads a request as PEM and checks its signature.
    ///
    /// # Errors
    /// What is wrong with it, in upstream's words as far as they are known.
    pub(crate) fn parse(pem: &[u8]) -> Result<Self, String> {
        let no_request = || "PEM block type must be CERTIFICATE REQUEST".to_owned();
        if pem.len() > LARGEST {
            return Err(format!("must be at most {LARGEST} bytes"));
        }
        let (block, _) = Pem::read(Cursor::new(pem)).map_err(|_| no_request())?;
        if block.label != "CERTIFICATE REQUEST" {
            return Err(no_request());
        }
        let malformed = || "asn1: structure error: malformed certificate request".to_owned();
        let (rest, request) =
            X509CertificationRequest::from_der(&block.contents).map_err(|_| malformed())?;
        if !rest.is_empty() {
            return Err("asn1: syntax error: trailing data".to_owned());
        }
        request.verify_signature().map_err(|_| unverified(&request))?;
        let mut found = Self::default();
        found.read_subject(&request);
        found.read_extensions(&request);
        let key = &request.certification_request_info.subject_pki;
        found.weak = match key.parsed() {
            Ok(PublicKey::RSA(key)) => key.key_size() < WEAKEST_RSA,
            Ok(PublicKey::EC(_)) => false,
            // Ed25519 is known by its identifier alone.
            Ok(PublicKey::Unknown(_)) => false,
            Ok(_) | Err(_) => true,
        };
        found.key = key.raw.to_vec();
        Ok(found)
    }

    /// That what is asked for is no authority, and the key is good.
    ///
    /// # Errors
    /// Why no signer makes a certificate of it.
    pub(super) fn sound(&self) -> Result<(), String> {
        if self.authority {
            return Err("certificates of authorities are not issued".to_owned());
        }
        if self.weak {
            return Err("the key is too weak, or of an unknown kind".to_owned());
        }
        Ok(())
    }

    fn read_subject(&mut self, request: &X509CertificationRequest<'_>) {
        use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
        for part in request.certification_request_info.subject.iter_attributes() {
            let list = match part.attr_type() {
                kind if *kind == OID_X509_COMMON_NAME => &mut self.names,
                kind if *kind == OID_X509_ORGANIZATION_NAME => &mut self.groups,
                _ => {
                    self.other_subject = true;
                    continue;
                }
            };
            match part.as_str() {
                Ok(text) => list.push(text.to_owned()),
                Err(_) => self.other_subject = true,
            }
        }
    }

    fn read_extensions(&mut self, request: &X509CertificationRequest<'_>) {
        for extension in request.requested_extensions().into_iter().flatten() {
            match extension {
                ParsedExtension::SubjectAlternativeName(names) => {
                    for name in &names.general_names {
                        match name {
                            GeneralName::URI(uri) => self.uris.push((*uri).to_owned()),
                            _ => self.other_names = true,
                        }
                    }
                }
                ParsedExtension::BasicConstraints(constraints) => self.authority |= constraints.ca,
                // Something that could not be read might be any of the above.
                ParsedExtension::ParseError { .. } => self.other_names = true,
                _ => {}
            }
        }
    }
}

/// What upstream says of a signature that is wrong.
fn unverified(request: &X509CertificationRequest<'_>) -> String {
    let of_rsa =
        matches!(request.certification_request_info.subject_pki.parsed(), Ok(PublicKey::RSA(_)));
    let text =
        if of_rsa { "crypto/rsa: verification error" } else { "x509: ECDSA verification failure" };
    text.to_owned()
}
