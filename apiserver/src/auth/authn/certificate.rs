//! Client certificates.

use std::sync::Arc;

use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::auth::UserInfo;

/// Takes any client certificate whose key the client holds; who signed it is asked afterwards, so
/// that a foreign one is answered with 401 rather than a broken handshake.
#[derive(Debug)]
pub(crate) struct LateVerifier(pub(crate) Arc<dyn ClientCertVerifier>);

/// Whom a certificate is of, and until when.
#[derive(Debug)]
pub(super) struct Subject {
    /// CN; empty if there is none.
    pub(super) name: String,
    /// Every O.
    groups: Vec<String>,
    /// The end of its validity, in seconds since 1970.
    pub(super) expires: i64,
}

/// Reads the subject of a certificate.
pub(super) fn subject(leaf: &CertificateDer<'_>) -> Option<Subject> {
    let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next().and_then(|name| name.as_str().ok());
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok());
    Some(Subject {
        name: name.unwrap_or_default().to_owned(),
        groups: groups.map(str::to_owned).collect(),
        expires: certificate.validity().not_after.timestamp(),
    })
}

// === impl Subject ===

impl Subject {
    /// The caller: CN is the name, every O a group. Without a name it is nobody.
    pub(super) fn user(&self) -> Option<Arc<UserInfo>> {
        if self.name.is_empty() {
            return None;
        }
        let groups: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        Some(Arc::new(UserInfo::known(&self.name, &groups)))
    }
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
