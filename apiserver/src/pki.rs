//! The server's own certificates: a CA, a serving certificate, an administrator's and the operator's.
//!
//! With a directory they are kept in its `pki/`, readable by the owner alone, and used again at the
//! next start; the serving and the administrator's certificate are made anew when their names
//! change, when they near their end, or when the CA is another. Without a directory they live in
//! memory. Lifetimes: 10 years for the CA, 1 year for the others.

pub(crate) mod files;
mod handshake;
mod kubeconfig;
mod serving;
mod settings;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use contract::{OPERATOR, OPERATORS};
use jiff::{Span, Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType, SubjectPublicKeyInfo,
};
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use crate::auth::MASTERS;
use crate::certificates::Leaf;
use files::Keep;
use handshake::LateVerifier;

pub(crate) use kubeconfig::{admin_kubeconfig, operator_kubeconfig, write_kubeconfigs};
pub(crate) use serving::{Shown, Sources, Trusted};
pub use settings::{CipherSuite, NamedCertificate, TlsOptions, TlsVersion};

/// A certificate with less than this left is made anew at the start.
const RENEW_WITHIN_DAYS: i64 = 30;

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file cannot be read or written.
    #[error("access {path}")]
    File {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path} holds no usable {what}")]
    Content {
        /// The file.
        path: String,
        /// What it should hold.
        what: &'static str,
    },
    /// A certificate cannot be made.
    #[error("issue a certificate")]
    Issue(#[source] rcgen::Error),
    /// TLS does not take the certificates.
    #[error("set up TLS")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Every certificate that the server needs.
#[derive(Clone, Debug)]
pub(crate) struct Pki {
    /// The CA's certificate, as PEM.
    pub(crate) ca: String,
    /// The serving pair; the certificate may be followed by its chain.
    pub(crate) serving: Pair,
    /// The administrator's pair.
    pub(crate) admin: Pair,
    /// The operator's pair.
    pub(crate) operator: Pair,
    /// Other certificates by which clients are known, as PEM.
    pub(crate) client_authorities: String,
    /// Signs certificates of clients.
    pub(crate) issuer: Arc<ClientIssuer>,
}

/// The CA as it signs certificates of clients.
pub(crate) struct ClientIssuer(Issuer<'static, KeyPair>);

// === impl Pair ===

/// Never shows the key.
impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

// === impl ClientIssuer ===

impl ClientIssuer {
    /// Makes a certificate, as PEM: with what `leaf` says, and a serial number of its own.
    ///
    /// # Errors
    /// When the key or a name cannot be put into one.
    pub(crate) fn issue(&self, leaf: &Leaf) -> Result<String, rcgen::Error> {
        let key = SubjectPublicKeyInfo::from_der(&leaf.key)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        if let Some(group) = &leaf.group {
            params.distinguished_name.push(DnType::OrganizationName, group.as_str());
        }
        params.distinguished_name.push(DnType::CommonName, leaf.name.as_str());
        if let Some(uri) = &leaf.uri {
            params.subject_alt_names = vec![SanType::URI(uri.as_str().try_into()?)];
        }
        params.serial_number = Some(uuid::Uuid::new_v4().as_bytes().to_vec().into());
        let second = |time: Timestamp| {
            let seconds = u64::try_from(time.as_second()).unwrap_or_default();
            rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds)
        };
        params.not_before = second(leaf.not_before);
        params.not_after = second(leaf.not_after);
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if leaf.encipherment {
            params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Ok(params.signed_by(&key, &self.0)?.pem())
    }
}

/// Never shows the key.
impl std::fmt::Debug for ClientIssuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientIssuer").finish_non_exhaustive()
    }
}

// === impl Pki ===

