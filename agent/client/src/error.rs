//! Why a request got no answer.

use std::sync::Arc;

/// Why a request got no answer, in words that may be shown to who named the server: no address that
/// a name resolved to, and nothing that came from the server.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The host's name has no address.
    #[error("the host {0} has no address")]
    Unknown(Arc<str>),
    /// None of the host's addresses may be reached.
    #[error("the host {0} has no address that may be reached from here")]
    Refused(Arc<str>),
    /// No connection was made.
    #[error("connect to {host}: {why}")]
    Connect {
        /// Whom to.
        host: Arc<str>,
        /// What the system said.
        why: &'static str,
    },
    /// The server is not trusted, or does not trust us.
    #[error("TLS with {host}: {why}")]
    Tls {
        /// Whom with.
        host: Arc<str>,
        /// What is wrong.
        why: Arc<str>,
    },
    /// A file can't be read, or what is in it is of no use.
    #[error("the {what} can't be used: {why}")]
    Material {
        /// What it is for.
        what: &'static str,
        /// What is wrong.
        why: Arc<str>,
    },
    /// The connection ended before the answer did, or what came is no HTTP.
    #[error("the connection to {0} broke")]
    Broken(Arc<str>),
    /// The server took too long.
    #[error("{host} took too long to {what}")]
    Late {
        /// Who.
        host: Arc<str>,
        /// Over what.
        what: &'static str,
    },
    /// The answer, or one line of a watch, is too large.
    #[error("{host} sent more than {most} bytes")]
    TooLarge {
        /// Who.
        host: Arc<str>,
        /// What is taken.
        most: usize,
    },
}

// === impl Error ===

impl Error {
    /// What a client's error comes from, if it is that the server was not reached or broke off.
    /// `None` for what a server answered.
    pub fn of(error: &kube::Error) -> Option<&Self> {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        // Chains are short; the bound only makes that certain.
        for _ in 0..16 {
            let present = cause?;
            if let Some(found) = present.downcast_ref() {
                return Some(found);
            }
            // The client's own errors show their cause as their own, and hide it from `source`.
            if let Some(kube::Error::Service(inner)) = present.downcast_ref::<kube::Error>()
                && let Some(found) = inner.downcast_ref()
            {
                return Some(found);
            }
            cause = present.source();
        }
        None
    }

    /// What a failed connect tells.
    pub(crate) fn connect(host: &Arc<str>, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let why = match error.kind() {
            ErrorKind::ConnectionRefused => "connection refused",
            ErrorKind::NetworkUnreachable => "network is unreachable",
            ErrorKind::HostUnreachable => "no route to host",
            ErrorKind::TimedOut => "timed out",
            _ => "failed",
        };
        Self::Connect { host: host.clone(), why }
    }

    /// What a failed handshake tells.
    pub(crate) fn handshake(host: &Arc<str>, error: &std::io::Error) -> Self {
        use rustls::{CertificateError as Certificate, Error as Tls};
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Tls>());
        let why = match inner {
            Some(Tls::InvalidCertificate(wrong)) => match wrong {
                Certificate::UnknownIssuer => "its certificate is by an unknown authority",
                Certificate::Expired | Certificate::ExpiredContext { .. } => {
                    "its certificate has expired"
                }
                Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                    "its certificate is not valid yet"
                }
                Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                    "its certificate is for other names"
                }
                _ => "its certificate is not valid",
            },
            Some(Tls::AlertReceived(_)) => "the server refused the handshake",
            Some(_) => "the server does not answer as a TLS server",
            None => return Self::Broken(host.clone()),
        };
        Self::Tls { host: host.clone(), why: why.into() }
    }
}
