//! Whose certificates a client believes: the system's, or those of a bundle that somebody gave.
//!
//! A bundle counts as Go's `crypto/x509` counts it, which is what the givers of kubeconfigs and of
//! `caBundle`s try theirs with: besides what an authority in it signed, a certificate that stands in
//! it is believed itself, whoever signed it and whether or not it is an authority's; and what is no
//! authority's signs nothing.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    WantsClientCert, verify_server_cert_signed_by_trust_anchor, verify_server_name,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

#[cfg(test)]
mod tests;

/// Certificates that are believed.
#[derive(Debug)]
pub struct Authorities {
    roots: RootCertStore,
    /// What stands in a bundle; nothing of the system's.
    given: Vec<CertificateDer<'static>>,
}

#[derive(Debug)]
struct Verifier {
    authorities: Authorities,
    provider: Arc<CryptoProvider>,
}

// === impl Authorities ===

impl Authorities {
    /// Those of the system. It reads some hundred files or a large one, so it blocks.
    #[must_use]
    pub fn system() -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self { roots, given: Vec::new() }
    }

    /// Those of a bundle in PEM. As Go does, what is no certificate is passed over.
    #[must_use]
    pub fn of_bundle(pem: &[u8]) -> Self {
        CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect()
    }

    /// Whether there is none, so that nobody is believed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty() && self.given.is_empty()
    }

    /// The beginning of a configuration of a client that believes these; TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// If the library was built without these versions.
    pub fn client(self) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Verifier { authorities: self, provider: provider.clone() };
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions()?;
        Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
    }
}

impl FromIterator<CertificateDer<'static>> for Authorities {
    /// Those of certificates. What is none is passed over.
    fn from_iter<T: IntoIterator<Item = CertificateDer<'static>>>(certificates: T) -> Self {
        let mut authorities = Self { roots: RootCertStore::empty(), given: Vec::new() };
        for certificate in certificates {
            let Ok((_, parsed)) = X509Certificate::from_der(&certificate) else { continue };
            if signs(&parsed) {
                // Not every parser takes what the other takes; then it is believed itself, at least.
                authorities.roots.add_parsable_certificates([certificate.clone()]);
            }
            authorities.given.push(certificate);
        }
        authorities
    }
}

/// Whether a certificate is an authority's (RFC 5280 §4.2.1.9). Those before version 3 could not say.
fn signs(certificate: &X509Certificate<'_>) -> bool {
    match certificate.basic_constraints() {
        Ok(Some(constraints)) => constraints.value.ca,
        Ok(None) => certificate.version() != X509Version::V3,
        Err(_) => false,
    }
}

// === impl Verifier ===

impl Verifier {
    /// What a certificate that is believed itself has to fulfil besides its name: it is valid now,
    /// and for a server.
    fn given(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
        let (_, certificate) =
            X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
        // Times before 1970 are before any of today's.
        let time = |seconds: i64| {
            let seconds = u64::try_from(seconds).unwrap_or_default();
            UnixTime::since_unix_epoch(Duration::from_secs(seconds))
        };
        let validity = certificate.validity();
        let not_before = time(validity.not_before.timestamp());
        let not_after = time(validity.not_after.timestamp());
        if now < not_before {
            return Err(CertificateError::NotValidYetContext { time: now, not_before });
        }
        if now > not_after {
            return Err(CertificateError::ExpiredContext { time: now, not_after });
        }
        let usage = certificate.extended_key_usage();
        match usage.map_err(|_| CertificateError::BadEncoding)? {
            Some(usage) if !usage.value.any && !usage.value.server_auth => {
                Err(CertificateError::InvalidPurpose)
            }
            _ => Ok(()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let Authorities { roots, given } = &self.authorities;
        if given.contains(end_entity) {
            Self::given(end_entity, now)?;
        } else {
            let algorithms = self.provider.signature_verification_algorithms.all;
            let signed = verify_server_cert_signed_by_trust_anchor(
                &parsed,
                roots,
                intermediates,
                now,
                algorithms,
            );
            signed.map_err(|error| match error {
                // By an authority of the same name with another key, which is not the one it says.
                Error::InvalidCertificate(CertificateError::BadSignature) => {
                    CertificateError::UnknownIssuer.into()
                }
                other => other,
            })?;
        }
        verify_server_name(&parsed, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