impl Pki {
    /// Opens the certificates under `directory`, or makes them in memory; the serving certificate
    /// is for `names`, which are host names and addresses.
    ///
    /// # Errors
    /// When files cannot be read or written, or hold something else.
    pub(crate) fn open(
        directory: Option<&Path>,
        names: &[String],
        now: Timestamp,
    ) -> Result<Self, PkiError> {
        let keep = Keep::open(directory)?;
        let ca = match keep.load("ca")? {
            Some(pair) => pair,
            None => keep.store("ca", new_ca(now)?)?,
        };
        let key = KeyPair::from_pem(&ca.key).map_err(|_| keep.unusable("ca.key", "private key"))?;
        let issuer = Issuer::from_ca_cert_pem(&ca.certificate, key)
            .map_err(|_| keep.unusable("ca.crt", "certificate"))?;
        let serving = match keep.load("apiserver")? {
            Some(pair) if fits(&pair, &ca, names, now) => pair,
            _ => keep.store("apiserver", issue(&issuer, &Own::Server(names), now)?)?,
        };
        let admin = match keep.load("admin")? {
            Some(pair) if fits(&pair, &ca, &[], now) => pair,
            _ => keep.store("admin", issue(&issuer, &Own::Admin, now)?)?,
        };
        let operator = match keep.load("operator")? {
            Some(pair) if fits(&pair, &ca, &[], now) => pair,
            _ => keep.store("operator", issue(&issuer, &Own::Operator, now)?)?,
        };
        let issuer = Arc::new(ClientIssuer(issuer));
        let client_authorities = String::new();
        Ok(Self { ca: ca.certificate, serving, admin, operator, client_authorities, issuer })
    }

    /// Also knows clients by certificates that a CA of the file signed.
    ///
    /// # Errors
    /// When it cannot be read, or holds no certificate.
    pub(crate) fn trust_clients(&mut self, authorities: &Path) -> Result<(), PkiError> {
        self.client_authorities = read_authorities(authorities)?;
        Ok(())
    }

    /// Verifies client certificates by our CA, and those of [`Self::trust_clients`].
    ///
    /// # Errors
    /// When the CA is not usable.
    pub(crate) fn client_verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, PkiError> {
        verifier([self.ca.as_str(), &self.client_authorities])
    }

    /// Verifies client certificates by our CA alone.
    ///
    /// # Errors
    /// When the CA is not usable.
    pub(crate) fn own_verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, PkiError> {
        verifier([self.ca.as_str()])
    }
}

/// The TLS settings of the listener: HTTP/2 and HTTP/1.1, client certificates on offer.
///
/// # Errors
/// When the settings leave nothing that can be spoken.
pub(crate) fn server_config(
    options: &TlsOptions,
    shown: Arc<Shown>,
) -> Result<ServerConfig, PkiError> {
    let mut provider = aws_lc_rs::default_provider();
    options.choose(&mut provider);
    let verifier = Arc::new(LateVerifier::new(&provider));
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(options.versions())
        .map_err(|error| PkiError::Tls(Box::new(error)))?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(shown);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifies client certificates by the authorities of a file, and nothing else.
///
/// # Errors
/// When it cannot be read, or holds no certificate.
pub(crate) fn verifier_of(authorities: &Path) -> Result<Arc<dyn ClientCertVerifier>, PkiError> {
    verifier([read_authorities(authorities)?.as_str()])
}

fn verifier<'a>(
    authorities: impl IntoIterator<Item = &'a str>,
) -> Result<Arc<dyn ClientCertVerifier>, PkiError> {
    let mut roots = RootCertStore::empty();
    for pem in authorities {
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| PkiError::Tls(Box::new(error)))?;
            roots.add(certificate).map_err(|error| PkiError::Tls(Box::new(error)))?;
        }
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| PkiError::Tls(Box::new(error)))
}

/// Reads a file of certificates.
fn read_authorities(path: &Path) -> Result<String, PkiError> {
    let text = files::read(path)?;
    if CertificateDer::from_pem_slice(text.as_bytes()).is_err() {
        return Err(PkiError::Content { path: path.display().to_string(), what: "certificate" });
    }
    Ok(text)
}

