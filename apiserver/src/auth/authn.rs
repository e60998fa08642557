//! Who a caller is: by client certificate, by token, or not at all.
//!
//! Invariants: bad credentials are never taken for none, so they are 401 where anonymous callers
//! would pass; a certificate is checked in full once for each connection, and its expiry at each
//! request.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::auth::{MASTERS, UserInfo};
use crate::registry::{Error, Reason};

/// Knows callers.
#[derive(Debug)]
pub(crate) struct Authenticator {
    certificates: Arc<dyn ClientCertVerifier>,
    /// SHA-256 of the static admin token.
    token: Option<[u8; 32]>,
    token_user: Arc<UserInfo>,
    anonymous: Arc<UserInfo>,
}

/// What a connection's TLS handshake says of the caller.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// No certificate.
    Unknown,
    /// A certificate of ours.
    Certified {
        /// Its subject.
        user: Arc<UserInfo>,
        /// The end of its validity, in seconds since 1970.
        expires: i64,
    },
    /// A certificate that is not ours, or not valid.
    Rejected,
}

/// Takes any client certificate whose key the client holds; who signed it is asked afterwards, so
/// that a foreign one is answered with 401 rather than a broken handshake.
#[derive(Debug)]
pub(crate) struct LateVerifier(pub(crate) Arc<dyn ClientCertVerifier>);

// === impl Authenticator ===

impl Authenticator {
    /// Certificates are checked by `certificates`; `token` is that of the administrator, if any.
    pub(crate) fn new(certificates: Arc<dyn ClientCertVerifier>, token: Option<&str>) -> Self {
        Self {
            certificates,
            token: token.map(|token| Sha256::digest(token).into()),
            token_user: Arc::new(UserInfo::known("kcp-admin", &[MASTERS])),
            anonymous: Arc::new(UserInfo::anonymous()),
        }
    }

    /// Judges the certificates that a client showed.
    pub(crate) fn peer(&self, chain: Option<&[CertificateDer<'_>]>) -> Peer {
        let Some((leaf, others)) = chain.and_then(<[_]>::split_first) else {
            return Peer::Unknown;
        };
        if self.certificates.verify_client_cert(leaf, others, UnixTime::now()).is_err() {
            return Peer::Rejected;
        }
        subject(leaf).unwrap_or(Peer::Rejected)
    }

    /// The caller of one request.
    ///
    /// # Errors
    /// [`Reason::Unauthorized`] when there are credentials and they are wrong.
    pub(crate) fn authenticate(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<Arc<UserInfo>, Error> {
        match peer {
            Peer::Certified { user, expires } if *expires > now.as_second() => {
                return Ok(user.clone());
            }
            Peer::Certified { .. } | Peer::Rejected => {
                return self.by_token(headers)?.ok_or_else(unauthorized);
            }
            Peer::Unknown => {}
        }
        Ok(self.by_token(headers)?.unwrap_or_else(|| self.anonymous.clone()))
    }

    fn by_token(&self, headers: &HeaderMap) -> Result<Option<Arc<UserInfo>>, Error> {
        let Some(header) = headers.get(AUTHORIZATION) else {
            return Ok(None);
        };
        let given = header.to_str().ok().and_then(|text| text.split_once(' '));
        let token = match given {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
            // Other schemes are no credentials of ours; upstream looks past them too.
            _ => return Ok(None),
        };
        let given: [u8; 32] = Sha256::digest(token).into();
        // Digests are compared in constant time, byte by byte without an early end.
        let equal = self
            .token
            .as_ref()
            .is_some_and(|known| known.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0);
        if equal { Ok(Some(self.token_user.clone())) } else { Err(unauthorized()) }
    }
}

/// The one answer to credentials that are wrong.
fn unauthorized() -> Error {
    Error::new(Reason::Unauthorized, "Unauthorized")
}

/// CN is the name, every O a group.
fn subject(leaf: &CertificateDer<'_>) -> Option<Peer> {
    let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok().filter(|name| !name.is_empty())?;
    let groups: Vec<&str> =
        subject.iter_organization().filter_map(|group| group.as_str().ok()).collect();
    let user = Arc::new(UserInfo::known(name, &groups));
    Some(Peer::Certified { user, expires: certificate.validity().not_after.timestamp() })
}

// === impl LateVerifier ===

impl ClientCertVerifier for LateVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
