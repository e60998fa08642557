//! Where a server is, whom it is believed to be, and as whom it is asked.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use http::Uri;
use http::uri::Authority;
use machinery::kubeconfig::{Access, Identity};
use machinery::network::Reachable;
use rustls_pki_types::ServerName;

/// What every pod finds about the cluster that it runs in.
const IN_CLUSTER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How a server is reached.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it is.
    pub server: Server,
    /// The name that its certificate must be for, where that is not the host of its URL.
    pub server_name: Option<String>,
    /// Who vouches for it.
    pub authorities: Authorities,
    /// As whom it is asked.
    pub credentials: Credentials,
    /// Which of its addresses may be connected to; `None` for any. It is for URLs that others than
    /// who runs the program have named.
    pub reachable: Option<Reachable>,
    /// What the program calls itself, as `kcp-agent/0.1.0`.
    pub user_agent: &'static str,
}

/// The URL of a server: `https://HOST[:PORT][/PATH]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub(crate) authority: Authority,
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
    /// What all paths begin with, without a slash at its end.
    pub(crate) path: String,
}

/// Whose certificates a server may have.
#[derive(Clone)]
pub enum Authorities {
    /// The system's.
    System,
    /// These, as PEM.
    Pem(Vec<u8>),
    /// Those in a file of PEM, which is read again for each connection.
    File(PathBuf),
}

/// As whom a server is asked.
#[derive(Clone)]
pub enum Credentials {
    /// As nobody.
    None,
    /// With a client certificate and its key, as PEM.
    Certificate {
        /// The certificate with its chain.
        chain: Vec<u8>,
        /// Its private key.
        key: Vec<u8>,
    },
    /// With a bearer token.
    Token(String),
    /// With the bearer token in a file, which is read again when it changes.
    TokenFile(PathBuf),
}

/// Why settings are of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The URL of the server.
    #[error("the server's URL {0}")]
    Url(&'static str),
    /// The name that its certificate must be for.
    #[error("the server's name for TLS is no host name")]
    ServerName,
    /// A certificate, a key or a token.
    #[error("the {what} can't be used: {why}")]
    Material {
        /// What it is for.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// This is no pod.
    #[error("this does not run in a pod: {0} is not set")]
    NoPod(&'static str),
}

// === impl Settings ===

impl Settings {
    /// Those of a kubeconfig. A token's file is relative to `directory`.
    ///
    /// # Errors
    /// When its URL is none of a server.
    pub fn of_access(
        access: Access,
        directory: &Path,
        user_agent: &'static str,
    ) -> Result<Self, SettingsError> {
        Ok(Self {
            server: access.server.parse()?,
            server_name: access.server_name,
            authorities: access.authority.map_or(Authorities::System, Authorities::Pem),
            credentials: match access.identity {
                Identity::Certificate { chain, key } => Credentials::Certificate { chain, key },
                Identity::Token(token) => Credentials::Token(token),
                Identity::TokenFile(path) => Credentials::TokenFile(directory.join(path)),
            },
            reachable: None,
            user_agent,
        })
    }

    /// Those of the cluster that this pod runs in, as its ServiceAccount.
    ///
    /// # Errors
    /// When this is no pod.
    pub fn in_cluster(user_agent: &'static str) -> Result<Self, SettingsError> {
        const HOST: &str = "KUBERNETES_SERVICE_HOST";
        const PORT: &str = "KUBERNETES_SERVICE_PORT";
        let host = std::env::var(HOST).map_err(|_| SettingsError::NoPod(HOST))?;
        let port = std::env::var(PORT).map_err(|_| SettingsError::NoPod(PORT))?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let directory = Path::new(IN_CLUSTER);
        Ok(Self {
            server: format!("https://{host}:{port}").parse()?,
            server_name: None,
            authorities: Authorities::File(directory.join("ca.crt")),
            credentials: Credentials::TokenFile(directory.join("token")),
            reachable: None,
            user_agent,
        })
    }

    /// The name that the server's certificate must be for.
    pub(crate) fn tls_name(&self) -> Result<ServerName<'static>, SettingsError> {
        let name = self.server_name.clone().unwrap_or_else(|| self.server.host.to_string());
        ServerName::try_from(name).map_err(|_| SettingsError::ServerName)
    }
}

// === impl Server ===

impl Server {
    /// The host's name or address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What all paths begin with: empty, or a path without a slash at its end.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The same server with another path, as `/clusters/infra`.
    #[must_use]
    pub fn with_path(&self, path: &str) -> Self {
        Self { path: path.trim_end_matches('/').to_owned(), ..self.clone() }
    }
}

impl FromStr for Server {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let wrong = SettingsError::Url;
        let uri: Uri = text.parse().map_err(|_| wrong("is none"))?;
        if uri.scheme_str() != Some("https") {
            return Err(wrong("does not begin with https://"));
        }
        let authority = uri.authority().ok_or(wrong("has no host"))?.clone();
        if authority.as_str().contains('@') {
            return Err(wrong("names a user"));
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(wrong("has more than a path"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong("has no host"));
        }
        let port = match authority.as_str().strip_prefix(authority.host()).unwrap_or_default() {
            "" => 443,
            port => port.trim_start_matches(':').parse().map_err(|_| wrong("has a wrong port"))?,
        };
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { host: host.into(), port, path, authority })
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}{}", self.authority, self.path)
    }
}

// === impl Authorities ===

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("System"),
            Self::Pem(pem) => write!(f, "Pem({} bytes)", pem.len()),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

// === impl Credentials ===

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is in them is secret.
        match self {
            Self::None => f.write_str("None"),
            Self::Certificate { .. } => f.write_str("Certificate"),
            Self::Token(_) => f.write_str("Token"),
            Self::TokenFile(path) => f.debug_tuple("TokenFile").field(path).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_servers() {
        let check = |text: &str, expect: (&str, u16, &str)| {
            let server: Server = text.parse().unwrap();
            assert_eq!((server.host(), server.port(), server.path()), expect, "{text}");
        };
        check("https://a.io", ("a.io", 443, ""));
        check("https://a.io/", ("a.io", 443, ""));
        check("https://10.0.0.1:6443", ("10.0.0.1", 6443, ""));
        check("https://[::1]:6443/clusters/root/", ("::1", 6443, "/clusters/root"));
        check("https://a.io:1/x/clusters/y", ("a.io", 1, "/x/clusters/y"));
        for wrong in [
            "",
            "a.io",
            "http://a.io",
            "https://",
            "https://u@a.io",
            "https://u:p@a.io",
            "https://a.io?x=y",
            "https://a.io/#x",
            "https://a.io:",
            "https://a.io:x",
            "/clusters/a",
        ] {
            assert!(wrong.parse::<Server>().is_err(), "{wrong}");
        }
        let server: Server = "https://a.io:1/x".parse().unwrap();
        assert_eq!(server.with_path("/clusters/*").to_string(), "https://a.io:1/clusters/*");
    }

    #[test]
    fn secrets_are_not_shown() {
        let certificate =
            Credentials::Certificate { chain: b"c".to_vec(), key: b"secret".to_vec() };
        let shown = format!("{certificate:?} {:?}", Credentials::Token("secret".into()));
        assert_eq!(shown, "Certificate Token");
    }
}