/// What a certificate of the server's own is for.
enum Own<'a> {
    Server(&'a [String]),
    Admin,
    Operator,
}

fn new_ca(now: Timestamp) -> Result<Pair, PkiError> {
    let mut params = CertificateParams::default();
    validity(&mut params, now, 3650.days());
    params.distinguished_name.push(DnType::CommonName, "kcp-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
    ];
    let key = KeyPair::generate().map_err(PkiError::Issue)?;
    let certificate = params.self_signed(&key).map_err(PkiError::Issue)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn issue(issuer: &Issuer<'_, KeyPair>, leaf: &Own<'_>, now: Timestamp) -> Result<Pair, PkiError> {
    let names = match leaf {
        Own::Server(names) => names.to_vec(),
        Own::Admin | Own::Operator => Vec::new(),
    };
    let mut params = CertificateParams::new(names).map_err(PkiError::Issue)?;
    validity(&mut params, now, 365.days());
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    match leaf {
        Own::Server(_) => {
            params.distinguished_name.push(DnType::CommonName, "kcp-apiserver");
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        }
        Own::Operator => {
            params.distinguished_name.push(DnType::CommonName, OPERATOR);
            params.distinguished_name.push(DnType::OrganizationName, OPERATORS);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        }
        Own::Admin => {
            params.distinguished_name.push(DnType::CommonName, "kcp-admin");
            params.distinguished_name.push(DnType::OrganizationName, MASTERS);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        }
    }
    let key = KeyPair::generate().map_err(PkiError::Issue)?;
    let certificate = params.signed_by(&key, issuer).map_err(PkiError::Issue)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// From yesterday, as clocks differ, for so long.
fn validity(params: &mut CertificateParams, now: Timestamp, length: Span) {
    let day = |span: Span| {
        let date = now.to_zoned(jiff::tz::TimeZone::UTC).date().saturating_add(span);
        let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
        rcgen::date_time_ymd(date.year().into(), month, day)
    };
    params.not_before = day(-1.days());
    params.not_after = day(length);
}

/// Whether a kept leaf is still good: by this CA, for exactly these names, and for some time yet.
fn fits(leaf: &Pair, ca: &Pair, names: &[String], now: Timestamp) -> bool {
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes());
    let (Ok(leaf_der), Ok(ca_der)) = (der(&leaf.certificate), der(&ca.certificate)) else {
        return false;
    };
    let (Ok((_, certificate)), Ok((_, authority))) =
        (X509Certificate::from_der(&leaf_der), X509Certificate::from_der(&ca_der))
    else {
        return false;
    };
    let left = certificate.validity().not_after.timestamp() - now.as_second();
    let mut held = names_of(&certificate);
    let mut wanted = names.to_vec();
    held.sort_unstable();
    wanted.sort_unstable();
    left > RENEW_WITHIN_DAYS * 86_400
        && held == wanted
        && key_ids(&certificate).0.is_some_and(|by| Some(by) == key_ids(&authority).1)
        && KeyPair::from_pem(&leaf.key).is_ok_and(|key| {
            key.public_key_raw() == &*certificate.public_key().subject_public_key.data
        })
}

/// The host names and addresses of a certificate.
fn names_of(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let address = match bytes.len() {
                4 => <[u8; 4]>::try_from(*bytes).ok().map(IpAddr::from),
                _ => <[u8; 16]>::try_from(*bytes).ok().map(IpAddr::from),
            };
            address.map(|address| address.to_string())
        }
        _ => None,
    };
    names.value.general_names.iter().filter_map(text).collect()
}

/// The identifiers of the key that signed a certificate and of its own key.
fn key_ids<'c>(certificate: &'c X509Certificate<'_>) -> (Option<&'c [u8]>, Option<&'c [u8]>) {
    let (mut signer, mut own) = (None, None);
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                signer = id.key_identifier.as_ref().map(|id| id.0);
            }
            ParsedExtension::SubjectKeyIdentifier(id) => own = Some(id.0),
            _ => {}
        }
    }
    (signer, own)
}
