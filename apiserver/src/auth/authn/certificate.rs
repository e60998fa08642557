//! Client certificates.

use std::sync::Arc;

use contract::{AGENT_PREFIX, AGENTS, AgentUri};
use machinery::ClusterName;
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::auth::{Agent, Credential, UserInfo};

/// Whom a certificate is of, and until when.
#[derive(Debug)]
pub(in crate::auth) struct Subject {
    /// CN; empty if there is none.
    pub(in crate::auth) name: String,
    /// Every O.
    groups: Vec<String>,
    /// The beginning of its validity, in seconds since 1970.
    not_before: i64,
    /// The end of its validity, in seconds since 1970.
    pub(in crate::auth) expires: i64,
    /// The one alternative name, if there is one and it is a URI.
    uri: Option<String>,
}

/// Reads the subject of a certificate.
pub(in crate::auth) fn subject(leaf: &CertificateDer<'_>) -> Option<Subject> {
    let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next().and_then(|name| name.as_str().ok());
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok());
    Some(Subject {
        name: name.unwrap_or_default().to_owned(),
        groups: groups.map(str::to_owned).collect(),
        uri: uri(&certificate),
        not_before: certificate.validity().not_before.timestamp(),
        expires: certificate.validity().not_after.timestamp(),
    })
}

/// The one alternative name of a certificate, if it is a URI.
fn uri(certificate: &X509Certificate<'_>) -> Option<String> {
    let names = certificate.subject_alternative_name().ok()??;
    match names.value.general_names.as_slice() {
        [GeneralName::URI(uri)] => Some((*uri).to_owned()),
        _ => None,
    }
}

// === impl Subject ===

impl Subject {
    /// Whether the name or a group is that of agents. Then it must be an agent's, or is nobody's.
    pub(in crate::auth) fn is_agent(&self) -> bool {
        self.name.starts_with(AGENT_PREFIX) || self.groups.iter().any(|group| group == AGENTS)
    }

    /// The agent whose certificate this is, all of it as our own authority makes them.
    pub(in crate::auth) fn agent(&self) -> Option<Arc<UserInfo>> {
        let uid = self.name.strip_prefix(AGENT_PREFIX).filter(|uid| !uid.is_empty())?;
        let uri = AgentUri::parse(self.uri.as_deref()?)?;
        let cluster = ClusterName::parse(uri.cluster).ok()?;
        if self.groups != [AGENTS] {
            return None;
        }
        let (not_before, expires) = (self.not_before, self.expires);
        let credential = Credential::Certificate { not_before, expires };
        let agent = Agent::new(cluster, uri.name, uid, credential);
        let user = UserInfo::known(&self.name, &[AGENTS]);
        Some(Arc::new(UserInfo { uid: uid.to_owned(), agent: Some(Arc::new(agent)), ..user }))
    }

    /// The caller: CN is the name, every O a group. Without a name it is nobody.
    pub(in crate::auth) fn user(&self) -> Option<Arc<UserInfo>> {
        if self.name.is_empty() {
            return None;
        }
        let groups: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        Some(Arc::new(UserInfo::known(&self.name, &groups)))
    }
}
