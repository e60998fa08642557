//! Why a call failed, in words that are safe to show to a tenant.

/// Why a call was not answered. Texts follow those of Go's client, which people know from
/// kube-apiserver, but name no address that a name resolved to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The URL can't be called.
    #[error("the URL can't be called: {0}")]
    Url(&'static str),
    /// The bundle of certificate authorities can't be used.
    #[error("unable to load root certificates: unable to parse bytes as PEM block")]
    Bundle,
    /// The name has no address.
    #[error("dial tcp: lookup {0}: no such host")]
    Unknown(Box<str>),
    /// No address of the name may be reached.
    #[error("dial tcp: {0}: the address is not one that this server calls")]
    Refused(Box<str>),
    /// No connection.
    #[error("dial tcp: {0}")]
    Connect(&'static str),
    /// No trust.
    #[error("tls: {0}")]
    Tls(Box<str>),
    /// The connection broke, or what came was no HTTP.
    #[error("EOF")]
    Broken,
    /// The answer is too large.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// All of it took too long.
    #[error("context deadline exceeded")]
    Timeout,
    /// The answer's status is not one of success.
    #[error("{}", status_text(*.0))]
    Status(u16),
}

/// What client-go makes of a status without a body, for a POST.
fn status_text(code: u16) -> String {
    let text = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 => "forbidden",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        410 => "the server indicated that the requested resource is gone",
        415 => "the media type of the request is not supported",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        500.. => "an error on the server (\"unknown\") has prevented the request from succeeding",
        code => {
            return format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            );
        }
    };
    text.to_owned()
}

// === impl CallError ===

impl CallError {
    /// Whether it is about reaching the server, which Go's client tells with the URL.
    pub(crate) fn is_transport(&self) -> bool {
        !matches!(self, Self::Status(_) | Self::Bundle | Self::Url(_))
    }

    /// What a failed handshake tells.
    pub(super) fn handshake(error: &std::io::Error, host: &str) -> Self {
        use rustls::{CertificateError as Certificate, Error as Tls};
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Tls>());
        let why = match inner {
            Some(Tls::InvalidCertificate(wrong)) => {
                let why = match wrong {
                    Certificate::UnknownIssuer => "certificate signed by unknown authority".into(),
                    Certificate::Expired | Certificate::ExpiredContext { .. } => {
                        "certificate has expired or is not yet valid".into()
                    }
                    Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                        "certificate has expired or is not yet valid".into()
                    }
                    Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                        format!("certificate is not valid for {host}")
                    }
                    _ => "certificate is not valid".into(),
                };
                format!("failed to verify certificate: x509: {why}")
            }
            Some(Tls::AlertReceived(_)) => "the server refused the handshake".into(),
            Some(_) => "the server does not answer as a TLS server".into(),
            None => return Self::Broken,
        };
        Self::Tls(why.into())
    }

    /// What a failed connect tells.
    pub(super) fn connect(error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        Self::Connect(match error.kind() {
            ErrorKind::ConnectionRefused => "connect: connection refused",
            ErrorKind::NetworkUnreachable => "connect: network is unreachable",
            ErrorKind::HostUnreachable => "connect: no route to host",
            ErrorKind::TimedOut => "i/o timeout",
            _ => "connect: failed",
        })
    }
}
