//! An authority whose certificates are not the server's own.

use std::path::Path;

use apiserver::AuthOptions;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair,
};

use crate::client::TOKEN;

/// A certificate and its key, as PEM.
pub(crate) type Pair = (String, String);

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate that says this.
    pub(crate) fn certify(&self, params: &CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// The certificate of a person.
    pub(crate) fn person(&self, name: &str, groups: &[&str]) -> Pair {
        self.certify(&params(name, groups))
    }

    /// What makes a server know people by this authority, beside the administrator by their token.
    /// Its certificate is a file in `folder`.
    pub(crate) fn trusted(&self, folder: &Path) -> AuthOptions {
        let file = folder.join("people.crt");
        std::fs::write(&file, self.pem()).unwrap();
        AuthOptions {
            client_authorities: Some(file),
            admin_token: Some(TOKEN.into()),
            ..AuthOptions::default()
        }
    }
}

/// What the certificate of a client is to say.
pub(crate) fn params(name: &str, groups: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    for group in groups {
        params.distinguished_name.push(DnType::OrganizationName, *group);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}
